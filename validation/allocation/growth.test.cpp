// SPDX-License-Identifier: Apache-2.0
#include "validation/allocation/growth.h"

#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

namespace headlab {
namespace {

using Law = std::function<double(double n)>;

/// Errors that are least at k*(n), with noise that dimensions and n share in part.
std::vector<GrowthPoint> growth_points(const Law& best, double noise, std::uint64_t seed,
                                       const std::vector<double>& sizes = {1e2, 3e2, 1e3, 3e3, 1e4,
                                                                           3e4}) {
  constexpr std::size_t blocks = 128;
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  std::vector<double> common(blocks);
  for (double& value : common) value = normal(engine);
  std::vector<GrowthPoint> points;
  for (const double n : sizes) {
    GrowthPoint point{.n = n, .dims = std::vector<int>(40), .errors = {}};
    std::iota(point.dims.begin(), point.dims.end(), 1);
    for (const int k : point.dims) {
      const double distance = std::log(k) - std::log(best(n));
      std::vector<double>& errors = point.errors.emplace_back();
      for (std::size_t b = 0; b < blocks; ++b) {
        errors.push_back(1 + distance * distance + common[b] + noise * normal(engine));
      }
    }
    points.push_back(std::move(point));
  }
  return points;
}

double constant(double) {
  return 3.3;
}
double by_log(double n) {
  return 2.4 + 1.7 * std::log10(n / 100);
}
Law power(double exponent) {
  return [exponent](double n) { return 2.4 * std::pow(n / 100, exponent); };
}

TEST(InterpolatedBest, IsExactForAParabolaInLogDimension) {
  const std::vector<int> dims = {1, 2, 3, 4, 6, 12};
  std::vector<double> errors;
  for (const int k : dims) errors.push_back(5 + std::pow(std::log(k / 3.4), 2));
  const BestDimension best = interpolated_best(dims, errors);
  EXPECT_NEAR(best.value, 3.4, 1e-12);
  EXPECT_FALSE(best.at_end);
  EXPECT_GT(best.interpolation, 0);
  EXPECT_LT(best.interpolation, 0.2);
}

TEST(InterpolatedBest, StaysAtTheEndOfTheRange) {
  EXPECT_TRUE(interpolated_best({1, 2, 4}, {1, 2, 3}).at_end);
  EXPECT_EQ(interpolated_best({1, 2, 4}, {3, 2, 1}).value, 4);
  // Equal neighbours: in the middle between them.
  EXPECT_NEAR(interpolated_best({1, 2, 4}, {2, 1, 2}).value, 2, 1e-12);
  EXPECT_EQ(interpolated_best({1, 2, 4}, {1, 1, 1}).value, 1);
}

TEST(FitGrowth, ToldAPartWhereTheNoiseIsSmall) {
  EXPECT_EQ(fit_growth(growth_points(constant, 0.02, 1), 1).verdict, "constant");
  EXPECT_EQ(fit_growth(growth_points(power(0.5), 0.02, 1), 1).verdict, "power");
  EXPECT_EQ(fit_growth(growth_points(by_log, 0.02, 1), 1).verdict, "log");
}

TEST(FitGrowth, FindsTheSlopes) {
  const Growth log = fit_growth(growth_points(by_log, 0.05, 2), 1);
  EXPECT_GT(log.fits[1].slope, log.fits[1].interval.low);
  EXPECT_NEAR(log.fits[1].slope, 1.7, 0.2);
  const Growth root = fit_growth(growth_points(power(0.5), 0.05, 2), 1);
  EXPECT_NEAR(root.fits[2].slope, 0.5, 0.05);
  EXPECT_LT(root.fits[2].interval.high - root.fits[2].interval.low, 0.1);
  EXPECT_TRUE(root.left_out.empty());
}

TEST(FitGrowth, NeverTakesAnotherLawForALog) {
  for (const double noise : {0.05, 0.2, 0.5}) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      for (const Law& law : {Law(constant), power(0.5), power(0.17)}) {
        const Growth growth = fit_growth(growth_points(law, noise, seed), seed, 400);
        EXPECT_NE(growth.verdict, "log") << noise << ", seed " << seed;
      }
    }
  }
}

