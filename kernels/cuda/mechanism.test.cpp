// SPDX-License-Identifier: Apache-2.0
// Stages of a mechanism on the CUDA backend. Their agreement with the reference:
// stage_agreement.test.cpp.
#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include <gtest/gtest.h>

#include "kernels/cuda/launch_plan.h"
#include "kernels/cuda/worker.h"
#include "kernels/testing/device_fixture.h"
#include "kernels/testing/mechanisms.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

TEST_F(Cuda, NoiseThatVariesOverAnIncompleteGroupHasNoAlignment) {
  Plan plan = test::make_plan({.n = 61}, GaussianKernel{.bandwidth = 0.6});
  plan.mechanism.merge.stride = 3;
  const auto backend = make_cuda_backend(test_options());
  EXPECT_NO_THROW(backend->worker(plan));
  test::vary_noise(plan);
  EXPECT_THROW(backend->worker(plan), std::invalid_argument);
  Plan silent = plan;
  silent.noise = NormalNoise{.sd = 0}.sampler(silent.table, 6);
  EXPECT_THROW(backend->worker(silent), std::invalid_argument);
  plan.moments = MomentMode::aggregate;
  EXPECT_NO_THROW(backend->worker(plan));
  plan.moments = MomentMode::pairwise;
  plan.n = 60;
  EXPECT_NO_THROW(backend->worker(plan));
}

TEST_F(Cuda, AWindowOfAllTokensLeavesTheBits) {
  for (const KernelLaw& kernel : test::all_kernels(0.6)) {
    const Plan plain = test::make_plan({.n = 97}, kernel);
    Plan plan = plain;
    plan.mechanism.seen.assign(3, seen_tokens(97, 97, 0, 0));
    EXPECT_TRUE(
        same_bits(run(plan, {.first = 8, .count = 8}), run(plain, {.first = 8, .count = 8})));
  }
}

TEST_F(Cuda, BitsOfStagesDoNotDependOnTheBatchOrTheOrderOfThreads) {
  for (const test::NamedStage& stage : test::all_stages()) {
    for (const bool sequence : {false, true}) {
      Plan plan = test::make_plan({.n = 50, .queries = 3}, GaussianKernel{.bandwidth = 0.3});
      if (sequence) plan.ar1 = Ar1(0.7);
      stage.set(plan);
      expect_bits_of_any_batch_and_order(plan, {.first = 16, .count = 5}, {1, 3});
    }
  }
}

TEST_F(Cuda, OnlyTokensThatSomeHeadSeesAreStoredAndDrawn) {
  Plan plan = test::make_plan({.n = 1000}, GaussianKernel{.bandwidth = 0.6});
  plan.mechanism.seen.assign(3, seen_tokens(1000, 40, 100, 4));
  LaunchPlan launch = plan_launch(plan);
  EXPECT_EQ(launch.tokens.tokens, 44u);
  EXPECT_EQ(launch.tokens.points, 44u);
  EXPECT_TRUE(launch.tokens.seen.empty());
  EXPECT_FALSE(launch.masks);
  EXPECT_EQ(launch.padded_n, 64);

  // Another head sees another part; blocks of levels are stored whole.
  plan.mechanism.seen[1] = seen_tokens(1000, 10, 500, 0);
  plan.mechanism.levels.weights = {0.5, 0.2, 0.3};
  launch = plan_launch(plan);
  // [0, 4), [488, 500) for [490, 500), [860, 900).
  EXPECT_EQ(launch.tokens.tokens, 4u + 12u + 40u);
  ASSERT_EQ(launch.tokens.seen.size(), 3u);
  EXPECT_EQ(launch.tokens.seen[0], (SeenTokens{.sinks = 4, .begin = 16, .end = 56}));
  EXPECT_EQ(launch.tokens.seen[1], (SeenTokens{.sinks = 0, .begin = 6, .end = 16}));
  const TokenNumbers numbers = {launch.tokens.ranges.data(),
                                static_cast<int>(launch.tokens.ranges.size())};
  EXPECT_EQ(numbers.of(3), 3u);
  EXPECT_EQ(numbers.of(4), 488u);
  EXPECT_EQ(numbers.of(16), 860u);

  // Points of merged tokens, and of a sequence those before them.
  plan.mechanism.merge.stride = 3;
  plan.mechanism.levels = {};
  plan.mechanism.seen.assign(3, seen_tokens(334, 5, 0, 0));
  EXPECT_EQ(plan_launch(plan).tokens.points, 13u);
  plan.ar1 = Ar1(0.5);
  EXPECT_EQ(plan_launch(plan).tokens.points, 1000u);
  plan.mechanism.seen.assign(3, seen_tokens(334, 5, 100, 0));
  EXPECT_EQ(plan_launch(plan).tokens.points, 702u);
}

TEST_F(Cuda, MemoryOfStagesIsCounted) {
  use_device(usable_devices().front().number);
  constexpr std::int64_t replicates = 3;
  for (const test::NamedStage& stage : test::all_stages()) {
    Plan plan = test::make_plan({.n = 1000}, GaussianKernel{.bandwidth = 0.6});
    stage.set(plan);
    const LaunchPlan launch = plan_launch(plan, test_options().limits);
    Stream stream;
    const Constants constants(plan, launch, stream);
    Batch batch(plan, launch, constants, stream);
    ASSERT_TRUE(stream.work.reserve(batch.bytes(replicates)));
    EXPECT_NO_THROW(batch.place(replicates)) << stage.name;
    EXPECT_THROW(stream.work.take<float>(1), std::logic_error) << stage.name;
    // What a device is filled with is at most a sixteenth of it, and 2 GiB.
    const std::uint64_t most = std::min<std::uint64_t>(total_memory() / 16, 1u << 31);
    EXPECT_LE(batch.bytes(batch.good_replicates()), most) << stage.name;
  }
}

}  // namespace
}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
