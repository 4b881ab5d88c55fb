// SPDX-License-Identifier: Apache-2.0
/// \file Bounds of the rank of the tokens. A gap among singular values shows a
/// cut of float64 and never a deficiency: full rank is certified from below,
/// deficiency follows from algebra.
#pragma once

#include <Eigen/Core>

#include "kernels/stack/layer_metrics.h"
#include "kernels/stack/stack.h"
#include "kernels/stack/tokens.h"

namespace headlab {

/// rank X and the affine rank, rank of R = X less its mean row.
struct TokenRanks {
  Eigen::Index matrix = 0;
  Eigen::Index affine = 0;
};

/// Ranks that X has at least: singular values above max(1e-9, 1000 e) s_1 of
/// the rows m/|m| and R/|R|_F, which span what X does, and of R alone; e the
/// tokens' error. A part with 1000 e >= 1 counts nothing.
TokenRanks ranks_at_least(const CentredTokens& tokens);

/// Ranks that X has at most: of tokens given, counted where the singular values
/// have a gap of 1e6 at 1e-9, else min(n, d) and min(n - 1, d).
TokenRanks given_ranks(const CentredTokens& tokens);

/// rank_at_least to rank_undecided.
void measure_ranks(const CentredTokens& tokens, const TokenRanks& at_most, LayerMetrics& out);

/// Ranks that tokens [n][d] have at most behind one more layer.
TokenRanks ranks_at_most(const Stack& stack, const TokenRanks& before, Eigen::Index n,
                         Eigen::Index d);

}  // namespace headlab
