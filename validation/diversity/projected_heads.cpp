// SPDX-License-Identifier: Apache-2.0
#include "validation/diversity/projected_heads.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <variant>

#include "engine/scenario/subspaces.h"
#include "kernels/decompositions.h"
#include "kernels/kernel_laws.h"
#include "validation/diversity/query_key.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;

/// log det(I + S S^T) by the QR factor of S^T over I, which squares nothing.
double log_det_of(const MatrixXd& s) {
  MatrixXd tall(s.rows() + s.cols(), s.cols());
  tall << s, MatrixXd::Identity(s.cols(), s.cols());
  return 2 * HouseholderQr(tall).upper().diagonal().array().abs().log().sum();
}

/// 1 less the mean correlation of pairs.
std::optional<double> overlap_difference(const Matrices& w, double bandwidth) {
  if (w.size() < 2) return std::nullopt;
  double sum = 0;
  for (std::size_t l = 0; l + 1 < w.size(); ++l) {
    for (std::size_t h = l + 1; h < w.size(); ++h) sum += overlap(w[l], w[h], bandwidth);
  }
  return 1 - sum / (0.5 * static_cast<double>(w.size() * (w.size() - 1)));
}

std::optional<double> query_key_difference(const Subspaces& heads, double temperature) {
  if (heads.heads() < 2) return std::nullopt;
  const Matrices keys = to_projections(heads);
  const auto pairs = query_key_correlations(
      heads.queries().empty() ? keys : to_query_matrices(heads), keys, temperature);
  double sum = 0;
  for (const QueryKeyCorrelation& pair : pairs) sum += pair.mean;
  return 1 - sum / static_cast<double>(pairs.size());
}

bool have_one_dimension(const Matrices& bases) {
  return bases[0].cols() > 0 && std::ranges::all_of(bases, [&](const MatrixXd& one) {
           return one.cols() == bases[0].cols();
         });
}

}  // namespace

double overlap(const MatrixXd& w, const MatrixXd& other, double bandwidth) {
  MatrixXd both(w.rows(), w.cols() + other.cols());
  both << w, other;
  const double root = std::sqrt(2.0);
  const double log_rho =
      (log_det_of(root / bandwidth * w) + log_det_of(root / bandwidth * other)) / 4 -
      log_det_of(both / bandwidth) / 2;
  return std::exp(std::min(log_rho, 0.0));
}

std::vector<Index> head_indices(const Subspaces& heads, const KernelLaw& kernel, bool compressed) {
  const auto* gaussian = std::get_if<GaussianKernel>(&kernel);
  const auto* softmax = std::get_if<SoftmaxKernel>(&kernel);
  const Matrices bases = to_matrices(heads);
  if (heads.orthonormal() && heads.queries().empty()) {
    return subspace_indices(bases, gaussian ? std::optional(gaussian->bandwidth) : std::nullopt,
                            softmax ? std::optional(softmax->temperature) : std::nullopt);
  }
  std::vector<Index> indices{
      {"chordal", {}, {}}, {"spectral", {}, {}}, {"overlap", {}, {}}, {"qk", {}, {}}};
  if (have_one_dimension(bases)) indices = subspace_indices(bases, {}, {});
  if (gaussian) {
    indices[2].value = overlap_difference(to_projections(heads), gaussian->bandwidth);
  }
  if (softmax && !compressed) {
    indices[3].value = query_key_difference(heads, softmax->temperature);
  }
  return indices;
}

}  // namespace headlab