TEST(FitGrowth, SaysWhichExponentCouldBeTold) {
  const double sharp = fit_growth(growth_points(power(0.17), 0.02, 3), 1).smallest_exponent;
  const double blunt = fit_growth(growth_points(power(0.17), 0.3, 3), 1).smallest_exponent;
  EXPECT_LT(sharp, blunt);
  // Where an exponent lies far below it the answer has to be open, and power once far above.
  EXPECT_EQ(fit_growth(growth_points(power(0.3 * blunt), 0.3, 4), 1).verdict == "power", false);
  EXPECT_EQ(fit_growth(growth_points(power(1.5 * sharp), 0.02, 4), 1).verdict, "power");
}

TEST(FitGrowth, LeavesOutTheEndsOfTheRange) {
  const Growth growth = fit_growth(growth_points(power(0.5), 0.02, 1, {1, 100, 1000, 1e7}), 1);
  EXPECT_EQ(growth.left_out, (std::vector<double>{1, 1e7}));
  EXPECT_EQ(growth.verdict, "too few n");
  EXPECT_TRUE(growth.fits.empty());
  EXPECT_TRUE(std::isnan(growth.smallest_exponent));
  const auto always = [](double) { return 0.5; };
  EXPECT_EQ(fit_growth(growth_points(always, 0.02, 1), 1).verdict, "at an end of the range");
}

TEST(FitGrowth, GivesTheSameForTheSameSeed) {
  const auto points = growth_points(by_log, 0.1, 5);
  const Growth one = fit_growth(points, 3), two = fit_growth(points, 3);
  EXPECT_EQ(one.errors, two.errors);
  EXPECT_EQ(one.fits[2].interval.low, two.fits[2].interval.low);
}

TEST(FitGrowth, SaysWhetherTheBestDimensionRises) {
  EXPECT_EQ(fit_growth(growth_points(by_log, 0.01, 1), 1).trend, "rises");
  EXPECT_EQ(fit_growth(growth_points([](double n) { return 9 / by_log(n); }, 0.01, 1), 1).trend,
            "falls");
  EXPECT_EQ(fit_growth(growth_points(constant, 0.01, 1), 1).trend, "none seen");
}

TEST(FitGrowth, KeepsTheEndsThatItLeavesOut) {
  const Growth growth = fit_growth(
      growth_points([](double n) { return n < 200     ? 0.2
                                          : n > 20000 ? 90
                                                      : 2 + n / 1e4; }, 0.01, 1),
      1);
  EXPECT_EQ(growth.left_out, (std::vector<double>{1e2, 3e4}));
  EXPECT_EQ(growth.ends, (std::vector<double>{1, 40}));
  EXPECT_EQ(growth.trend, "rises");
  EXPECT_EQ(growth.n.size(), 4u);
}

/// Errors under each budget that are least at k* = D/H*(D).
std::vector<GrowthPoint> head_points(const Law& heads, const std::vector<int>& budgets,
                                     std::uint64_t seed) {
  const std::vector<double> sizes(budgets.begin(), budgets.end());
  return growth_points([&](double budget) { return budget / heads(budget); }, 0.01, seed, sizes);
}

TEST(FitHeadGrowth, TellsLinearFromOtherExponents) {
  const std::vector<int> budgets = {12, 24, 48, 96};
  const HeadGrowth linear =
      fit_head_growth(head_points([](double d) { return d / 3.3; }, budgets, 2), budgets, 2);
  EXPECT_EQ(linear.verdict, "linear");
  EXPECT_EQ(linear.budgets, budgets);
  ASSERT_EQ(linear.fits.size(), 2u);
  EXPECT_LT(linear.fits[1].interval.low, 1);
  EXPECT_GT(linear.fits[1].interval.high, 1);
  const HeadGrowth root = fit_head_growth(
      head_points([](double d) { return 1.5 * std::sqrt(d); }, budgets, 2), budgets, 2);
  EXPECT_EQ(root.verdict, "power");
  EXPECT_TRUE(root.fits[0].rejected);
  EXPECT_LT(root.fits[1].interval.low, 0.5);
  EXPECT_GT(root.fits[1].interval.high, 0.5);
  EXPECT_NEAR(root.heads[0], 1.5 * std::sqrt(12), 5 * root.errors[0] + root.interpolation[0]);
}

TEST(FitHeadGrowth, LeavesOutTheEndsOfTheRange) {
  const std::vector<int> budgets = {6, 12, 24};
  const HeadGrowth growth =
      fit_head_growth(head_points([](double d) { return 4 * d; }, budgets, 3), budgets, 3);
  EXPECT_EQ(growth.left_out, budgets);
  EXPECT_EQ(growth.verdict, "at an end of the range");
  EXPECT_TRUE(growth.fits.empty());
}

}  // namespace
}  // namespace headlab
