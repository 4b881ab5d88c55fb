// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/stack_arithmetic.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/philox.h"
#include "kernels/stack/layers.h"
#include "kernels/stack/maps.h"
#include "kernels/stack/worker.h"
#include "kernels/testing/every_target.h"
#include "kernels/testing/test_plans.h"

namespace headlab {
namespace {

using Eigen::Index;
using Eigen::RowVectorXd;
using Eigen::VectorXd;

RowMatrix some_matrix(Index rows, Index columns, std::uint64_t replicate) {
  return normal_matrix({2, replicate}, Purpose::design, 0, rows, columns, 1);
}

/// Calls check(arithmetic) on every target.
template <class Check>
void with_every_target(const Check& check) {
  test::on_every_target([&] { check(cpu_stack_arithmetic()); });
}

TEST(stack_arithmetic, products_are_one_chain_of_fused_operations) {
  with_every_target([](const StackArithmetic& arithmetic) {
    for (const int rows : {1, 3, 8, 12, 33}) {
      for (const int columns : {1, 4, 9, 17}) {
        for (const int inner : {1, 5, 32, 300}) {
          const RowMatrix a = some_matrix(rows, inner, 0);
          const RowMatrix b = some_matrix(inner, columns, 1);
          // Parts of larger matrices, whose other entries stay.
          RowMatrix c = RowMatrix::Constant(2 * rows, columns + 3, 7);
          arithmetic.product(a, b, c.block(0, 1, rows, columns));
          arithmetic.product_transposed(a, RowMatrix(b.transpose()),
                                        c.block(rows, 1, rows, columns));
          for (int i = 0; i < rows; ++i) {
            for (int j = 0; j < columns; ++j) {
              double sum = 0;
              for (int k = 0; k < inner; ++k) sum = std::fma(a(i, k), b(k, j), sum);
              ASSERT_EQ(c(i, 1 + j), sum) << rows << " " << columns << " " << inner;
              ASSERT_EQ(c(rows + i, 1 + j), sum) << rows << " " << columns << " " << inner;
            }
          }
          EXPECT_EQ(c.col(0), VectorXd::Constant(2 * rows, 7));
          EXPECT_EQ(c.rightCols(2), RowMatrix::Constant(2 * rows, 2, 7));
        }
      }
    }
  });
}

/// Results of all operations but products and draws, on one size.
std::vector<RowMatrix> results(const StackArithmetic& arithmetic, Index n, double size, double w) {
  RowMatrix scores = size * some_matrix(n + 1, n, 3);
  const RowMatrix rows = some_matrix(n, n + 2, 4);
  const RowVectorXd m = some_matrix(1, n + 2, 5).row(0);
  std::vector<RowMatrix> out;
  RowMatrix attention = RowMatrix::Constant(n + 1, n, std::nan(""));
  const double entropy = arithmetic.softmax(scores, w, attention);
  out.push_back(attention.topRows(n));
  out.push_back(attention.row(n));
  RowMatrix centre = rows;
  RowVectorXd mean;
  const double largest = arithmetic.centre(centre, mean);
  out.push_back(centre);
  out.push_back(mean);
  VectorXd products;
  VectorXd squares;
  arithmetic.row_products(rows, m, products, squares);
  out.push_back(products);
  out.push_back(squares);
  RowMatrix combined(n, n + 2);
  arithmetic.combine(rows, products, squares, m, combined);
  out.push_back(combined);
  RowMatrix sum(n, n + 2);
  arithmetic.sum(0.3, rows, -2, combined, sum);
  out.push_back(sum);
  // A small entropy is a difference of larger numbers.
  for (const double number :
       {1 + entropy, largest, arithmetic.spread(rows), arithmetic.largest_difference(rows),
        arithmetic.largest_square_distance(rows)}) {
    out.push_back(RowMatrix::Constant(1, 1, number));
  }
  return out;
}

/// Largest difference of matrices in units of the largest entry of each; infinite for NaN.
double distance(const std::vector<RowMatrix>& a, const std::vector<RowMatrix>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double scale = b[i].isZero(0) ? 1 : b[i].cwiseAbs().maxCoeff();
    const double miss = (a[i] - b[i]).cwiseAbs().maxCoeff() / scale;
    largest = std::max(largest, (a[i] - b[i]).allFinite() ? miss : HUGE_VAL);
  }
  return largest;
}

TEST(stack_arithmetic, agrees_with_the_definition) {
  // Logits of size 1, infinitesimal, and with rows too far apart for the exponential.
  const std::vector<std::pair<double, double>> logits = {{1, 0}, {1, -700}, {1, -30}, {2, 6}};
  std::vector<std::vector<RowMatrix>> first;
  const std::size_t targets = cpu_targets().size();
  std::size_t target = 0;
  with_every_target([&](const StackArithmetic& arithmetic) {
    std::size_t c = 0;
    for (const Index n : {1, 2, 7, 8, 21, 40}) {
      for (const auto& [size, w] : logits) {
        const auto got = results(arithmetic, n, size, w);
        // Logits of some 1000 lose four digits.
        EXPECT_LE(distance(got, results(plain_arithmetic(), n, size, w)), 1e-12) << n << " " << w;
        if (c == first.size()) first.push_back(got);
        // The portable target comes last, and has exponentials without fused operations.
        const bool portable = target + 1 == targets;
        EXPECT_LE(distance(got, first[c++]), portable ? 1e-12 : 0) << n << " " << w;
      }
    }
    ++target;
  });
  const auto expected = results(plain_arithmetic(), 9, 1, 0);
  EXPECT_GT(distance(results(plain_arithmetic(), 9, 1 + 1e-10, 0), expected), 1e-12);
  auto odd = expected;
  odd[2](1, 1) = std::nan("");
  EXPECT_EQ(distance(odd, expected), HUGE_VAL);
}

TEST(stack_arithmetic, softmax_is_that_of_its_rows) {
  const Index n = 6;
  for (const double w : {-2.0, 3.0, 8.0}) {
    RowMatrix scores = some_matrix(n + 1, n, 3);
    RowMatrix attention(n + 1, n);
    const double entropy = plain_arithmetic().softmax(scores, w, attention);
    double expected = 0;
    for (Index i = 0; i < n; ++i) {
      const RowVectorXd logits = std::exp(w) * scores.row(i) + scores.row(n);
      RowVectorXd weights = (logits.array() - logits.maxCoeff()).exp();
      weights /= weights.sum();
      const RowVectorXd got = attention.row(n) + std::exp(std::min(w, 0.0)) * attention.row(i);
      EXPECT_LE((got - weights).cwiseAbs().maxCoeff(), 1e-12);
      for (const double p : weights) expected -= p > 0 ? p * std::log(p) / n : 0;
    }
    EXPECT_NEAR(entropy, expected, 1e-12);
  }
}

TEST(stack_arithmetic, normals_have_the_bits_of_their_definition) {
  for (const std::size_t count : {1u, 4u, 63u, 128u, 1027u}) {
    std::vector<double> expected(count);
    plain_arithmetic().normals(7, 123, 5, 0.3, expected);
    with_every_target([&](const StackArithmetic& arithmetic) {
      std::vector<double> got(count);
      arithmetic.normals(7, 123, 5, 0.3, got);
      EXPECT_EQ(std::memcmp(got.data(), expected.data(), 8 * count), 0) << count;
    });
  }
}

TEST(stack_arithmetic, tokens_have_the_bits_of_their_definition) {
  const Plan plan = test::stack_plan({}, 37, 5, 1);
  test::on_every_target([&] { EXPECT_EQ(cpu_stack_tokens(plan, 3), stack_tokens(plan, 3)); });
}

/// A stack with everything that is computed apart.
Stack full_stack() {
  Stack stack;
  stack.layers = 4;
  stack.heads = 3;
  stack.temperature = 2;
  stack.maps = GaussianMaps{.query_key = 2, .k = 5, .value_dim = 5};
  stack.memory = 0.3;
  stack.skip = -0.2;
  return stack;
}

/// Largest difference of R, sigma and m through the layers, the last two relative: a stack by the
/// definition and another on the cpu.
double largest_difference(const Stack& stack, const Stack& on_cpu, std::uint64_t replicate) {
  const RowMatrix x = some_matrix(11, 7, replicate);
  StackState expected(stack, {3, replicate}, x);
  StackState got(on_cpu, {3, replicate, &cpu_stack_arithmetic()}, x);
  double largest = 0;
  for (int l = 0; l < stack.layers; ++l) {
    expected.advance();
    got.advance();
    const CentredTokens& a = expected.tokens();
    const CentredTokens& b = got.tokens();
    largest = std::max({largest, (a.residual - b.residual).cwiseAbs().maxCoeff(),
                        std::abs(a.exponent - b.exponent) / std::max(1.0, std::abs(a.exponent)),
                        (a.mean - b.mean).norm() / a.mean.norm()});
  }
  return largest;
}

TEST(stack_arithmetic, stacks_have_the_numbers_of_the_definition) {
  const Stack stack = full_stack();
  Stack other = stack;
  other.temperature *= 1 + 1e-8;
  for (std::uint64_t r = 0; r < 5; ++r) {
    EXPECT_LE(largest_difference(stack, stack, r), 1e-10);
    EXPECT_GT(largest_difference(stack, other, r), 1e-10);  // negative control
  }
}

TEST(stack_arithmetic, stacks_have_the_same_bits_on_avx2_and_avx512) {
  const Stack stack = full_stack();
  std::vector<RowMatrix> found;
  test::on_every_target([&] {
    StackState state(stack, StackDraws{3, 1, &cpu_stack_arithmetic()}, some_matrix(11, 7, 1));
    for (int l = 0; l < stack.layers; ++l) state.advance();
    found.push_back(state.tokens().residual);
  });
  // The portable target comes last, and has exponentials without fused operations.
  for (std::size_t t = 1; t + 1 < found.size(); ++t) EXPECT_EQ(found[t], found[0]);
  EXPECT_LE((found.back() - found[0]).cwiseAbs().maxCoeff(), 1e-10);
}

}  // namespace
}  // namespace headlab
