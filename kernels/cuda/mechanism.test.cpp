// SPDX-License-Identifier: Apache-2.0
// Stages of a mechanism on the CUDA backend, executed on the host, against the reference.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/launch_plan.h"
#include "kernels/cuda/worker.h"
#include "kernels/reference/training_set.h"
#include "kernels/testing/cuda_agreement.h"
#include "kernels/testing/emulated_backend.h"
#include "kernels/testing/mechanisms.h"
#include "kernels/testing/test_plans.h"

namespace headlab::emulated_cuda {
namespace {

/// Expects the statistics and window counts of the reference for one replicate.
void expect_reference(const Plan& plan, const std::string& what,
                      const Options& options = small_options()) {
  const Moments node = test::one_replicate(*make_cuda_backend(options), plan, 2);
  EXPECT_TRUE(close_to_reference(plan, 2, node.mean, options.limits))
      << what << ", kernel " << plan.kernel.index();
  WindowCounts windows;
  reference_statistics(plan, draw_training_set(plan, 2), windows);
  EXPECT_EQ(node.windows, windows) << what << ", kernel " << plan.kernel.index();
}

/// Options without shared memory for a tile, so that every query takes the fallback.
Options only_fallback() {
  Options options = small_options();
  options.limits.shared_bytes = 0;
  return options;
}

TEST_F(Cuda, EveryStageIsEquivalentToReference) {
  for (const test::NamedStage& stage : test::all_stages()) {
    for (const KernelLaw& kernel : test::all_kernels(0.6)) {
      if (!test::has_stage(kernel, stage)) continue;
      for (const Estimator estimator : {Estimator::conditional, Estimator::plain}) {
        for (const MomentMode mode : {MomentMode::pairwise, MomentMode::aggregate}) {
          Plan plan = test::make_plan({.n = 61}, kernel, estimator, mode);
          stage.set(plan);
          expect_reference(plan, stage.name);
          if (estimator == Estimator::plain) continue;
          expect_reference(plan, stage.name + ", fallback", only_fallback());
        }
      }
    }
  }
}

TEST_F(Cuda, NoiseThatVariesOverAnIncompleteGroupHasNoAlignment) {
  Plan plan = test::make_plan({.n = 61}, GaussianKernel{.bandwidth = 0.6});
  plan.mechanism.merge.stride = 3;
  const auto backend = make_cuda_backend(small_options());
  EXPECT_NO_THROW(backend->worker(plan));
  plan.noise =
      HeteroscedasticNoise{.sd = 0.3, .slope = 0.7, .direction = {0.5, 0, 0, 0, 0, 0}}.sampler(
          plan.table, 6);
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

TEST_F(Cuda, EveryPairOfStagesIsEquivalentToReference) {
  const std::vector<test::NamedStage> stages = test::all_stages();
  for (const test::NamedStage& first : stages) {
    for (const test::NamedStage& second : stages) {
      if (!test::go_together(first, second)) continue;
      for (const KernelLaw& kernel : test::all_kernels(0.6)) {
        if (!test::has_stage(kernel, first) || !test::has_stage(kernel, second)) continue;
        Plan plan = test::make_plan({.n = 97}, kernel);
        first.set(plan);
        second.set(plan);
        expect_reference(plan, first.name + " and " + second.name);
      }
    }
  }
}

TEST_F(Cuda, EveryMicrokernelHasEveryStage) {
  for (const test::NamedStage& stage : test::all_stages()) {
    for (const int k : {1, 3, 4, 8, 16}) {
      for (const int queries : {2, 5}) {
        for (const KernelLaw& kernel : {KernelLaw(GaussianKernel{.bandwidth = k > 8 ? 4.0 : 1.2}),
                                        KernelLaw(SoftmaxKernel{.temperature = k > 8 ? 4.0 : 1})}) {
          Plan plan =
              test::make_plan({.n = 70, .d = 18, .heads = 2, .k = k, .queries = queries}, kernel);
          stage.set(plan);
          expect_reference(plan, stage.name + ", k = " + std::to_string(k));
        }
      }
    }
    // Products would lose the digits.
    Plan narrow = test::make_plan({.n = 70, .k = 3}, GaussianKernel{.bandwidth = 0.01});
    stage.set(narrow);
    expect_reference(narrow, stage.name + ", narrow");
  }
}

TEST_F(Cuda, ManyHeadsNoiseThatVariesAndLongSetsHaveEveryStage) {
  for (const test::NamedStage& stage : test::all_stages()) {
    Plan many = test::make_plan({.n = 150, .heads = 20, .k = 1, .queries = 2},
                                GaussianKernel{.bandwidth = 0.7}, Estimator::conditional,
                                MomentMode::aggregate);
    stage.set(many);
    expect_reference(many, stage.name + ", many heads");
    Plan varying = test::make_plan({.n = 150}, SoftmaxKernel{.temperature = 0.6});
    varying.noise =
        HeteroscedasticNoise{.sd = 0.3, .slope = 0.7, .direction = {0.5, 0, 0.2, 0, 0, 0}}.sampler(
            varying.table, 6);
    stage.set(varying);
    expect_reference(varying, stage.name + ", noise that varies");
    Plan longer =
        test::make_plan({.n = 9001, .heads = 2, .queries = 1}, GaussianKernel{.bandwidth = 0.5});
    stage.set(longer);
    expect_reference(longer, stage.name + ", long");
  }
}

TEST_F(Cuda, LevelsOfLargeBlocksAreEquivalentToReference) {
  for (const KernelLaw& kernel : {KernelLaw(GaussianKernel{.bandwidth = 0.5}),
                                  KernelLaw(SoftmaxKernel{.temperature = 0.5})}) {
    Plan plan = test::make_plan({.n = 700, .heads = 2, .queries = 3}, kernel);
    plan.mechanism.levels.weights = {0.4, 0, 0, 0.1, 0, 0, 0, 0, 0.2, 0.3};
    expect_reference(plan, "512 tokens");
    for (const std::uint64_t window : {100, 300}) {
      plan.mechanism.seen.push_back(seen_tokens(700, window, 60, 4));
    }
    expect_reference(plan, "512 tokens, windows");
  }
}

TEST_F(Cuda, TheComparisonSeesEveryStage) {
  for (const test::NamedStage& stage : test::all_stages()) {
    const Plan plain = test::make_plan({.n = 97}, GaussianKernel{.bandwidth = 0.6});
    Plan plan = plain;
    stage.set(plan);
    const Moments node = test::one_replicate(*make_cuda_backend(small_options()), plain, 2);
    EXPECT_TRUE(far_from_reference(plan, 2, node.mean)) << stage.name;
  }
}

TEST_F(Cuda, AWindowOfAllTokensLeavesTheBits) {
  for (const KernelLaw& kernel : test::all_kernels(0.6)) {
    const Plan plain = test::make_plan({.n = 97}, kernel);
    Plan plan = plain;
    plan.mechanism.seen.assign(3, seen_tokens(97, 97, 0, 0));
    expect_same_bits(run(plan, {.first = 8, .count = 8}, small_options()),
                     run(plain, {.first = 8, .count = 8}, small_options()));
  }
}

TEST_F(Cuda, BitsOfStagesDoNotDependOnTheBatchOrTheOrderOfThreads) {
  for (const test::NamedStage& stage : test::all_stages()) {
    for (const bool sequence : {false, true}) {
      Plan plan = test::make_plan({.n = 50, .queries = 3}, GaussianKernel{.bandwidth = 0.3});
      if (sequence) plan.ar1 = Ar1(0.7);
      stage.set(plan);
      const Block block = {.first = 16, .count = 5};
      const auto expected = run(plan, block, small_options());
      for (const std::int64_t batch : {1, 3}) {
        Options options = small_options();
        options.batch_replicates = batch;
        expect_same_bits(run(plan, block, options), expected);
      }
      set_thread_order(Order::descending);
      set_block_order(Order::descending);
      expect_same_bits(run(plan, block, small_options()), expected);
      set_thread_order(Order::ascending);
      set_block_order(Order::ascending);
    }
  }
}

TEST_F(Cuda, ASequenceHasTheBitsOfTheReference) {
  for (const std::uint64_t n : {7, 32, 33, 200}) {
    Plan plan = test::make_plan({.n = n}, GaussianKernel{.bandwidth = 0.6});
    const std::vector<double> independent = draw_training_set(plan, 4).x;
    plan.ar1 = Ar1(0.8);
    const std::vector<double> expected = draw_training_set(plan, 4).x;
    EXPECT_TRUE(std::ranges::equal(draw_design(plan, 4, small_options()), expected)) << n;
    EXPECT_NE(expected, independent);
    // With the affine map of a design.
    std::vector<double> mean(6, 0.5);
    plan.design = NormalDesign{.dim = 6, .mean = mean, .ar1 = 0.4}.sampler(plan.table);
    EXPECT_TRUE(
        std::ranges::equal(draw_design(plan, 4, small_options()), draw_training_set(plan, 4).x));
    expect_reference(plan, "ar1");
  }
  for (const test::NamedStage& stage : test::all_stages()) {
    Plan plan = test::make_plan({.n = 110}, GaussianKernel{.bandwidth = 0.6});
    plan.ar1 = Ar1(0.8);
    stage.set(plan);
    expect_reference(plan, "ar1 and " + stage.name);
  }
}

TEST_F(Cuda, SuccessiveRowsOfAFileHaveEveryStage) {
  std::vector<std::vector<double>> rows;
  std::vector<double> values;
  for (int i = 0; i < 90; ++i) {
    rows.emplace_back();
    for (int c = 0; c < 6; ++c) rows.back().push_back(std::sin(1.7 * (6 * i + c)));
    values.push_back(std::cos(i));
  }
  for (const test::NamedStage& stage : test::all_stages()) {
    Plan plan = test::make_plan({.n = 80}, GaussianKernel{.bandwidth = 0.6});
    FileDesign::Sampler sampler = FileDesign{.rows = rows}.sampler(plan.table);
    sampler.successive = 80;
    plan.design = sampler;
    plan.regression = FileRegression{.values = values}.function(plan.table, 6);
    stage.set(plan);
    expect_reference(plan, "rows and " + stage.name);
  }
}

TEST_F(Cuda, EqualPointsTieWhereverTheyStand) {
  std::vector<std::vector<double>> rows;
  for (int i = 0; i < 150; ++i) {
    rows.emplace_back();
    // Seven different points.
    for (int c = 0; c < 6; ++c) rows.back().push_back(std::sin(i % 7 * 1.3 + 0.7 * c));
  }
  for (const std::uint64_t top : {1, 30, 70}) {
    Plan plan = test::make_plan({.n = 150, .k = 3}, GaussianKernel{.bandwidth = 1});
    FileDesign::Sampler sampler = FileDesign{.rows = rows}.sampler(plan.table);
    sampler.successive = 150;
    plan.design = sampler;
    plan.mechanism.keep = {.rule = Keep::Rule::top, .top = {top, top, top}};
    expect_reference(plan, "top " + std::to_string(top));
  }
}

/// A design of one coordinate, given as rows of a file, and one head with one query at 0.
Plan plan_of_keys(const std::vector<double>& keys) {
  Plan plan;
  plan.n = keys.size();
  plan.kernel = GaussianKernel{.bandwidth = 1};
  plan.projections = {1};
  plan.query_points = {0};
  plan.head_weights = {1};
  plan.truth = {0};
  plan.moments = MomentMode::aggregate;
  std::vector<std::vector<double>> rows;
  for (const double key : keys) rows.push_back({key});
  FileDesign::Sampler sampler = FileDesign{.rows = rows}.sampler(plan.table);
  sampler.successive = static_cast<std::uint32_t>(keys.size());
  plan.design = sampler;
  plan.regression = FileRegression{.values = keys}.function(plan.table, 1);
  plan.noise = NormalNoise{.sd = 1}.sampler(plan.table, 1);
  return plan;
}

TEST_F(Cuda, KeptTokensAreThoseAboveTheThresholdAndAllTies) {
  // Log weights -x^2 / 2 that differ by 1e-4 around the third, or tie.
  const double third = 1;
  const double near = std::sqrt(third * third + 2e-4);
  const std::vector<double> gap = {2, near, 0.3, -third, 0.7, 3, -2.5};
  const std::vector<double> tie = {2, third, 0.3, third, 0.7, 3, third};
  const auto estimate = [](Plan plan, const Keep& keep) {
    plan.mechanism.keep = keep;
    const Moments node = test::one_replicate(*make_cuda_backend(small_options()), plan, 0);
    EXPECT_TRUE(close_to_reference(plan, 0, node.mean));
    return node.mean[0];
  };
  const auto mean_of = [](const std::vector<double>& kept) {
    double weight = 0;
    double sum = 0;
    for (const double x : kept) {
      weight += std::exp(-x * x / 2);
      sum += x * std::exp(-x * x / 2);
    }
    return sum / weight;
  };
  const auto top = [](std::uint64_t k) { return Keep{.rule = Keep::Rule::top, .top = {k}}; };
  EXPECT_NEAR(estimate(plan_of_keys(gap), top(3)), mean_of({0.3, 0.7, -third}), 1e-6);
  EXPECT_NEAR(estimate(plan_of_keys(gap), top(4)), mean_of({0.3, 0.7, -third, near}), 1e-6);
  for (const std::uint64_t k : {3, 4, 5}) {
    EXPECT_NEAR(estimate(plan_of_keys(tie), top(k)), mean_of({0.3, 0.7, third, third, third}),
                1e-6);
  }
  const auto ratio = [](double x) {
    return Keep{.rule = Keep::Rule::ratio, .ratio = std::exp((0.3 * 0.3 - x * x) / 2)};
  };
  EXPECT_NEAR(estimate(plan_of_keys(gap), ratio(std::sqrt(1 + 1e-4))), mean_of({0.3, 0.7, -third}),
              1e-6);
  // Blocks of equal weight tie as well: (2, .3), (2, .3) and (3, .1).
  const Keep block = {.rule = Keep::Rule::block, .top = {1}, .block = 2};
  EXPECT_NEAR(estimate(plan_of_keys({2, 0.3, -2.5, 3, 2, 0.3}), block), mean_of({2, 0.3, 2, 0.3}),
              1e-6);
}

TEST_F(Cuda, ACompactHeadWithAnEmptyWindowTakesItsNearestSeenToken) {
  for (const bool keeps : {false, true}) {
    Plan plan = plan_of_keys({5, 4, 0.5, 6, 7, 0});
    plan.kernel = EpanechnikovKernel{.bandwidth = 1};
    plan.mechanism.seen = {seen_tokens(6, 2, 1, 2)};
    if (keeps) plan.mechanism.keep = {.rule = Keep::Rule::top, .top = {2}};
    const Moments node = test::one_replicate(*make_cuda_backend(small_options()), plan, 0);
    EXPECT_FLOAT_EQ(static_cast<float>(node.mean[0]), 4);
    EXPECT_EQ(node.windows, (WindowCounts{.empty = 1, .narrow = 1}));
    expect_reference(plan, "empty window");
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
  use_device(0);
  constexpr std::int64_t replicates = 3;
  for (const test::NamedStage& stage : test::all_stages()) {
    Plan plan = test::make_plan({.n = 1000}, GaussianKernel{.bandwidth = 0.6});
    stage.set(plan);
    const LaunchPlan launch = plan_launch(plan, small_options().limits);
    Stream stream;
    const Constants constants(plan, launch, stream);
    Batch batch(plan, launch, constants, stream);
    ASSERT_TRUE(stream.work.reserve(batch.bytes(replicates)));
    EXPECT_NO_THROW(batch.place(replicates)) << stage.name;
    EXPECT_THROW(stream.work.take<float>(1), std::logic_error) << stage.name;
    // What a device is filled with is at most half a GiB.
    EXPECT_LE(batch.bytes(batch.good_replicates()), 1u << 29) << stage.name;
  }
}

}  // namespace
}  // namespace headlab::emulated_cuda
