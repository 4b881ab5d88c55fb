// SPDX-License-Identifier: Apache-2.0
#include "tools/report/replicates_figure.h"

#include <gtest/gtest.h>

namespace headlab::tools {
namespace {

/// 20 groups of 16 replicates with mean 1 and standard error 0.258, the first moved by `shift`.
std::string found_with(double shift) {
  ReplicateSample sample{.title = "", .values = {}};
  for (int i = 0; i < 320; ++i) {
    sample.values.push_back((i % 2 == 0 ? 0 : 2) + (i < 16 ? shift : 0));
  }
  return zip_picture("squared error", {sample}).finding;
}

TEST(ZipPlot, IntervalsHoldTheMeanWithinTheQuantileOfStudentsT) {
  EXPECT_EQ(zip_group(319), 0U);
  EXPECT_EQ(zip_group(320), 16U);
  EXPECT_EQ(zip_group(10000), 100U);
  EXPECT_EQ(found_with(0), "20 of 20 hold the mean. ");
  // The mean of all moves by a 20th of it; half an interval is 2.131 * 0.258 = 0.550.
  EXPECT_EQ(found_with(0.57), "20 of 20 hold the mean. ");
  EXPECT_EQ(found_with(0.59), "19 of 20 hold the mean. ");
  EXPECT_EQ(found_with(100), "0 of 20 hold the mean. ");
}

}  // namespace
}  // namespace headlab::tools
