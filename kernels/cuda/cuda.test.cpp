// SPDX-License-Identifier: Apache-2.0
// Every kernel of the CUDA backend, executed on the host.
#include "kernels/cuda/cuda.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/emulator/control.h"
#include "kernels/cuda/runtime.h"
#include "kernels/parity.h"
#include "kernels/test_plans.h"

namespace headlab::emulated_cuda {
namespace {

using test::all_kernels;
using test::one_replicate;

/// constant: m(X), the value less its centre, exp2 and the product with the value (about 10
/// together; the exponential unit has 2^-22.5), and the float32 sums of a thread over 256 keys.
/// of_exponent: as for the cpu backend, and half as much again for split products on the tensor
/// cores, which lose up to 2^-20 of |query| |key|, an eighth of the exponent of absolute values.
constexpr test::Rounding cuda_rounding = {.constant = 10 + 256, .of_exponent = 12};

::testing::AssertionResult close_to_reference(const Plan& plan, std::uint64_t replicate,
                                              const std::vector<double>& statistics) {
  return test::close_to_reference(plan, replicate, statistics, cuda_rounding);
}

/// Matrix products of a few hundred points: what is emulated is not wasted.
Options small_options() {
  Options options;
  options.shape.slice_points = 128;
  options.statistics_bytes = 1 << 17;
  return options;
}

std::vector<Moments> run(const Plan& plan, const Block& block, const Options& options) {
  std::vector<Moments> out(block.nodes());
  make_cuda_backend(options)->worker(plan)->run(block, out);
  return out;
}

void expect_same_bits(const std::vector<Moments>& a, const std::vector<Moments>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].count, b[i].count) << i;
    EXPECT_EQ(a[i].mean, b[i].mean) << i;
    EXPECT_EQ(a[i].comoment, b[i].comoment) << i;
    EXPECT_EQ(a[i].windows, b[i].windows) << i;
  }
}

class Cuda : public ::testing::Test {
 protected:
  void SetUp() override { control::reset(); }
  void TearDown() override {
    set_thread_order(Order::ascending);
    set_block_order(Order::ascending);
    control::reset();
    EXPECT_EQ(control::bytes_in_use(), 0u) << "device memory was not given back";
  }
};

TEST_F(Cuda, DrawsTheBitsOfTheReferenceForEveryDesignAndEveryGrid) {
  const MixtureDesign mixture{.weights = {0.3, 0.7}, .means = {{0, 1, 2}, {3, 4, 5}}};
  const FileDesign file{.rows = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}};
  const std::vector<DesignLaw> laws = {NormalDesign{.dim = 5},
                                       NormalDesign{.dim = 5, .ar1 = 0.6},
                                       mixture,
                                       UniformDesign{.dim = 5},
                                       StudentDesign{.dim = 5, .df = 2.5},
                                       SphereDesign{.dim = 5},
                                       file};
  for (const DesignLaw& law : laws) {
    Plan plan;
    plan.n = 77;
    plan.seed = (1ull << 52) + 3;
    std::visit(
        [&](const auto& design) {
          plan.d = design.dimension();
          plan.design = design.sampler(plan.table);
        },
        law);
    plan.kernel = GaussianKernel{};
    plan.projections.assign(static_cast<std::size_t>(plan.d), 0.0);
    // The backend measures from the median of the queries, here 0: the points are left as drawn.
    plan.query_points.assign(static_cast<std::size_t>(plan.d), 0.0);
    plan.head_weights = {1};
    plan.truth = {0};
    const std::vector<double> reference = draw_sample(plan, 41).x;
    for (const std::int64_t slice_points : {128, 1000}) {
      Options options;
      options.shape.slice_points = slice_points;

      const std::vector<float> drawn = draw_design(plan, 41, options);

      ASSERT_EQ(drawn.size(), reference.size());
      for (std::size_t i = 0; i < drawn.size(); ++i) {
        ASSERT_EQ(static_cast<double>(drawn[i]), reference[i]) << law.index() << " at " << i;
      }
    }
  }
}

