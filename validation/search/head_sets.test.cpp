// SPDX-License-Identifier: Apache-2.0
#include "validation/search/head_sets.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/files/error.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/subspaces.h"

namespace headlab {
namespace {

std::string scenario_text(const HeadSet& set) {
  return "[scenario]\nname = \"heads\"\n[data]\nn = 10\ndesign = { law = \"normal\", dim = " +
         std::to_string(set.sizes.d) +
         " }\nregression = { law = \"zero\" }\nnoise = { law = \"normal\", sd = 1 }\n"
         "[heads]\ncount = " +
         std::to_string(set.sizes.heads) + "\ndim = " + std::to_string(set.sizes.k) +
         "\nsubspaces = " + set.toml() +
         "\nkernel = { law = \"gaussian\", bandwidth = 0.5 }\n"
         "[queries]\nlaw = \"design\"\ncount = 1\n[run]\nreplicates = 8\n";
}

TEST(HeadSets, EverySetIsAScenarioThatMakesTheSameHeads) {
  for (const HeadSizes& sizes : std::vector<HeadSizes>{{2, 2, 4}, {3, 2, 6}, {4, 1, 3}}) {
    for (const HeadSet& set : head_sets(sizes, 5)) {
      const Scenario scenario = parse_scenario(scenario_text(set), "heads.toml");
      // Not nearly: the very same numbers, or a replay would give other bits.
      EXPECT_EQ(subspace_bases(scenario.conditions[0]), set.subspaces()) << set.toml();
    }
  }
  HeadSet other = head_sets({2, 2, 4}, 0).at(0);
  const Scenario scenario = parse_scenario(scenario_text(other), "heads.toml");
  other.law = OrthogonalSubspaces{};
  EXPECT_NE(subspace_bases(scenario.conditions[0]), other.subspaces());
}

TEST(HeadSets, FamiliesAreCompleteAndEverySetIsWrittenOnce) {
  const auto count = [](const std::vector<HeadSet>& sets, const std::string& family) {
    return std::count_if(sets.begin(), sets.end(),
                         [&](const HeadSet& set) { return set.family == family; });
  };
  const auto pairs = head_sets({2, 2, 4}, 3);
  EXPECT_EQ(count(pairs, "named"), 2);
  EXPECT_EQ(count(pairs, "principal angles"), 17 * 18 / 2);
  EXPECT_EQ(count(pairs, "blocks"), 0);
  const auto threes = head_sets({3, 2, 6}, 3);
  EXPECT_EQ(count(threes, "equiangular"), 15);
  EXPECT_EQ(count(threes, "blocks"), 12 * 13 / 2);
  EXPECT_EQ(count(threes, "haar"), 3);
  std::set<std::string> texts;
  for (const HeadSet& set : threes) texts.insert(set.toml());
  EXPECT_EQ(texts.size(), threes.size());
  // Where the heads do not fit side by side only those remain that need no room.
  for (const HeadSet& set : head_sets({4, 1, 3}, 2)) {
    EXPECT_TRUE(set.family == "haar" || set.toml() == "{ law = \"aligned\" }") << set.toml();
  }
}

TEST(HeadSets, SimpleSetsCountFewerNumbersAndDigits) {
  const auto find = [](const std::vector<HeadSet>& sets, const std::string& toml) {
    const auto found = std::find_if(sets.begin(), sets.end(),
                                    [&](const HeadSet& set) { return set.toml() == toml; });
    if (found == sets.end()) throw std::runtime_error(toml + " is not there");
    return found->simplicity;
  };
  const auto sets = head_sets({2, 2, 4}, 1);
  const auto aligned = find(sets, "{ law = \"aligned\" }");
  const auto shared = find(sets, "{ law = \"principal_angles\", angles = [0, 1.5708] }");
  const auto equal = find(sets, "{ law = \"principal_angles\", angles = [0.7, 0.7] }");
  const auto two = find(sets, "{ law = \"principal_angles\", angles = [0.7, 1.2] }");
  EXPECT_EQ(aligned.numbers, 0);
  EXPECT_EQ(shared.numbers, 2);
  EXPECT_EQ(shared.digits, 0);
  EXPECT_EQ(equal.numbers, 1);
  EXPECT_EQ(equal.digits, 1);
  EXPECT_EQ(two.numbers, 2);
  EXPECT_EQ(two.digits, 3);
}

TEST(HeadSets, SizesThatHoldNoHeadsAreRefused) {
  EXPECT_THROW(head_sets({1, 1, 2}, 0), std::invalid_argument);
  EXPECT_THROW(head_sets({2, 0, 2}, 0), std::invalid_argument);
  EXPECT_THROW(head_sets({2, 3, 2}, 0), std::invalid_argument);
}

}  // namespace
}  // namespace headlab
