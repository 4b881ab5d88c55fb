// SPDX-License-Identifier: Apache-2.0
#include "kernels/statistics/weight_sums.h"

#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headlab {
namespace {

constexpr double sum_rounding = 0x1p-17;
constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

/// What is wrong with some sums; empty where nothing is.
std::string wrong(const WeightSums& sums) {
  try {
    require_consistent(sums, sum_rounding, {.replicate = 12, .query = 3, .head = 1});
    return "";
  } catch (const std::logic_error& error) {
    return error.what();
  }
}

WeightSums sums_of(const std::vector<double>& weights) {
  WeightSums sums{.squares = 0, .again = 0};
  for (const double w : weights) {
    sums.sum += w;
    *sums.squares += w * w;
    *sums.again += w;
    sums.kept += w > 0 ? 1 : 0;
  }
  return sums;
}

TEST(WeightSums, OfAnyWeightsAreConsistent) {
  for (const std::vector<double>& weights : std::vector<std::vector<double>>{
           {1}, {1, 1, 1, 1}, {1, 0.5, 0, 0.25}, {1e-20, 1}, {0.3, 0.3, 0, 0, 0.3}}) {
    WeightSums sums = sums_of(weights);
    EXPECT_EQ(wrong(sums), "");
    // As far as rounding may go, and no farther for equal weights.
    sums.sum *= 1 + sum_rounding;
    *sums.squares *= 1 - sum_rounding;
    EXPECT_EQ(wrong(sums), "");
  }
  WeightSums equal = sums_of({1, 1, 1, 1});
  *equal.squares *= 1 - 8 * sum_rounding;
  EXPECT_NE(wrong(equal), "");
}

TEST(WeightSums, OfTheWrongCountAreRefused) {
  WeightSums sums = sums_of({1, 1, 1, 1});
  sums.kept = 3;
  EXPECT_EQ(wrong(sums),
            "internal error in replicate 12, query 3, head 1: the weights of 3 keys have sum 4 and "
            "sum of squares 4, which no weights have - please report this with the scenario");
}

/// Exponents that become weights in place, and are taken for exponents once more.
TEST(WeightSums, OfWeightsThatBecameWeightsTwiceAreRefused) {
  for (const int keys : {8, 64}) {
    WeightSums sums{.squares = 0, .kept = static_cast<std::uint64_t>(keys), .again = 0};
    for (int i = 0; i < keys; ++i) {
      const double w = std::exp2(-0.5 * i);
      const double twice = std::exp2(w);
      sums.sum += w + twice;
      *sums.squares += twice * twice;
      *sums.again += twice;
    }
    const std::string both = wrong(sums);
    EXPECT_NE(both.find("which no weights have"), std::string::npos) << both;
    // Either check alone sees it.
    const WeightSums without_squares{.sum = sums.sum, .kept = sums.kept, .again = sums.again};
    EXPECT_NE(wrong(without_squares).find("and were summed to"), std::string::npos);
    sums.again.reset();
    EXPECT_NE(wrong(sums), "");
  }
}

TEST(WeightSums, ThatAreNotNumbersAreRefused) {
  const WeightSums good = sums_of({1, 0.5});
  WeightSums without_sum = good;
  without_sum.sum = undefined;
  EXPECT_NE(wrong(without_sum), "");
  for (std::optional<double> WeightSums::*const one : {&WeightSums::squares, &WeightSums::again}) {
    WeightSums bad = good;
    bad.*one = undefined;
    EXPECT_NE(wrong(bad), "");
  }
}

TEST(WeightSums, AreTakenAgainInTheFirstReplicateOfEveryRun) {
  EXPECT_TRUE(sums_again(0));
  EXPECT_TRUE(sums_again(2048));
#ifdef NDEBUG
  EXPECT_FALSE(sums_again(1));
#else
  EXPECT_TRUE(sums_again(1));
#endif
}

}  // namespace
}  // namespace headlab
