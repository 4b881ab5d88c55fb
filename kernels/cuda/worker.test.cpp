// SPDX-License-Identifier: Apache-2.0
// Batches, nodes, memory and devices of the CUDA backend, on a GPU and on the host.
#include "kernels/cuda/worker.h"

#include <array>
#include <cmath>
#include <latch>
#include <thread>

#include <gtest/gtest.h>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/projection.h"
#include "kernels/testing/device_fixture.h"
#include "kernels/testing/kernel_times.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

#if defined(HEADLAB_EMULATE_CUDA)
constexpr std::uint64_t some_points = 70;
#else
constexpr std::uint64_t some_points = 700;
#endif

TEST_F(Cuda, BitsDoNotDependOnTheBatchTheRunOrTheOrderOfThreads) {
  for (const Estimator estimator : test::estimators) {
    expect_bits_of_any_batch_and_order(
        test::make_plan({.n = 70}, GaussianKernel{.bandwidth = 0.3}, estimator),
        {.first = 16, .count = 29}, {1, 2, 3, 7, 8, 29, 1 << 20});
    for (const MomentMode mode : test::modes) {
      for (const int k : {2, 8, 16, 64}) {
        Plan plan =
            test::make_plan({.n = some_points, .d = k + 6, .heads = 3, .k = k, .queries = 5},
                            GaussianKernel{.bandwidth = 0.8 * std::sqrt(k)}, estimator, mode);
        if (k == 16) test::vary_noise(plan);
        expect_bits_of_any_batch_and_order(plan, {.first = 0, .count = 3, .node = 1}, {1, 2});
      }
    }
  }
}

TEST_F(Cuda, WorkersSideBySideAndEveryDeviceGiveTheBitsOfOne) {
#if defined(HEADLAB_EMULATE_CUDA)
  control::set_devices(2);
#endif
  const Plan plan = test::make_plan({.n = some_points, .d = 20, .heads = 5, .k = 16, .queries = 9},
                                    GaussianKernel{.bandwidth = 3});
  const Block block = {.first = 64, .count = 16};
  const auto expected = run(plan, block);
  const auto backend = make_cuda_backend(test_options());
  const std::size_t devices = usable_devices().size();
  EXPECT_EQ(backend->workers(1), static_cast<int>(2 * devices));
  // Workers are dealt to the devices in turn.
  std::vector<std::vector<Moments>> results(2 * devices, std::vector<Moments>(block.nodes()));
  {
    std::vector<std::jthread> threads;
    for (auto& result : results) {
      threads.emplace_back([&block, &result, worker = std::shared_ptr(backend->worker(plan))] {
        for (int again = 0; again < 2; ++again) worker->run(block, result);
      });
    }
  }
  for (const auto& result : results) EXPECT_TRUE(same_bits(result, expected));
}

TEST_F(Cuda, NodesOfAnySizeAreTheMergedLeaves) {
  for (const MomentMode mode : {MomentMode::pairwise, MomentMode::aggregate}) {
    const Plan plan = test::make_plan({.n = 20, .queries = 3}, GaussianKernel{.bandwidth = 0.7},
                                      Estimator::conditional, mode);
    auto leaves = run(plan, {.first = 64, .count = 64});
    std::vector<Moments> halves(2);
    for (std::size_t i = 0; i < 2; ++i) {
      halves[i] = merge_siblings(plan.layout(), std::span(leaves).subspan(4 * i, 4));
    }
    EXPECT_TRUE(same_bits(run(plan, {.first = 64, .count = 64, .node = 32}), halves));
    EXPECT_TRUE(same_bits(run(plan, {.first = 64, .count = 64, .node = 64}),
                          {merge_siblings(plan.layout(), halves)}));
  }
}

TEST_F(Cuda, LeavesOfReplicatesAreTheMomentsOfTheirStatistics) {
  const Plan plan = test::make_plan({.n = 20, .queries = 3}, GaussianKernel{.bandwidth = 0.7});
  const auto replicates = run(plan, {.first = 8, .count = 5, .node = 1});
  std::vector<double> statistics;
  WindowCounts windows;
  for (const Moments& replicate : replicates) {
    statistics.insert(statistics.end(), replicate.mean.begin(), replicate.mean.end());
    windows.add(replicate.windows);
  }
  std::vector<Moments> expected(1);
  leaf_moments(plan.layout(), statistics, 5, expected[0]);
  expected[0].windows = windows;

  EXPECT_TRUE(same_bits(run(plan, {.first = 8, .count = 5}), expected));
}

