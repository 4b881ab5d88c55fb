// SPDX-License-Identifier: Apache-2.0
/// \file Tokens whose differences keep their digits while they collapse.
#pragma once

#include <Eigen/Core>

#include "kernels/stack/stack.h"

namespace headlab {

/// X = 1 m^T + e^sigma R, the columns of R [n][d] of mean 0, max|R| = 1; sigma
/// = -infinity where R is 0 (collapsed). Errors bound the relative rounding of
/// m and of R: 1e-15 where they are given; a step makes it (sum of the sizes of
/// its summands, each times its error) / (size of their sum) + 1e-13.
///
/// A mean that cancels is rounding, which a norm would blow up to unit length: the size up to which
/// it is, e, goes along. A linear step makes it e |m A| / |m| + 16 eps |(|m| |A| + |y|)|, m A the
/// image of the mean and y what the step adds to it.
struct CentredTokens {
  Eigen::RowVectorXd mean;
  RowMatrix residual;
  double exponent = 0;
  double mean_error = 1e-15;
  double residual_error = 1e-15;
  double mean_rounding = 0;

  Eigen::Index count() const { return residual.rows(); }  ///< n
  Eigen::Index dim() const { return residual.cols(); }    ///< d
  bool collapsed() const;
  double scale() const;  ///< e^sigma
  /// Rounding of the mean in units of its size; 0 where the mean is 0.
  double relative_rounding() const;
};

/// Of X, from differences to its first row: equal tokens give R = 0.
CentredTokens centred(const Eigen::MatrixXd& x,
                      const StackArithmetic& arithmetic = plain_arithmetic());
/// Makes 1 mean^T + e^exponent residual centred tokens: moves the mean of the
/// residual to the mean, and scales the rest.
void recentre(CentredTokens& tokens, const StackArithmetic& arithmetic);
/// X in float64, which loses differences below rounding.
Eigen::MatrixXd plain(const CentredTokens& tokens);

/// out = f e^p a + e^q b, at the larger exponent of those that are not 0, which it
/// returns; -infinity where both are 0.
double scaled_sum(double f, double p, const RowsView& a, double q, const RowsView& b, RowsOut out,
                  const StackArithmetic& arithmetic);

/// out = factor x + y, y = 1 mean^T + e^exponent rest; the rounding of its mean is that of this
/// sum. \param rest_and_mean [n][d] and, below it, the mean
void add(double factor, const CentredTokens& x, const RowsView& rest_and_mean, double exponent,
         const StackArithmetic& arithmetic, CentredTokens& out);

/// Sizes of the summands of y, each times its error, the rest's at its exponent.
struct SummandSizes {
  double mean = 0;
  double rest = 0;
};
/// Errors of factor x + y.
void bound_errors(double factor, const CentredTokens& x, const SummandSizes& y, double exponent,
                  CentredTokens& out);

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
NormedTokens normed(const CentredTokens& tokens, NormKind kind, double epsilon,
                    const StackArithmetic& arithmetic = plain_arithmetic());

/// Gain and bias of normed tokens.
CentredTokens with_gain(const TokenNorm& norm, CentredTokens tokens,
                        const StackArithmetic& arithmetic = plain_arithmetic());
/// The norm with its gain and bias; without a norm the tokens as they are.
CentredTokens apply_norm(const TokenNorm& norm, const CentredTokens& tokens,
                         const StackArithmetic& arithmetic = plain_arithmetic());

/// x + f(z) of every token, from differences of relu at the mean.
CentredTokens add_mlp(const Mlp& mlp, const CentredTokens& x, const CentredTokens& z,
                      const StackArithmetic& arithmetic = plain_arithmetic());

}  // namespace headlab
