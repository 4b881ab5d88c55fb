// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/depth/fixed_attention.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/files/error.h"
#include "validation/theory/depth/testing/known_answers.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;
using nlohmann::json;

struct Given {
  TokenGram tokens;
  FixedAttentionStack stack;
};

Given given(const json& scenario) {
  Given all;
  all.tokens = token_gram(matrix_from(scenario["tokens"]["design"]["points"]));
  for (const json& a : scenario["heads"]["kernel"]["matrices"]) {
    all.stack.attention.push_back(matrix_from(a));
  }
  all.stack.averaged = scenario["heads"]["values"] == "averaged";
  all.stack.value = scenario["heads"]["maps"]["value"];
  all.stack.skip = scenario["layers"]["skip"];
  all.stack.branch = scenario["layers"]["branch"];
  all.stack.layers = scenario["layers"]["count"];
  return all;
}

bool agrees(const std::vector<ExpectedEnergies>& layers, const json& expected) {
  if (layers.size() != expected.size()) return false;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    if (!within_digits(layers[l].residual_squared(), expected[l]["residual_squared"]) ||
        !within_digits(layers[l].mean_squared(), expected[l]["mean_squared"])) {
      return false;
    }
  }
  return true;
}

TEST(FixedAttentionStack, AgreesWithTheKnownAnswers) {
  for (const json& known : depth_cases("fixed_attention")) {
    Given all = given(known["scenario"]);
    const json& expected = known["expected"]["layers"];
    EXPECT_TRUE(agrees(fixed_attention_energies(all.tokens, all.stack), expected));
    // Negative controls: another value, heads averaged or not.
    all.stack.value *= 1 + 1e-8;
    EXPECT_FALSE(agrees(fixed_attention_energies(all.tokens, all.stack), expected));
    all.stack.value = 1;
    all.stack.averaged = !all.stack.averaged;
    EXPECT_FALSE(agrees(fixed_attention_energies(all.tokens, all.stack), expected));
  }
}

TEST(FixedAttentionStack, KeepsDigitsThatTheGramMatrixLoses) {
  // Two tokens and A = 1a^T + delta C: the residual is multiplied by delta in each layer. The trace
  // of C G would be rounding after two.
  const double delta = 1e-9;
  MatrixXd a(2, 2);
  a << 0.5 + delta / 2, 0.5 - delta / 2, 0.5 - delta / 2, 0.5 + delta / 2;
  MatrixXd x(2, 2);
  x << 1, 2, -1, 4;
  const auto layers = fixed_attention_energies(token_gram(x), {.attention = {a}, .layers = 100});
  const double first = std::log(4.0);
  EXPECT_NEAR(layers[0].log_residual_squared, first, 1e-15);
  for (std::size_t l = 1; l < layers.size(); ++l) {
    const double expected = first + 2 * static_cast<double>(l) * std::log(delta);
    // delta has seven digits in 0.5 + delta/2.
    EXPECT_TRUE(within(layers[l].log_residual_squared, expected, 1e-8, 0)) << l;
    EXPECT_NEAR(layers[l].log_mean_squared, std::log(9.0), 1e-7);
  }
  EXPECT_EQ(layers[100].residual_squared(), 0);
  EXPECT_EQ(layers[100].residual_share_of_means(), 0);
}

TEST(FixedAttentionStack, GrowsWithoutOverflow) {
  const auto layers = fixed_attention_energies(
      independent_token_gram(4, 0, 3),
      {.attention = {uniform_weights(4, false)}, .skip = 1, .layers = 4096});
  // The residual stays, the mean doubles: E|m_0|^2 = 3/4.
  EXPECT_NEAR(layers.back().log_mean_squared, std::log(0.75) + 4096 * std::log(2.0), 1e-9);
  EXPECT_NEAR(layers.back().residual_squared(), 9, 1e-9);
}

TEST(FixedAttentionStack, UniformAttentionLeavesTheMeanAlone) {
  MatrixXd x(3, 1);
  x << 1, 2, 6;
  const auto layers = fixed_attention_energies(
      token_gram(x), {.attention = {uniform_weights(3, false)}, .value = 2, .layers = 2});
  EXPECT_NEAR(layers[1].mean_squared(), 18, 1e-13);
  EXPECT_LT(layers[1].residual_squared(), 1e-28);
  // Causal: rows (1), (1, 2)/2, (1, 2, 6)/3 of the tokens.
  const auto causal = fixed_attention_energies(
      token_gram(x), {.attention = {uniform_weights(3, true)}, .layers = 1});
  EXPECT_NEAR(causal[1].mean_squared(), std::pow(5.5 / 3, 2), 1e-14);
  EXPECT_NEAR(causal[1].residual_squared(), 1 + 2.25 + 9 - 5.5 * 5.5 / 3, 1e-14);
}

TEST(FixedAttentionStack, HasGramMatricesOfRandomTokens) {
  // n = 3 tokens with E x = (1, 2), Cov = diag(3, 4).
  const TokenGram tokens = independent_token_gram(3, 5, 7);
  EXPECT_NEAR(tokens.mean_squared, 5 + 7.0 / 3, 1e-15);
  EXPECT_NEAR(tokens.residual.trace(), 14, 1e-14);
  EXPECT_NEAR(tokens.residual(0, 1), -7.0 / 3, 1e-14);
}

TEST(FixedAttentionStack, RefusesWhatIsOutOfRange) {
  const TokenGram tokens = independent_token_gram(2, 0, 1);
  const MatrixXd a = uniform_weights(2, false);
  EXPECT_NO_THROW(fixed_attention_energies(tokens, {.attention = {a}}));
  MatrixXd wrong = a;
  wrong(0, 0) = 0.6;
  MatrixXd negative = a;
  negative.row(1) << -0.5, 1.5;
  MatrixXd nan = a;
  nan(1, 1) = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Matrices> heads = {
      {}, {wrong}, {a, negative}, {nan}, {uniform_weights(3, false)}};
  for (const Matrices& attention : heads) {
    EXPECT_THROW(fixed_attention_energies(tokens, {.attention = attention}), InvalidInput);
  }
  EXPECT_THROW(fixed_attention_energies(tokens, {.attention = {a}, .value = -1}), InvalidInput);
  EXPECT_THROW(fixed_attention_energies(tokens, {.attention = {a}, .layers = -1}), InvalidInput);
  EXPECT_THROW(independent_token_gram(0, 0, 1), InvalidInput);
  EXPECT_THROW(uniform_weights(0, true), InvalidInput);
}

}  // namespace
}  // namespace headlab