TEST_F(Cuda, ChoosesEveryFormSomewhere) {
  auto form = [](int k, int queries, const KernelLaw& kernel) {
    const Plan plan = test::make_plan({.n = 100, .d = 70, .heads = 2, .k = k, .queries = queries},
                                      kernel, Estimator::plain);
    return choose_shape(plan).form;
  };
  const GaussianKernel wide{.bandwidth = 2};
  const EpanechnikovKernel window{.bandwidth = 2};
  EXPECT_EQ(form(1, 7, wide), Form::distances2);
  EXPECT_EQ(form(2, 7, wide), Form::distances2);
  EXPECT_EQ(form(1, 7, SoftmaxKernel{}), Form::dots4);
  EXPECT_EQ(form(4, 7, wide), Form::dots4);
  EXPECT_EQ(form(3, 7, window), Form::distances4);
  EXPECT_EQ(form(5, 7, wide), Form::dots8);
  EXPECT_EQ(form(8, 7, window), Form::distances8);
  EXPECT_EQ(form(9, 7, wide), Form::tensor16);
  EXPECT_EQ(form(32, 7, wide), Form::tensor32);
  EXPECT_EQ(form(64, 7, SoftmaxKernel{}), Form::tensor64);
  EXPECT_EQ(form(65, 7, wide), Form::any);
  EXPECT_EQ(form(16, 7, window), Form::any);
  EXPECT_EQ(form(4, 2, wide), Form::any);
  EXPECT_EQ(form(4, 7, GaussianKernel{.bandwidth = 0.01}), Form::distances4)
      << "products would lose the digits of so small a bandwidth";
}

TEST_F(Cuda, StatisticsAreEquivalentToReference) {
  const std::vector<test::Shape> shapes = {
      {.n = 1, .d = 2, .heads = 1, .k = 1, .queries = 1},
      {.n = 31, .d = 3, .heads = 3, .k = 1, .queries = 7},
      {.n = 33, .d = 8, .heads = 1, .k = 5, .queries = 7},
      {.n = 33, .d = 8, .heads = 4, .k = 4, .queries = 3},
      {.n = 1000, .d = 6, .heads = 3, .k = 2, .queries = 7},
      {.n = 300, .d = 16, .heads = 8, .k = 8, .queries = 7},
      {.n = 100, .d = 16, .heads = 3, .k = 16, .queries = 7},
      {.n = 65, .d = 40, .heads = 17, .k = 33, .queries = 7},
      {.n = 100, .d = 30, .heads = 17, .k = 30, .queries = 1},
      {.n = 64, .d = 80, .heads = 2, .k = 70, .queries = 3},
  };
  for (const test::Shape& shape : shapes) {
    for (const KernelLaw& kernel : all_kernels(shape.k > 10 ? 4.0 : 0.7)) {
      for (const Estimator estimator : {Estimator::conditional, Estimator::plain}) {
        for (const MomentMode mode : {MomentMode::pairwise, MomentMode::aggregate}) {
          const Plan plan = test::make_plan(shape, kernel, estimator, mode);
          const auto backend = make_cuda_backend(small_options());
          EXPECT_TRUE(close_to_reference(plan, 2, one_replicate(*backend, plan, 2).mean))
              << "n " << shape.n << " H " << shape.heads << " k " << shape.k << " Q "
              << shape.queries << " kernel " << kernel.index() << " estimator "
              << static_cast<int>(estimator) << " moments " << static_cast<int>(mode);
        }
      }
    }
  }
}

TEST_F(Cuda, TheRobustPathIsEquivalentToReference) {
  // No shared memory for a tile: every query goes the way that is otherwise rare.
  Options options = small_options();
  options.shape.shared_bytes = 0;
  for (const KernelLaw& kernel : all_kernels(0.7)) {
    for (const MomentMode mode : {MomentMode::pairwise, MomentMode::aggregate}) {
      const Plan plan =
          test::make_plan({.n = 200, .heads = 3}, kernel, Estimator::conditional, mode);
      ASSERT_TRUE(choose_shape(plan, options.shape).robust_only);
      EXPECT_TRUE(
          close_to_reference(plan, 1, one_replicate(*make_cuda_backend(options), plan, 1).mean))
          << kernel.index();
    }
  }
}

