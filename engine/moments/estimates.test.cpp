// SPDX-License-Identifier: Apache-2.0
#include "engine/moments/estimates.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace headlab {
namespace {

constexpr double truth = 0.3;
const std::vector<double> head_weights = {0.7, 0.5};

/// Two heads with biases .5 and -.2 and covariance [[1, .6], [.6, 2]], drawn plainly.
MomentTree plain_run(std::uint64_t replicates, std::uint64_t seed, double noise = 1) {
  MomentTree tree({.queries = 1, .heads = 2, .conditional = false});
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  const double factor = std::sqrt(2 - 0.36);
  while (tree.count() < replicates) {
    const std::uint64_t size = tree.count() < first_leaf ? 1 : leaf_replicates;
    const auto count = static_cast<int>(std::min(size, replicates - tree.count()));
    std::vector<double> values;
    for (int r = 0; r < count; ++r) {
      const double a = noise * normal(random);
      const double b = noise * normal(random);
      values.push_back(truth + 0.5 + a);
      values.push_back(truth - 0.2 + 0.6 * a + factor * b);
    }
    Moments moments;
    leaf_moments(tree.layout(), values, count, moments);
    tree.append(std::move(moments));
  }
  return tree;
}

ConditionEstimates estimate_plain(std::uint64_t replicates, std::uint64_t seed, double noise = 1) {
  return estimate(plain_run(replicates, seed, noise), head_weights, std::vector{truth});
}

// Exact values of the components: a = (.7, .5), sum of weights 1.2, so the ensemble's bias is
// .7 (.3 + .5) + .5 (.3 - .2) - .3 = .31: many standard errors from 0, where z of a square is
// normal.
constexpr double exact_bias_squared = 0.31 * 0.31;
constexpr double exact_variance_term = 0.49 * 1 + 0.25 * 2;
constexpr double exact_covariance_term = 2 * 0.7 * 0.5 * 0.6;

TEST(ConditionEstimates, TermsAddUpToTheMeanSquaredErrorOfEveryReplicate) {
  const std::uint64_t replicates = 1000;
  const ConditionEstimates e = estimate_plain(replicates, 1);
  const double sum = e.bias_squared.value + e.variance_term.value + e.covariance_term.value;
  EXPECT_NEAR(e.mse.value / sum, 1, 1e-12);

  // For the plain estimator the corrected decomposition is the plain mean of (f - m)^2.
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  double square = 0;
  for (std::uint64_t r = 0; r < replicates; ++r) {
    const double a = normal(random);
    const double b = normal(random);
    const double f =
        0.7 * (truth + 0.5 + a) + 0.5 * (truth - 0.2 + 0.6 * a + std::sqrt(2 - 0.36) * b);
    square += (f - truth) * (f - truth) / static_cast<double>(replicates);
  }
  EXPECT_NEAR(e.mse.value, square, 1e-12);
}

TEST(ConditionEstimates, RoundingHasNoCorrelation) {
  const ConditionEstimates rounding = estimate_plain(1000, 1, 1e-16);
  EXPECT_TRUE(std::isnan(rounding.output_correlation.value));
  EXPECT_TRUE(std::isnan(rounding.output_index.value));
  EXPECT_LT(rounding.head_variance_mean.value, 1e-30);
  // Control: what varies little has one.
  EXPECT_NEAR(estimate_plain(1000, 1, 1e-8).output_correlation.value, 0.4, 0.1);
}

/// z-scores of the components over repeated runs: their mean square tells whether the standard
/// errors are right.
double root_mean_square_z(double halve) {
  double square = 0;
  int count = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const ConditionEstimates e = estimate_plain(2000, seed);
    auto add = [&](const Estimate& figure, double exact) {
      const double z = (figure.value - exact) / (figure.mcse * halve);
      square += z * z;
      ++count;
    };
    add(e.bias_squared, exact_bias_squared);
    add(e.variance_term, exact_variance_term);
    add(e.covariance_term, exact_covariance_term);
    add(e.queries[0].head_bias[0], 0.5);
    add(e.queries[0].head_bias[1], -0.2);
    add(e.output_correlation, 0.6 / 1.5);
  }
  return std::sqrt(square / count);
}

TEST(ConditionEstimates, StandardErrorsAreAsLargeAsTheErrors) {
  // 360 z-scores, correlated within a run: at least 60 independent ones, so the root mean square is
  // 1 +- 1/sqrt(120), and [.7, 1.35] is more than three of these away.
  const double rms = root_mean_square_z(1);
  EXPECT_TRUE(rms > 0.7 && rms < 1.35) << rms;
  // Negative control: standard errors of half the size are seen.
  EXPECT_FALSE(root_mean_square_z(0.5) < 1.35);
}

