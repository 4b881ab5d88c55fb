// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/law/subspaces/orthonormal.h"

#include <limits>

#include <Eigen/Core>

#include "kernels/decompositions.h"

namespace headlab {
namespace {

Eigen::MatrixXd to_eigen(const Rows& rows) {
  Eigen::MatrixXd w(static_cast<Eigen::Index>(rows.size()),
                    static_cast<Eigen::Index>(rows[0].size()));
  for (Eigen::Index i = 0; i < w.rows(); ++i) {
    for (Eigen::Index j = 0; j < w.cols(); ++j) {
      w(i, j) = rows[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
    }
  }
  return w;
}

}  // namespace

void orthonormalise_each(Subspaces& subspaces) {
  Eigen::MatrixXd w(subspaces.d(), subspaces.k());
  for (int h = 0; h < subspaces.heads(); ++h) {
    for (int i = 0; i < subspaces.d(); ++i) {
      for (int j = 0; j < subspaces.k(); ++j) w(i, j) = subspaces(h, i, j);
    }
    const Eigen::MatrixXd q = signed_qr(w).q;
    for (int i = 0; i < subspaces.d(); ++i) {
      for (int j = 0; j < subspaces.k(); ++j) subspaces(h, i, j) = q(i, j);
    }
  }
}

double off_orthonormal(const Rows& rows) {
  const Eigen::MatrixXd w = to_eigen(rows);
  return (w.transpose() * w - Eigen::MatrixXd::Identity(w.cols(), w.cols())).cwiseAbs().maxCoeff();
}

std::optional<std::size_t> dependent_column(const Rows& rows) {
  const Eigen::MatrixXd w = to_eigen(rows);
  const Eigen::VectorXd r = signed_qr(w).r;
  for (Eigen::Index j = 0; j < w.cols(); ++j) {
    // The part of column j outside the earlier ones, against the rounding of the column itself.
    const double rounding =
        static_cast<double>(w.rows()) * std::numeric_limits<double>::epsilon() * w.col(j).norm();
    if (!(r(j) > rounding)) return static_cast<std::size_t>(j);
  }
  return std::nullopt;
}

}  // namespace headlab
