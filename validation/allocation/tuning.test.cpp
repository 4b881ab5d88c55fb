// SPDX-License-Identifier: Apache-2.0
#include "validation/allocation/tuning.h"

#include <cmath>

#include <gtest/gtest.h>

#include "engine/scenario/world.h"
#include "kernels/kernel_laws.h"
#include "validation/allocation/allocations.h"
#include "validation/theory/theory.h"

namespace headlab {
namespace {

Condition tuned_world(const std::vector<std::string>& sets = {}) {
  return World{
      .n = "40",
      .design = R"({ law = "normal", dim = 2 })",
      .regression =
          R"({ law = "cosines", amplitude = [1.0], frequency = [[2.0, 0.0]], phase = [0.2] })",
      .noise = R"({ law = "normal", sd = 0.5 })",
      .heads = "count = 2\ndim = 1\nsubspaces = { law = \"orthogonal\" }",
      .kernel = R"({ law = "gaussian", bandwidth = 5 })",
      .points = "[[0.3, 0.1], [-0.6, 0.5]]",
      .run = "seed = 4\nreplicates = 10"}
      .condition(sets);
}

const Session session{.backend = "cpu", .threads = 1};

double exact_mse(Condition condition, double width) {
  set_kernel_width(condition.kernel.own(), width);
  condition.moments = MomentMode::pairwise;
  return compute_theory(condition, TheorySource::exact, 1).figures.mse.value;
}

TEST(Tune, FindsABandwidthOfLeastErrorFromFarOff) {
  std::vector<Condition> conditions = allocation_conditions(tuned_world(), 2, BandwidthRule::tuned);
  const TuningCost cost = tune(conditions, session);
  EXPECT_EQ(cost.at_boundary, 0);
  EXPECT_EQ(cost.replicates, tuning_replicates);
  // The first grid has 9 bandwidths, 4 times 2 follow.
  EXPECT_GE(cost.settings, 2u * 17);
  for (const Condition& one : conditions) {
    const double found = kernel_width(*one.kernel);
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
  std::vector<Condition> conditions =
      allocation_conditions(tuned_world({"heads.kernel.bandwidth=1e-5"}), 2, BandwidthRule::tuned);
  EXPECT_EQ(tune(conditions, session).at_boundary, 2);
}

TEST(Tune, DoesNotDependOnTheThreads) {
  std::vector<Condition> one = allocation_conditions(tuned_world(), 2, BandwidthRule::tuned);
  std::vector<Condition> two = one;
  tune(one, session);
  tune(two, {.backend = "cpu", .threads = 2});
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(kernel_width(*one[i].kernel), kernel_width(*two[i].kernel));
  }
}

TEST(Tune, MovesATemperatureBySquaresOfABandwidth) {
  std::vector<Condition> conditions = allocation_conditions(
      tuned_world({"heads.kernel={law=\"softmax\",temperature=0.5}"}), 1, BandwidthRule::tuned);
  tune(conditions, session);
  const double steps = 8 * std::log2(kernel_width(*conditions[0].kernel) / 0.5);
  EXPECT_NEAR(steps, std::round(steps), 1e-9);
}

TEST(Tune, StopsWhenAsked) {
  std::vector<Condition> conditions = allocation_conditions(tuned_world(), 2, BandwidthRule::tuned);
  const std::atomic<bool> stop = true;
  EXPECT_THROW(tune(conditions, {.backend = "cpu", .stop = &stop}), TimeIsUp);
  EXPECT_EQ(kernel_width(*conditions[0].kernel), 5);
}

}  // namespace
}  // namespace headlab
