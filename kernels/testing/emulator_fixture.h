// SPDX-License-Identifier: Apache-2.0
/// \file Fixture of the tests of the emulator.
#pragma once

#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "kernels/cuda/emulator/emulator.h"

namespace headlab::emulated_cuda {

/// Leaves the orders as they were for the next test.
class Emulator : public testing::Test {
 protected:
  ~Emulator() override {
    set_thread_order(Order::ascending);
    set_block_order(Order::ascending);
  }
};

template <class Check>
void in_both_orders(const Check& check) {
  for (const Order order : {Order::ascending, Order::descending}) {
    SCOPED_TRACE(order == Order::ascending ? "ascending" : "descending");
    set_thread_order(order);
    set_block_order(order);
    check();
  }
}

/// What emulate throws, "" if nothing.
template <class Kernel>
std::string error_of(const Grid& grid, const Kernel& kernel) {
  try {
    emulate(grid, kernel);
  } catch (const std::logic_error& e) {
    return e.what();
  }
  return "";
}

inline float* shared_floats() {
  return reinterpret_cast<float*>(shared_memory());
}

/// Checks shuffle_xor across every mask in three warps, each lane with its own number.
template <class T>
void check_shuffle(T step) {
  int wrong = 0;
  emulate({1, 1, 96, 0}, [&] {
    for (unsigned mask = 0; mask < 32; ++mask) {
      const T got = shuffle_xor(static_cast<T>(static_cast<T>(thread_index()) * step),
                                static_cast<int>(mask));
      wrong += got == static_cast<T>(static_cast<T>(thread_index() ^ mask) * step) ? 0 : 1;
    }
  });
  EXPECT_EQ(wrong, 0);
}

}  // namespace headlab::emulated_cuda
