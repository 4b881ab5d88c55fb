// SPDX-License-Identifier: Apache-2.0
/// \file A layer across contexts: text is drawn again, the stratum of a token is fixed.
///
/// For vectors a, b of tokens, M(a, b) is the mean of a.b and U(a, b) that of a.b over pairs of
/// tokens of one stratum and different documents, K = M - U. With contributions o_h of heads, their
/// sum f and a target y, exactly
///
///     mean |y - f|^2 = U(y - f, y - f) + sum_h K(o_h, o_h) + sum_{h != l} K(o_h, o_l)
///                      + K(y, y) - 2 K(y, f)
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "validation/heads/head_figures.h"

namespace headlab {

/// Sums of tokens of one stratum and document.
struct ContextCell {
  double tokens = 0;
  double square_tokens = 0;  ///< sum over documents of tokens^2
  TokenRows sums;            ///< [H + 1][p] contributions of the heads, and the target
  Eigen::MatrixXd own;       ///< [H + 1][H + 1] sums sums^T of each document
  Eigen::MatrixXd squares;   ///< [H + 1][H + 1] sum of products of tokens

  void add(const ContextCell& other, double sign = 1);
};

class ContextCells {
 public:
  /// A token: contributions of the heads and below them the target [H + 1][p].
  void add(std::int64_t stratum, std::size_t document, const TokenRows& token);
  /// The terms as figures of a layer, with errors where there are `min_documents`.
  std::vector<HeadFigure> figures(std::size_t min_documents) const;

 private:
  std::map<std::int64_t, std::map<std::size_t, ContextCell>> cells_;  ///< stratum, document
};

/// Words for `HeadSetting::target` and `HeadSetting::strata`.
const std::vector<std::string>& context_targets();
const std::vector<std::string>& context_strata();

/// "across contexts: the next token, by the current token".
std::string contexts_title(const HeadSetting& setting);

/// The terms of the target: of output that itself, so that the mse is 0; else of what a ridge
/// regression of the target on the output, fitted to documents 0, 2, 4, .., gives on the others.
/// Throws InvalidInput where the sums would not fit in memory.
std::vector<HeadFigure> context_figures(const LayerActivations& layer, const LayerSums& sums,
                                        const HeadSetting& setting, int threads);

}  // namespace headlab
