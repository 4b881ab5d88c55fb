// SPDX-License-Identifier: Apache-2.0
#include "kernels/linear_algebra.h"

#include <cmath>

#include <Eigen/Core>

#include "kernels/decompositions.h"
#include "kernels/parameter.h"

namespace headlab {
namespace {

Eigen::MatrixXd to_eigen(const Rows& rows) {
  const auto d = static_cast<Eigen::Index>(rows.size());
  Eigen::MatrixXd matrix(d, d);
  for (Eigen::Index i = 0; i < d; ++i) {
    for (Eigen::Index j = 0; j < d; ++j) {
      matrix(i, j) = rows[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
    }
  }
  return matrix;
}

}  // namespace

Rows cholesky(const Rows& matrix) {
  const Eigen::MatrixXd factor = Cholesky(to_eigen(matrix)).lower();
  Rows rows(matrix.size(), std::vector<double>(matrix.size()));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < rows.size(); ++j) {
      rows[i][j] = factor(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j));
    }
  }
  return rows;
}

Rows ar1_covariance(int d, double phi) {
  const auto size = static_cast<std::size_t>(d);
  Rows rows(size, std::vector<double>(size));
  for (int i = 0; i < d; ++i) {
    for (int j = 0; j < d; ++j) {
      rows[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] =
          i == j ? 1.0 : std::pow(phi, std::abs(i - j));
    }
  }
  return rows;
}

void require_covariance(const std::string& key, const Rows& matrix, int d) {
  const auto wanted = static_cast<std::size_t>(d);
  bool square = matrix.size() == wanted;
  for (const auto& row : matrix) square = square && row.size() == wanted;
  if (!square) {
    throw ParameterError(key, "must be " + std::to_string(d) + " x " + std::to_string(d));
  }
  const Eigen::MatrixXd s = to_eigen(matrix);
  const double largest = s.cwiseAbs().maxCoeff();
  if (!((s - s.transpose()).cwiseAbs().maxCoeff() <= 1e-12 * largest)) {
    throw ParameterError(key, "is not symmetric");
  }
  if (!Cholesky(s).succeeded()) throw ParameterError(key, "is not positive definite");
}

}  // namespace headlab