TEST_F(Cuda, ProjectsEachPointByOneChainOfFusedOperations) {
  use_device(usable_devices().front().number);
  Stream stream;
  constexpr int d = 5;
  constexpr std::int64_t padded = 192;
  for (const int outputs : {1, 4, 7, 8, 16, 20, 24, 96, 130}) {
    for (const std::int64_t replicates : {1, 3}) {
      const auto numbers = [](std::int64_t size, double step) {
        std::vector<float> all(static_cast<std::size_t>(size));
        for (std::size_t i = 0; i < all.size(); ++i) {
          all[i] = static_cast<float>(std::sin(step * static_cast<double>(i) + 1));
        }
        return all;
      };
      const auto copied = [&](const std::vector<float>& values) {
        Memory memory(values.size() * sizeof(float));
        stream.copy_to_device(memory.as<float>(), values.data(), values.size() * sizeof(float));
        return memory;
      };
      const std::vector<float> w = numbers(outputs * d, 0.7);
      const std::vector<float> x = numbers(replicates * d * padded, 0.3);
      const std::vector<float> centre = numbers(d, 1.1);
      const Memory on_w = copied(projection_columns(w, d));
      const Memory on_x = copied(x);
      const Memory on_centre = copied(centre);
      for (const bool centred : {false, true}) {
        // One row more, which stays as it is.
        const std::int64_t size = replicates * outputs * padded;
        const Memory keys(static_cast<std::uint64_t>(size + padded) * sizeof(float));
        project(stream, {.sets = {.padded_n = padded,
                                  .d = d,
                                  .draw_rows = d,
                                  .key_rows = outputs,
                                  .x = on_x.as<float>(),
                                  .keys = keys.as<float>()},
                         .projections = on_w.as<float>(),
                         .centre = centred ? on_centre.as<float>() : nullptr,
                         .replicates = replicates});
        std::vector<float> projected(static_cast<std::size_t>(size + padded));
        stream.copy_to_host(projected.data(), keys.as<float>(), projected.size() * sizeof(float));
        stream.synchronise();
        std::int64_t differ = 0;
        for (std::int64_t at = 0; at < size; ++at) {
          const std::int64_t replicate = at / padded / outputs;
          const std::int64_t output = at / padded % outputs;
          float sum = 0;
          for (std::int64_t c = 0; c < d; ++c) {
            const float point =
                x[static_cast<std::size_t>((replicate * d + c) * padded + at % padded)] -
                (centred ? centre[static_cast<std::size_t>(c)] : 0.0f);
            sum = std::fma(w[static_cast<std::size_t>(output * d + c)], point, sum);
          }
          differ += projected[static_cast<std::size_t>(at)] == sum ? 0 : 1;
        }
        EXPECT_EQ(differ, 0) << outputs << ' ' << replicates << ' ' << centred;
#if defined(HEADLAB_EMULATE_CUDA)
        EXPECT_TRUE(std::isnan(projected[static_cast<std::size_t>(size)]));
#endif
      }
    }
  }
}

TEST_F(Cuda, EveryStepIsTimedAndTimingChangesNothing) {
  const Plan plan = test::make_plan({.n = some_points, .d = 32, .heads = 8, .k = 4, .queries = 5},
                                    GaussianKernel{.bandwidth = 1.6}, Estimator::conditional,
                                    MomentMode::aggregate);
  const Options options = in_batches(2);
  const int device = usable_devices().front().number;
  const auto before = run(plan, {.first = 0, .count = 8}, options);
  const KernelTimes times = time_kernels(plan, device, options, 3);
  EXPECT_EQ(times.replicates, 2);
  EXPECT_EQ(times.weights, 2.0 * some_points * 8 * 5);
  for (const double seconds :
       {times.draw, times.project, times.weigh, times.collect, times.moments}) {
    EXPECT_GT(seconds, 0.0);
  }
  EXPECT_GT(highest_clock(device), 0.0);
  EXPECT_TRUE(same_bits(run(plan, {.first = 0, .count = 8}, options), before));
}

