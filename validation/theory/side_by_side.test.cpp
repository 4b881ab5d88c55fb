// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/side_by_side.h"

#include <cmath>

#include <gtest/gtest.h>

#include "kernels/plan.h"

namespace headlab {
namespace {

/// Two heads at two queries; every number is `one`.
template <class Terms, class Number>
Terms all_of(const Number& one) {
  Terms terms;
  for (Number* number : all_numbers<Number>(terms)) *number = one;
  terms.queries.assign(2, {one, {one, one}, {one, one, one, one}});
  return terms;
}
ConditionEstimates ones() {
  return all_of<ConditionEstimates>(Estimate{1, 0.1});
}
ErrorTerms<Remainder> computed_ones() {
  return all_of<ErrorTerms<Remainder>>(Remainder{1, 0});
}

TEST(SideBySide, CountsInStandardErrors) {
  ErrorTerms<Remainder> computed = computed_ones();
  computed.mse.value = 0.7;
  computed.queries[1].head_bias[0].value = 1.4;
  computed.queries[0].head_bias[1].value = 0.8;
  computed.queries[1].head_covariance[3].value = 1.1;
  computed.queries[1].head_covariance[2].value = 0.5;
  const SideBySide c = side_by_side(ones(), computed, {1, 1});
  EXPECT_EQ(c.figures[0].name, "mse");
  EXPECT_NEAR(c.figures[0].z, 3, 1e-9);
  EXPECT_TRUE(std::isnan(c.figures[1].z));  // of bias squared
  EXPECT_EQ(c.figures[2].z, 0);
  ASSERT_EQ(c.largest.size(), 3u);
  EXPECT_EQ(c.largest[0].name, "bias of head 0 at query 1");
  EXPECT_NEAR(c.largest[0].z, -4, 1e-9);
  EXPECT_EQ(c.largest[1].name, "variance of head 1 at query 1");
  EXPECT_NEAR(c.largest[1].z, -1, 1e-9);
  EXPECT_EQ(c.largest[2].name, "covariance of heads 0 and 1 at query 1");
  EXPECT_NEAR(c.largest[2].z, 5, 1e-9);
}

TEST(SideBySide, HasNoZWithoutAStandardError) {
  ConditionEstimates simulated = ones();
  simulated.mse.mcse = 0;
  simulated.variance_term.mcse = std::nan("");
  for (auto& query : simulated.queries) {
    for (Estimate& figure : query.head_bias) figure.mcse = 0;
  }
  simulated.queries[1].head_bias[1].mcse = 0.1;
  ErrorTerms<Remainder> computed = computed_ones();
  computed.queries[1].head_bias[1].value = 1.1;
  const SideBySide c = side_by_side(simulated, computed, {1, 1});
  EXPECT_TRUE(std::isnan(c.figures[0].z));
  EXPECT_TRUE(std::isnan(c.figures[2].z));
  EXPECT_EQ(c.largest[0].name, "bias of head 1 at query 1");
  // A figure that is not a number never counts as agreement.
  computed.mse.value = std::nan("");
  EXPECT_TRUE(std::isnan(side_by_side(ones(), computed, {1, 1}).figures[0].z));
}

TEST(SideBySide, DoesWithoutMatrices) {
  ConditionEstimates simulated = ones();
  for (auto& query : simulated.queries) query.head_covariance.clear();
  const SideBySide c = side_by_side(simulated, computed_ones(), {1, 1});
  ASSERT_EQ(c.largest.size(), 1u);
  EXPECT_EQ(c.largest[0].name, "bias of head 0 at query 0");
  EXPECT_TRUE(side_by_side(ConditionEstimates(), computed_ones(), {1, 1}).largest.empty());
}

TEST(SideBySide, AllowsForTheRemainder) {
  ErrorTerms<Remainder> computed = computed_ones();
  for (Remainder* number : all_numbers<Remainder>(computed)) *number = {1.3, 0};
  computed.variance_term.remainder = -0.4;
  computed.covariance_term = {1.3, std::nan("")};
  SideBySide c = side_by_side(ones(), computed, {1, 1});
  EXPECT_NEAR(c.figures[0].z, -3, 1e-9);
  EXPECT_NEAR(c.figures[2].z, -0.3 / std::hypot(0.1, 0.4), 1e-9);
  EXPECT_NEAR(c.figures[2].z_scale, std::hypot(0.1, 0.4), 1e-9);
  EXPECT_TRUE(std::isnan(c.figures[3].z));  // unknown
  // What is known of the remainder of an MSE whose bias has an unknown one.
  computed.covariance_term.remainder = 0.1;
  computed.mse.remainder = std::nan("");
  c = side_by_side(ones(), computed, {1, 1});
  EXPECT_NEAR(c.figures[0].z_scale, std::hypot(0.1, 0.3), 1e-9);
  EXPECT_TRUE(std::isnan(c.figures[0].computed.remainder));
}

/// Where nothing varies but rounding the MCSE is far below what float32 keeps.
TEST(SideBySide, AllowsForTheRoundingOfTheSimulation) {
  ConditionEstimates simulated = ones();
  ErrorTerms<Remainder> computed = computed_ones();
  for (std::size_t q = 0; q < 2; ++q) {
    computed.queries[q] = {{0, 0}, {{0, 0}, {0, 0}}, {{0, 0}, {0, 0}, {0, 0}, {0, 0}}};
    simulated.queries[q].head_bias.assign(2, {5e-8, 1e-12});
    simulated.queries[q].head_covariance.assign(4, {3e-15, 1e-17});
  }
  const SideBySide c = side_by_side(simulated, computed, {1, 1});
  for (const ComparedFigure& figure : c.largest) EXPECT_LT(std::abs(figure.z), 1) << figure.name;
  // Control: where the truth is smaller, rounding does not explain the same differences.
  for (const ComparedFigure& figure : side_by_side(simulated, computed, {1e-3, 1e-3}).largest) {
    EXPECT_GT(std::abs(figure.z), 10) << figure.name;
  }
}

}  // namespace
}  // namespace headlab
