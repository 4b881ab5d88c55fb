// SPDX-License-Identifier: Apache-2.0
/// \file Tokens whose differences keep their digits while they collapse.
#pragma once

#include <span>

#include <Eigen/Core>

#include "kernels/stack/stack.h"

namespace headlab {

/// A matrix times e^exponent; -infinity for 0.
struct ScaledMatrix {
  Eigen::MatrixXd matrix;
  double exponent = 0;
};

/// Sum of the terms, at the largest exponent of a term that is not 0.
ScaledMatrix scaled_sum(std::span<const ScaledMatrix> terms);

/// X = 1 m^T + e^sigma R, the columns of R [n][d] of mean 0, max|R| = 1; sigma
/// = -infinity where R is 0 (collapsed). Errors bound the relative rounding of
/// m and of R: 1e-15 where they are given; a step makes it (sum of the sizes of
/// its summands, each times its error) / (size of their sum) + 1e-13.
struct CentredTokens {
  Eigen::RowVectorXd mean;
  Eigen::MatrixXd residual;
  double exponent = 0;
  double mean_error = 1e-15;
  double residual_error = 1e-15;

  Eigen::Index count() const { return residual.rows(); }  ///< n
  Eigen::Index dim() const { return residual.cols(); }    ///< d
  bool collapsed() const;
  double scale() const;  ///< e^sigma
};

/// Of X, from differences to its first row: equal tokens give R = 0.
CentredTokens centred(const Eigen::MatrixXd& x);
/// Of 1 mean^T + e^exponent residual, moving the mean of the residual.
CentredTokens centred(Eigen::RowVectorXd mean, ScaledMatrix residual);
/// X in float64, which loses differences below rounding.
Eigen::MatrixXd plain(const CentredTokens& tokens);

/// A norm of every token, without gain and bias, and how many of the tokens
/// were 0.
struct NormedTokens {
  CentredTokens tokens;
  int zeros = 0;
};

/// x / sqrt(mean x_j^2 + epsilon) of every token; kind `layer` after x -
/// mean(x). Tokens that are rounding alone are 0. By the relative excess of a
/// token's squared length over |m|^2, so that differences below rounding come
/// through; where the mean is small, token by token.
NormedTokens normed(const CentredTokens& tokens, NormKind kind, double epsilon);

/// With gain and bias; the tokens themselves where there is no norm.
CentredTokens apply_norm(const TokenNorm& norm, const CentredTokens& tokens);

/// x + f(z) of every token, from differences of relu at the mean.
CentredTokens add_mlp(const Mlp& mlp, const CentredTokens& x, const CentredTokens& z);

}  // namespace headlab
