// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/aligned.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>

#include <gtest/gtest.h>

namespace headlab {
namespace {

TEST(Aligned, IsMemoryOrThrows) {
  const auto memory = allocate_aligned<float>(3);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.get()) % 64, 0u);
  // Highway gives null, for numbers whose bytes no size_t counts too.
  EXPECT_THROW(allocate_aligned<float>(std::numeric_limits<std::size_t>::max() / 2),
               std::bad_alloc);
}

}  // namespace
}  // namespace headlab
