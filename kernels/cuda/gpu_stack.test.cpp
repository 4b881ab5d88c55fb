// SPDX-License-Identifier: Apache-2.0
// Stacks of attention layers on a GPU against the reference.
#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "kernels/testing/cuda_stacks.h"
#include "kernels/testing/gpu_fixture.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

using GpuStack = GpuBackend;

void expect_reference(const Plan& plan, const std::string& name) {
  const StackDifference difference = difference_of(plan, plan);
  EXPECT_LE(difference.state, 1) << name;
  EXPECT_LE(difference.metrics, 1) << name << ": " << difference.worst;
  record({.form = "stack", .keys = "tokens", .sums = "float64", .passes = "layers"},
         {.compared = 1, .over_tolerance = std::max(difference.state, difference.metrics)});
}

TEST_F(GpuStack, EverySwitchOnAFewTokensIsEquivalentToReference) {
  for (const auto& [name, plan] : stack_plans()) expect_reference(plan, name);
  EXPECT_GT(difference_of(disturbed(stack_plan()), stack_plan()).state, 1);
}

TEST_F(GpuStack, ManyTokensAreEquivalentToReference) {
  expect_reference(stack_plan([](Stack& s) { s.skip = 1; }, 150, 70), "150 tokens");
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
