// SPDX-License-Identifier: Apache-2.0
// What the simplex recursion says about collapse and memory.
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "validation/theory/depth/simplex.h"

namespace headlab {
namespace {

std::vector<double> log_residuals(const SimplexStack& stack) {
  std::vector<double> all;
  for (const SimplexLayer& layer : simplex_layers(stack)) all.push_back(*layer.log_residual);
  return all;
}

SimplexStack remembering(double memory, int layers) {
  return {
      .n = 4, .rho = 0.3, .query_key = {1.0}, .value = {1.0}, .layers = layers, .memory = memory};
}

/// log r_(L) - 2 log r_(L-1) + log r_(L-2) of the last layers.
double last_second_difference(const std::vector<double>& x) {
  const std::size_t last = x.size() - 1;
  return x[last] - 2 * x[last - 1] + x[last - 2];
}

TEST(SimplexTheorems, CollapseIsOfOrderThreeBelowTheThreshold) {
  const SimplexStack stack = {.n = 5,
                              .rho = 0.99 * 0.8 * std::log1p(5 / 0.3),
                              .mu = 0.3,
                              .query_key = {1.0},
                              .value = {1.3},
                              .layers = 30};
  const std::vector<double> x = log_residuals(stack);
  EXPECT_NEAR(x[30] / x[29], 3, 1e-4);
}

TEST(SimplexTheorems, SecondDifferencesTellTheMemory) {
  // Log residuals like -(L^2/2) log(1/a); linear at a = 1. The second difference is log phi(g_L) -
  // log phi(g_(L-1)). Once old tokens make no score, g_L = a g_(L-1) and log phi(g) = log(g/n) +
  // (n-2)/(2n) g + ..: what it is off log a is (1-a) g_(L-1) (n-2)/(2n), with g near a^(L-2) g_1.
  const auto remainder = [](double a, int layers) {
    const SimplexStack stack = remembering(a, layers);
    const double n = stack.n;
    const double first = n / (n - 1) * stack.rho / stack.temperature;
    return (1 - a) * std::pow(a, layers - 2) * first * (n - 2) / (2 * n);
  };
  // A log residual is rounded as a sum and as what is stored: x_L and x_(L-1) once each, and
  // three stored ones times 1, 2 and 1.
  const auto rounding = [](const std::vector<double>& x) {
    return 6 * std::numeric_limits<double>::epsilon() / 2 * std::abs(x.back());
  };
  for (const double a : {0.3, 0.6, 0.9}) {
    const std::vector<double> x = log_residuals(remembering(a, 400));
    ASSERT_LT(remainder(a, 400), 1e-3 * rounding(x));
    EXPECT_NEAR(last_second_difference(x), std::log(a), rounding(x));
  }
  // Negative control: at 100 layers memory .9 leaves the remainder, up to its own next order and
  // the scores of layers after the first, each below 1 %.
  const std::vector<double> x = log_residuals(remembering(0.9, 100));
  const double left = std::log(0.9) - last_second_difference(x);
  EXPECT_GT(left, 1e5 * rounding(x));
  EXPECT_NEAR(left / remainder(0.9, 100), 1, 0.01);

  const std::vector<double> linear = log_residuals(remembering(1, 100));
  EXPECT_NEAR(last_second_difference(linear), 0, rounding(linear));
  EXPECT_LT(last_second_difference(log_residuals(remembering(0, 10))), -10000);
}

TEST(SimplexTheorems, MemoryKeepsResidualsInEveryLayer) {
  for (const double w : {0.6, 1.0, 1.3}) {
    SimplexStack stack = remembering(0, 12);
    stack.value = {w};
    const std::vector<double> without = log_residuals(stack);
    for (const double a : {0.1, 0.5, 1.0}) {
      stack.memory = a;
      const std::vector<double> with = log_residuals(stack);
      for (std::size_t l = 0; l < with.size(); ++l) EXPECT_GE(with[l], without[l]);
      EXPECT_GT(with.back(), without.back() + 1);
    }
  }
}

}  // namespace
}  // namespace headlab
