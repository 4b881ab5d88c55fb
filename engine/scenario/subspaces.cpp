// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/subspaces.h"

#include <limits>

#include "engine/scenario/condition.h"
#include "kernels/decompositions.h"

namespace headlab {

namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// [H] of d x k from numbers [H][d][k].
std::vector<Eigen::MatrixXd> matrices_of(const Subspaces& subspaces,
                                         const std::vector<double>& numbers) {
  const Eigen::Index size = Eigen::Index{subspaces.d()} * subspaces.k();
  std::vector<Eigen::MatrixXd> matrices;
  for (int h = 0; h < subspaces.heads(); ++h) {
    matrices.emplace_back(
        Eigen::Map<const RowMajor>(numbers.data() + h * size, subspaces.d(), subspaces.k()));
  }
  return matrices;
}

/// An orthonormal basis of the column space of W [d][k].
Eigen::MatrixXd basis_of(const Eigen::MatrixXd& w) {
  const HouseholderQr qr(w);
  const LeftSvd svd = left_svd(qr.upper());
  const double rounding =
      static_cast<double>(w.rows()) * std::numeric_limits<double>::epsilon() * svd.values(0);
  const Eigen::Index rank = (svd.values.array() > rounding).count();
  return rank == w.cols() ? signed_qr(w).q : Eigen::MatrixXd(qr.thin_q() * svd.u.leftCols(rank));
}

}  // namespace

std::vector<Eigen::MatrixXd> to_projections(const Subspaces& subspaces) {
  return matrices_of(subspaces, subspaces.numbers());
}

std::vector<Eigen::MatrixXd> to_matrices(const Subspaces& subspaces) {
  std::vector<Eigen::MatrixXd> matrices = to_projections(subspaces);
  if (!subspaces.orthonormal()) {
    for (Eigen::MatrixXd& w : matrices) w = basis_of(w);
  }
  return matrices;
}

std::vector<Eigen::MatrixXd> to_query_matrices(const Subspaces& subspaces) {
  if (subspaces.queries().empty()) return {};
  return matrices_of(subspaces, subspaces.queries());
}

std::vector<Eigen::MatrixXd> subspace_bases(const Condition& condition, const Preparation& found) {
  return to_matrices(make_subspaces(condition, found));
}

}  // namespace headlab
