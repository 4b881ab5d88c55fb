// SPDX-License-Identifier: Apache-2.0
/// \file Products of rows of tokens in lanes of T, with sums in float64 every 256 terms, on several
/// threads. The bits do not depend on their number.
#pragma once

#include <Eigen/Core>

namespace headlab {

template <class T>
using RowsOf = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// a b.
template <class T>
RowsOf<double> row_product(const RowsOf<T>& a, const RowsOf<T>& b, int threads);

/// a^T b.
template <class T>
RowsOf<double> transposed_product(const RowsOf<T>& a, const RowsOf<T>& b, int threads);

/// a^T a: half of the products.
template <class T>
Eigen::MatrixXd products_of_columns(const RowsOf<T>& a, int threads);

/// a a^T: half of the products.
template <class T>
Eigen::MatrixXd products_of_rows(const RowsOf<T>& a, int threads);

}  // namespace headlab
