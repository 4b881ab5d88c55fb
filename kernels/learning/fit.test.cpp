// SPDX-License-Identifier: Apache-2.0
#include "kernels/learning/fit.h"

#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "kernels/cpu/backend.h"
#include "kernels/testing/learning_agreement.h"

namespace headlab {
namespace {

const GaussianKernel fit_kernel{.bandwidth = 0.4};

using test::one_head;
using test::single_index_points;

/// Two heads at 60 degrees.
Learning two_heads() {
  Learning learning = one_head();
  learning.start.heads = 2;
  learning.start.keys = {1, 0, 0, 0.5, 0, std::sqrt(0.75)};
  learning.start.weights = {0.5, 0.5};
  return learning;
}

Fit fit(const Learning& learning, const FitPoints& points, const FitHooks& hooks = {}) {
  const auto gradients = make_reference_gradients(fit_kernel);
  return fit_heads(learning, 0, points, *gradients, hooks).value();
}

double norm2(const std::vector<double>& v) {
  double sum = 0;
  for (const double x : v) sum += x * x;
  return sum;
}

TEST(Fit, FindsTheDirectionThatMatters) {
  const Fit found = fit(one_head(), single_index_points(300));
  const double cosine = 0.8 * found.heads.keys[0] + 0.6 * found.heads.keys[1];
  // Within 3 degrees of it, from 37 at the start.
  EXPECT_GT(std::abs(cosine), std::cos(3 * M_PI / 180));
  EXPECT_NEAR(norm2(found.heads.keys), 1, 1e-14);
}

TEST(Fit, AWrongSignOfTheGradientDoesNotFindIt) {
  class Wrong : public HeadGradients {
   public:
    void load(const FitPoints& points, std::size_t count) override { right_->load(points, count); }
    void estimate(const HeadParameters& heads, const FitQueries& queries,
                  std::span<double> f) override {
      right_->estimate(heads, queries, f);
    }
    void gradient(std::span<const double> s, HeadParameters& out) override {
      right_->gradient(s, out);
      for (double& number : out.keys) number *= -1;
    }

   private:
    std::unique_ptr<HeadGradients> right_ = make_reference_gradients(fit_kernel);
  } wrong;
  Learning learning = one_head();
  learning.held_out = 0;  // which would keep the start
  const Fit found = fit_heads(learning, 0, single_index_points(300), wrong).value();
  const double cosine = 0.8 * found.heads.keys[0] + 0.6 * found.heads.keys[1];
  EXPECT_LT(std::abs(cosine), 0.8);
}

TEST(Fit, AShorterOneIsTheBeginningOfALongerOne) {
  Learning learning = two_heads();
  learning.held_out = 0;
  learning.learns_weights = true;
  learning.steps = 30;
  const FitPoints points = single_index_points(80);
  const Fit longer = fit(learning, points, {.keeps_history = true});
  learning.steps = 20;
  const Fit shorter = fit(learning, points);
  ASSERT_EQ(longer.history.size(), 4u);
  EXPECT_EQ(longer.history[2].step, 20u);
  EXPECT_EQ(longer.history[2].heads.keys, shorter.heads.keys);
  EXPECT_EQ(longer.history[2].heads.weights, shorter.heads.weights);
  EXPECT_NE(longer.heads.keys, shorter.heads.keys);
  EXPECT_NE(shorter.heads.weights, learning.start.weights);
  EXPECT_FALSE(longer.history[0].batch_error);
  EXPECT_TRUE(longer.history[1].batch_error);
}

TEST(Fit, KeepsTheHeadsOfTheLeastErrorHeldOutAndStopsInTime) {
  Learning learning = two_heads();
  learning.steps = 400;
  learning.patience = 2;
  learning.learning_rate = 0.5;  // too much: it wanders
  const Fit found = fit(learning, single_index_points(60, 1.0), {.keeps_history = true});
  double least = std::numeric_limits<double>::infinity();
  std::uint64_t at = 0;
  for (const FitCheck& check : found.history) {
    if (*check.held_out_error < least) {
      least = *check.held_out_error;
      at = check.step;
    }
  }
  EXPECT_EQ(*found.held_out_error, least);
  EXPECT_EQ(found.steps, at);
  EXPECT_LT(found.history.back().step, learning.steps);
  EXPECT_EQ(found.history.back().step, at + 2 * check_steps);
}

TEST(Fit, NoStepsAreTheStart) {
  Learning learning = two_heads();
  learning.steps = 0;
  const Fit found = fit(learning, single_index_points(40));
  EXPECT_EQ(found.heads.keys, learning.start.keys);
  EXPECT_EQ(found.steps, 0u);
}

TEST(Fit, ThePenaltyDrivesHeadsApart) {
  Learning learning = two_heads();
  learning.held_out = 0;
  learning.diversity = 100;
  const Fit found = fit(learning, single_index_points(100));
  std::vector<double> unused;
  EXPECT_GT(chordal_gradient(found.heads, unused), 0.99);
  learning.diversity = 0;
  EXPECT_LT(chordal_gradient(fit(learning, single_index_points(100)).heads, unused), 0.99);
}

TEST(Fit, DependsOnItsSeedAndNumber) {
  const FitPoints points = single_index_points(60);
  Learning learning = two_heads();
  learning.held_out = 0;
  const auto gradients = make_reference_gradients(fit_kernel);
  const auto of = [&](std::uint64_t number) {
    return fit_heads(learning, number, points, *gradients).value().heads.keys;
  };
  const auto first = of(0);
  EXPECT_EQ(of(0), first);
  EXPECT_NE(of(1), first);
  learning.seed = 1;
  EXPECT_NE(of(0), first);
}

TEST(Fit, GoesTheSameWayOnTheCpuBackend) {
  const FitPoints points = single_index_points(200);
  const Learning learning = one_head();
  const auto gradients = make_cpu_gradients(fit_kernel, 2);
  const Fit fast = fit_heads(learning, 0, points, *gradients).value();
  const Fit exact = fit(learning, points);
  EXPECT_EQ(fast.steps, exact.steps);
  // Rounding of one step does not grow where the steps go downhill.
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(fast.heads.keys[i], exact.heads.keys[i], 1e-3);
  }
}

TEST(Fit, StopsWhereItIsTold) {
  const auto gradients = make_reference_gradients(fit_kernel);
  int asked = 0;
  const FitHooks hooks{.stop = [&] { return ++asked == 3; }};
  EXPECT_FALSE(fit_heads(one_head(), 0, single_index_points(40), *gradients, hooks));
  EXPECT_EQ(asked, 3);
}

TEST(Fit, RefusesAnErrorThatIsNotFinite) {
  FitPoints points = single_index_points(40);
  Learning learning = one_head();
  learning.held_out = 0;
  points.y[7] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(fit(learning, points), std::invalid_argument);
}

TEST(ChordalGradient, AgreesWithCentralDifferences) {
  std::mt19937_64 random(4);
  std::normal_distribution<double> normal;
  HeadParameters heads{.heads = 3, .d = 5, .k = 2, .keys = {}, .queries = {}, .weights = {}};
  for (int i = 0; i < 30; ++i) heads.keys.push_back(normal(random));
  std::vector<double> gradient, unused;
  chordal_gradient(heads, gradient);
  for (std::size_t i = 0; i < heads.keys.size(); ++i) {
    const double step = 1e-5;
    HeadParameters above = heads, below = heads;
    above.keys[i] += step;
    below.keys[i] -= step;
    const double slope =
        (chordal_gradient(above, unused) - chordal_gradient(below, unused)) / (2 * step);
    EXPECT_NEAR(gradient[i], slope, 1e-9) << i;
  }
}

TEST(ChordalGradient, GivesTheIndexOfKnownAngles) {
  std::vector<double> unused;
  // cos^2 60 degrees = 1/4; the length of a column is no angle.
  HeadParameters heads = two_heads().start;
  EXPECT_NEAR(chordal_gradient(heads, unused), 0.75, 1e-15);
  for (std::size_t i = 3; i < 6; ++i) heads.keys[i] *= 7;
  EXPECT_NEAR(chordal_gradient(heads, unused), 0.75, 1e-15);
}

}  // namespace
}  // namespace headlab
