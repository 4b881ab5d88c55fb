// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/subspaces.h"

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

}  // namespace

std::vector<Eigen::MatrixXd> to_matrices(const Subspaces& subspaces) {
  std::vector<Eigen::MatrixXd> matrices = matrices_of(subspaces, subspaces.numbers());
  if (!subspaces.orthonormal()) {
    for (Eigen::MatrixXd& w : matrices) w = signed_qr(w).q;
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
