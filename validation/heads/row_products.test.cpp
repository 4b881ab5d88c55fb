// SPDX-License-Identifier: Apache-2.0
#include "validation/heads/row_products.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/testing/every_target.h"
#include "validation/heads/testing/made_layer.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;

template <class T>
RowsOf<T> made(Eigen::Index rows, Eigen::Index columns, std::uint64_t stream) {
  const auto numbers = test::normals(static_cast<std::size_t>(rows * columns), stream);
  return Eigen::Map<const RowsOf<double>>(numbers.data(), rows, columns).cast<T>();
}

/// No entry is off by more than rounding: u for each of up to 256 terms, relative to the sum of
/// their sizes. \param sizes the product of absolute values
template <class T>
void expect_near(const MatrixXd& found, const MatrixXd& exact, const MatrixXd& sizes) {
  ASSERT_EQ(found.rows(), exact.rows());
  ASSERT_EQ(found.cols(), exact.cols());
  const double u = std::numeric_limits<T>::epsilon() / 2;
  EXPECT_LE(((found - exact).cwiseAbs().array() / sizes.array()).maxCoeff(), 256 * u);
  EXPECT_TRUE(found.allFinite());
}

/// Longer than a sum in lanes, and several tasks.
template <class T>
void expect_products() {
  const RowsOf<T> a = made<T>(300, 205, 1), b = made<T>(205, 37, 2);
  const MatrixXd x = a.template cast<double>(), y = b.template cast<double>();
  const MatrixXd size = x.cwiseAbs();
  expect_near<T>(row_product<T>(a, b, 2), x * y, size * y.cwiseAbs());
  expect_near<T>(products_of_columns<T>(a, 2), x.transpose() * x, size.transpose() * size);
  expect_near<T>(products_of_rows<T>(a, 2), x * x.transpose(), size * size.transpose());
  const MatrixXd columns = products_of_columns<T>(a, 1), rows = products_of_rows<T>(a, 1);
  EXPECT_EQ(columns, columns.transpose());
  EXPECT_EQ(rows, rows.transpose());
  EXPECT_EQ(products_of_columns<T>(a, 3), columns);
  EXPECT_EQ(products_of_rows<T>(a, 3), rows);
  MatrixXd twice = columns;
  std::vector<int> blocks(product_blocks(a.cols()));
  over_products_of_columns<T>(a, 2, [&](const ProductBlock& block) {
    ++blocks[block.number];
    add_block(block, twice);
  });
  EXPECT_EQ(twice, 2 * columns);
  EXPECT_EQ(blocks, std::vector<int>(blocks.size(), 1));
  EXPECT_GT(blocks.size(), 2U);
}

TEST(RowProducts, AreThoseOfTheDefinition) {
  test::on_every_target([] {
    expect_products<float>();
    expect_products<double>();
    const RowsOf<double> a = made<double>(300, 205, 1), c = made<double>(300, 37, 3);
    const MatrixXd x = a, y = c;
    expect_near<double>(transposed_product<double>(a, c, 2), x.transpose() * y,
                        x.cwiseAbs().transpose() * y.cwiseAbs());
  });
}

}  // namespace
}  // namespace headlab
