// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/mechanisms/transform.h"

#include <algorithm>

#include "kernels/decompositions.h"

namespace headlab {

using Eigen::Index;
using Eigen::MatrixXd;

MatrixXd orthogonal_columns(const MatrixXd& w) {
  const Index k = w.cols();
  const MatrixXd gram = w.transpose() * w;
  if ((gram - MatrixXd::Identity(k, k)).cwiseAbs().maxCoeff() < 1e-12) return w;
  const SymmetricEigen eigen = symmetric_eigen(gram);
  // Columns shorter than this share of the longest are rounding.
  constexpr double negligible = 1e-7;
  const double least = negligible * negligible * eigen.values(k - 1);
  const auto rank = static_cast<Index>((eigen.values.array() > least).count());
  return w * eigen.vectors.rightCols(std::max<Index>(rank, 1)).rowwise().reverse();
}

double mixed_cosine(int heads, double mix) {
  return (2 * mix + (heads - 2) * mix * mix) / (1 + (heads - 1) * mix * mix);
}

}  // namespace headlab
