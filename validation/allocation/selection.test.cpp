// SPDX-License-Identifier: Apache-2.0
#include "validation/allocation/selection.h"

#include <cmath>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "kernels/testing/tolerances.h"
#include "validation/allocation/block_runs.h"
#include "validation/statistics/intervals.h"

namespace headlab {
namespace {

/// The mean of the first `count` of equally large nodes.
Jackknifed mean_of(const std::vector<double>& nodes, std::size_t count) {
  const double sum = std::accumulate(nodes.begin(), nodes.begin() + count, 0.0);
  const auto n = static_cast<double>(count);
  std::vector<double> leave_one_out;
  for (std::size_t j = 0; j < count; ++j) leave_one_out.push_back((sum - nodes[j]) / (n - 1));
  return {sum / n, std::move(leave_one_out)};
}

TEST(Screen, ByHand) {
  // Differences to the first: nodes -1, 0, 1 shifted by 2 and by 20, with SE 1/sqrt(3).
  const std::vector<double> first = {9, 10, 11}, second = {13, 12, 11}, third = {28, 30, 32};
  const std::vector<Jackknifed> errors = {mean_of(second, 3), mean_of(first, 3), mean_of(third, 3)};
  const std::vector<double> counts(3, 32);
  const double t = student_quantile(0.95, 2);
  const Screening result = screen(errors, counts, 0.05, 0.01);
  EXPECT_EQ(result.kept, (std::vector<bool>{true, true, false}));
  EXPECT_EQ(result.least, 1u);
  // second - first = 4, 2, 0: mean 2, SE 2/sqrt(3).
  const double width = t * 2 / std::sqrt(3.0);
  EXPECT_NEAR(result.largest_loss, (width - 2) / 10, 16 * eps);
  EXPECT_NEAR(result.growth, std::pow(width / (0.1 + 2), 2), 64 * eps);
}

TEST(Screen, TheReplicatesNamedWouldDecide) {
  const std::vector<double> first = {9, 10, 11, 10}, second = {11, 10, 10, 10};
  const std::vector<double> counts(4, 32);
  const std::vector<Jackknifed> errors = {mean_of(first, 4), mean_of(second, 4)};
  const double zone = 0.01, level = 0.01;
  const Screening open = screen(errors, counts, level, zone);
  ASSERT_GT(open.largest_loss, zone);
  // Deviations from the same means shrink as that many replicates make them.
  for (const double factor : {0.99, 1.01}) {
    const double shrink = 1 / std::sqrt(open.growth * factor);
    std::vector<Jackknifed> later = errors;
    for (Jackknifed& error : later) {
      for (double& leave_one_out : error.leave_one_out) {
        leave_one_out = error.value + shrink * (leave_one_out - error.value);
      }
    }
    EXPECT_EQ(screen(later, counts, level, zone).largest_loss <= zone, factor > 1) << factor;
  }
}

TEST(Screen, ExactErrorsAreComparedExactly) {
  const std::vector<double> counts(4, 32);
  const std::vector<Jackknifed> errors = {mean_of({2, 2, 2, 2}, 4), mean_of({1, 1, 1, 1}, 4),
                                          mean_of({1, 1, 1, 1}, 4)};
  const Screening result = screen(errors, counts, 0.01, 0);
  EXPECT_EQ(result.kept, (std::vector<bool>{false, true, true}));
  EXPECT_EQ(result.largest_loss, 0);
  EXPECT_EQ(result.growth, 0);
}

TEST(Screen, OneCandidateIsTheBest) {
  const Screening result = screen(std::vector<Jackknifed>{mean_of({1, 2, 3}, 3)},
                                  std::vector<double>(3, 32), 0.01, 0.01);
  EXPECT_EQ(result.kept, std::vector<bool>{true});
  EXPECT_EQ(result.largest_loss, 0);
}

TEST(Screen, NoNumberOfReplicatesTellsTwoThatTieWithoutAZone) {
  const std::vector<Jackknifed> errors = {mean_of({1, 2, 3}, 3), mean_of({3, 2, 1}, 3)};
  EXPECT_TRUE(std::isinf(screen(errors, std::vector<double>(3, 32), 0.01, 0).growth));
}

TEST(SelectionLooks, AreAFixedSchedule) {
  using Looks = std::vector<std::uint64_t>;
  EXPECT_EQ(selection_looks(65536), (Looks{1024, 4096, 16384, 65536}));
  // Looks that would be the same are one, and cost no level.
  EXPECT_EQ(selection_looks(4096), (Looks{1024, 4096}));
  EXPECT_EQ(selection_looks(1024), (Looks{1024}));
  EXPECT_EQ(selection_looks(1025), (Looks{1024, 1056}));
  EXPECT_DOUBLE_EQ(comparison_level(0.05, 11, 4), 0.05 / 40);
  EXPECT_DOUBLE_EQ(comparison_level(0.05, 1, 4), 0.05 / 4);
}

/// Selections among candidates that all tie, the hardest case for the one called best, with much
/// in common: how often that one is screened out at some look, and how often the loss of the one
/// advised, which is 0, is bounded falsely once the one called best leads by `lead`.
struct Misses {
  std::uint64_t best = 0;
  std::uint64_t loss = 0;
};

Misses misses(double alpha, double lead, std::uint64_t trials) {
  constexpr std::size_t candidates = 6, blocks = 256;
  const double level = comparison_level(alpha, candidates, 3);
  std::mt19937_64 engine(7);
  std::normal_distribution<double> normal;
  Misses count;
  for (std::uint64_t trial = 0; trial < trials; ++trial) {
    std::vector<std::vector<double>> nodes(candidates);
    for (std::size_t b = 0; b < blocks; ++b) {
      const double common = 3 * normal(engine);
      for (std::size_t c = 0; c < candidates; ++c) {
        nodes[c].push_back(100 + common + (c == 0 ? -lead : 0) +
                           static_cast<double>(c + 1) / 3 * normal(engine));
      }
    }
    std::vector<std::size_t> racing = {0, 1, 2, 3, 4, 5};
    bool missed = false, false_bound = false;
    for (const std::size_t look : {32, 64, 256}) {
      std::vector<Jackknifed> errors;
      for (const std::size_t c : racing) errors.push_back(mean_of(nodes[c], look));
      const Screening seen = screen(errors, std::vector<double>(look, 32), level, 0.01);
      const double loss = racing[seen.least] == 0 ? 0 : lead;
      false_bound = false_bound || seen.largest_loss * errors[seen.least].value < loss;
      std::vector<std::size_t> kept;
      for (std::size_t i = 0; i < racing.size(); ++i) {
        if (seen.kept[i]) kept.push_back(racing[i]);
      }
      racing = kept;
      missed = missed || racing.front() != 0;
    }
    count.best += missed;
    count.loss += false_bound;
  }
  return count;
}

TEST(Screen, MissesTheBestAndItsLossNoMoreOftenThanSaid) {
  constexpr double alpha = 0.05, confidence = 0.998;
  constexpr std::uint64_t trials = 1000;
  for (const double lead : {0.0, 0.1}) {
    const Misses seen = misses(alpha, lead, trials);
    EXPECT_LE(clopper_pearson(seen.best, trials, confidence).low, alpha) << seen.best;
    EXPECT_LE(clopper_pearson(seen.loss, trials, confidence).low, alpha) << seen.loss;
  }
  // Intervals made too narrow are found out.
  const Misses narrow = misses(0.6, 0, trials);
  EXPECT_GT(clopper_pearson(narrow.best, trials, confidence).low, alpha) << narrow.best;
}

}  // namespace
}  // namespace headlab
