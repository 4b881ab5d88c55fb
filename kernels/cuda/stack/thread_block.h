// SPDX-License-Identifier: Apache-2.0
/// \file What the threads of a block do together in float64, in orders that depend on the sizes
/// alone: loops, sums and products of matrices. Every thread of the block calls each operation.
#pragma once

#include "kernels/cuda/device.h"
#include "kernels/math.h"

#if defined(HEADLAB_DEVICE)  // under nvcc and in the emulated build
namespace headlab::HEADLAB_CUDA_NAMESPACE {

/// Matrices at one distance from another: entry (i, j) of matrix m.
template <class Number>
struct MatricesOf {
  Number* data;
  std::int64_t matrix;  ///< from one to the next
  int row;
  int column = 1;

  HEADLAB_DEVICE Number* at(int m, int i, int j) const {
    return data + m * matrix + static_cast<std::int64_t>(i) * row +
           static_cast<std::int64_t>(j) * column;
  }
};
using InMatrices = MatricesOf<const double>;
using OutMatrices = MatricesOf<double>;

struct ProductTerm {
  HEADLAB_DEVICE double operator()(double a, double b, double sum) const {
    return math::fused(a, b, sum);
  }
};
struct DifferenceTerm {
  HEADLAB_DEVICE double operator()(double a, double b, double sum) const {
    return sum + math::abs(a - b);
  }
};
struct SquareDistanceTerm {
  HEADLAB_DEVICE double operator()(double a, double b, double sum) const {
    return math::fused(a - b, a - b, sum);
  }
};

class ThreadBlock {
 public:
  static constexpr unsigned threads = 128;
  static constexpr unsigned warps = threads / warp_threads;
  /// Numbers of shared memory.
  static constexpr unsigned shared_numbers = threads + warps;

  HEADLAB_DEVICE explicit ThreadBlock(double* shared) : shared_(shared) {}

  HEADLAB_DEVICE static int thread() { return static_cast<int>(thread_index()); }
  HEADLAB_DEVICE static int lane() { return thread() % static_cast<int>(warp_threads); }
  HEADLAB_DEVICE static int warp() { return thread() / static_cast<int>(warp_threads); }

  /// Calls body(i) for i < count, and waits.
  template <class Body>
  HEADLAB_DEVICE void for_each(int count, const Body& body) const {
    for (int i = thread(); i < count; i += static_cast<int>(threads)) body(i);
    synchronise_block();
  }
  /// Calls body(row, lane) for row < count, every row by a warp, and waits.
  template <class Body>
  HEADLAB_DEVICE void for_rows(int count, const Body& body) const {
    for (int row = warp(); row < count; row += static_cast<int>(warps)) body(row, lane());
    synchronise_block();
  }

  /// Sum and maximum of the lanes of a warp; every lane has it.
  HEADLAB_DEVICE static double warp_total(double x) {
    for (int mask = 16; mask > 0; mask /= 2) x += shuffle_xor(x, mask);
    return x;
  }
  HEADLAB_DEVICE static double warp_largest(double x) {
    for (int mask = 16; mask > 0; mask /= 2) x = math::max(x, shuffle_xor(x, mask));
    return x;
  }
  /// Sum of term(j) over a row of `count` by a warp.
  template <class Term>
  HEADLAB_DEVICE static double row_total(int count, const Term& term) {
    double sum = 0;
    for (int j = lane(); j < count; j += static_cast<int>(warp_threads)) sum += term(j);
    return warp_total(sum);
  }

  /// Sum of term(i) over i < count, and the largest, which is 0 at least. Waits.
  template <class Term>
  HEADLAB_DEVICE double total(int count, const Term& term) const {
    double sum = 0;
    for (int i = thread(); i < count; i += static_cast<int>(threads)) sum += term(i);
    return of_block(warp_total(sum), [](double a, double b) { return a + b; });
  }
  template <class Term>
  HEADLAB_DEVICE double largest(int count, const Term& term) const {
    double found = 0;
    for (int i = thread(); i < count; i += static_cast<int>(threads)) {
      found = math::max(found, term(i));
    }
    return max_of_threads(found);
  }
  HEADLAB_DEVICE double max_of_threads(double x) const {
    return of_block(warp_largest(x), [](double a, double b) { return math::max(a, b); });
  }

