// SPDX-License-Identifier: Apache-2.0
// Stacks of attention layers by the CUDA backend, on a GPU and on the host.
#include "kernels/cuda/stack/stack.h"

#include <gtest/gtest.h>

#include "kernels/reference/backend.h"
#include "kernels/testing/cuda_stacks.h"
#include "kernels/testing/device_fixture.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

using CudaStack = Cuda;

void expect_reference(const Plan& plan, const std::string& name) {
  const StackDifference difference = difference_of(plan, plan);
  EXPECT_LE(difference.state, 1) << name;
  EXPECT_LE(difference.metrics, 1) << name << ": " << difference.worst;
  record({.form = "stack", .keys = "tokens", .sums = "float64", .passes = "layers"},
         {.compared = 1, .over_tolerance = std::max(difference.state, difference.metrics)});
}

TEST_F(CudaStack, EverySwitchOnAFewTokensIsEquivalentToReference) {
  for (const auto& [name, plan] : stack_plans()) expect_reference(plan, name);
}

TEST_F(CudaStack, AFaultShows) {
  const Plan plan = stack_plan();
  EXPECT_GT(difference_of(disturbed(plan), plan).state, 1);
  Plan other = plan;
  ++other.seed;
  EXPECT_GT(difference_of(other, plan).metrics, 1);
}

TEST_F(CudaStack, FollowsResidualsFarBelowTheSmallestNumber) {
  const Plan plan = stack_plan([](Stack& s) { s.layers = 9; });
  const StackDifference difference = difference_of(plan, plan);
  EXPECT_LE(difference.state, 1);
  EXPECT_LT(difference.last_exponent, -760);
}

TEST_F(CudaStack, GivesTheMomentsOfReference) {
  // Spectra too, and a fixed design.
  for (const bool fixed : {false, true}) {
    Plan plan = stack_plan([](Stack& s) { s.skip = 1; });
    if (fixed) plan.fixed_design_seed = 9;
    const Block block = {.first = 0, .count = 9, .node = 8};
    std::vector<Moments> expected(block.nodes());
    make_reference_backend()->worker(plan)->run(block, expected);
    const auto got = run(plan, block, in_batches(4));
    ASSERT_EQ(got.size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(got[i].count, expected[i].count);
      ASSERT_EQ(got[i].mean.size(), expected[i].mean.size());
      for (std::size_t s = 0; s < got[i].mean.size(); ++s) {
        const double right = expected[i].mean[s];
        if (std::isnan(right)) {
          EXPECT_TRUE(std::isnan(got[i].mean[s]));
        } else {
          EXPECT_NEAR(got[i].mean[s], right, 1e-10 + 1e-8 * std::abs(right));
        }
      }
    }
  }
}

#if defined(HEADLAB_EMULATE_CUDA)
TEST_F(CudaStack, IsEquivalentToReferenceInAnotherOrderOfThreads) {
  set_thread_order(Order::descending);
  for (const auto& [name, plan] : stack_plans()) expect_reference(plan, name);
}

TEST_F(CudaStack, HasTheSameBitsForAnyBatchAndOrderOfThreads) {
  const Plan plan = stack_plan([](Stack& s) {
    s.norm.kind = NormKind::rms;
    s.memory = 0.5;
    s.mlp = GaussianMlp{.width = 5};
    s.spectra = false;
  });
  const Block block = {.first = 256, .count = 11, .node = 8};
  const auto expected = run(plan, block, in_batches(16));
  EXPECT_TRUE(same_nodes(run(plan, block, in_batches(1)), expected));
  EXPECT_TRUE(
      same_nodes(run(plan, {.first = 264, .count = 3, .node = 8}, in_batches(2)), {expected[1]}));
  set_thread_order(Order::descending);
  EXPECT_TRUE(same_nodes(run(plan, block, in_batches(3)), expected));
  EXPECT_FALSE(same_nodes(run(disturbed(plan), block, in_batches(16)), expected));
}

TEST_F(CudaStack, SaysWhatMemoryIsMissing) {
  const Plan plan = stack_plan([](Stack& s) { s.spectra = false; });
  const Block block = {.first = 0, .count = 8, .node = 8};
  const Options options = in_batches(64);
  const auto expected = run(plan, block, in_batches(64));
  std::vector<Moments> out(block.nodes());
  // The last batch tried leaves nothing, as on a device that is nearly full.
  control::set_memory(1 << 16);
  const auto backend = make_cuda_backend(options);
  backend->worker(plan)->run(block, out);
  EXPECT_TRUE(same_nodes(out, expected));
  ASSERT_EQ(backend->notes().size(), 1u);
  EXPECT_NE(backend->notes()[0].find("(same results)"), std::string::npos);
  control::set_memory(1 << 12);
  try {
    run(plan, block, in_batches(4));
    ADD_FAILURE() << "a device without memory";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("lower tokens.n"), std::string::npos);
  }
}

TEST_F(CudaStack, LeavesTheLocalMemoryOfItsKernel) {
  const Plan plan = stack_plan([](Stack& s) { s.spectra = false; });
  const Block block = {.first = 0, .count = 8, .node = 8};
  const auto expected = run(plan, block, in_batches(8));
  std::vector<Moments> out(block.nodes());
  const std::uint64_t of_eight = control::peak_bytes();
  // Eight replicates alone would fit, and the launch would fail.
  constexpr std::uint64_t local = 4096;
  control::set_memory(of_eight + local / 2);
  control::set_local_memory(local);
  const Options options = in_batches(8);
  const auto backend = make_cuda_backend(options);
  backend->worker(plan)->run(block, out);
  EXPECT_TRUE(same_nodes(out, expected));
  ASSERT_EQ(backend->notes().size(), 1u);
  EXPECT_NE(backend->notes()[0].find("continues with 1 (same results)"), std::string::npos)
      << backend->notes()[0];
  // With room for it nothing is smaller.
  control::set_memory(of_eight + local);
  const auto roomy = make_cuda_backend(options);
  roomy->worker(plan)->run(block, out);
  EXPECT_TRUE(same_nodes(out, expected));
  EXPECT_TRUE(roomy->notes().empty());
  control::set_local_memory(of_eight);
  try {
    run(plan, block, in_batches(8));
    ADD_FAILURE() << "a device without local memory";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("for the local memory of all threads"),
              std::string::npos)
        << error.what();
  }
}

#else
TEST_F(CudaStack, ManyTokensAreEquivalentToReference) {
  expect_reference(stack_plan([](Stack& s) { s.skip = 1; }, 150, 70), "150 tokens");
}

TEST_F(CudaStack, HasTheSameBitsForAnyBatchAndInEveryRun) {
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
    EXPECT_TRUE(same_nodes(run(plan, block, in_batches(batch)), expected)) << batch;
  }
  EXPECT_FALSE(same_nodes(run(disturbed(plan), block), expected));
}
#endif

}  // namespace
}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
