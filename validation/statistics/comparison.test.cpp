// SPDX-License-Identifier: Apache-2.0
#include "validation/statistics/comparison.h"

#include <cmath>

#include <gtest/gtest.h>

#include "validation/statistics/intervals.h"

namespace headlab {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double alpha = 0.01;

Comparison equal(double effect, double mcse, double margin, double theory_error = 0) {
  return {.what = "effect",
          .statement = Statement::equal,
          .effect = {effect, mcse},
          .df = 31,
          .margin = margin,
          .theory_error = theory_error};
}

Comparison at_least(double effect, double mcse, double zone) {
  Comparison c = equal(effect, mcse, zone);
  c.statement = Statement::at_least;
  return c;
}

double t(double level) {
  return student_quantile(1 - level, 31);
}

TEST(Comparison, TwoOneSidedTestsSupportUpToTheirBoundaryAndNotBeyond) {
  const double mcse = 0.1, margin = 1;
  const double boundary = margin - t(alpha) * mcse;
  for (const double sign : {-1., 1.}) {
    EXPECT_TRUE(supports(equal(sign * (boundary - 1e-12), mcse, margin), alpha));
    EXPECT_FALSE(supports(equal(sign * (boundary + 1e-12), mcse, margin), alpha));
  }
  // One test to a side: a two-sided interval at alpha would already have refused this.
  EXPECT_TRUE(supports(equal(margin - t(alpha / 2) * mcse + 1e-6, mcse, margin), alpha));
}

TEST(Comparison, AnOrderIsSupportedFromOneSideAlone) {
  EXPECT_TRUE(supports(at_least(100, 0.1, 1), alpha));
  EXPECT_FALSE(supports(equal(100, 0.1, 1), alpha));
  EXPECT_TRUE(supports(at_least(-1 + t(alpha) * 0.1 + 1e-12, 0.1, 1), alpha));
  EXPECT_FALSE(supports(at_least(-1 + t(alpha) * 0.1 - 1e-12, 0.1, 1), alpha));
}

TEST(Comparison, TheoryErrorHelpsTheClaimAndNotItsSupport) {
  EXPECT_TRUE(supports(equal(0, 0.1, 1), alpha));
  EXPECT_FALSE(supports(equal(0, 0.1, 1, 0.9), alpha));
  EXPECT_LT(p_value_against(equal(2, 0.1, 1)), 1e-6);
  EXPECT_NEAR(p_value_against(equal(2, 0.1, 1, 1)), 0.5, 1e-6);
}

TEST(Comparison, PValueOfAnEqualityHasBothTails) {
  // With no margin it is the two-sided test of a point: one tail would refute twice too often.
  EXPECT_NEAR(p_value_against(equal(t(alpha / 2), 1, 0)), alpha, 1e-12);
  EXPECT_NEAR(p_value_against(equal(-t(alpha / 2), 1, 0)), alpha, 1e-12);
  EXPECT_NEAR(p_value_against(equal(t(alpha), 1, 0)), 2 * alpha, 1e-12);
  // With a wide margin the other end is out of reach; an order has one end anyhow.
  EXPECT_NEAR(p_value_against(equal(50 + t(alpha), 1, 50)), alpha, 1e-12);
  EXPECT_NEAR(p_value_against(at_least(-t(alpha), 1, 0)), alpha, 1e-12);
  EXPECT_EQ(p_value_against(equal(0, 1, 0)), 1);
}

TEST(Comparison, WhatIsNoNumberNeitherSupportsNorRefutes) {
  for (const Comparison& c : {equal(nan, 0.1, 1), equal(0, nan, 1), equal(nan, nan, 1),
                              equal(0, 0.1, nan), equal(0, 0.1, 1, nan), equal(infinity, 0.1, 1),
                              at_least(nan, 0.1, 1), at_least(5, nan, 1), equal(0, -0.1, 1)}) {
    EXPECT_FALSE(supports(c, alpha));
    EXPECT_FALSE(contradicts(c));
    EXPECT_EQ(p_value_against(c), 1);
  }
  EXPECT_TRUE(supports(equal(0, 0.1, 1), alpha));
  EXPECT_EQ(p_value_against(equal(9, 0, 1)), 0);
}

TEST(Comparison, NoStandardErrorComparesExactly) {
  EXPECT_TRUE(supports(equal(0.5, 0, 0.5), alpha));
  EXPECT_FALSE(supports(equal(std::nextafter(0.5, 1.0), 0, 0.5), alpha));
  EXPECT_EQ(p_value_against(equal(0.5, 0, 0.5)), 1);
  EXPECT_EQ(p_value_against(equal(std::nextafter(0.5, 1.0), 0, 0.5)), 0);
  EXPECT_TRUE(supports(at_least(-0.5, 0, 0.5), alpha));
  EXPECT_FALSE(supports(at_least(std::nextafter(-0.5, -1.0), 0, 0.5), alpha));
}

TEST(Comparison, AnEffectContradictsBeyondMarginAndTheoryErrorWhateverItsStandardError) {
  for (const double mcse : {0.0, 1e3}) {
    EXPECT_FALSE(contradicts(equal(-1.5, mcse, 1, 0.5)));
    EXPECT_TRUE(contradicts(equal(-1.6, mcse, 1, 0.5)));
    EXPECT_FALSE(contradicts(at_least(9, mcse, 1)));
    EXPECT_TRUE(contradicts(at_least(-1.1, mcse, 1)));
  }
}

TEST(Comparison, TheoryLimitsWhereItsErrorFillsTheMargin) {
  EXPECT_TRUE(limited_by_theory(equal(0, 0.1, 1, 1)));
  EXPECT_TRUE(limited_by_theory(equal(0, 0.1, 1, infinity)));
  EXPECT_FALSE(limited_by_theory(equal(0, 0.1, 1, 0.99)));
  EXPECT_FALSE(limited_by_theory(equal(0, 0.1, 0, 0)));
}

TEST(Comparison, EffectsAreInUnitsOfTheirScale) {
  const std::vector<double> counts = {8, 8, 8};
  const Jackknifed sample(3, {3.2, 2.9, 2.9});
  const Comparison c = equal_to("x", sample, 2, 4, 1, counts, 0.125);
  EXPECT_DOUBLE_EQ(c.effect.value, 0.25);
  EXPECT_DOUBLE_EQ(c.effect.mcse, sample.figure(counts).mcse / 4);
  EXPECT_EQ(c.df, 2);
  EXPECT_EQ(c.observed, 3);
  EXPECT_EQ(c.expected, 2);
  EXPECT_EQ(c.theory_error, 0.125);
  EXPECT_DOUBLE_EQ(at_least_zero("x", sample, 4, 1, counts).effect.value, 0.75);
}

TEST(Holm, StepsDownAsByHand) {
  // Four tests at .05: .01 <= .05/4 and .012 <= .05/3 fall, .03 > .05/2 stops, .04 stays although
  // .04 <= .05/1.
  const std::vector<double> p = {0.03, 0.01, 0.04, 0.012};
  EXPECT_EQ(holm(p, 0.05), (std::vector<bool>{false, true, false, true}));
}

TEST(Holm, RejectsMoreThanBonferroniAndLessThanEachByItself) {
  // .02 > .05/3, which Bonferroni asks of all; <= .05/2, which Holm asks of the second.
  const std::vector<double> p = {0.001, 0.02, 0.06};
  EXPECT_EQ(holm(p, 0.05), (std::vector<bool>{true, true, false}));
  EXPECT_GT(p[1], 0.05 / 3);
  EXPECT_EQ(holm(std::vector<double>{0.03, 0.03}, 0.05), (std::vector<bool>{false, false}));
}

TEST(Holm, WhatIsNoNumberIsNotRejected) {
  EXPECT_EQ(holm(std::vector<double>{nan}, 0.05), std::vector<bool>{false});
  EXPECT_TRUE(holm({}, 0.05).empty());
}

TEST(ReplicatesToResolve, TwiceThePrecisionTakesFourTimesAsMany) {
  const double needed = replicates_to_resolve(equal(0.5, 0.4, 1), 1000, alpha, alpha);
  EXPECT_NEAR(replicates_to_resolve(equal(0.5, 0.8, 1), 1000, alpha, alpha), 4 * needed,
              1e-9 * needed);
  // With that many the comparison does come out.
  const double mcse = 0.4 * std::sqrt(1000 / needed);
  EXPECT_TRUE(supports(equal(0.5, mcse * (1 - 1e-9), 1), alpha));
  EXPECT_FALSE(supports(equal(0.5, mcse * (1 + 1e-6), 1), alpha));
}

TEST(ReplicatesToResolve, HasNoAnswerAtTheEdgeNorWithinTheTheorysError) {
  EXPECT_EQ(replicates_to_resolve(equal(1, 0.1, 1), 1000, alpha, alpha), infinity);
  EXPECT_EQ(replicates_to_resolve(equal(0.9, 0.1, 1, 0.2), 1000, alpha, alpha), infinity);
  EXPECT_EQ(replicates_to_resolve(equal(nan, 0.1, 1), 1000, alpha, alpha), infinity);
  // A refutation is asked for more than a support where its level is smaller.
  EXPECT_GT(replicates_to_resolve(equal(1.5, 0.4, 1), 1000, alpha, alpha / 100),
            replicates_to_resolve(equal(0.5, 0.4, 1), 1000, alpha, alpha / 100));
}

TEST(Looks, AreMultiplesOfLeavesAndEndWithAllReplicates) {
  EXPECT_EQ(look_replicates(0, smallest_scenario), min_look);
  EXPECT_EQ(look_replicates(1, smallest_scenario), min_look);
  EXPECT_EQ(look_replicates(2, smallest_scenario), smallest_scenario);
  EXPECT_EQ(look_replicates(0, 1 << 20), 1U << 16);
  for (std::size_t look = 0; look < look_shares.size(); ++look) {
    EXPECT_EQ(look_replicates(look, 100001) % 128, 0U);
  }
  EXPECT_GE(look_replicates(2, 100001), 100001U);
}

/// Nodes of one number each, of which the figure is the mean.
Jackknifed mean_of(const std::vector<double>& nodes) {
  double sum = 0;
  for (const double one : nodes) sum += one;
  const auto count = static_cast<double>(nodes.size());
  std::vector<double> without;
  for (const double one : nodes) without.push_back((sum - one) / (count - 1));
  return {sum / count, without};
}

TEST(Comparison, RareEventsAreCountedAndWidenBounds) {
  const std::vector<double> counts(128, 16);
  for (const int events : {1, 3, 8, 30}) {
    std::vector<double> nodes(128, 0.0);
    for (int j = 0; j < events; ++j) nodes[static_cast<std::size_t>(4 * j)] = 1;
    Jackknifed figure = mean_of(nodes);
    figure.unseen = infinity;
    const Comparison c = equal_to("rare", figure, 0, 1, 100, counts);
    EXPECT_EQ(supports(c, alpha), true) << "the margin is many times what so few can be off by";
    EXPECT_EQ(open_reason(c, 2048).empty(), events >= 20) << events;
    if (events < 20) {
      // Twice the standard error of a kurtosis is allowed for.
      EXPECT_GE(c.carriers, 0.9 * events);
      EXPECT_LE(c.carriers, 1.7 * events);
      EXPECT_FALSE(supports(equal_to("rare", figure, 0, 1, 2 * figure.value, counts), alpha));
    }
  }
  Jackknifed none = mean_of(std::vector<double>(128, 0.0));
  none.unseen = infinity;
  const Comparison c = equal_to("none", none, 0, 1, 100, counts);
  EXPECT_FALSE(supports(c, alpha));
  EXPECT_EQ(open_reason(c, 2048), "carried by 0 of 2048 replicates");
  none.unseen = 0.5;
  EXPECT_TRUE(supports(equal_to("bounded", none, 0, 1, 0.6, counts), alpha));
  EXPECT_FALSE(supports(equal_to("bounded", none, 0, 1, 0.4, counts), alpha));
  none.unseen = 0;
  EXPECT_TRUE(supports(equal_to("by construction", none, 0, 1, 0, counts), alpha));
}

TEST(Comparison, SkewnessWidensTheBoundOnItsSideAlone) {
  Comparison c = equal(0, 0.1, 0.3);
  ASSERT_TRUE(supports(c, alpha));
  c.statement = Statement::at_least;
  c.effect.skewness = -0.5;  // the mean of rare falls looks higher than it is
  EXPECT_FALSE(supports(c, alpha));
  c.effect.skewness = 0.5;
  EXPECT_TRUE(supports(c, alpha));
  Comparison beyond = at_least(-1, 0.1, 0);
  const double p = p_value_against(beyond);
  beyond.effect.skewness = 0.2;
  EXPECT_GT(p_value_against(beyond), p);
  beyond.effect.skewness = -0.2;
  EXPECT_EQ(p_value_against(beyond), p);
}

TEST(Comparison, LongTailsTripleTheSkewnessOfWhatIsJudged) {
  Comparison c = equal(0, 0.1, 0.3);
  c.statement = Statement::at_least;
  c.effect.skewness = -0.1;
  EXPECT_TRUE(supports(c, alpha));
  EXPECT_FALSE(supports(with_long_tails(c), alpha));
  EXPECT_DOUBLE_EQ(with_long_tails(c).effect.skewness, -0.3);
  c.rooms = std::array{c.effect, c.effect};
  EXPECT_DOUBLE_EQ((*with_long_tails(c).rooms)[1].skewness, -0.3);
}

TEST(Comparison, ARatioIsJudgedByItsLinearFigures) {
  const std::vector<double> counts(64, 8);
  std::vector<double> top, bottom, noise;
  for (int j = 0; j < 64; ++j) {
    const double wave = j % 2 == 0 ? 1 : -1;
    top.push_back(2 + 0.1 * wave);
    bottom.push_back(1 + 0.05 * wave);
    noise.push_back(0.1 + wave);
  }
  const Jackknifed a = mean_of(top), b = mean_of(bottom);
  // Numerator and denominator move together: num - 2 den does not move at all.
  EXPECT_TRUE(supports(ratio_equal_to("ratio", a, b, 2, 1e-6, counts), alpha));
  EXPECT_LT(p_value_against(ratio_equal_to("ratio", a, b, 2.5, 0.1, counts)), 1e-6);
  EXPECT_TRUE(supports(ratio_at_least("ratio", a, b, 1.9, 0, counts), alpha));
  EXPECT_LT(p_value_against(ratio_at_least("ratio", a, b, 2.1, 0, counts)), 1e-6);
  // A negative denominator.
  const Jackknifed minus = Jackknifed(-1) * b;
  EXPECT_TRUE(supports(ratio_equal_to("ratio", a, minus, -2, 1e-6, counts), alpha));
  EXPECT_TRUE(supports(ratio_at_least("ratio", a, minus, -2.1, 0, counts), alpha));
  const Comparison open = ratio_equal_to("ratio", a, mean_of(noise), 20, 1e9, counts);
  EXPECT_FALSE(supports(open, alpha));
  EXPECT_EQ(p_value_against(open), 1);
  EXPECT_EQ(open_reason(open, 512), near_zero_denominator);
}

TEST(Comparison, RoundingAndDoubtCountForNeitherSide) {
  Comparison c = equal(1e-8, 0, 1e-12);
  EXPECT_EQ(p_value_against(c), 0);
  c.rounding = 1e-7;
  EXPECT_EQ(p_value_against(c), 1);
  EXPECT_FALSE(supports(c, alpha));
  c.margin = 1e-6;
  EXPECT_TRUE(supports(c, alpha));
  c.open = heavy_squares;
  EXPECT_FALSE(supports(c, alpha));
  EXPECT_FALSE(contradicts(equal(2, 0, 1, 3)));
}

}  // namespace
}  // namespace headlab