#if defined(HEADLAB_EMULATE_CUDA)
TEST_F(Cuda, OutOfMemoryShrinksTheBatchAndSaysSo) {
  const Plan plan = test::make_plan({.n = 70}, GaussianKernel{.bandwidth = 0.3});
  const Block block = {.first = 8, .count = 24};
  const auto backend = make_cuda_backend(test_options());
  const auto expected = run(plan, block);

  // The memory of a batch comes after that of the scenario.
  control::fail_allocation(2);
  std::vector<Moments> out(block.nodes());
  backend->worker(plan)->run(block, out);

  EXPECT_TRUE(same_bits(out, expected));
  ASSERT_EQ(backend->notes().size(), 1u);
  EXPECT_NE(backend->notes()[0].find("continues with"), std::string::npos) << backend->notes()[0];
}

TEST_F(Cuda, BatchesFillADeviceAndNotMore) {
  use_device(0);
  control::set_memory(std::uint64_t{80} << 30);
  struct Case {
    test::Shape shape;
    std::int64_t replicates;
  };
  // 2^31 weights; and 2^31 bytes, of which a replicate has some n (4 d + 4 H k + 8).
  for (const Case& c : {Case{{.n = 4096, .d = 32, .heads = 8, .k = 4, .queries = 1024}, 64},
                        Case{{.n = 4096, .d = 32, .heads = 8, .k = 4, .queries = 64}, 1024},
                        Case{{.n = 512, .d = 32, .heads = 8, .k = 4, .queries = 1}, 15887}}) {
    const Plan plan = test::make_plan(c.shape, GaussianKernel{.bandwidth = 1.4}, Estimator::plain);
    const LaunchPlan launch = plan_launch(plan);
    Stream stream;
    const Constants constants(plan, launch, stream);
    const Batch batch(plan, launch, constants, stream);
    EXPECT_NEAR(static_cast<double>(batch.good_replicates()), static_cast<double>(c.replicates),
                0.01 * static_cast<double>(c.replicates));
    control::set_memory(std::uint64_t{1} << 30);
    EXPECT_LE(batch.bytes(batch.good_replicates()), std::uint64_t{1} << 26);
    control::set_memory(std::uint64_t{80} << 30);
  }
}

TEST_F(Cuda, AConditionNoLargerThanTheLastOneAllocatesNothing) {
  const auto backend = make_cuda_backend(test_options());
  const auto allocations_of = [&](const test::Shape& shape, MomentMode mode) {
    const Plan plan =
        test::make_plan(shape, GaussianKernel{.bandwidth = 0.7}, Estimator::conditional, mode);
    const Block block = {.first = 0, .count = 16, .node = 1};
    const auto expected = run(plan, block);
    const int before = control::allocations();
    std::vector<Moments> out(block.nodes());
    backend->worker(plan)->run(block, out);
    EXPECT_TRUE(same_bits(out, expected));
    return control::allocations() - before;
  };
  EXPECT_EQ(allocations_of({.n = 200, .queries = 5}, MomentMode::pairwise), 3)
      << "constants, work, results";
  EXPECT_EQ(allocations_of({.n = 200, .queries = 5}, MomentMode::pairwise), 0);
  EXPECT_EQ(allocations_of({.n = 100, .queries = 4}, MomentMode::aggregate), 0);
  EXPECT_EQ(allocations_of({.n = 200, .queries = 5}, MomentMode::pairwise), 0);
  EXPECT_GT(allocations_of({.n = 2000, .queries = 20}, MomentMode::pairwise), 0)
      << "negative control: a larger one";
}

TEST_F(Cuda, IdleMemoryIsFreedWhereItIsMissing) {
  const Plan plan = test::make_plan({.n = 5000}, GaussianKernel{.bandwidth = 0.7});
  const Plan larger = test::make_plan({.n = 8000}, GaussianKernel{.bandwidth = 0.7});
  const Options options = in_batches(1);
  for (const int unused : {2, 1}) {
    const auto backend = make_cuda_backend(options);
    const auto used = backend->worker(plan);
    std::vector<std::unique_ptr<Worker>> workers;
    for (int i = 0; i < unused; ++i) workers.push_back(backend->worker(plan));
    workers.clear();
    control::set_memory(control::bytes_in_use());
    if (unused == 2) {
      EXPECT_NO_THROW(backend->worker(larger));
    } else {
      EXPECT_THROW(backend->worker(larger), OutOfMemory) << "negative control: nothing to free";
    }
    control::reset();
  }
}

