// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/depth/independent_logits.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/files/error.h"
#include "validation/theory/depth/testing/known_answers.h"

namespace headlab {
namespace {

using nlohmann::json;

IndependentLogitsStack logits_stack(const json& scenario) {
  return {.n = scenario["tokens"]["n"],
          .heads = scenario["heads"]["count"],
          .sd = scenario["heads"]["kernel"]["sd"],
          .averaged = scenario["heads"]["values"] == "averaged",
          .value = scenario["heads"]["maps"]["value"],
          .skip = scenario["layers"]["skip"],
          .branch = scenario["layers"]["branch"],
          .layers = scenario["layers"]["count"]};
}

/// Energies of tokens N(0, I_d): E|R|^2 = (n - 1) d, E|m|^2 = d/n.
std::vector<ExpectedEnergies> normal_token_energies(const json& scenario,
                                                    const IndependentLogitsStack& stack) {
  const double d = scenario["tokens"]["design"]["dim"];
  return independent_logits_energies((stack.n - 1) * d, d / stack.n, stack);
}

bool energies_agree(const std::vector<ExpectedEnergies>& layers, const json& expected) {
  // To the digits of the file, 12 at most, and those of the quadrature.
  constexpr double relative = 1e-10;
  if (layers.size() != expected.size()) return false;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    if (!within(layers[l].residual_squared(), expected[l]["residual_squared"], relative, 0) ||
        !within(layers[l].mean_squared(), expected[l]["mean_squared"], relative, 0)) {
      return false;
    }
  }
  return true;
}

TEST(IndependentLogitsStack, AgreeWithTheKnownAnswers) {
  for (const json& known : depth_cases("independent_logits")) {
    const json& expected = known["expected"];
    IndependentLogitsStack stack = logits_stack(known["scenario"]);
    EXPECT_TRUE(energies_agree(normal_token_energies(known["scenario"], stack), expected["layers"]))
        << known["scenario"];
    const double square = softmax_weight_moments(stack.n, stack.sd).square;
    EXPECT_TRUE(within(square, expected["mean_square_weight"], 1e-10, 0));
    EXPECT_TRUE(within(square - 1.0 / stack.n, expected["layers"][1]["residual_factor"], 1e-9, 0));
    // Negative controls.
    stack.sd *= 1 + 1e-7;
    EXPECT_FALSE(
        energies_agree(normal_token_energies(known["scenario"], stack), expected["layers"]));
    stack.sd /= 1 + 1e-7;
    stack.averaged = !stack.averaged;
    EXPECT_FALSE(
        energies_agree(normal_token_energies(known["scenario"], stack), expected["layers"]));
  }
}

TEST(IndependentLogitsStack, WeightMomentsAreThoseOfDraws) {
  constexpr int n = 12, replicates = 20000;
  constexpr double sd = 1.5, correlation = 0.6;
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal;
  double sums[2] = {}, squares[2] = {};
  for (int r = 0; r < replicates; ++r) {
    double total[2] = {}, square = 0, product = 0;
    for (int j = 0; j < n; ++j) {
      const double g = normal(random);
      const double k = std::exp(sd * g);
      const double other = std::exp(
          sd * (correlation * g + std::sqrt(1 - correlation * correlation) * normal(random)));
      total[0] += k;
      total[1] += other;
      square += k * k;
      product += k * other;
    }
    const double figures[2] = {square / total[0] / total[0], product / total[0] / total[1]};
    for (int f = 0; f < 2; ++f) {
      sums[f] += figures[f] / replicates;
      squares[f] += figures[f] * figures[f] / replicates;
    }
  }
  const WeightMoments w = softmax_weight_moments(n, sd, correlation);
  const auto agrees = [&](double value, int f) {
    return std::abs(value - sums[f]) <=
           4 * std::sqrt((squares[f] - sums[f] * sums[f]) / replicates);
  };
  EXPECT_TRUE(agrees(w.square, 0));
  EXPECT_TRUE(agrees(w.product, 1));
  // Negative controls.
  EXPECT_FALSE(agrees(softmax_weight_moments(n + 1, sd).square, 0));
  EXPECT_FALSE(agrees(1.0 / n, 1));
  EXPECT_FALSE(agrees(w.square, 1));
}

TEST(IndependentLogitsStack, MomentsHaveTheirLimits) {
  const WeightMoments flat = softmax_weight_moments(16, 0, 0.5);
  EXPECT_EQ(flat.square, 1.0 / 16);
  EXPECT_EQ(flat.product, 1.0 / 16);
  EXPECT_EQ(softmax_weight_moments(1, 3).square, 1);
  const WeightMoments same = softmax_weight_moments(16, 1.5, 1);
  EXPECT_EQ(same.square, same.product);
  // Both limits of C, past the cases that are not integrated.
  EXPECT_NEAR(16 * softmax_weight_moments(16, 1.5, 1e-13).product, 1, 1e-9);
  EXPECT_NEAR(softmax_weight_moments(16, 1.5, 1 - 1e-12).product / same.square, 1, 1e-9);
  // (e^(sigma^2) - 1)/n, and 1 - sigma_c/sigma far above the threshold.
  const double sd = 0.01;
  EXPECT_NEAR(16 * (softmax_weight_moments(16, sd).square - 1.0 / 16) /
                  ((1 - 1.0 / 16) * std::expm1(sd * sd)),
              1, 1e-3);
  EXPECT_NEAR(softmax_weight_moments(64, 100).square, 1 - std::sqrt(2 * std::log(64)) / 100, 0.02);
}

TEST(IndependentLogitsStack, SkipAndMemoryHaveTheFactorsOfTheTheorems) {
  const IndependentLogitsStack stack = {.n = 16, .sd = 1.5};
  const double kept = residual_kept(stack);
  EXPECT_NEAR(kept, 0.1578, 5e-5);
  EXPECT_NEAR((1 + kept) / 2, 0.579, 5e-4);
  // In deep layers a memory of 0.5 leaves a third of the variance.
  const double remembered = 1.5 / std::sqrt(3);
  EXPECT_NEAR(residual_kept({.n = 16, .sd = remembered}), 0.0513, 5e-5);
}

TEST(IndependentLogitsStack, StayFiniteThroughThousandsOfLayers) {
  for (const double skip : {0.0, 1.0}) {
    const auto last = independent_logits_energies(
                          1, 0, {.n = 8, .heads = 2, .sd = 1, .skip = skip, .layers = 4096})
                          .back();
    EXPECT_TRUE(std::isfinite(last.log_residual_squared));
    EXPECT_TRUE(std::isfinite(last.log_mean_squared));
    EXPECT_EQ(last.residual_share_of_means(), 0);
  }
  // One token, and tokens of 0.
  const auto one = independent_logits_energies(0, 3, {.n = 1, .layers = 2}).back();
  EXPECT_NEAR(one.mean_squared(), 3, 1e-14);
  EXPECT_EQ(one.residual_squared(), 0);
  EXPECT_EQ(independent_logits_energies(0, 0, {.n = 4}).back().mean_squared(), 0);
}

TEST(IndependentLogitsStack, RefuseWhatIsOutOfRange) {
  EXPECT_THROW(softmax_weight_moments(0, 1), InvalidInput);
  EXPECT_THROW(softmax_weight_moments(4, -1), InvalidInput);
  EXPECT_THROW(softmax_weight_moments(4, std::nan("")), InvalidInput);
  EXPECT_THROW(softmax_weight_moments(4, 1, 1.5), InvalidInput);
  EXPECT_THROW(residual_kept({.n = 4, .heads = 0}), InvalidInput);
  EXPECT_THROW(independent_logits_energies(-1, 0, {.n = 4}), InvalidInput);
  EXPECT_THROW(independent_logits_energies(1, 0, {.n = 4, .layers = -1}), InvalidInput);
}

}  // namespace
}  // namespace headlab
