// SPDX-License-Identifier: Apache-2.0
#include "kernels/counted.h"

#include <gtest/gtest.h>

namespace headlab {
namespace {

TEST(Counted, NumbersHaveCommasFromAMillionOnAndWordsTheirPlural) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999999), "999999");
  EXPECT_EQ(grouped(1000000), "1,000,000");
  EXPECT_EQ(grouped(12345678901), "12,345,678,901");
  EXPECT_EQ(counted(1, "cell"), "1 cell");
  EXPECT_EQ(counted(0, "cell"), "0 cells");
  EXPECT_EQ(counted(2, "query", "queries"), "2 queries");
}

}  // namespace
}  // namespace headlab
