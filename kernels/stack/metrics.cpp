// SPDX-License-Identifier: Apache-2.0
#include "kernels/stack/metrics.h"

#include <algorithm>
#include <cmath>

#include "kernels/decompositions.h"
#include "kernels/statistics/stopping.h"

namespace headlab {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

namespace {

/// X over max(|m|, e^sigma), 0 where X is.
RowMatrix scaled_tokens(const CentredTokens& tokens) {
  const double exponent = std::max(std::log(tokens.mean.norm()), tokens.exponent);
  if (!std::isfinite(exponent)) return RowMatrix::Zero(tokens.count(), tokens.dim());
  const double residual = std::exp(tokens.exponent - exponent);
  return (residual * tokens.residual).rowwise() + std::exp(-exponent) * tokens.mean;
}

/// Mean cosine of pairs: 1 less the spread of the directions, which keeps its
/// digits.
double mean_cosine(const NormedTokens& unit) {
  if (unit.zeros > 0) return LayerMetrics::undefined;
  const CentredTokens& u = unit.tokens;  // of squared length d
  if (u.collapsed()) return 1;
  const auto pairs = static_cast<double>(u.dim() * (u.count() - 1));
  return 1 - std::exp(2 * u.exponent) * u.residual.squaredNorm() / pairs;
}

/// Counts the metrics, and writes them where there is room.
struct MetricWriter {
  std::span<double> out;
  std::size_t count = 0;
  void operator()(const char*, double value, const char*) {
    if (count < out.size()) out[count] = value;
    ++count;
  }
};

}  // namespace

MomentLayout stack_layout(int layers) {
  MetricWriter counter;
  LayerMetrics().fields(counter);
  return {.queries = layers + 1,
          .heads = static_cast<int>(counter.count),
          .mode = MomentMode::separate,
          .conditional = false};
}

void write_metrics(const LayerMetrics& metrics, std::span<double> out) {
  MetricWriter writer{out};
  metrics.fields(writer);
}

void measure_tokens(const CentredTokens& tokens, const NormedTokens& unit,
                    const StackArithmetic& arithmetic, LayerMetrics& out) {
  const auto n = static_cast<double>(tokens.count());
  const double squared = tokens.residual.squaredNorm();
  const double scale = tokens.scale();
  out.collapsed = tokens.collapsed() ? 1 : 0;
  if (!tokens.collapsed()) out.log_residual = tokens.exponent + std::log(squared) / 2;
  out.residual_squared = scale * scale * squared;
  out.mean_squared = tokens.mean.squaredNorm();
  const RowMatrix x = scaled_tokens(tokens);
  const double total = x.squaredNorm();
  if (total > 0) {
    out.residual_share = tokens.collapsed()
                             ? 0
                             : stack::residual_share(n, out.mean_squared, tokens.exponent, squared);
    const RowMatrix shorter = tokens.dim() > tokens.count() ? x : RowMatrix(x.transpose());
    RowMatrix gram(shorter.rows(), shorter.rows());
    arithmetic.product_transposed(shorter, shorter, gram);
    out.participation = total * total / gram.squaredNorm();
  }
  const auto size = tokens.residual.cwiseAbs();
  out.dong = scale * std::sqrt(size.colwise().sum().maxCoeff() * size.rowwise().sum().maxCoeff());
  if (tokens.count() == 1) return;
  if (tokens.count() <= stack::max_tokens_of_diameter) {
    out.diameter = scale * std::sqrt(arithmetic.largest_square_distance(tokens.residual));
  }
  out.cosine = mean_cosine(unit);
}

double dobrushin(const RowsView& rest, double exponent, const StackArithmetic& arithmetic) {
  const Index n = rest.rows();
  if (n == 1 || n > stack::max_tokens_of_dobrushin) return LayerMetrics::undefined;
  return std::exp(exponent) / 2 * arithmetic.largest_difference(rest);
}

void measure_attention(std::span<const Attention> heads, const StackArithmetic& arithmetic,
                       LayerMetrics& out) {
  const auto count = static_cast<double>(heads.size());
  const auto n = static_cast<double>(heads[0].rows.cols());
  double entropy = 0;
  double tau = 0;
  double factor = 0;
  double own = 0;
  double measured = 0;  // heads
  for (const Attention& head : heads) {
    stop_point(measured++ / count);
    entropy += head.entropy;
    tau += dobrushin(head.rest(), head.exponent, arithmetic);
    factor += std::exp(2 * head.exponent) * arithmetic.spread(head.rest());
    own += head.common().sum() + std::exp(head.exponent) * head.rest().trace();
  }
  out.entropy = entropy / count;
  out.self_weight = own / (n * count);
  if (n == 1) return;
  out.dobrushin = tau / count;
  out.residual_factor = factor / ((n - 1) * count);
}

VectorXd scaled_singular_values(const CentredTokens& tokens) {
  const Index size = std::max(tokens.count(), tokens.dim());
  MatrixXd square = MatrixXd::Zero(size, size);
  square.topLeftCorner(tokens.count(), tokens.dim()) = scaled_tokens(tokens);
  return singular_values(square).head(std::min(tokens.count(), tokens.dim()));
}

void measure_spectra(const CentredTokens& tokens, std::span<const Attention> heads,
                     LayerMetrics& out) {
  const VectorXd s = scaled_singular_values(tokens);
  if (s(0) > 0) {
    out.stable_rank = (s / s(0)).squaredNorm();
    const VectorXd share = s / s.sum();
    out.effective_rank =
        std::exp(-share.unaryExpr([](double p) { return p > 0 ? p * std::log(p) : 0.0; }).sum());
  }
  if (heads.empty() || tokens.count() == 1) return;
  double second = 0;
  for (const Attention& head : heads) {
    stop_point();
    // A maps 1 to itself; its other eigenvalues are those of C A C on vectors
    // of mean 0.
    MatrixXd centred_map = head.rest();
    centred_map.rowwise() -= centred_map.colwise().mean().eval();
    centred_map.colwise() -= centred_map.rowwise().mean().eval();
    second += std::exp(head.exponent) * spectral_radius(centred_map);
  }
  out.second_eigenvalue = second / static_cast<double>(heads.size());
}

}  // namespace headlab
