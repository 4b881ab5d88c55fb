// SPDX-License-Identifier: Apache-2.0
/// \file Products of rows of tokens in lanes of T, with sums in float64 every 256 terms, on several
/// threads. The bits do not depend on their number.
#pragma once

#include <cstddef>
#include <functional>

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

/// Rows of a^T a up to the diagonal, and within them all columns of the block that they end with.
struct ProductBlock {
  std::size_t number;          ///< counted from 0
  Eigen::Index first;          ///< of the rows
  const RowsOf<double>& rows;  ///< [count][first + count]
};

/// Number of blocks of a^T a.
std::size_t product_blocks(Eigen::Index columns);

/// Finds a^T a block by block, so that all of it need not be kept; `take` is called on several
/// threads.
template <class T>
void over_products_of_columns(const RowsOf<T>& a, int threads,
                              const std::function<void(const ProductBlock&)>& take);

/// Adds a block to a matrix, on both sides of the diagonal. No two blocks have an entry in common.
void add_block(const ProductBlock& block, Eigen::MatrixXd& to);

/// a^T a: half of the products.
template <class T>
Eigen::MatrixXd products_of_columns(const RowsOf<T>& a, int threads);

/// a a^T: half of the products. \param a let go of before there are products
template <class T>
Eigen::MatrixXd products_of_rows(RowsOf<T> a, int threads);

}  // namespace headlab
