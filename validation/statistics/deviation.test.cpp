// SPDX-License-Identifier: Apache-2.0
#include "validation/statistics/deviation.h"

#include <cmath>
#include <stdexcept>

#include <gtest/gtest.h>

namespace headlab {
namespace {

TEST(DeviationInterval, HasTheQuantilesOfTables) {
  // Chi-squared on 31 degrees of freedom: 17.5387 and 48.2319 at 2.5 and 97.5 %.
  const Interval of = deviation_interval(31, 0.95);
  EXPECT_NEAR(of.low, std::sqrt(31 / 48.2319), 1e-5);
  EXPECT_NEAR(of.high, std::sqrt(31 / 17.5387), 1e-5);
  EXPECT_GT(of.high - 1, 1.2 * (1 - of.low));  // it is no symmetric one
}

TEST(DeviationInterval, RefusesWhatIsNone) {
  EXPECT_THROW(deviation_interval(0, 0.95), std::invalid_argument);
  EXPECT_THROW(deviation_interval(std::nan(""), 0.95), std::invalid_argument);
  EXPECT_THROW(deviation_interval(3, 1), std::invalid_argument);
  EXPECT_THROW(deviation_interval(3, std::nan("")), std::invalid_argument);
}

}  // namespace
}  // namespace headlab