  /// out[j] = factor sum_i term(i, j) over i < rows, for j < columns.
  template <class Term>
  HEADLAB_DEVICE void column_sums(int rows, int columns, double factor, double* out,
                                  const Term& term) const {
    // As many threads a column as there are.
    const int width = columns < static_cast<int>(threads) ? columns : static_cast<int>(threads);
    const int groups = static_cast<int>(threads) / width;
    const int group = thread() / width;
    for (int first = 0; first < columns; first += width) {
      const int column = first + thread() % width;
      const bool active = group < groups && column < columns;
      double sum = 0;
      for (int i = group; active && i < rows; i += groups) sum += term(i, column);
      shared_[thread()] = sum;
      synchronise_block();
      if (active && group == 0) {
        for (int g = 1; g < groups; ++g) sum += shared_[thread() + g * width];
        out[column] = factor * sum;
      }
      synchronise_block();
    }
  }

  /// Calls sink(m, i, j, sum_k term(a_ik, b_kj)) for the entries [rows][columns] of `count`
  /// matrices, one chain for each in the order of k. Does not wait.
  template <class Term, class Sink>
  HEADLAB_DEVICE void sums(int count, int rows, int inner, int columns, const InMatrices& a,
                           const InMatrices& b, const Term& term, const Sink& sink) const {
    // A thread has 4 x 4 entries; neighbours have neighbouring columns.
    constexpr int side = 4;
    const int row_tiles = (rows + side - 1) / side;
    const int column_tiles = (columns + side - 1) / side;
    const int tiles = row_tiles * column_tiles;
    for (int tile = thread(); tile < count * tiles; tile += static_cast<int>(threads)) {
      const int m = tile / tiles;
      const int row = tile % tiles / column_tiles;
      const int column = tile % column_tiles;
      const double* from_a[side];
      const double* from_b[side];
      HEADLAB_UNROLL
      for (int r = 0; r < side; ++r) {
        const int i = row + r * row_tiles;
        const int j = column + r * column_tiles;
        from_a[r] = a.at(m, i < rows ? i : row, 0);
        from_b[r] = b.at(m, 0, j < columns ? j : column);
      }
      double sum[side][side] = {};
      for (int k = 0; k < inner; ++k) {
        double x[side];
        double y[side];
        HEADLAB_UNROLL
        for (int r = 0; r < side; ++r) {
          x[r] = *from_a[r];
          y[r] = *from_b[r];
          from_a[r] += a.column;
          from_b[r] += b.row;
        }
        HEADLAB_UNROLL
        for (int r = 0; r < side; ++r) {
          HEADLAB_UNROLL
          for (int c = 0; c < side; ++c) sum[r][c] = term(x[r], y[c], sum[r][c]);
        }
      }
      HEADLAB_UNROLL
      for (int r = 0; r < side; ++r) {
        HEADLAB_UNROLL
        for (int c = 0; c < side; ++c) {
          const int i = row + r * row_tiles;
          const int j = column + c * column_tiles;
          if (i < rows && j < columns) sink(m, i, j, sum[r][c]);
        }
      }
    }
  }

  /// out = a b, of `count` matrices, and waits.
  HEADLAB_LARGE_DEVICE void product(int count, int rows, int inner, int columns,
                                    const InMatrices& a, const InMatrices& b,
                                    const OutMatrices& out) const {
    sums(count, rows, inner, columns, a, b, ProductTerm(),
         [&](int m, int i, int j, double sum) { *out.at(m, i, j) = sum; });
    synchronise_block();
  }

  /// Largest sum_k term(a_ik, a_jk) of pairs of rows.
  template <class Term>
  HEADLAB_LARGE_DEVICE double max_of_pairs(int rows, int columns, const double* a,
                                           const Term& term) const {
    double found = 0;
    sums(1, rows, columns, rows, {a, 0, columns}, {a, 0, 1, columns}, term,
         [&](int, int, int, double sum) { found = math::max(found, sum); });
    return max_of_threads(found);
  }

 private:
  /// Combines one number of each warp.
  template <class Combine>
  HEADLAB_DEVICE double of_block(double x, const Combine& combine) const {
    double* of_warps = shared_ + threads;
    if (lane() == 0) of_warps[warp()] = x;
    synchronise_block();
    double all = of_warps[0];
    for (unsigned w = 1; w < warps; ++w) all = combine(all, of_warps[w]);
    synchronise_block();
    return all;
  }

  double* shared_;
};

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
#endif
