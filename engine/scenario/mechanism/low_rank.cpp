// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/mechanism/low_rank.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/decompositions.h"

namespace headlab {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double eps = std::numeric_limits<double>::epsilon();
constexpr double agreement = 1e-9;

/// diag(values) V^T, so that S = F^T F.
MatrixXd factor(const MomentRoot& root) {
  return root.values.asDiagonal() * root.vectors.transpose();
}

}  // namespace

MomentRoot root_of_moment(const MatrixXd& s) {
  const SymmetricEigen eigen = symmetric_eigen(s);
  MomentRoot root{eigen.vectors.rowwise().reverse(), eigen.values.reverse()};
  const double rounding = static_cast<double>(s.rows()) * eps * std::max(root.values(0), 0.0);
  for (double& value : root.values) value = value > rounding ? std::sqrt(value) : 0;
  return root;
}

MomentRoot root_of_rows(const MatrixXd& m) {
  // QR takes no fewer rows than columns; rows of zeros change nothing.
  MatrixXd rows = MatrixXd::Zero(std::max(m.rows(), m.cols()), m.cols());
  rows.topRows(m.rows()) = m;
  const LeftSvd svd = left_svd(HouseholderQr(rows).upper().transpose());
  MomentRoot root{svd.u, svd.values};
  const double rounding = static_cast<double>(rows.rows()) * eps * root.values(0);
  for (double& value : root.values) value = value > rounding ? value : 0;
  return root;
}

const std::vector<std::string>& low_rank_methods() {
  static const std::vector<std::string> names = {"kq_svd", "k_svd", "joint"};
  return names;
}

std::optional<LowRankMethod> low_rank_method(const std::string& name) {
  const auto& names = low_rank_methods();
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<LowRankMethod>(found - names.begin());
}

LowRankMaps low_rank_maps(LowRankMethod method, const MomentRoot& keys, const MomentRoot& queries,
                          int rank) {
  if (method == LowRankMethod::k_svd) {
    const MatrixXd top = keys.vectors.leftCols(rank);
    return {top, top, keys.values};
  }
  if (method == LowRankMethod::joint) {
    MatrixXd both(2 * keys.values.size(), keys.values.size());
    both << factor(keys), factor(queries);
    const MomentRoot sum = root_of_rows(both);
    const MatrixXd top = sum.vectors.leftCols(rank);
    return {top, top, sum.values};
  }
  const LeftSvd scores = left_svd(factor(keys) * factor(queries).transpose());
  const MatrixXd top = scores.u.leftCols(rank);
  const VectorXd inverse =
      keys.values.unaryExpr([](double value) { return value > 0 ? 1 / value : 0; });
  return {keys.vectors * (inverse.asDiagonal() * top),
          keys.vectors * (keys.values.asDiagonal() * top), scores.values};
}

bool is_ambiguous(const VectorXd& spectrum, int rank) {
  const Index kept = rank;
  if (kept >= spectrum.size()) return false;
  const double rounding = agreement * spectrum(0);
  return spectrum(kept - 1) > rounding && spectrum(kept - 1) - spectrum(kept) <= rounding;
}

double squared_score_error(const MomentRoot& keys, const MomentRoot& queries, const MatrixXd& a,
                           const MatrixXd& b) {
  const Index k = keys.values.size();
  const MatrixXd lost = MatrixXd::Identity(k, k) - a * b.transpose();
  return (factor(keys) * lost * factor(queries).transpose()).squaredNorm();
}

}  // namespace headlab