TEST_F(Cuda, TheComparisonSeesABandwidthOffByOnePercent) {
  Plan plan = test::make_plan({.n = 1000}, GaussianKernel{.bandwidth = 0.7});
  const auto statistics = one_replicate(*make_cuda_backend(small_options()), plan, 2).mean;

  plan.kernel = GaussianKernel{.bandwidth = 0.707};

  EXPECT_FALSE(close_to_reference(plan, 2, statistics));
  EXPECT_FALSE(close_to_reference(plan, 2, std::vector<double>(statistics.size(), std::nan(""))));
}

TEST_F(Cuda, NoiseThatVariesIsEquivalentToReference) {
  for (const int heads : {3, 17}) {
    for (const Estimator estimator : {Estimator::conditional, Estimator::plain}) {
      for (const MomentMode mode : {MomentMode::pairwise, MomentMode::aggregate}) {
        Plan plan = test::make_plan({.n = 300, .heads = heads}, GaussianKernel{.bandwidth = 0.7},
                                    estimator, mode);
        plan.noise =
            HeteroscedasticNoise{.sd = 0.4, .slope = 1.5, .direction = {1, -1, 0, 0.5, 0, 0}}
                .sampler(plan.table, plan.d);
        EXPECT_TRUE(close_to_reference(
            plan, 0, one_replicate(*make_cuda_backend(small_options()), plan, 0).mean))
            << heads;
      }
    }
  }
}

TEST_F(Cuda, OneDesignForAllReplicatesWhereItIsFixed) {
  Plan plan = test::make_plan({.n = 50}, GaussianKernel{.bandwidth = 0.7});
  plan.fixed_design_seed = 9;
  const auto nodes = run(plan, {.first = 0, .count = 16}, small_options());
  for (const Moments& node : nodes) {
    for (const double comoment : node.comoment) EXPECT_EQ(comoment, 0.0);
    EXPECT_TRUE(close_to_reference(plan, 3, node.mean));
  }
}

TEST_F(Cuda, EmptyAndNarrowWindowsAreTreatedAndCountedAsInTheReference) {
  const auto reference = make_reference_backend();
  for (const double scale : {1e-6, 1e-3, 0.02}) {
    for (const KernelLaw& kernel : all_kernels(scale)) {
      for (const int queries : {2, 6}) {
        const Plan plan =
            test::make_plan({.n = 90, .d = 4, .heads = 3, .k = 3, .queries = queries}, kernel);
        const Moments fast = one_replicate(*make_cuda_backend(small_options()), plan, 1);
        const Moments exact = one_replicate(*reference, plan, 1);
        for (const double value : fast.mean) EXPECT_TRUE(std::isfinite(value));
        EXPECT_EQ(fast.windows, exact.windows) << "scale " << scale << " law " << kernel.index();
      }
    }
  }
}

TEST_F(Cuda, FarAndHeavyTailedPointsGiveNoNaN) {
  for (const double scale : {1e-6, 1.0, 1e6}) {
    for (const KernelLaw& kernel : all_kernels(scale)) {
      for (const int k : {2, 9}) {
        Plan plan = test::make_plan({.n = 100, .d = 12, .k = k}, kernel);
        plan.design = StudentDesign{.dim = 12, .df = 0.02}.sampler(plan.table);
        for (double& x : plan.query_points) x *= 1e6;
        for (const double value :
             one_replicate(*make_cuda_backend(small_options()), plan, 0).mean) {
          ASSERT_TRUE(std::isfinite(value)) << "scale " << scale << " law " << kernel.index();
        }
      }
    }
  }
}

