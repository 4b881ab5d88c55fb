// SPDX-License-Identifier: Apache-2.0
#include "validation/statistics/intervals.h"

#include <cmath>
#include <limits>
#include <stdexcept>

#include <gtest/gtest.h>

namespace headlab {
namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double unbounded = std::numeric_limits<double>::infinity();

TEST(Intervals, StudentQuantilesAreThoseOfTheTables) {
  // Fisher and Yates, table III, to the three decimals printed there.
  EXPECT_NEAR(student_quantile(0.975, 1), 12.706, 5e-4);
  EXPECT_NEAR(student_quantile(0.975, 10), 2.228, 5e-4);
  EXPECT_NEAR(student_quantile(0.995, 30), 2.750, 5e-4);
  EXPECT_NEAR(student_quantile(0.975, 1e9), 1.959964, 1e-6);
  // The normal quantile in place of it would be wrong by far.
  EXPECT_GT(std::abs(student_quantile(0.975, 10) - 1.96), 0.2);
}

TEST(Intervals, StudentTailIsTheInverseOfTheQuantile) {
  for (const double df : {3., 31., 127.}) {
    for (const double p : {0.5, 0.9, 0.999, 1 - 1e-9}) {
      EXPECT_NEAR(student_tail(student_quantile(p, df), df), 1 - p, 1e-14);
    }
  }
  // Cauchy's closed form, df = 1: P(T > 1) = 1/4; a lower tail would give 3/4.
  EXPECT_NEAR(student_tail(1, 1), 0.25, 1e-15);
}

TEST(Intervals, StudentTailKnowsNoEvidenceFromNoNumber) {
  EXPECT_EQ(student_tail(not_a_number, 10), 1);
  EXPECT_EQ(student_tail(unbounded, 10), 0);
  EXPECT_EQ(student_tail(-unbounded, 10), 1);
}

TEST(Intervals, ClopperPearsonHasTheClosedFormsOfItsEnds) {
  // No successes in n: 0 to 1 - (tail)^(1/n); the "rule of three" is its first order.
  const Interval none = clopper_pearson(0, 20, 0.95);
  EXPECT_EQ(none.low, 0);
  EXPECT_NEAR(none.high, 1 - std::pow(0.025, 1.0 / 20), 1e-12);
  const Interval all = clopper_pearson(20, 20, 0.95);
  EXPECT_NEAR(all.low, std::pow(0.025, 1.0 / 20), 1e-12);
  EXPECT_EQ(all.high, 1);
}

TEST(Intervals, ClopperPearsonIsThatOfTheBinomial) {
  // Its definition: at the low end as many successes or more have the chance 2.5 %, at the high end
  // as many or fewer.
  const Interval interval = clopper_pearson(4, 20, 0.95);
  const auto chance = [](int k, double p) {
    return std::exp(std::lgamma(21) - std::lgamma(k + 1) - std::lgamma(21 - k)) * std::pow(p, k) *
           std::pow(1 - p, 20 - k);
  };
  double up_to_three = 0, up_to_four = 0;
  for (int k = 0; k <= 4; ++k) {
    if (k < 4) up_to_three += chance(k, interval.low);
    up_to_four += chance(k, interval.high);
  }
  EXPECT_NEAR(1 - up_to_three, 0.025, 1e-12);
  EXPECT_NEAR(up_to_four, 0.025, 1e-12);
  // The normal approximation is another interval.
  EXPECT_GT(std::abs(interval.high - (0.2 + 1.96 * std::sqrt(0.2 * 0.8 / 20))), 0.05);
}

TEST(Intervals, ImpossibleQuestionsAreRefused) {
  EXPECT_THROW(student_quantile(0, 5), std::invalid_argument);
  EXPECT_THROW(student_quantile(1, 5), std::invalid_argument);
  EXPECT_THROW(student_quantile(not_a_number, 5), std::invalid_argument);
  EXPECT_THROW(clopper_pearson(1, 0, 0.95), std::invalid_argument);
  EXPECT_THROW(clopper_pearson(3, 2, 0.95), std::invalid_argument);
  EXPECT_THROW(clopper_pearson(1, 2, 1), std::invalid_argument);
  EXPECT_NO_THROW(clopper_pearson(1, 2, 0.95));
}

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
