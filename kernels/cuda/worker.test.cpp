// SPDX-License-Identifier: Apache-2.0
// Batches, nodes, memory and devices of the CUDA backend, executed on the host.
#include "kernels/cuda/worker.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/timing.h"
#include "kernels/testing/emulated_backend.h"

namespace headlab::emulated_cuda {
namespace {

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
  EXPECT_NE(backend->notes()[0].find("continues with"), std::string::npos) << backend->notes()[0];
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

TEST_F(Cuda, EveryStepIsTimedAndTimingChangesNothing) {
  const Plan plan = test::make_plan({.n = 70}, GaussianKernel{.bandwidth = 0.3},
                                    Estimator::conditional, MomentMode::aggregate);
  Options options = small_options();
  options.batch_replicates = 2;
  const auto before = run(plan, {.first = 0, .count = 8}, options);
  const KernelTimes times = time_kernels(plan, 0, options, 3);
  EXPECT_EQ(times.replicates, 2);
  EXPECT_EQ(times.weights, 2.0 * 70 * 3 * 5);
  for (const double seconds :
       {times.draw, times.project, times.weigh, times.collect, times.moments}) {
    EXPECT_GT(seconds, 0.0);
  }
  expect_same_bits(run(plan, {.first = 0, .count = 8}, options), before);
}

}  // namespace
}  // namespace headlab::emulated_cuda