TEST(ConditionEstimates, CorrectedSquaredBiasIsUnbiasedAndThePlugInIsNot) {
  double corrected = 0;
  double plug_in = 0;
  double square = 0;
  const int runs = 400;
  for (int seed = 1; seed <= runs; ++seed) {
    const ConditionEstimates e = estimate_plain(50, static_cast<std::uint64_t>(seed));
    corrected += e.bias_squared.value / runs;
    square += e.bias_squared.value * e.bias_squared.value / runs;
    plug_in += e.bias_squared_plugin.value / runs;
  }
  const double error = std::sqrt((square - corrected * corrected) / runs);
  EXPECT_TRUE(std::abs(corrected - exact_bias_squared) < 4.5 * error);
  EXPECT_FALSE(std::abs(plug_in - exact_bias_squared) < 4.5 * error);
}

TEST(ConditionEstimates, AConstantHasStandardErrorExactlyZero) {
  const ConditionEstimates e = estimate_plain(1000, 1, 0.0);
  EXPECT_EQ(e.variance_term.value, 0.0);
  EXPECT_EQ(e.variance_term.mcse, 0.0);
  EXPECT_EQ(e.mse.mcse, 0.0);
  EXPECT_TRUE(std::isnan(e.output_correlation.value)) << "0/0";
}

TEST(ConditionEstimates, WithTooFewReplicatesTheErrorIsUndefined) {
  EXPECT_TRUE(std::isnan(estimate_plain(7, 1).mse.mcse));
  EXPECT_FALSE(std::isnan(estimate_plain(7, 1).mse.value));
  EXPECT_FALSE(std::isnan(estimate_plain(8, 1).mse.mcse));
  EXPECT_TRUE(std::isnan(estimate_plain(1, 1).mse.value));
  const ConditionEstimates none =
      estimate(MomentTree({.queries = 1, .heads = 2}), head_weights, std::vector{truth});
  EXPECT_TRUE(std::isnan(none.mse.value));
  EXPECT_EQ(none.replicates, 0u);
}

TEST(ConditionEstimates, JackknifeOfAMeanIsItsTextbookError) {
  // For the mean of R independent numbers the delete-one jackknife is sd / sqrt(R), exactly.
  const MomentTree tree = plain_run(200, 3);
  const ConditionEstimates e = estimate(tree, head_weights, std::vector{truth});
  double square = 0;
  for (const Node& node : tree.nodes()) {
    const double deviation = node.moments.mean[0] - truth - e.queries[0].head_bias[0].value;
    square += deviation * deviation;
  }
  EXPECT_NEAR(e.queries[0].head_bias[0].mcse, std::sqrt(square / 199 / 200), 1e-14);
}

TEST(ConditionEstimates, AggregateModeGivesTheSameComponents) {
  const MomentTree pairwise = plain_run(500, 2);
  MomentTree aggregate(
      {.queries = 1, .heads = 2, .mode = MomentMode::aggregate, .conditional = false});
  std::mt19937_64 random(2);
  std::normal_distribution<double> normal;
  while (aggregate.count() < 500) {
    const std::uint64_t size = aggregate.count() < first_leaf ? 1 : leaf_replicates;
    const auto count = static_cast<int>(std::min(size, 500 - aggregate.count()));
    std::vector<double> values;
    for (int r = 0; r < count; ++r) {
      const double a = normal(random);
      const double b = normal(random);
      const double f[] = {truth + 0.5 + a, truth - 0.2 + 0.6 * a + std::sqrt(2 - 0.36) * b};
      values.insert(values.end(), {f[0], f[1], 0.7 * f[0] + 0.5 * f[1]});
    }
    Moments moments;
    leaf_moments(aggregate.layout(), values, count, moments);
    aggregate.append(std::move(moments));
  }
  const ConditionEstimates full = estimate(pairwise, head_weights, std::vector{truth});
  const ConditionEstimates brief = estimate(aggregate, head_weights, std::vector{truth});
  EXPECT_NEAR(brief.mse.value, full.mse.value, 1e-13);
  EXPECT_NEAR(brief.covariance_term.value, full.covariance_term.value, 1e-13);
  EXPECT_NEAR(brief.covariance_term.mcse, full.covariance_term.mcse, 1e-12);
  EXPECT_TRUE(brief.queries[0].head_covariance.empty());
  EXPECT_TRUE(std::isnan(brief.head_covariance_mean.value)) << "unknown for unequal weights";
}

}  // namespace
}  // namespace headlab
