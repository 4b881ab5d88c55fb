// SPDX-License-Identifier: Apache-2.0
#include "validation/difference/pairing.h"

#include <cmath>

#include <gtest/gtest.h>

#include "engine/testing/hand_made_result.h"
#include "engine/testing/stored_condition.h"

namespace headlab {
namespace {

ConditionResult simulated(const std::vector<std::string>& sets, std::uint64_t replicates = 1000) {
  Scenario scenario = hand_made::scenario(sets);
  scenario.conditions[0].replicates = replicates;
  return run(scenario, {.backend = "reference", .threads = 2}).conditions.at(0);
}

TEST(Pairing, KnowsTheNodesOfAnyNumberOfReplicates) {
  for (const std::uint64_t replicates : {8, 255, 256, 257, 1000, 1032, 2000, 4096, 5001}) {
    EXPECT_EQ(jackknife_node_count(replicates, false),
              hand_made::condition_result(hand_made::scenario().conditions[0], replicates)
                  .tree.jackknife_nodes()
                  .size())
        << replicates;
  }
}

TEST(Pairing, HasTheJackknifeOfTheDifferenceOfAllQueriesTogether) {
  const ConditionResult a = simulated({}), b = simulated({"heads.kernel.bandwidth=0.6"});
  const auto of_a = jackknifed_estimates(a.tree, a.plan.head_weights, a.plan.truth);
  const auto of_b = jackknifed_estimates(b.tree, b.plan.head_weights, b.plan.truth);
  const auto errors = paired_errors(stored_condition(a), stored_condition(b));
  ASSERT_TRUE(errors);
  std::map<std::string, const Jackknifed*> samples;
  for_each_number<const Jackknifed>(
      of_a, [&](const std::string& name, int, const Jackknifed& one) { samples[name] = &one; });
  std::size_t compared = 0;
  for_each_number<const Jackknifed>(
      of_b, [&](const std::string& name, int, const Jackknifed& other) {
        const double expected = (other - *samples.at(name)).figure(of_a.node_counts).mcse;
        ASSERT_TRUE(errors->contains(name)) << name;
        const double found = errors->at(name);
        if (std::isnan(expected)) {
          EXPECT_TRUE(std::isnan(found)) << name;
        } else {
          EXPECT_LE(std::abs(found - expected), 1e-9 * expected) << name;
          ++compared;
        }
      });
  EXPECT_EQ(errors->size(), samples.size());
  EXPECT_GT(compared, 15u);
  // Common draws make the difference more precise.
  const double joint = std::hypot(a.estimates.mse.mcse, b.estimates.mse.mcse);
  EXPECT_LT(errors->at("mse"), 0.7 * joint);
}

TEST(Pairing, HasWhatBothHave) {
  const auto errors =
      paired_errors(stored_condition(simulated({})),
                    stored_condition(simulated({"heads.count=3", "heads.subspaces={law=\"haar\"}",
                                                "queries.points=[[0,0,0,0]]"})));
  ASSERT_TRUE(errors);
  EXPECT_TRUE(errors->contains("queries[0].head_bias[1]"));
  EXPECT_FALSE(errors->contains("queries[0].head_bias[2]"));
  EXPECT_FALSE(errors->contains("queries[1].mse"));
}

TEST(Pairing, PairsFiguresOfDraws) {
  const std::string heads = "heads.subspaces={ law = \"haar\", redraw = true }";
  const ConditionResult a = simulated({heads}, 1024);
  const ConditionResult b = simulated({heads, "heads.kernel.bandwidth=0.6"}, 1024);
  const auto errors = paired_errors(stored_condition(a), stored_condition(b));
  ASSERT_TRUE(errors);
  const auto of_a = jackknifed_averages(a.tree, a.plan.head_weights, a.plan.truth);
  const auto of_b = jackknifed_averages(b.tree, b.plan.head_weights, b.plan.truth);
  EXPECT_EQ(errors->at("mse"), (of_b.mse - of_a.mse).figure(of_a.node_counts).mcse);
  EXPECT_LT(errors->at("mse"), std::hypot(a.estimates.mse.mcse, b.estimates.mse.mcse));
  // Heads that are drawn once have no draw in common with these.
  EXPECT_FALSE(paired_errors(
      stored_condition(a), stored_condition(simulated({"heads.subspaces={law=\"haar\"}"}, 1024))));
}

TEST(Pairing, NeedsTheSameReplicates) {
  EXPECT_FALSE(
      paired_errors(stored_condition(simulated({}, 1000)), stored_condition(simulated({}, 1008))));
  EXPECT_FALSE(
      paired_errors(stored_condition(simulated({}, 5)), stored_condition(simulated({}, 5))));
}

}  // namespace
}  // namespace headlab
