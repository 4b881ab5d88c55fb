// SPDX-License-Identifier: Apache-2.0
// What only a GPU shows of the CUDA backend: its memory, and faults.
//
// A device that falls off the bus cannot be provoked without harm to other users. Its consequence
// for a process, an error that stays with the context, can: see AFaultIsAnErrorThatNamesTheDevice.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/kernels.h"
#include "kernels/testing/device_fixture.h"
#include "kernels/testing/end_in_time.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

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
