// SPDX-License-Identifier: Apache-2.0
#include "validation/curves/curves.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace headlab {
namespace {

constexpr std::size_t nodes = 64;
const std::vector<double> counts(nodes, 8.0);

/// The mean of node values, with each node left out.
Jackknifed mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  const auto count = static_cast<double>(values.size());
  Jackknifed mean(sum / count);
  for (const double value : values) mean.leave_one_out.push_back((sum - value) / (count - 1));
  return mean;
}

/// Curves f(x) (1 + noise), whose points have a part of their noise in common.
struct Noise {
  explicit Noise(unsigned seed) : generator(seed) {}
  std::mt19937_64 generator;
  std::normal_distribution<double> normal;

  template <class Function>
  Curve curve(const std::vector<double>& x, double sd, const std::vector<double>& common,
              const Function& f) {
    Curve made{.x = x};
    for (const double at : x) {
      std::vector<double> values;
      for (std::size_t j = 0; j < nodes; ++j) {
        values.push_back(f(at) * (1 + sd * normal(generator) + common[j]));
      }
      made.y.push_back(mean_of(values));
    }
    return made;
  }
  std::vector<double> common(double sd) {
    std::vector<double> all;
    for (std::size_t j = 0; j < nodes; ++j) all.push_back(sd * normal(generator));
    return all;
  }
};

const std::vector<double> sizes = {50, 100, 200, 400, 800};

TEST(LogLogSlope, IsThatOfAPowerLaw) {
  Noise noise(1);
  const Curve exact =
      noise.curve(sizes, 0, noise.common(0), [](double x) { return 3 * std::pow(x, -0.8); });
  const SlopeEstimate slope = log_log_slope(exact, counts);
  EXPECT_NEAR(slope.slope.value, -0.8, 1e-14);
  EXPECT_NEAR(slope.slope.mcse, 0, 1e-14);
}

TEST(LogLogSlope, HasNoErrorOfWhatThePointsHaveInCommon) {
  // A factor that all points share moves the curve, not its slope.
  Noise noise(2);
  const Curve shared =
      noise.curve(sizes, 0, noise.common(0.3), [](double x) { return std::pow(x, -0.5); });
  EXPECT_GT(shared.y[0].figure(counts).mcse, 0.01 * shared.y[0].value);
  EXPECT_NEAR(log_log_slope(shared, counts).slope.mcse, 0, 1e-13);
}

TEST(LogLogSlope, IsUndefinedOfWhatHasNoLogarithm) {
  Curve curve{.x = {1, 2}, .y = {Jackknifed(1), Jackknifed(-1)}};
  EXPECT_TRUE(std::isnan(log_log_slope(curve, counts).slope.value));
  curve = {.x = {0, 2}, .y = {Jackknifed(1), Jackknifed(1)}};
  EXPECT_TRUE(std::isnan(log_log_slope(curve, counts).slope.value));
  curve = {.x = {2}, .y = {Jackknifed(1)}};
  EXPECT_TRUE(std::isnan(log_log_slope(curve, counts).slope.value));
}

/// Of 2000 intervals, how many hold the truth. A right 95 % interval misses 100 +- 9.7 (binomial);
/// nodes are few and normal, so that t quantiles are right to first order. Within five of these.
constexpr int trials = 2000;
constexpr double right = 0.95 * trials, allowed = 5 * 9.75;

TEST(LogLogSlope, HasTheIntervalThatItSays) {
  int held = 0, held_by_half = 0;
  for (unsigned trial = 0; trial < trials; ++trial) {
    Noise noise(1000 + trial);
    const SlopeEstimate slope = log_log_slope(
        noise.curve(sizes, 0.1, noise.common(0.3), [](double x) { return std::pow(x, -0.8); }),
        counts);
    const double off = std::abs(slope.slope.value + 0.8);
    held += off <= slope.slope.value - slope.interval.low ? 1 : 0;
    held_by_half += off <= (slope.slope.value - slope.interval.low) / 2 ? 1 : 0;
  }
  EXPECT_NEAR(held, right, allowed);
  EXPECT_GT(std::abs(held_by_half - right), allowed);  // the control
}

TEST(Crossings, LieBetweenPointsOfKnownSigns) {
  Noise noise(3);
  const std::vector<double> none = noise.common(0);
  const Curve flat = noise.curve(sizes, 0, none, [](double) { return 1; });
  const Curve falls = noise.curve(sizes, 0, none, [](double x) { return 2 - std::log(x / 50); });
  const std::vector<Crossing> found = crossings(falls, flat, counts);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NEAR(found[0].at, 50 * std::exp(1.0), 1e-9);
  EXPECT_EQ(found[0].low, 100);
  EXPECT_EQ(found[0].high, 200);
  EXPECT_TRUE(crossings(flat, flat, counts).empty());

  // At 200 the difference is within its error: what is shown is wider, with the change inside.
  Curve unsure = falls;
  unsure.y[2] = mean_of({0.9, 1.3, 0.9, 1.3});
  unsure.y[2].leave_one_out.resize(nodes, 1.1);
  unsure.y[2].leave_one_out[0] = 0.5;
  const std::vector<Crossing> wider = crossings(unsure, flat, counts);
  ASSERT_EQ(wider.size(), 1u);
  EXPECT_EQ(wider[0].low, 100);
  EXPECT_EQ(wider[0].high, 400);
  EXPECT_GT(wider[0].at, 200);
  EXPECT_LT(wider[0].at, 400);
}

TEST(Crossings, AreSeldomShownWhereThereAreNone) {
  int shown = 0, changes = 0;
  for (unsigned trial = 0; trial < trials; ++trial) {
    Noise noise(9000 + trial);
    const std::vector<double> common = noise.common(0.3);
    const auto one = [](double) { return 1; };
    const Curve a = noise.curve(sizes, 0.1, common, one), b = noise.curve(sizes, 0.1, common, one);
    shown += crossings(a, b, counts).empty() ? 0 : 1;
    bool changed = false;
    for (std::size_t i = 1; i < sizes.size(); ++i) {
      changed |= (a.y[i].value < b.y[i].value) != (a.y[0].value < b.y[0].value);
    }
    changes += changed ? 1 : 0;
  }
  EXPECT_LE(shown, trials - right + allowed);
  EXPECT_GT(changes, trials - right + allowed);  // the control: signs alone change
}

}  // namespace
}  // namespace headlab
