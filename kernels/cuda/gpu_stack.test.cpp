// SPDX-License-Identifier: Apache-2.0
// Stacks of attention layers on a GPU against the reference.
#include <gtest/gtest.h>

#include "kernels/testing/cuda_stacks.h"
#include "kernels/testing/gpu_fixture.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

using GpuStack = GpuBackend;

TEST_F(GpuStack, EverySwitchOnAFewTokensIsEquivalentToReference) {
  double largest = 0;
  for (const auto& [name, plan] : stack_plans()) {
    const StackDifference difference = difference_of(plan, plan);
    EXPECT_LE(difference.state, 1) << name;
    EXPECT_LE(difference.metrics, 1) << name << ": " << difference.worst;
    largest = std::max(largest, difference.state);
  }
  RecordProperty("largest_difference_over_tolerance", std::to_string(largest));
  EXPECT_GT(difference_of(disturbed(stack_plan()), stack_plan()).state, 1);
}

TEST_F(GpuStack, ManyTokensAreEquivalentToReference) {
  const Plan plan = stack_plan([](Stack& s) { s.skip = 1; }, 150, 70);
  const StackDifference difference = difference_of(plan, plan);
  EXPECT_LE(difference.state, 1);
  EXPECT_LE(difference.metrics, 1) << difference.worst;
}

TEST_F(GpuStack, HasTheSameBitsForAnyBatchAndInEveryRun) {
  const Plan plan = stack_plan(
      [](Stack& s) {
        s.norm.kind = NormKind::rms;
        s.mlp = GaussianMlp{.width = 40};
        s.spectra = false;
      },
      32, 32);
  const Block block = {.first = 256, .count = 200, .node = 8};
  const auto expected = run(plan, block);
  EXPECT_TRUE(same_nodes(run(plan, block), expected));
  for (const std::int64_t batch : {1, 7, 64}) {
    Options options;
    options.batch_replicates = batch;
    EXPECT_TRUE(same_nodes(run(plan, block, options), expected)) << batch;
  }
  EXPECT_FALSE(same_nodes(run(disturbed(plan), block), expected));
}

}  // namespace
}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
