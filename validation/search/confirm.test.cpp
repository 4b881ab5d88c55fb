// SPDX-License-Identifier: Apache-2.0
#include "validation/search/confirm.h"

#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "engine/files/error.h"
#include "engine/run/run.h"
#include "kernels/backends.h"
#include "validation/search/predict.h"
#include "validation/search/scenarios.h"

namespace headlab {
namespace {

const std::string base_text = R"([scenario]
name = "base"
[data]
n = 100
design = { law = "normal", dim = 2 }
regression = { law = "zero" }
noise = { law = "normal", sd = 0.5 }
[heads]
count = 2
dim = 1
subspaces = { law = "orthogonal" }
kernel = { law = "gaussian", bandwidth = 0.3 }
[queries]
law = "points"
points = [[0, 0]]
[run]
seed = 5
replicates = 100
[claim]
name = "hdi"
)";

Condition base(const std::string& from = "", const std::string& to = "") {
  std::string text = base_text;
  if (!from.empty()) text.replace(text.find(from), from.size(), to);
  return parse_scenario(text, "base.toml").conditions[0];
}

Inversion chordal_inversion() {
  return search_inversions({.sizes = {{2, 2, 4}}},
                           score_noise("chordal", GaussianKernel{.bandwidth = 0.3}, 100))
      .simplest.at(0);
}

TEST(Confirm, ChordalInversionIsSeenAndItsReplayGivesTheSameBits) {
  const auto backend = make_backend("cpu");
  const Inversion inversion = chordal_inversion();
  const Counterexample counterexample = confirm(base(), inversion, 2000, *backend, 1);
  EXPECT_GT(counterexample.z, 6);

  const RunResult replay =
      run(parse_scenario(counterexample.scenario, "replay.toml"), {.backend = "cpu", .threads = 2});
  ASSERT_EQ(replay.conditions.size(), 2U);
  const Estimate &first = replay.conditions[0].estimates.mse,
                 &second = replay.conditions[1].estimates.mse;
  EXPECT_EQ(first.value, counterexample.first.value);
  EXPECT_EQ(first.mcse, counterexample.first.mcse);
  EXPECT_EQ(second.value, counterexample.second.value);
  EXPECT_EQ(counterexample.replicates, replay.conditions[0].estimates.replicates);
  // Draws are shared: the difference is known better than the two figures.
  EXPECT_LT(counterexample.difference.mcse, std::hypot(first.mcse, second.mcse));
  // Negative control: the pair the other way round is no counterexample.
  Inversion turned = inversion;
  std::swap(turned.diverse, turned.plain);
  EXPECT_LT(confirm(base(), turned, 2000, *backend, 1).z, -6);
}

TEST(Confirm, PredictedErrorIsWithinItsRemainder) {
  const auto backend = make_backend("cpu");
  const Inversion inversion = chordal_inversion();
  const Counterexample counterexample =
      confirm(base("seed = 5", "seed = 6"), inversion, 2000, *backend, 1);
  const auto inside = [&](const Estimate& mse, const Score& score, double scale) {
    const double predicted = scale * score.error / 100;
    return std::abs(mse.value - predicted) <=
           5 * mse.mcse + 1.5 * std::abs(score.remainder) * predicted;
  };
  EXPECT_TRUE(inside(counterexample.first, inversion.of_diverse, 0.25));
  EXPECT_TRUE(inside(counterexample.second, inversion.of_plain, 0.25));
  EXPECT_FALSE(inside(counterexample.first, inversion.of_diverse, 0.5));
}

TEST(Confirm, ScenarioKeepsTheBaseAndTakesOnTheDimension) {
  const Scenario scenario = parse_scenario(
      inversion_scenario(base(R"({ law = "zero" })",
                              R"({ law = "single_index", direction = [1, 0], frequency = 2 })"),
                         chordal_inversion(), 64),
      "pair.toml");
  ASSERT_EQ(scenario.conditions.size(), 2U);
  const Condition& condition = scenario.conditions[1];
  EXPECT_EQ(condition.n, 100U);
  EXPECT_EQ(condition.seed, 5U);
  EXPECT_EQ(condition.replicates, 64U);
  EXPECT_EQ(condition.heads, 2);
  EXPECT_EQ(condition.k, 2);
  EXPECT_EQ(make_plan(condition).query_points, std::vector<double>(4, 0.0));
  EXPECT_EQ(condition.parameters.tree().find("claim"), nullptr);
}

TEST(Confirm, BasesThatCannotTakeOnADimensionAreRefused) {
  const Inversion inversion = chordal_inversion();
  const auto refused = [&](const std::string& from, const std::string& to) {
    EXPECT_THROW(inversion_scenario(base(from, to), inversion, 8), InvalidInput) << to;
  };
  refused(R"({ law = "normal", dim = 2 })", R"({ law = "uniform", dim = 2 })");
  refused(R"({ law = "normal", dim = 2 })", R"({ law = "normal", dim = 2, ar1 = 0.5 })");
  refused(R"({ law = "zero" })", R"({ law = "linear", coefficients = [1, 0] })");
  // A direction that points out of the smaller design.
  EXPECT_THROW(head_sets_condition_text(base(R"({ law = "zero" })",
                                             R"({ law = "single_index", direction = [0, 1],
                                            frequency = 2 })"),
                                        {1, 1, 1}, {"{ law = \"aligned\" }"}, 1, 8),
               InvalidInput);
}

}  // namespace
}  // namespace headlab
