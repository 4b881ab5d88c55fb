// SPDX-License-Identifier: Apache-2.0
/// \file Attention weights of one head, apart from what is the same in all
/// rows.
#pragma once

#include <span>

#include <Eigen/Core>

#include "kernels/stack/tokens.h"

namespace headlab {

/// Logits of a head, up to what is constant in a row: b_j + e^w E_ij.
struct Scores {
  Eigen::RowVectorXd common;  ///< b [n]
  ScaledMatrix rows;          ///< E [n][n] and w
};

/// b_j = e^sigma m^T M r_j / t, E = R M R^T / t, w = 2 sigma.
/// \param map M [d][d]
Scores token_scores(const CentredTokens& z, const Eigen::MatrixXd& map, double temperature,
                    const StackArithmetic& arithmetic);
/// Logits [n][n] that depend on no tokens.
Scores drawn_scores(Eigen::MatrixXd logits);
/// a old + (1 - a) now.
Scores mixed_scores(double a, const Scores& old, const Scores& now);

/// A = 1 a^T + e^v B: weights [n][n] and their rests from a common row, v <= 0.
struct Attention {
  Eigen::MatrixXd weights;    ///< A
  Eigen::RowVectorXd common;  ///< a [n]
  ScaledMatrix rest;          ///< B, whose rows sum to 0, and v
};

/// Softmax of the rows. Unmasked, a = softmax(b), and B from differences of
/// logits; with a causal mask a is the mean of the rows, and v = 0.
Attention softmax_attention(const Scores& scores, bool causal, const StackArithmetic& arithmetic);
/// Of rows that sum to one; a is their mean, v = 0.
Attention given_attention(Eigen::MatrixXd weights);
/// Equal weights of all keys, or of keys j <= i.
Attention uniform_attention(Eigen::Index n, bool causal);
/// Mean of heads with one v.
Attention mean_attention(std::span<const Attention> heads);

/// s x + b sum_h A_h z V_h.
/// \param values V_h [d][d], as many as heads
CentredTokens attend(double skip, const CentredTokens& x, double branch, const CentredTokens& z,
                     std::span<const Attention> heads, std::span<const Eigen::MatrixXd> values,
                     const StackArithmetic& arithmetic);

}  // namespace headlab
