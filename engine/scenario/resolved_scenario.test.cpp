// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include <gtest/gtest.h>

#include "engine/scenario/condition.h"
#include "engine/scenario/law_reader.h"
#include "engine/scenario/plan_fingerprint.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/setup_laws.h"
#include "engine/testing/hand_made_result.h"
#include "kernels/testing/paths.h"

namespace headlab {
namespace {

/// Heads that are to be learned and weights that are to be found have no plan yet.
bool has_plan(const Condition& condition) {
  return !learns_heads_once(condition) &&
         !std::holds_alternative<OptimalWeights>(*condition.weights);
}

void expect_same_conditions(const Scenario& a, const Scenario& b) {
  ASSERT_EQ(a.conditions.size(), b.conditions.size());
  EXPECT_EQ(a.swept, b.swept);
  for (std::size_t i = 0; i < a.conditions.size(); ++i) {
    const Condition &one = a.conditions[i], &other = b.conditions[i];
    EXPECT_EQ(one.replicates, other.replicates);
    EXPECT_EQ(one.swept, other.swept);
    EXPECT_EQ(one.design_seed, other.design_seed);
    if (!has_plan(one)) continue;
    const Plan plan = make_plan(one), again = make_plan(other);
    EXPECT_EQ(plan_sha256(plan), plan_sha256(again));
    EXPECT_TRUE(shares_draws(plan, again));
    EXPECT_EQ(plan.layout(), again.layout());
  }
}

TEST(ResolvedScenario, HasTheConditionsOfEveryShippedScenario) {
  int scenarios = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test::scenario_dir())) {
    if (entry.path().extension() != ".toml") continue;
    SCOPED_TRACE(entry.path().string());
    const Scenario scenario = read_scenario(entry.path().string());
    expect_same_conditions(scenario,
                           parse_scenario(resolved_toml(scenario), "resolved.toml", {}, "/"));
    ++scenarios;
  }
  EXPECT_GT(scenarios, 5);
}

TEST(ResolvedScenario, WritesOutDefaultsAndTheArgumentsOfSet) {
  const std::string text = resolved_toml(hand_made::scenario({"heads.kernel.bandwidth=0.25"}));
  for (const char* line : {"fixed_design = false", "weights = { law = \"uniform\" }",
                           "estimator = \"conditional\"", "moments = \"pairwise\"", "seed = 7",
                           "kernel = { law = \"gaussian\", bandwidth = 0.25 }"}) {
    EXPECT_NE(text.find(std::string(line) + "\n"), std::string::npos) << line << "\n" << text;
  }
  // A seed that has no effect would be rejected.
  EXPECT_EQ(text.find("design_seed"), std::string::npos);
  const std::string fixed = resolved_toml(hand_made::scenario({"data.fixed_design=true"}));
  EXPECT_NE(fixed.find("design_seed = 0\n"), std::string::npos) << fixed;
  const std::string haar = resolved_toml(hand_made::scenario({"heads.subspaces={law=\"haar\"}"}));
  EXPECT_NE(haar.find("subspaces = { law = \"haar\", seed = 0, redraw = false }\n"),
            std::string::npos)
      << haar;
}

TEST(ResolvedScenario, LeavesSweptKeysToTheSweep) {
  const std::string sweep =
      "[sweep]\n\"run.estimator\" = [\"plain\", \"conditional\"]\n"
      "\"heads.subspaces\" = [{ law = \"haar\", seed = 3 }, { law = \"aligned\" }]\n"
      "\"data.fixed_design\" = [true, false]\n";
  const Scenario scenario = hand_made::scenario({}, sweep);
  const std::string text = resolved_toml(scenario);
  expect_same_conditions(scenario, parse_scenario(text, "resolved.toml"));
  EXPECT_EQ(text.find("estimator = \"conditional\"\n"), std::string::npos) << text;
  // The comparison sees another scenario.
  EXPECT_NE(
      plan_sha256(make_plan(scenario.conditions[0])),
      plan_sha256(make_plan(
          parse_scenario(text, "r", {"queries.points=[[1,0,0,0],[0,0,0,0]]"}).conditions[0])));
}

}  // namespace
}  // namespace headlab
