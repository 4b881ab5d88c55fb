// SPDX-License-Identifier: Apache-2.0
// The kernels that heads are learned with.
#include "kernels/cuda/head_gradients.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/backend.h"
#include "kernels/learning/fit.h"
#include "kernels/learning/worker.h"
#include "kernels/reference/backend.h"
#include "kernels/testing/device_fixture.h"
#include "kernels/testing/learning_agreement.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

using test::answer;
using test::FitAnswer;
using test::FitCase;
using test::FitShape;
using test::make_fit_case;

std::unique_ptr<HeadGradients> gradients_of(const KernelLaw& kernel, const Options& options = {}) {
  return make_cuda_backend(options)->head_gradients(kernel, 1);
}

/// Few blocks of threads, so that each of them has several tiles of keys.
Options few_blocks() {
  Options options;
  options.fit_blocks = 8;
  return options;
}

using CudaGradients = Cuda;

TEST_F(CudaGradients, HaveTheSameBitsInAnyOrderOfThreadsAndBlocks) {
  for (const bool separate : {false, true}) {
    const FitShape shape = {
        .n = 700, .d = 40, .heads = 2, .k = 33, .queries = 40, .separate = separate};
    const FitCase c = make_fit_case(shape, SoftmaxKernel{.temperature = 4});
    const FitAnswer first = answer(c, *gradients_of(c.kernel, few_blocks()));
    for (const bool ascending : {true, false}) {
#if defined(HEADLAB_EMULATE_CUDA)
      set_thread_order(ascending ? Order::ascending : Order::descending);
      set_block_order(Order::descending);
#else
      static_cast<void>(ascending);
#endif
      const FitAnswer other = answer(c, *gradients_of(c.kernel, few_blocks()));
      EXPECT_EQ(first.f, other.f);
      EXPECT_EQ(first.gradient.keys, other.gradient.keys);
      EXPECT_EQ(first.gradient.queries, other.gradient.queries);
    }
  }
}

TEST_F(CudaGradients, DoNotDependOnWhatWasAskedBefore) {
  // Memory that has grown for one batch serves a smaller one.
  const FitCase large = make_fit_case({.n = 200, .queries = 70, .separate = true}, SoftmaxKernel{});
  const FitCase small = make_fit_case({.n = 100, .heads = 2, .queries = 5}, SoftmaxKernel{});
  const auto gradients = gradients_of(SoftmaxKernel{});
  answer(large, *gradients);
  const FitAnswer second = answer(small, *gradients);
  const FitAnswer alone = answer(small, *gradients_of(SoftmaxKernel{}));
  EXPECT_EQ(second.f, alone.f);
  EXPECT_EQ(second.gradient.keys, alone.gradient.keys);
  EXPECT_TRUE(second.gradient.queries.empty());
}

TEST_F(CudaGradients, AFitGoesTheSameWayAsThatOfTheReference) {
  const FitPoints points = test::single_index_points(200);
  const GaussianKernel kernel{.bandwidth = 0.4};
  const Learning learning = test::one_head();
  const Fit here = fit_heads(learning, 0, points, *gradients_of(kernel)).value();
  const Fit there = fit_heads(learning, 0, points, *make_reference_gradients(kernel)).value();
  EXPECT_EQ(here.steps, there.steps);
  // Rounding of one step does not grow where the steps go downhill.
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(here.heads.keys[i], there.heads.keys[i], 1e-3);
  EXPECT_GT(std::abs(0.8 * here.heads.keys[0] + 0.6 * here.heads.keys[1]), 0.99);
}

TEST_F(CudaGradients, ReplicatesThatLearnAreThoseOfTheHeadsFound) {
  Plan plan = test::make_plan({}, GaussianKernel{.bandwidth = 0.8}, Estimator::plain);
  Learning learning;
  learning.start = {.heads = plan.heads,
                    .d = plan.d,
                    .k = plan.k,
                    .keys = plan.projections,
                    .queries = {},
                    .weights = plan.head_weights};
  learning.steps = 20;
  learning.batch = 8;
  learning.held_out = 0;
  const Options options =
      in_batches(1);  // no more than one replicate, so that what is emulated is not wasted
  const auto backend = make_cuda_backend(options);
  const Block block = {.first = 2, .count = 1, .node = 1};
  std::vector<Moments> learned(1), expected(1);
  plan.learning = learning;
  const Plan* const one = &plan;
  make_worker(*backend, Plans(&one, 1))->run(block, learned);

  Plan given = plan;
  given.learning.reset();
  const auto gradients = backend->head_gradients(*plan.kernel, 1);
  given.projections = fit_heads(learning, 2, fit_points(plan, 2), *gradients).value().heads.keys;
  backend->worker(given)->run(block, expected);
  EXPECT_EQ(learned[0].mean, expected[0].mean);
  EXPECT_NE(given.projections, plan.projections);
}

#if defined(HEADLAB_EMULATE_CUDA)
TEST_F(CudaGradients, SayWhatMemoryIsMissing) {
  const FitCase c = make_fit_case({.n = 5000, .d = 8}, SoftmaxKernel{});
  control::set_memory(1 << 16);
  EXPECT_THROW(answer(c, *gradients_of(c.kernel)), DeviceError);
}

TEST_F(CudaGradients, EveryDeviceTakesItsTurn) {
  control::set_devices(2);
  const FitCase c = make_fit_case({}, SoftmaxKernel{});
  const auto backend = make_cuda_backend();
  const auto first = backend->head_gradients(c.kernel, 1);
  const auto second = backend->head_gradients(c.kernel, 1);
  EXPECT_EQ(answer(c, *first).f, answer(c, *second).f);
  control::lose_device(1);
  EXPECT_NO_THROW(answer(c, *first));
  EXPECT_THROW(answer(c, *second), DeviceError);
}
#endif

}  // namespace
}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
