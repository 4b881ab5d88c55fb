// SPDX-License-Identifier: Apache-2.0
// Times of the steps on a GPU, and faults.
//
// A device that falls off the bus cannot be provoked without harm to other users. Its consequence
// for a process, an error that stays with the context, can: see AFaultIsAnErrorThatNamesTheDevice.
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/timing.h"
#include "kernels/testing/device_fixture.h"
#include "kernels/testing/end_in_time.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

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