TEST_F(Cuda, BitsDoNotDependOnTheBatchOrTheOrderOfThreads) {
  for (const Estimator estimator : {Estimator::conditional, Estimator::plain}) {
    const Plan plan = test::make_plan({.n = 70}, GaussianKernel{.bandwidth = 0.3}, estimator);
    const Block block = {.first = 16, .count = 29};
    const auto expected = run(plan, block, small_options());
    for (const std::int64_t batch : {1, 7}) {
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

TEST_F(Cuda, OutOfMemoryShrinksTheBatchAndSaysSo) {
  const Plan plan = test::make_plan({.n = 70}, GaussianKernel{.bandwidth = 0.3});
  const Block block = {.first = 8, .count = 24};
  const auto backend = make_cuda_backend(small_options());
  const auto expected = run(plan, block, small_options());

  // The arrays of a batch come after those of the scenario.
  control::fail_allocation(14);
  std::vector<Moments> out(block.nodes());
  backend->worker(plan)->run(block, out);

  expect_same_bits(out, expected);
  ASSERT_EQ(backend->notes().size(), 1u);
  EXPECT_NE(backend->notes()[0].find("going on with"), std::string::npos) << backend->notes()[0];
}

TEST_F(Cuda, TooLittleMemoryForOneReplicateIsSaid) {
  const Plan plan = test::make_plan({.n = 10000}, GaussianKernel{.bandwidth = 0.3});
  control::set_memory(100000);
  try {
    run(plan, {.first = 0, .count = 8}, small_options());
    FAIL() << "nothing was thrown";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("lower data.n"), std::string::npos) << error.what();
  }
}

TEST_F(Cuda, DeviceMemoryDoesNotGrowWithTheReplicates) {
  const Plan plan = test::make_plan({.n = 20, .queries = 2}, GaussianKernel{.bandwidth = 0.7});
  control::reset();
  run(plan, {.first = 0, .count = 8}, small_options());
  const std::uint64_t few = control::peak_bytes();
  control::reset();
  run(plan, {.first = 0, .count = 512, .node = 512}, small_options());
  EXPECT_EQ(control::peak_bytes(), few);
}

TEST_F(Cuda, NodesOfAnySizeAreTheMergedLeaves) {
  for (const MomentMode mode : {MomentMode::pairwise, MomentMode::aggregate}) {
    const Plan plan = test::make_plan({.n = 20, .queries = 3}, GaussianKernel{.bandwidth = 0.7},
                                      Estimator::conditional, mode);
    auto leaves = run(plan, {.first = 64, .count = 64}, small_options());
    std::vector<Moments> halves(2);
    for (std::size_t i = 0; i < 2; ++i) {
      halves[i] = merge_siblings(plan.layout(), std::span(leaves).subspan(4 * i, 4));
    }
    expect_same_bits(run(plan, {.first = 64, .count = 64, .node = 32}, small_options()), halves);
    expect_same_bits(run(plan, {.first = 64, .count = 64, .node = 64}, small_options()),
                     {merge_siblings(plan.layout(), halves)});
  }
}

TEST_F(Cuda, LeavesOfReplicatesAreTheMomentsOfTheirStatistics) {
  const Plan plan = test::make_plan({.n = 20, .queries = 3}, GaussianKernel{.bandwidth = 0.7});
  const auto replicates = run(plan, {.first = 8, .count = 5, .node = 1}, small_options());
  std::vector<double> statistics;
  WindowCounts windows;
  for (const Moments& replicate : replicates) {
    statistics.insert(statistics.end(), replicate.mean.begin(), replicate.mean.end());
    windows.add(replicate.windows);
  }
  std::vector<Moments> expected(1);
  leaf_moments(plan.layout(), statistics, 5, expected[0]);
  expected[0].windows = windows;

  expect_same_bits(run(plan, {.first = 8, .count = 5}, small_options()), expected);
}

TEST_F(Cuda, TwoDevicesGiveTheBitsOfOne) {
  control::set_devices(2);
  const Plan plan = test::make_plan({.n = 50}, GaussianKernel{.bandwidth = 0.7});
  const auto backend = make_cuda_backend(small_options());
  EXPECT_EQ(backend->workers(1), 4);
  const auto first = backend->worker(plan);
  const auto second = backend->worker(plan);
  std::vector<Moments> a(2);
  std::vector<Moments> b(2);
  first->run({.first = 8, .count = 16}, a);
  second->run({.first = 8, .count = 16}, b);
  expect_same_bits(a, b);
}

TEST_F(Cuda, ALostDeviceIsAnErrorThatNamesIt) {
  const Plan plan = test::make_plan({.n = 50}, GaussianKernel{.bandwidth = 0.7});
  const auto worker = make_cuda_backend(small_options())->worker(plan);
  control::lose_device(0);
  std::vector<Moments> out(1);
  EXPECT_THROW(worker->run({.first = 0, .count = 8}, out), DeviceError);
}

TEST_F(Cuda, WithoutADeviceThereIsNoBackend) {
  control::set_devices(0);
  EXPECT_THROW(make_cuda_backend(), Unavailable);
}

}  // namespace
}  // namespace headlab::emulated_cuda
