// SPDX-License-Identifier: Apache-2.0
#include "engine/moments/control_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

namespace headlab {
namespace {

using Columns = std::vector<std::vector<double>>;
using Choices = std::vector<std::vector<std::size_t>>;

/// Controls of scale 1 with exact means.
std::vector<ControlSample> samples(const Columns& columns) {
  std::vector<ControlSample> all;
  for (const std::vector<double>& one : columns) {
    all.push_back({.numbers = one, .scale = 1, .max_kurtosis = 30});
  }
  return all;
}

std::vector<double> normals(std::size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> all(count);
  for (double& x : all) x = normal(random);
  return all;
}

/// sum_c weights_c columns_c.
std::vector<double> mix(const Columns& columns, const std::vector<double>& weights) {
  std::vector<double> sum(columns[0].size());
  for (std::size_t c = 0; c < columns.size(); ++c) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += weights[c] * columns[c][i];
  }
  return sum;
}

TEST(ControlFit, FindsTheCoefficientsOfControlsThatPay) {
  const Columns controls = {normals(2000, 1), normals(2000, 2)};
  const std::vector<double> y = mix({controls[0], controls[1], normals(2000, 3)}, {2, -1, 0.5});
  const std::vector<double> fitted = fit_controls(y, samples(controls), 60, Choices{{0, 1}});
  // The standard error of a coefficient is 0.5 / sqrt(2000).
  EXPECT_NEAR(fitted[0], 2, 5 * 0.5 / std::sqrt(2000.0));
  EXPECT_NEAR(fitted[1], -1, 5 * 0.5 / std::sqrt(2000.0));
}

TEST(ControlFit, DoesNotUseWhatThePilotHasNoMeanOf) {
  const std::size_t count = 1024;
  const std::vector<double> x = normals(count, 1), rest = normals(count, 2);
  const double error = 1 / std::sqrt(static_cast<double>(count));
  // As if replicates that the pilot lacks carried some standard errors of the mean.
  for (const double away : {0.0, 1.0, 6.0}) {
    std::vector<double> control = x;
    for (double& number : control) number -= away * error;
    const std::vector<double> y = mix({x, rest}, {2, 0.5});
    const double fitted = fit_controls(y, samples({control}), 60, Choices{{0}})[0];
    if (away > 5) {
      EXPECT_EQ(fitted, 0);
    } else {
      EXPECT_NEAR(fitted, 2, 5 * 0.5 * error) << away;
    }
  }
}

TEST(ControlFit, DoesNotUseWhatDoesNotPay) {
  // A gain above 1.1 takes a correlation above 0.3; 0.2 has 1.04.
  for (unsigned seed = 0; seed < 200; ++seed) {
    const Columns controls = {normals(512, 10 + seed)};
    const std::vector<double> y = mix({controls[0], normals(512, 1000 + seed)}, {0.2, 1});
    EXPECT_EQ(fit_controls(y, samples(controls), 60, Choices{{0}})[0], 0) << seed;
  }
  const Columns controls = {normals(512, 10)};
  const std::vector<double> y = mix({controls[0], normals(512, 1000)}, {1, 1});
  EXPECT_NE(fit_controls(y, samples(controls), 60, Choices{{0}})[0], 0);
}

TEST(ControlFit, LeavesOutControlsWithWildTails) {
  Columns controls = {normals(1024, 1), normals(1024, 2)};
  for (double& x : controls[1]) x = std::exp(2 * x) - std::exp(2.0);
  const std::vector<double> y = mix({controls[0], controls[1], normals(1024, 3)}, {1, 1, 0.1});
  const std::vector<double> fitted = fit_controls(y, samples(controls), 60, Choices{{1}});
  EXPECT_EQ(fitted[1], 0);
  // The same control without its tail.
  for (double& x : controls[1]) x = std::min(x, 10.0);
  const double mean = std::accumulate(controls[1].begin(), controls[1].end(), 0.0) / 1024;
  for (double& x : controls[1]) x -= mean;
  const std::vector<double> tame = mix({controls[0], controls[1], normals(1024, 3)}, {1, 1, 0.1});
  EXPECT_NE(fit_controls(tame, samples(controls), 60, Choices{{1}})[1], 0);
}

TEST(ControlFit, TakesTheFirstChoiceThatPays) {
  const Columns controls = {normals(1000, 1), normals(1000, 2)};
  const std::vector<double> y = mix({controls[1], normals(1000, 3)}, {1, 0.1});
  const std::vector<double> fitted =
      fit_controls(y, samples(controls), 60, Choices{{0}, {1}, {0, 1}});
  EXPECT_EQ(fitted[0], 0);
  EXPECT_NE(fitted[1], 0);
}

TEST(ControlFit, IgnoresConstantsAndWhatIsNotFinite) {
  Columns controls = {normals(1000, 1), std::vector<double>(1000, 3.0), normals(1000, 2),
                      normals(1000, 4)};
  controls[2][7] = std::numeric_limits<double>::infinity();
  controls[3][8] = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> y = mix({controls[0], normals(1000, 3)}, {1, 0.1});
  const std::vector<double> fitted = fit_controls(y, samples(controls), 60, Choices{{0, 1, 2, 3}});
  EXPECT_NE(fitted[0], 0);
  for (std::size_t c = 1; c < 4; ++c) EXPECT_EQ(fitted[c], 0) << c;
  EXPECT_EQ(fit_controls(std::vector<double>(1000, 5.0), samples(controls), 60, Choices{{0}})[0],
            0);
}

TEST(ControlFit, LeavesOutRoundingAndMeansThatAreNotKnown) {
  const std::vector<double> rounding = mix({normals(1000, 1)}, {1e-6});
  const std::vector<double> y = mix({rounding, normals(1000, 3)}, {1e6, 0.1});
  const auto coefficient = [&](double scale, double error) {
    std::vector<ControlSample> control = samples({rounding});
    control[0].scale = scale;
    control[0].error = error;
    return fit_controls(y, control, 60, Choices{{0}})[0];
  };
  EXPECT_NE(coefficient(0.01, 0), 0);
  EXPECT_EQ(coefficient(1, 0), 0);
  EXPECT_NE(coefficient(0.01, 1e-10), 0);
  EXPECT_EQ(coefficient(0.01, 1e-8), 0);
  EXPECT_EQ(coefficient(0.01, std::numeric_limits<double>::quiet_NaN()), 0);
}

TEST(ControlFit, OneControlTwiceIsOneControl) {
  const std::vector<double> one = normals(1000, 1);
  const std::vector<double> y = mix({one, normals(1000, 3)}, {1, 0.1});
  const std::vector<double> fitted = fit_controls(y, samples({one, one}), 60, Choices{{0, 1}});
  EXPECT_NEAR(fitted[0] + fitted[1], 1, 5 * 0.1 / std::sqrt(1000.0));
  EXPECT_LT(std::abs(fitted[0]), 2);
}

TEST(ControlFit, LeavesNothingWild) {
  const Columns controls = {normals(1024, 1), normals(1024, 2)};
  std::vector<double> wild = normals(1024, 3);
  for (double& x : wild) x = 1e-3 * std::exp(1.5 * x);
  const std::vector<double> y = mix({controls[0], controls[1], wild}, {1, 0.3, 1});
  const Choices choices = {{0, 1}, {0}};
  // With both controls the wild rest is left alone, with one it is small beside what stays.
  EXPECT_NE(fit_controls(y, samples(controls), 1e9, choices)[1], 0);
  const std::vector<double> fitted = fit_controls(y, samples(controls), 60, choices);
  EXPECT_EQ(fitted[1], 0);
  EXPECT_NE(fitted[0], 0);
}

TEST(ControlFit, SpreadOfNumbers) {
  const Spread spread = spread_of(std::vector<double>{1, 1, 1, 5});
  EXPECT_NEAR(spread.sd, std::sqrt(3.0), 1e-15);
  // Deviations -1, -1, -1, 3: third moment 6, variance 3.
  EXPECT_NEAR(spread.skewness, 6 / std::pow(3.0, 1.5), 1e-14);
  EXPECT_EQ(spread_of(std::vector<double>{2, 2}).sd, 0);
}

}  // namespace
}  // namespace headlab
