// SPDX-License-Identifier: Apache-2.0
#include "kernels/decompositions.h"

#include <functional>

#include <gtest/gtest.h>

#include "kernels/statistics/stopping.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;

MatrixXd matrix(Eigen::Index n) {
  return MatrixXd::NullaryExpr(n, n, [n](Eigen::Index i, Eigen::Index j) {
    const auto far = static_cast<double>(1 + (7 * i * j + i + j) % 13);
    return i == j ? 2. * static_cast<double>(n) : 1 / far;
  });
}

MatrixXd symmetric(Eigen::Index n) {
  return matrix(n) + matrix(n).transpose();
}

TEST(Decompositions, AreLeftBehindByAStop) {
  // Of the least sizes that a stop does not await.
  const std::function<void()> all[] = {
      [] { Cholesky{symmetric(1000)}; },       [] { HouseholderQr{matrix(540)}; },
      [] { symmetric_eigen(symmetric(235)); }, [] { symmetric_eigenvalues(symmetric(330)); },
      [] { singular_values(matrix(150)); },    [] { spectral_radius(matrix(235)); },
      [] { left_svd(matrix(120)); },
  };
  const StopScope scope([] { return true; });
  for (const auto& decompose : all) EXPECT_THROW(decompose(), WorkStopped);
}

TEST(Decompositions, HaveTheSameBitsWhereTheyMayBeStopped) {
  const MatrixXd a = matrix(540);
  const SignedQr alone = signed_qr(a);
  const StopScope scope([] { return false; });
  const SignedQr stoppable = signed_qr(a);
  EXPECT_EQ(alone.q, stoppable.q);
  EXPECT_EQ(alone.r, stoppable.r);
}

}  // namespace
}  // namespace headlab
