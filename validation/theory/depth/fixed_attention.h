// SPDX-License-Identifier: Apache-2.0
/// \file Attention that does not depend on the tokens, with fresh Gaussian values in each layer.
///
/// Layer X' = s X + b sum_h A_h X V_h, A_h row-stochastic, V_h independent of all else, E V_h = 0,
/// E V_h V_h^T = (v/H) I. No norm, no MLP. With G = E X X^T,
///
///     G' = s^2 G + b^2 (v/H) sum_h A_h G A_h^T
///     G' = s^2 G + b^2 v Abar G Abar^T          averaged heads: one value map behind the mean of
///     A_h
///
/// Linear, so exact through depth: E|R|^2 = tr(C G), E|m|^2 = 1^T G 1/n^2, C = I - 11^T/n. G is
/// carried in parts of the mean and of the residual, each at a scale of its own: a residual is
/// never the difference of larger numbers.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include <Eigen/Core>

#include "kernels/matrices.h"

namespace headlab {

/// E|R|_F^2 and E|m|^2 in one layer, as logarithms: -infinity for 0.
struct ExpectedEnergies {
  double log_residual_squared = -std::numeric_limits<double>::infinity();
  double log_mean_squared = -std::numeric_limits<double>::infinity();
  int n = 1;  ///< tokens

  double residual_squared() const { return std::exp(log_residual_squared); }
  double mean_squared() const { return std::exp(log_mean_squared); }
  /// E|R|^2/E|X|^2, |X|^2 = |R|^2 + n |m|^2; NaN where X = 0.
  double residual_share_of_means() const {
    return 1 / (1 + n * std::exp(log_mean_squared - log_residual_squared));
  }
};

/// E X X^T = |m|^2 11^T + 1 c^T + c 1^T + K.
struct TokenGram {
  double mean_squared = 0;   ///< E|m|^2
  Eigen::VectorXd cross;     ///< c = E R m [n]
  Eigen::MatrixXd residual;  ///< K = E R R^T [n][n]
};

/// Gram matrix of given tokens [n][d].
TokenGram token_gram(const Eigen::MatrixXd& tokens);

/// Gram matrix of n i.i.d. tokens. Throws InvalidInput where a number is out of its range.
/// \param squared_mean |E x|^2 >= 0
/// \param variance tr Cov(x) >= 0, d for N(0, I_d)
TokenGram independent_token_gram(int n, double squared_mean, double variance);

/// The stack.
struct FixedAttentionStack {
  Matrices attention;  ///< A_h [H] of [n][n]
  bool averaged = false;
  double value = 1;  ///< v
  double skip = 0;
  double branch = 1;
  int layers = 1;
};

/// The attention of kernel `uniform`: 1/n, or 1/i on keys 1 to i of row i. \param n >= 1
Eigen::MatrixXd uniform_weights(int n, bool causal);

/// Computes layers 0 to L. Throws InvalidInput where shapes differ, rows of attention have a
/// negative element or do not sum to one within 1e-9, or a number is out of its range.
std::vector<ExpectedEnergies> fixed_attention_energies(const TokenGram& tokens,
                                                       const FixedAttentionStack& stack);

}  // namespace headlab
