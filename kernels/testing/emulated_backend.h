// SPDX-License-Identifier: Apache-2.0
/// \file Fixture of the tests of the CUDA backend on emulated devices.
#pragma once

#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/backend.h"
#include "kernels/cuda/emulator/control.h"
#include "kernels/cuda/emulator/emulator.h"
#include "kernels/testing/cuda_agreement.h"
#include "kernels/testing/test_plans.h"

#if defined(HEADLAB_EMULATE_CUDA)
namespace headlab::emulated_cuda {

/// Options with few statistics on a device, so that small blocks have several segments.
inline Options small_options() {
  Options options;
  options.statistics_bytes = 1 << 17;
  return options;
}

inline std::vector<Moments> run(const Plan& plan, const Block& block, const Options& options) {
  std::vector<Moments> out(block.nodes());
  make_cuda_backend(options)->worker(plan)->run(block, out);
  return out;
}

inline void expect_same_bits(const std::vector<Moments>& a, const std::vector<Moments>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].count, b[i].count) << i;
    EXPECT_EQ(a[i].mean, b[i].mean) << i;
    EXPECT_EQ(a[i].comoment, b[i].comoment) << i;
    EXPECT_EQ(a[i].windows, b[i].windows) << i;
  }
}

/// Cases on emulated devices.
class Cuda : public ::testing::Test {
 protected:
  void SetUp() override { control::reset(); }
  void TearDown() override {
    print_compared_kernels();
    set_thread_order(Order::ascending);
    set_block_order(Order::ascending);
    control::reset();
    EXPECT_EQ(control::bytes_in_use(), 0u) << "device memory was not given back";
  }
};

}  // namespace headlab::emulated_cuda
#endif
