// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention_arithmetic.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/philox.h"
#include "kernels/testing/every_target.h"

namespace headlab {
namespace {

/// Rows of numbers between -1 and 1, in a matrix with further columns.
template <class T>
struct Matrix {
  std::size_t rows, columns, stride;
  std::vector<T> numbers;

  Matrix(std::size_t row_count, std::size_t column_count, std::uint64_t seed)
      : rows(row_count), columns(column_count), stride(column_count + 3), numbers(rows * stride) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] =
          static_cast<T>(std::ldexp(static_cast<double>(philox(seed, 0, i).w[0]), -31) - 1);
    }
  }
  T at(std::size_t i, std::size_t j) const { return numbers[i * stride + j]; }
  LaneRows<const T> lanes() const { return {numbers.data(), rows, columns, stride}; }
};

template <class T>
LaneRows<T> rows_of(std::vector<T>& numbers, std::size_t rows, std::size_t columns) {
  numbers.assign(rows * columns, T(7));
  return {numbers.data(), rows, columns, columns};
}

/// Products with neighbouring rows and columns of a factor in panels are those with the factor.
template <class T>
void expect_panels() {
  const LaneArithmetic<T>& arithmetic = lane_arithmetic<T>();
  Panels<T> panels;
  for (const std::size_t columns : {70U, 5U, 64U, 1U}) {
    const std::size_t inner = 300, first = 2, some = inner - 5, rows = 17;
    const std::size_t first_column = columns / 3, wide = columns - first_column;
    const Matrix<T> a(rows, some, 1), by_columns(some, rows, 2), b(inner, columns, 3);
    const LaneRows<const T> right{b.numbers.data() + first * b.stride + first_column, some, wide,
                                  b.stride};
    arithmetic.lay_out(b.lanes(), panels);
    const PanelPart<T> part{panels, first, some, first_column, wide};
    std::vector<T> expected, found;
    arithmetic.product(a.lanes(), right, rows_of(expected, rows, wide));
    arithmetic.product(a.lanes(), part, rows_of(found, rows, wide));
    EXPECT_EQ(found, expected) << columns;
    std::vector<double> in_double, from_panels;
    arithmetic.product_in_double(a.lanes(), right, rows_of(in_double, rows, wide));
    arithmetic.product_in_double(a.lanes(), part, rows_of(from_panels, rows, wide));
    EXPECT_EQ(from_panels, in_double) << columns;
    arithmetic.product_of_columns(by_columns.lanes(), right, rows_of(in_double, rows, wide));
    arithmetic.product_of_columns(by_columns.lanes(), part, rows_of(from_panels, rows, wide));
    EXPECT_EQ(from_panels, in_double) << columns;

    Matrix<T> transpose(columns, inner, 4);
    for (std::size_t i = 0; i < inner; ++i) {
      for (std::size_t j = 0; j < columns; ++j)
        transpose.numbers[j * transpose.stride + i] = b.at(i, j);
    }
    arithmetic.lay_out_transposed(transpose.lanes(), panels);
    arithmetic.product(a.lanes(), part, rows_of(found, rows, wide));
    EXPECT_EQ(found, expected) << columns;
    arithmetic.distances(a.lanes(), part, rows_of(found, rows, wide));
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < wide; ++j) {
        double sum = 0;
        for (std::size_t k = 0; k < some; ++k) {
          const auto off = static_cast<double>(a.at(i, k) - b.at(first + k, first_column + j));
          sum += off * off;
        }
        EXPECT_NEAR(static_cast<double>(found[i * wide + j]), sum, 1e-5 * sum);
      }
    }
  }
}

TEST(AttentionArithmetic, ProductsWithPanelsAreThoseWithTheFactor) {
  test::on_every_target([] {
    expect_panels<float>();
    expect_panels<double>();
  });
}

template <class T>
void expect_comparisons(double tolerance) {
  for (const std::size_t rows : {1U, 2U, 3U, 8U}) {
    for (const std::size_t columns : {1U, 33U, 5000U}) {
      const Matrix<T> a(rows, columns, 5);
      std::vector<double> products(rows * rows), differences(rows * rows);
      lane_arithmetic<T>().compare_rows(a.lanes(), products.data(), differences.data());
      for (std::size_t h = 0; h < rows; ++h) {
        for (std::size_t l = 0; l <= h; ++l) {
          double product = 0, difference = 0;
          for (std::size_t i = 0; i < columns; ++i) {
            product += static_cast<double>(a.at(h, i)) * static_cast<double>(a.at(l, i));
            difference +=
                std::abs(static_cast<double>(a.at(h, i)) - static_cast<double>(a.at(l, i)));
          }
          const auto size = static_cast<double>(columns);
          EXPECT_NEAR(products[h * rows + l], product, tolerance * size);
          EXPECT_NEAR(differences[h * rows + l], difference, tolerance * size);
          if (h == l) {
            EXPECT_EQ(differences[h * rows + l], 0);
          }
        }
      }
    }
  }
}

TEST(AttentionArithmetic, ComparesRows) {
  test::on_every_target([] {
    expect_comparisons<float>(1e-6);
    expect_comparisons<double>(1e-14);
  });
}

}  // namespace
}  // namespace headlab
