// SPDX-License-Identifier: Apache-2.0
#include "kernels/learning/worker.h"

#include <gtest/gtest.h>

#include "kernels/cpu/backend.h"
#include "kernels/learning/fit.h"
#include "kernels/testing/test_plans.h"

namespace headlab {
namespace {

Plan learning_plan(std::uint64_t steps, MomentMode moments = MomentMode::pairwise) {
  Plan plan = test::make_plan({}, GaussianKernel{.bandwidth = 0.8}, Estimator::plain, moments);
  plan.head_weights.assign(3, 1.0 / 3);
  plan.learning.emplace();
  plan.learning->start = {.heads = plan.heads,
                          .d = plan.d,
                          .k = plan.k,
                          .keys = plan.projections,
                          .queries = {},
                          .weights = plan.head_weights};
  plan.learning->steps = steps;
  plan.learning->batch = 8;
  plan.learning->held_out = 0;
  return plan;
}

std::vector<Moments> moments_of(const Plan& plan, const Block& block) {
  const auto backend = make_cpu_backend();
  const Plan* const one = &plan;
  std::vector<Moments> out(block.nodes());
  make_worker(*backend, Plans(&one, 1))->run(block, out);
  return out;
}

TEST(LearningWorker, WithoutStepsIsThePlanItself) {
  const Plan plan = learning_plan(0);
  Plan given = plan;
  given.learning.reset();
  const Block block{.first = 0, .count = 6, .node = 1};
  const auto learned = moments_of(plan, block);
  const auto expected = moments_of(given, block);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(learned[i].mean, expected[i].mean) << i;
}

TEST(LearningWorker, LearnsOnTheTrainingSetOfEachReplicate) {
  const Plan plan = learning_plan(20);
  const auto learned = moments_of(plan, {.first = 2, .count = 2, .node = 1});
  for (std::uint64_t i = 0; i < 2; ++i) {
    const auto backend = make_cpu_backend();
    const auto gradients = backend->head_gradients(*plan.kernel, 1);
    const Fit fit = fit_heads(*plan.learning, 2 + i, fit_points(plan, 2 + i), *gradients).value();
    Plan given = plan;
    given.learning.reset();
    given.projections = fit.heads.keys;
    const auto expected = moments_of(given, {.first = 2 + i, .count = 1, .node = 1});
    EXPECT_EQ(learned[i].mean, expected[0].mean);
    EXPECT_NE(given.projections, plan.projections);
  }
}

TEST(LearningWorker, LearnedWeightsAreInTheHeads) {
  for (const MomentMode moments : {MomentMode::pairwise, MomentMode::aggregate}) {
    Plan plan = learning_plan(20, moments);
    plan.learning->learns_weights = true;
    const auto learned = moments_of(plan, {.first = 5, .count = 1, .node = 1});
    const auto gradients = make_cpu_backend()->head_gradients(*plan.kernel, 1);
    const Fit fit = fit_heads(*plan.learning, 5, fit_points(plan, 5), *gradients).value();
    Plan given = plan;
    given.learning.reset();
    given.projections = fit.heads.keys;
    given.head_weights = fit.heads.weights;
    const auto expected = moments_of(given, {.first = 5, .count = 1, .node = 1});
    const MomentLayout layout = plan.layout();
    for (std::size_t q = 0; q < 5; ++q) {
      const double* f = &learned[0].mean[q * layout.per_query()];
      const double* bare = &expected[0].mean[q * layout.per_query()];
      for (std::size_t h = 0; h < 3; ++h) {
        EXPECT_EQ(f[h], bare[h] * (3 * fit.heads.weights[h]));
      }
      if (moments == MomentMode::aggregate) {
        EXPECT_EQ(f[3], bare[3]);
        EXPECT_NEAR(f[3], (f[0] + f[1] + f[2]) / 3, 1e-6);
      }
    }
  }
}

TEST(LearningWorker, GivesABlockUpWhereItIsToldToStop) {
  const Plan plan = learning_plan(20);
  const Plan* const one = &plan;
  const auto backend = make_cpu_backend();
  std::vector<Moments> out(1);
  int asked = 0;
  const auto worker = make_worker(*backend, Plans(&one, 1), [&] { return ++asked == 5; });
  EXPECT_THROW(worker->run({.first = 0, .count = 1, .node = 1}, out), WorkStopped);
  EXPECT_EQ(asked, 5);
}

TEST(LearningWorker, PlansTogetherHaveTheBitsOfPlansAlone) {
  const Plan learned = learning_plan(10);
  Plan given = learned;
  given.learning.reset();
  const Plan* const both[] = {&given, &learned};
  const auto backend = make_cpu_backend();
  std::vector<Moments> out(4);
  make_worker(*backend, both)->run({.first = 0, .count = 2, .node = 1}, out);
  const auto first = moments_of(given, {.first = 0, .count = 2, .node = 1});
  const auto second = moments_of(learned, {.first = 0, .count = 2, .node = 1});
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(out[i].mean, first[i].mean);
    EXPECT_EQ(out[2 + i].mean, second[i].mean);
  }
}

}  // namespace
}  // namespace headlab
