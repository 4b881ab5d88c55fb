// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/exact/self_attention.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/plan.h"
#include "validation/theory/depth/testing/known_answers.h"

namespace headlab {
namespace {

/// Means over training sets of what the functions compute, drawn directly, with standard errors.
struct Simulated {
  double self_weight = 0, self_weight_se = 0;
  double variance = 0, variance_se = 0;
  double covariance = 0, covariance_se = 0;
};

/// Two orthogonal heads of dimension k, queries at (distance, 0, ..) in each.
Simulated simulate(int n, int k, double distance, double bandwidth) {
  constexpr int replicates = 20000;
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  double sums[3] = {};
  double squares[3] = {};
  for (int r = 0; r < replicates; ++r) {
    double total[2] = {1, 1};
    double square = 1;
    double product = 1;
    for (int i = 1; i < n; ++i) {
      double kernel[2];
      for (double& value : kernel) {
        double squared = std::pow(normal(random) - distance, 2);
        for (int j = 1; j < k; ++j) squared += std::pow(normal(random), 2);
        value = std::exp(-squared / (2 * bandwidth * bandwidth));
      }
      for (int h = 0; h < 2; ++h) total[h] += kernel[h];
      square += kernel[0] * kernel[0];
      product += kernel[0] * kernel[1];
    }
    const double figures[3] = {1 / total[0], square / (total[0] * total[0]),
                               product / (total[0] * total[1])};
    for (int f = 0; f < 3; ++f) {
      sums[f] += figures[f];
      squares[f] += figures[f] * figures[f];
    }
  }
  const auto mean = [&](int f) { return sums[f] / replicates; };
  const auto se = [&](int f) {
    return std::sqrt((squares[f] / replicates - mean(f) * mean(f)) / replicates);
  };
  return {mean(0), se(0), mean(1), se(1), mean(2), se(2)};
}

bool agrees(double value, double simulated, double se) {
  return std::abs(value - simulated) <= 4 * se;
}

TEST(SelfAttention, AgreesWithDirectSimulation) {
  struct Case {
    int n, k;
    double distance, bandwidth;
  };
  for (const Case& c : {Case{10, 1, 0.5, 0.4}, Case{2, 2, 0, 0.5}, Case{20, 4, 1, 0.8}}) {
    const auto n = static_cast<std::uint64_t>(c.n);
    const SelfAttentionHead head = self_attention_head(n, c.k, c.distance, c.bandwidth);
    const double covariance = self_attention_covariance(n, head.self_weight, head.self_weight);
    const Simulated simulated = simulate(c.n, c.k, c.distance, c.bandwidth);

    EXPECT_LE(std::abs(head.normalisation_error), 1e-11);
    EXPECT_TRUE(agrees(head.self_weight, simulated.self_weight, simulated.self_weight_se));
    EXPECT_TRUE(agrees(head.variance_share, simulated.variance, simulated.variance_se));
    EXPECT_TRUE(agrees(covariance, simulated.covariance, simulated.covariance_se));

    // Negative controls: n others instead of n - 1, and the floor of heads without self-attention.
    const SelfAttentionHead more = self_attention_head(n + 1, c.k, c.distance, c.bandwidth);
    EXPECT_FALSE(agrees(more.self_weight, simulated.self_weight, simulated.self_weight_se));
    EXPECT_FALSE(agrees(1.0 / c.n, simulated.covariance, simulated.covariance_se));
  }
}

TEST(SelfAttention, IsAllSelfWhereNoOtherKeyIsNear) {
  const SelfAttentionHead head = self_attention_head(10, 8, 0, 0.01);
  EXPECT_NEAR(head.self_weight, 1, 1e-9);
  EXPECT_NEAR(self_attention_covariance(10, head.self_weight, head.self_weight), 1, 1e-9);
}

TEST(SelfAttention, IsOneOverNForAWideKernel) {
  const SelfAttentionHead head = self_attention_head(10, 2, 0.5, 1e5);
  EXPECT_NEAR(head.self_weight, 0.1, 1e-9);
  EXPECT_NEAR(head.variance_share, 0.1, 1e-9);
  EXPECT_NEAR(self_attention_covariance(10, head.self_weight, head.self_weight), 0.1, 1e-9);
}

TEST(Retrieval, AgreesWithTheKnownAnswers) {
  for (const nlohmann::json& known : depth_cases("retrieval")) {
    const nlohmann::json& in = known["inputs"];
    const auto agrees = [&](double beta_factor, std::uint64_t more) {
      const SelfAttentionHead head =
          retrieval_head(in["patterns"].get<std::uint64_t>() + more,
                         in["beta"].get<double>() * beta_factor, in["squared_norm_of_query"]);
      EXPECT_LE(std::abs(head.normalisation_error), 1e-10);
      return within(head.self_weight, known["expected"]["self_weight"], known["tolerance"]);
    };
    EXPECT_TRUE(agrees(1, 0)) << in;
    // Negative controls.
    EXPECT_FALSE(agrees(1 + 1e-5, 0));
    EXPECT_FALSE(agrees(1, 1));
  }
}

TEST(Retrieval, HasItsLimits) {
  EXPECT_EQ(retrieval_head(1, 2, 3).self_weight, 1);
  EXPECT_EQ(retrieval_head(10, 0, 3).self_weight, 0.1);
  EXPECT_EQ(retrieval_head(10, 3, 0).self_weight, 0.1);
  EXPECT_NEAR(retrieval_head(10, 1e-7, 1).self_weight, 0.1, 1e-7);
  EXPECT_NEAR(retrieval_head(2, 1, 1000).self_weight, 1, 1e-12);
}

}  // namespace
}  // namespace headlab
