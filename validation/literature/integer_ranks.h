// SPDX-License-Identifier: Apache-2.0
/// \file Ranks of integer matrices, exactly, and those of tokens before and after one norm.
///
/// Double precision can certify full rank and never a deficiency; integers decide both. Tokens with
/// decimal digits are scaled to integers, which changes no rank at epsilon = 0.
#pragma once

#include <cstdint>

#include <Eigen/Core>

#include "kernels/stack/stack.h"

namespace headlab {

using IntegerMatrix = Eigen::Matrix<std::int64_t, Eigen::Dynamic, Eigen::Dynamic>;

/// Computes the rank by fraction-free elimination in integers of any size.
int exact_rank(const IntegerMatrix& a);

/// Computes how many dimensions the rows of `image` add to the row span of `tokens`; 0 where they
/// stay inside. Throws InvalidInput where the matrices differ in columns.
int dimensions_outside_span(const IntegerMatrix& tokens, const IntegerMatrix& image);

/// epsilon = numerator/denominator, in squares of the units of the tokens.
struct ExactEpsilon {
  std::int64_t numerator = 0;
  std::int64_t denominator = 1;
};

/// Affine ranks around one norm with gain 1: of C X, C = I - 11^T/n, the dimension of the affine
/// hull. A bias does not change them.
struct NormedRanks {
  int before = 0;
  int after = 0;
};

/// Computes them. With Y = X P_d (layer) or X (rms) and P_d = I - 11^T/d
/// and sigma_i the length a token is divided by, normed tokens are D^-1 Y, D = diag(sigma), and
///
///     affine rank after = rank Y - 1 if sigma is in col(Y), else rank Y
///
/// Decided exactly: sigma_i is the root of an integer, roots of integers whose ratios are not
/// squares are linearly independent over the rationals, so that sigma is in col(Y) where each of
/// its parts of one such class is. A token of denominator 0 becomes 0.
/// Throws InvalidInput where there is no token, no norm, or epsilon is negative.
NormedRanks normed_ranks(const IntegerMatrix& tokens, NormKind norm, ExactEpsilon epsilon = {});

/// Computes X + relu(X W_1 + 1 b_1) W_2, an MLP without norm. Throws InvalidInput where shapes
/// differ or a number would not fit in 62 bits.
/// \param input W_1 [d][width]  \param bias b_1 [width]  \param output W_2 [width][d]
IntegerMatrix integer_mlp(const IntegerMatrix& tokens, const IntegerMatrix& input,
                          const Eigen::Matrix<std::int64_t, 1, Eigen::Dynamic>& bias,
                          const IntegerMatrix& output);

}  // namespace headlab
