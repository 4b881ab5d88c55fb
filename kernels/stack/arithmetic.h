// SPDX-License-Identifier: Apache-2.0
/// \file What takes the time of a stack, which a backend may compute its own way.
#pragma once

#include <cstdint>
#include <span>

#include <Eigen/Core>

namespace headlab {

/// A matrix whose rows are contiguous.
using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
/// One of these or some of its rows and columns.
using RowsView = Eigen::Ref<const RowMatrix, 0, Eigen::OuterStride<>>;
using RowsOut = Eigen::Ref<RowMatrix, 0, Eigen::OuterStride<>>;

class StackArithmetic {
 public:
  virtual ~StackArithmetic() = default;

  /// out = a b, and out = a b^T; out overlaps neither.
  virtual void product(const RowsView& a, const RowsView& b, RowsOut out) const = 0;
  virtual void product_transposed(const RowsView& a, const RowsView& b, RowsOut out) const = 0;

  /// Softmax of the rows e^w E_ij + b_j as 1 a^T + e^v B, a = softmax(b), v = min(w, 0).
  /// \param scores E [n][n] and, below it, b
  /// \param out B [n][n] and, below it, a
  /// \return mean entropy of the rows
  virtual double softmax(const RowsView& scores, double w, RowsOut out) const = 0;

  /// Takes the mean row from all rows and then divides them by the largest absolute value, which it
  /// returns; rows of 0 stay.
  virtual double centre(RowsOut rows, Eigen::RowVectorXd& mean) const = 0;
  /// Of every row r: m.r and |r|^2.
  virtual void row_products(const RowsView& rows, const Eigen::RowVectorXd& m,
                            Eigen::VectorXd& products, Eigen::VectorXd& squares) const = 0;
  /// out_i = f_i r_i + g_i m; out may be the rows.
  virtual void combine(const RowsView& rows, const Eigen::VectorXd& f, const Eigen::VectorXd& g,
                       const Eigen::RowVectorXd& m, RowsOut out) const = 0;
  /// out = f a + g b; out may be one of them.
  virtual void sum(double f, const RowsView& a, double g, const RowsView& b, RowsOut out) const = 0;

  /// Sum of squares of what the rows differ by from their mean.
  virtual double spread(const RowsView& rows) const = 0;
  /// Largest |r_i - r_j|_1 and |r_i - r_j|_2^2 of pairs of rows.
  virtual double largest_difference(const RowsView& rows) const = 0;
  virtual double largest_square_distance(const RowsView& rows) const = 0;

  /// sd times normals 4 quad .. of a stream, as kernels/draws.h makes them in float32: two from
  /// words 0 and 1, two from words 2 and 3 of each counter from `quad` on.
  virtual void normals(std::uint64_t seed, std::uint64_t stream, std::uint64_t quad, double sd,
                       std::span<double> out) const = 0;
};

/// The definition: Eigen's products and the C library's functions.
const StackArithmetic& plain_arithmetic();

}  // namespace headlab
