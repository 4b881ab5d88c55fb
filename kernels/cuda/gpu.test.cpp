// SPDX-License-Identifier: Apache-2.0
// The CUDA backend on a GPU: bits, the same from run to run, for any batch, worker and device;
// times of the steps; faults.
//
// A device that falls off the bus cannot be provoked without harm to other users. Its consequence
// for a process, an error that stays with the context, can: see AFaultIsAnErrorThatNamesTheDevice.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/kernels.h"
#include "kernels/testing/device_fixture.h"
#include "kernels/testing/end_in_time.h"
#include "kernels/testing/kernel_times.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

TEST_F(Cuda, BitsAreTheSameFromRunToRunAndForAnyBatch) {
  for (const int k : {2, 8, 16, 64}) {
    for (const Estimator estimator : test::estimators) {
      for (const MomentMode mode : test::modes) {
        const Plan plan =
            test::make_plan({.n = 700, .d = 70, .heads = 5, .k = k, .queries = 9},
                            GaussianKernel{.bandwidth = 0.8 * std::sqrt(k)}, estimator, mode);
        const Block block = {.first = 16, .count = 45};
        const auto expected = run(plan, block);
        EXPECT_TRUE(same_bits(run(plan, block), expected)) << test::text_of(plan);
        for (const std::int64_t batch : {1, 7}) {
          EXPECT_TRUE(same_bits(run(plan, block, in_batches(batch)), expected))
              << "batch " << batch << ' ' << test::text_of(plan);
        }
      }
    }
  }
}

TEST_F(Cuda, WorkersSideBySideGiveTheBitsOfOne) {
  const Plan plan = test::make_plan({.n = 700, .d = 8, .heads = 5, .k = 4, .queries = 9},
                                    GaussianKernel{.bandwidth = 1.4});
  const Block block = {.first = 64, .count = 64};
  const auto expected = run(plan, block);
  const auto backend = make_cuda_backend();
  std::vector<std::vector<Moments>> results(4, std::vector<Moments>(block.nodes()));
  {
    std::vector<std::jthread> threads;
    for (auto& result : results) {
      threads.emplace_back([&backend, &plan, &block, &result] {
        const auto worker = backend->worker(plan);
        for (int again = 0; again < 3; ++again) worker->run(block, result);
      });
    }
  }
  for (const auto& result : results) EXPECT_TRUE(same_bits(result, expected));
}

TEST_F(Cuda, EveryDeviceGivesTheSameBits) {
  if (devices_.size() < 2) GTEST_SKIP() << "one GPU here, two are needed";
  const Plan plan = test::make_plan({.n = 700, .d = 20, .heads = 5, .k = 16, .queries = 9},
                                    GaussianKernel{.bandwidth = 3});
  const Block block = {.first = 64, .count = 64};
  const auto expected = run(plan, block);
  for (const DeviceInfo& device : devices_) {
    std::vector<Moments> out(block.nodes());
    CudaWorker(
        plan, device.number, {}, [](const std::string&) {}, std::make_shared<StreamPool>())
        .run(block, out);
    EXPECT_TRUE(same_bits(out, expected)) << "device " << device.number;
  }
}

TEST_F(Cuda, OutOfMemoryShrinksTheBatchAndSaysSo) {
  // 2^16 replicates of this size would need some 10^12 bytes.
  const Plan plan =
      test::make_plan({.n = 200000, .d = 16, .heads = 1, .k = 2, .queries = 1},
                      GaussianKernel{.bandwidth = 1}, Estimator::plain, MomentMode::pairwise);
  const Block block = {.first = 8, .count = 8};
  const auto expected = run(plan, block);
  const Options options = in_batches(1 << 16);
  const auto backend = make_cuda_backend(options);
  std::vector<Moments> out(block.nodes());
  backend->worker(plan)->run(block, out);
  EXPECT_TRUE(same_bits(out, expected));
  ASSERT_EQ(backend->notes().size(), 1u);
  EXPECT_NE(backend->notes()[0].find("continues with"), std::string::npos) << backend->notes()[0];
}

TEST_F(Cuda, TimesOfTheStepsAreMeasured) {
  const Plan plan = test::make_plan({.n = 4096, .d = 32, .heads = 8, .k = 4, .queries = 64},
                                    GaussianKernel{.bandwidth = 1.6});
  const KernelTimes times = time_kernels(plan, devices_[0].number, {}, 3);
  EXPECT_GT(times.replicates, 0);
  EXPECT_EQ(times.weights, static_cast<double>(times.replicates) * 4096 * 8 * 64);
  for (const double seconds : {times.draw, times.project, times.weigh, times.moments}) {
    EXPECT_TRUE(seconds > 0 && seconds < 1) << seconds;
  }
  EXPECT_GT(highest_clock(devices_[0].number), 1e8);
}

TEST_F(Cuda, AFaultIsAnErrorThatNamesTheDevice) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  // In a process of its own: after a fault a process can use the device no more.
  auto fault = [] {
    test::end_in_time();
    use_device(usable_devices().front().number);
    const Plan plan = test::make_plan({.n = 50}, GaussianKernel{.bandwidth = 0.7});
    try {
      const auto worker = make_cuda_backend()->worker(plan);
      std::vector<Moments> out(1);
      try {
        Stream stream;
        auto* nowhere = reinterpret_cast<float*>(std::uintptr_t{1} << 12);
        project(stream, {.sets = {.padded_n = 64, .x = nowhere, .keys = nowhere},
                         .projections = nowhere,
                         .replicates = 1});
        stream.synchronise();
      } catch (const DeviceError& error) {
        std::cerr << error.what() << '\n';
      }
      worker->run({.first = 0, .count = 8}, out);
    } catch (const DeviceError& error) {
      std::cerr << "afterwards: " << error.what() << std::endl;
      std::_Exit(3);
    }
    std::_Exit(4);
  };
  EXPECT_EXIT(fault(), ::testing::ExitedWithCode(3), "GPU");
}

}  // namespace
}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
