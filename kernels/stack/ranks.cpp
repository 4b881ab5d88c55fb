// SPDX-License-Identifier: Apache-2.0
#include "kernels/stack/ranks.h"

#include <algorithm>
#include <optional>
#include <variant>

#include "kernels/decompositions.h"
#include "kernels/stack/metrics.h"

namespace headlab {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

namespace {

constexpr double cut = 1e-9;

/// Singular values of a matrix, largest first.
VectorXd values_of(const MatrixXd& rows) {
  const Index size = std::max(rows.rows(), rows.cols());
  MatrixXd square = MatrixXd::Zero(size, size);
  square.topLeftCorner(rows.rows(), rows.cols()) = rows;
  return singular_values(square);
}

Index rank_above(const MatrixXd& rows, double error) {
  if (rows.rows() == 0 || rows.isZero(0)) return 0;
  const VectorXd s = values_of(rows);
  return (s.array() > std::max(cut, 1000 * error) * s(0)).count();
}

/// Values above the cut, where none lies within 1e6 below the last of them.
std::optional<Index> counted_rank(const VectorXd& s) {
  const Index rank = (s.array() > cut * s(0)).count();
  if (rank < s.size() && s(rank) * 1e6 > s(rank - 1)) return std::nullopt;
  return rank;
}

}  // namespace

TokenRanks ranks_at_least(const CentredTokens& tokens) {
  const double mean_size = tokens.mean.norm();
  const bool has_mean = mean_size > 0 && 1000 * tokens.mean_error < 1;
  const bool has_residual = !tokens.collapsed() && 1000 * tokens.residual_error < 1;
  MatrixXd rows = MatrixXd::Zero(tokens.count() + 1, tokens.dim());
  double error = 0;
  TokenRanks ranks;
  if (has_residual) {
    rows.bottomRows(tokens.count()) = tokens.residual / tokens.residual.norm();
    error = tokens.residual_error;
    ranks.affine = rank_above(rows, error);
  }
  if (has_mean) {
    rows.row(0) = tokens.mean / mean_size;
    error = std::max(error, tokens.mean_error);
  }
  ranks.matrix = rank_above(rows, error);
  return ranks;
}

TokenRanks given_ranks(const CentredTokens& tokens) {
  const Index n = tokens.count();
  const Index d = tokens.dim();
  TokenRanks ranks = {std::min(n, d), std::min(n - 1, d)};
  const VectorXd s = scaled_singular_values(tokens);
  ranks.matrix = s(0) == 0 ? 0 : counted_rank(s).value_or(ranks.matrix);
  const Index affine =
      tokens.collapsed() ? 0 : counted_rank(values_of(tokens.residual)).value_or(ranks.affine);
  ranks.affine = std::min({ranks.affine, ranks.matrix, affine});
  return ranks;
}

void measure_ranks(const CentredTokens& tokens, const TokenRanks& at_most, LayerMetrics& out) {
  const TokenRanks least = ranks_at_least(tokens);
  out.rank_at_least = static_cast<double>(least.matrix);
  out.rank_at_most = static_cast<double>(at_most.matrix);
  out.affine_rank_at_least = static_cast<double>(least.affine);
  out.affine_rank_at_most = static_cast<double>(at_most.affine);
  out.rank_undecided = least.matrix < at_most.matrix ? 1 : 0;
}

TokenRanks ranks_at_most(const Stack& stack, const TokenRanks& before, Index n, Index d) {
  const TokenNorm& norm = stack.norm;
  const bool has_norm = norm.kind != NormKind::none;
  const bool pre = has_norm && norm.place == NormPlace::pre;
  const bool post = has_norm && norm.place == NormPlace::post;
  const Index bias = norm.bias.size() > 0 && !norm.bias.isZero(0) ? 1 : 0;
  const auto* maps = std::get_if<GaussianMaps>(&stack.maps);
  const bool low_rank = maps && maps->samples == 0;
  const Index value_dim = low_rank ? std::min<Index>(maps->value_dim, d) : d;
  const Index heads = stack.averaged || stack.alternating ? 1 : stack.heads;

  const Index read = before.matrix + (pre ? bias : 0);
  Index rank = (stack.skip != 0 ? before.matrix : 0) + std::min(heads * read, heads * value_dim);
  rank = std::min({n, d, rank});
  if (stack.mlp) rank = std::min(n, d);
  if (!post) return {rank, std::min(n - 1, rank)};
  const Index zeros = norm.gain.size() > 0 ? (norm.gain.array() == 0).count() : 0;
  rank = std::min(rank, d - std::max<Index>(zeros, norm.kind == NormKind::layer ? 1 : 0));
  return {std::min({n, d, rank + bias}), std::min(n - 1, rank)};
}

}  // namespace headlab
