// SPDX-License-Identifier: Apache-2.0
#include "validation/heads/row_products.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "kernels/cpu/attention_arithmetic.h"
#include "kernels/parallel_for.h"

namespace headlab {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;

/// Rows of a product that a task finds: a multiple of those that lanes take at a time.
constexpr Index rows_of_task = 96;

/// `count` rows of a matrix, of their first `columns`.
template <class Rows>
auto lanes(Rows& of, Index first, Index count, Index columns) {
  return LaneRows<std::remove_reference_t<decltype(*of.data())>>{
      of.data() + first * of.cols(), static_cast<std::size_t>(count),
      static_cast<std::size_t>(columns), static_cast<std::size_t>(of.cols())};
}
template <class Rows>
auto lanes(Rows& of, Index first, Index count) {
  return lanes(of, first, count, of.cols());
}
template <class Rows>
auto lanes(Rows& of) {
  return lanes(of, 0, of.rows());
}

/// Calls work(first, count) for blocks of rows, the last first: of a triangle it is the longest.
template <class Work>
void over_blocks(Index rows, int threads, const Work& work) {
  const std::size_t blocks = product_blocks(rows);
  parallel_for(blocks, threads, [&](std::size_t i) {
    const Index first = static_cast<Index>(blocks - 1 - i) * rows_of_task;
    work(first, std::min(rows_of_task, rows - first));
  });
}

/// Columns of `a` on their own: those of many rows would meet in few sets of the cache.
template <class T>
RowsOf<T> some_columns(const RowsOf<T>& a, Index first, Index count) {
  return a.middleCols(first, count);
}

}  // namespace

template <class T>
RowsOf<double> row_product(const RowsOf<T>& a, const RowsOf<T>& b, int threads) {
  RowsOf<double> out(a.rows(), b.cols());
  over_blocks(a.rows(), threads, [&](Index first, Index count) {
    lane_arithmetic<T>().product_in_double(lanes(a, first, count), lanes(b),
                                           lanes(out, first, count));
  });
  return out;
}

template <class T>
RowsOf<double> transposed_product(const RowsOf<T>& a, const RowsOf<T>& b, int threads) {
  RowsOf<double> out(a.cols(), b.cols());
  over_blocks(a.cols(), threads, [&](Index first, Index count) {
    const RowsOf<T> some = some_columns(a, first, count);
    lane_arithmetic<T>().product_of_columns(lanes(some), lanes(b), lanes(out, first, count));
  });
  return out;
}

std::size_t product_blocks(Index columns) {
  return static_cast<std::size_t>((columns + rows_of_task - 1) / rows_of_task);
}

template <class T>
void over_products_of_columns(const RowsOf<T>& a, int threads,
                              const std::function<void(const ProductBlock&)>& take) {
  over_blocks(a.cols(), threads, [&](Index first, Index count) {
    RowsOf<double> rows(count, first + count);
    const RowsOf<T> some = some_columns(a, first, count);
    lane_arithmetic<T>().product_of_columns(lanes(some), lanes(a, 0, a.rows(), rows.cols()),
                                            lanes(rows));
    take({static_cast<std::size_t>(first / rows_of_task), first, rows});
  });
}

void add_block(const ProductBlock& block, MatrixXd& to) {
  const RowsOf<double>& rows = block.rows;
  const Eigen::Index first = block.first;
  to.middleCols(first, rows.rows()).topRows(rows.cols()) += rows.transpose();
  to.middleRows(first, rows.rows()).leftCols(first) += rows.leftCols(first);
}

template <class T>
MatrixXd products_of_columns(const RowsOf<T>& a, int threads) {
  MatrixXd out = MatrixXd::Zero(a.cols(), a.cols());
  over_products_of_columns<T>(a, threads,
                              [&](const ProductBlock& block) { add_block(block, out); });
  return out;
}

template <class T>
MatrixXd products_of_rows(const RowsOf<T>& a, int threads) {
  MatrixXd out(a.rows(), a.rows());
  over_blocks(a.rows(), threads, [&](Index first, Index count) {
    // The longer factor to the left: the right one is turned around part by part.
    RowsOf<double> columns(first + count, count);
    lane_arithmetic<T>().product_transposed(lanes(a, 0, first + count), lanes(a, first, count),
                                            lanes(columns));
    out.middleCols(first, count).topRows(first + count) = columns;
    out.middleRows(first, count).leftCols(first) = columns.topRows(first).transpose();
  });
  return out;
}

template RowsOf<double> row_product(const RowsOf<float>&, const RowsOf<float>&, int);
template RowsOf<double> row_product(const RowsOf<double>&, const RowsOf<double>&, int);
template RowsOf<double> transposed_product(const RowsOf<double>&, const RowsOf<double>&, int);
template void over_products_of_columns(const RowsOf<float>&, int,
                                       const std::function<void(const ProductBlock&)>&);
template void over_products_of_columns(const RowsOf<double>&, int,
                                       const std::function<void(const ProductBlock&)>&);
template MatrixXd products_of_columns(const RowsOf<float>&, int);
template MatrixXd products_of_columns(const RowsOf<double>&, int);
template MatrixXd products_of_rows(const RowsOf<float>&, int);
template MatrixXd products_of_rows(const RowsOf<double>&, int);

}  // namespace headlab
