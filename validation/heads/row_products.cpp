// SPDX-License-Identifier: Apache-2.0
#include "validation/heads/row_products.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>

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

template <class T>
RowsOf<T> some_columns(const Panels<T>& a, Index first, Index count) {
  RowsOf<T> some(static_cast<Index>(a.rows), count);
  const auto width = static_cast<Index>(a.width);
  for (Index begin = 0; begin < count;) {
    const Index panel = (first + begin) / width, in_panel = (first + begin) % width;
    const Index wide = std::min(width - in_panel, count - begin);
    const Eigen::Map<const RowsOf<T>> all(a.numbers.get() + panel * width * some.rows(),
                                          some.rows(), width);
    some.middleCols(begin, wide) = all.middleCols(in_panel, wide);
    begin += wide;
  }
  return some;
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

namespace {

/// The same of columns that lie in panels.
template <class T>
void over_products(const Panels<T>& a, int threads,
                   const std::function<void(const ProductBlock&)>& take) {
  over_blocks(static_cast<Index>(a.columns), threads, [&](Index first, Index count) {
    RowsOf<double> rows(count, first + count);
    const RowsOf<T> some = some_columns(a, first, count);
    lane_arithmetic<T>().product_of_columns(
        lanes(some), PanelPart<T>{.of = a, .columns = static_cast<std::size_t>(first + count)},
        lanes(rows));
    take({static_cast<std::size_t>(first / rows_of_task), first, rows});
  });
}

template <class T>
MatrixXd all_products(const Panels<T>& a, int threads) {
  const auto size = static_cast<Index>(a.columns);
  MatrixXd out = MatrixXd::Zero(size, size);
  over_products<T>(a, threads, [&](const ProductBlock& block) { add_block(block, out); });
  return out;
}

}  // namespace

template <class T>
void over_products_of_columns(const RowsOf<T>& a, int threads,
                              const std::function<void(const ProductBlock&)>& take) {
  Panels<T> panels;
  lane_arithmetic<T>().lay_out(lanes(a), panels);
  over_products(panels, threads, take);
}

void add_block(const ProductBlock& block, MatrixXd& to) {
  const RowsOf<double>& rows = block.rows;
  const Eigen::Index first = block.first;
  to.middleCols(first, rows.rows()).topRows(rows.cols()) += rows.transpose();
  to.middleRows(first, rows.rows()).leftCols(first) += rows.leftCols(first);
}

template <class T>
MatrixXd products_of_columns(const RowsOf<T>& a, int threads) {
  Panels<T> panels;
  lane_arithmetic<T>().lay_out(lanes(a), panels);
  return all_products(panels, threads);
}

template <class T>
MatrixXd products_of_rows(RowsOf<T> a, int threads) {
  Panels<T> panels;
  lane_arithmetic<T>().lay_out_transposed(lanes(std::as_const(a)), panels);
  a.resize(0, 0);
  return all_products(panels, threads);
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
template MatrixXd products_of_rows(RowsOf<float>, int);
template MatrixXd products_of_rows(RowsOf<double>, int);

}  // namespace headlab
