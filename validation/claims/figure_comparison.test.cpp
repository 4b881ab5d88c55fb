// SPDX-License-Identifier: Apache-2.0
#include "validation/claims/figure_comparison.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace headlab {
namespace {

constexpr double eps = std::numeric_limits<double>::epsilon();

TEST(FigureComparison, DifferenceByRoundingIsNone) {
  const Jackknifed a(1, {1, 2, 3});
  const Jackknifed same =
      difference_above_rounding(Jackknifed(1 + 8 * eps, {1, 2 - 8 * eps, 3}), a);
  EXPECT_EQ(same.value, 0);
  EXPECT_EQ(same.leave_one_out, std::vector<double>(3, 0.0));
  EXPECT_EQ(difference_above_rounding(Jackknifed(-1e-300), Jackknifed(-1e-300)).value, 0);
  EXPECT_EQ(difference_above_rounding(Jackknifed(0), Jackknifed(0)).value, 0);
}

TEST(FigureComparison, DifferenceBeyondRoundingStays) {
  const Jackknifed a(1, {1, 2, 3});
  const Jackknifed other =
      difference_above_rounding(Jackknifed(1 + 128 * eps, {1, 2, 3 + 1024 * eps}), a);
  EXPECT_EQ(other.value, 128 * eps);
  EXPECT_EQ(other.leave_one_out, (std::vector<double>{0, 0, 1024 * eps}));
  // Small figures are no rounding of each other.
  EXPECT_EQ(difference_above_rounding(Jackknifed(1e-20), Jackknifed(-1e-20)).value, 2e-20);
  EXPECT_EQ(difference_above_rounding(Jackknifed(1e-20), Jackknifed(0)).value, 1e-20);
  EXPECT_TRUE(std::isnan(difference_above_rounding(Jackknifed(std::nan("")), a).value));
}

}  // namespace
}  // namespace headlab