TEST_F(Cuda, ASegmentThatRunsOutOfMemoryIsTriedAgainOnce) {
  const Plan plan = test::make_plan({.n = 70}, GaussianKernel{.bandwidth = 0.02});
  const Block block = {.first = 8, .count = 24};
  const auto expected = run(plan, block);
  EXPECT_GT(expected[0].windows.empty + expected[0].windows.narrow, 0u)
      << "counts would show a batch that was added twice";
  Options options = test_options();
  options.batch_replicates = 8;
  const auto backend = make_cuda_backend(options);
  const auto worker = backend->worker(plan);
  std::vector<Moments> out(block.nodes());
  // After the windows of the first batch were counted.
  control::fail_launch(9);
  worker->run(block, out);
  EXPECT_TRUE(same_bits(out, expected));
  ASSERT_EQ(backend->notes().size(), 1u);
  EXPECT_NE(backend->notes()[0].find("continued with batches of 4 replicates"), std::string::npos)
      << backend->notes()[0];

  // Negative control: no batch can be smaller.
  options.batch_replicates = 1;
  const auto smallest = make_cuda_backend(options)->worker(plan);
  control::fail_launch(9);
  EXPECT_THROW(smallest->run(block, out), OutOfMemory);
}

TEST_F(Cuda, DevicesOfDifferentSpeedShareTheWorkOnDemand) {
  const Plan plan = test::make_plan({.n = 20, .queries = 2}, GaussianKernel{.bandwidth = 0.7});
  constexpr std::uint64_t blocks = 40;
  const auto expected = run(plan, {.first = 64, .count = 8 * blocks});
  control::set_devices(2);
  control::slow_down(1, 0.2);
  const auto backend = make_cuda_backend(test_options());
  std::vector<Moments> out(blocks);
  std::atomic<std::uint64_t> next = 0;
  std::array<std::uint64_t, 2> done = {};
  std::latch both(2);
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t& own : done) {
      // Workers are dealt to the devices in turn.
      threads.emplace_back([&, worker = std::shared_ptr(backend->worker(plan))] {
        std::uint64_t block = next++;
        both.arrive_and_wait();
        for (; block < blocks; block = next++) {
          worker->run({.first = 64 + 8 * block, .count = 8}, std::span(out).subspan(block, 1));
          ++own;
        }
      });
    }
  }
  EXPECT_TRUE(same_bits(out, expected));
  EXPECT_GT(done[0], done[1]) << "the fast device takes more blocks";
}

TEST_F(Cuda, AKernelIsAllowedItsSharedMemoryOnce) {
  const Plan plan = test::make_plan({.n = 100, .d = 30, .heads = 17, .k = 30, .queries = 7},
                                    GaussianKernel{.bandwidth = 3}, Estimator::conditional,
                                    MomentMode::aggregate);
  ASSERT_GT(plan_launch(plan).ensemble.shared_bytes, large_shared_memory);
  const Options options = in_batches(1);
  const auto worker = make_cuda_backend(options)->worker(plan);
  std::vector<Moments> out(1);
  worker->run({.first = 0, .count = 1, .node = 1}, out);
  const int kernels = control::large_kernels();
  EXPECT_GT(kernels, 0);
  worker->run({.first = 0, .count = 1, .node = 1}, out);
  EXPECT_EQ(control::large_kernels(), kernels);
}

TEST_F(Cuda, TooLittleMemoryForOneReplicateIsSaid) {
  const Plan plan = test::make_plan({.n = 10000}, GaussianKernel{.bandwidth = 0.3});
  control::set_memory(100000);
  try {
    run(plan, {.first = 0, .count = 8});
    FAIL() << "nothing was thrown";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("lower data.n"), std::string::npos) << error.what();
  }
}

TEST_F(Cuda, DeviceMemoryDoesNotGrowWithTheReplicates) {
  const Plan plan = test::make_plan({.n = 20, .queries = 2}, GaussianKernel{.bandwidth = 0.7});
  control::reset();
  run(plan, {.first = 0, .count = 8});
  const std::uint64_t few = control::peak_bytes();
  control::reset();
  run(plan, {.first = 0, .count = 512, .node = 512});
  EXPECT_EQ(control::peak_bytes(), few);
}

TEST_F(Cuda, ALostDeviceIsAnErrorThatNamesIt) {
  const Plan plan = test::make_plan({.n = 50}, GaussianKernel{.bandwidth = 0.7});
  const auto worker = make_cuda_backend(test_options())->worker(plan);
  control::lose_device(0);
  std::vector<Moments> out(1);
  EXPECT_THROW(worker->run({.first = 0, .count = 8}, out), DeviceError);
}
#endif

}  // namespace
}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
