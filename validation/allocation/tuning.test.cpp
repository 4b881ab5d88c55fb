// SPDX-License-Identifier: Apache-2.0
#include "validation/allocation/tuning.h"

#include <cmath>

#include <gtest/gtest.h>

#include "validation/allocation/allocations.h"
#include "validation/theory/theory.h"

namespace headlab {
namespace {

Scenario world(const std::vector<std::string>& sets = {}) {
  return parse_study(R"([scenario]
name = "tuning"
[data]
n = 40
design = { law = "normal", dim = 2 }
regression = { law = "cosines", amplitude = [1.0], frequency = [[2.0, 0.0]], phase = [0.2] }
noise = { law = "normal", sd = 0.5 }
[heads]
count = 2
dim = 1
subspaces = { law = "orthogonal" }
kernel = { law = "gaussian", bandwidth = 5 }
[queries]
law = "points"
points = [[0.3, 0.1], [-0.6, 0.5]]
[run]
seed = 4
replicates = 10
)",
                     "world.toml", sets)
      .conditions.at(0);
}

const Session session{.backend = "cpu", .threads = 1};

double exact_mse(Scenario scenario, double width) {
  set_kernel_width(scenario.kernel, width);
  scenario.moments = MomentMode::pairwise;
  return compute_theory(scenario, TheorySource::exact, 1).figures.mse.value;
}

TEST(Tune, FindsABandwidthOfLeastErrorFromFarOff) {
  std::vector<Scenario> scenarios = allocation_scenarios(world(), 2, BandwidthRule::tuned);
  const TuningCost cost = tune(scenarios, session);
  EXPECT_EQ(cost.at_the_end, 0);
  EXPECT_EQ(cost.replicates, tuning_replicates);
  // The first grid has 9 bandwidths, 4 times 2 follow.
  EXPECT_GE(cost.settings, 2u * 17);
  for (const Scenario& one : scenarios) {
    const double found = kernel_width(one.kernel);
    const double error = exact_mse(one, found);
    // Bandwidths share their draws, which makes the choice much better than its MCSE.
    for (const double width : {0.1, 0.8, found / 1.2, found * 1.2}) {
      EXPECT_GT(exact_mse(one, width), error / 1.01) << one.k << ", " << width;
    }
    EXPECT_GT(exact_mse(one, 5), 1.2 * error);
  }
}

TEST(Tune, SaysWhereTheSearchEnded) {
  // So small that the nearest key alone counts: nothing tells in which direction to go.
  std::vector<Scenario> scenarios =
      allocation_scenarios(world({"heads.kernel.bandwidth=1e-5"}), 2, BandwidthRule::tuned);
  EXPECT_EQ(tune(scenarios, session).at_the_end, 2);
}

TEST(Tune, DoesNotDependOnTheThreads) {
  std::vector<Scenario> one = allocation_scenarios(world(), 2, BandwidthRule::tuned);
  std::vector<Scenario> two = one;
  tune(one, session);
  tune(two, {.backend = "cpu", .threads = 2});
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(kernel_width(one[i].kernel), kernel_width(two[i].kernel));
  }
}

TEST(Tune, MovesATemperatureBySquaresOfABandwidth) {
  std::vector<Scenario> scenarios = allocation_scenarios(
      world({"heads.kernel={law=\"softmax\",temperature=0.5}"}), 1, BandwidthRule::tuned);
  tune(scenarios, session);
  const double steps = 8 * std::log2(kernel_width(scenarios[0].kernel) / 0.5);
  EXPECT_NEAR(steps, std::round(steps), 1e-9);
}

TEST(Tune, StopsWhenAsked) {
  std::vector<Scenario> scenarios = allocation_scenarios(world(), 2, BandwidthRule::tuned);
  const std::atomic<bool> stop = true;
  EXPECT_THROW(tune(scenarios, {.backend = "cpu", .stop = &stop}), TimeIsUp);
  EXPECT_EQ(kernel_width(scenarios[0].kernel), 5);
}

}  // namespace
}  // namespace headlab
