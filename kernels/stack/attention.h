// SPDX-License-Identifier: Apache-2.0
/// \file Attention weights of one head, apart from what is the same in all
/// rows.
#pragma once

#include <span>

#include <Eigen/Core>

#include "kernels/stack/tokens.h"

namespace headlab {

/// Logits of a head, up to what is constant in a row: e^w E_ij + b_j.
struct Scores {
  RowMatrix rows;       ///< E [n][n] and, below it, b
  double exponent = 0;  ///< w
};

/// old = a old + (1 - a) now.
void mix_scores(double a, const Scores& now, const StackArithmetic& arithmetic, Scores& old);

/// A = 1 a^T + e^v B: weights and their rests from a common row, v <= 0.
struct Attention {
  RowMatrix rows;       ///< B [n][n], whose rows sum to 0, and, below it, a
  double exponent = 0;  ///< v
  double entropy = 0;   ///< mean over the rows of A

  auto rest() const { return rows.topRows(rows.cols()); }
  auto common() const { return rows.row(rows.cols()); }
};

/// Softmax of the rows. Unmasked, a = softmax(b), and B from differences of
/// logits; with a causal mask a is the mean of the rows, and v = 0.
void attend_by_scores(const Scores& scores, bool causal, const StackArithmetic& arithmetic,
                      Attention& out);
/// Of rows that sum to one; a is their mean, v = 0.
void attend_as_given(const RowsView& weights, Attention& out);
/// Equal weights of all keys, or of keys j <= i.
void attend_equally(Eigen::Index n, bool causal, Attention& out);
/// Mean of heads with one v, without its entropy.
void average_heads(std::span<const Attention> heads, const StackArithmetic& arithmetic,
                   Attention& out);

}  // namespace headlab
