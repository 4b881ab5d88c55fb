// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/stack_arithmetic.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/philox.h"
#include "kernels/stack/layers.h"
#include "kernels/stack/maps.h"
#include "kernels/testing/every_target.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;

MatrixXd some_matrix(Eigen::Index rows, Eigen::Index columns, std::uint64_t replicate) {
  return normal_matrix({2, replicate}, Purpose::design, 0, rows, columns, 1);
}

/// Calls check(arithmetic) on every target.
template <class Check>
void with_every_target(const Check& check) {
  test::on_every_target([&] { check(cpu_stack_arithmetic()); });
}

TEST(stack_arithmetic, products_are_one_chain_of_fused_operations) {
  with_every_target([](const StackArithmetic& arithmetic) {
    for (const int rows : {1, 3, 8, 16, 19, 33}) {
      for (const int columns : {1, 4, 6, 17}) {
        for (const int inner : {1, 5, 32}) {
          const MatrixXd a = some_matrix(rows, inner, 0);
          const MatrixXd b = some_matrix(inner, columns, 1);
          const MatrixXd c = arithmetic.product(a, b);
          for (int i = 0; i < rows; ++i) {
            for (int j = 0; j < columns; ++j) {
              double sum = 0;
              for (int k = 0; k < inner; ++k) sum = std::fma(a(i, k), b(k, j), sum);
              ASSERT_EQ(c(i, j), sum) << rows << " " << columns << " " << inner;
            }
          }
        }
      }
    }
  });
}

TEST(stack_arithmetic, exponentials_are_accurate_and_keep_nan) {
  std::vector<double> x;
  for (double v = -745; v <= 700; v += 0.37) x.push_back(v);
  for (const double v : {0.0, 1e-300, -1e-18, 1e-9, -1e-5, 0.3, -0.3}) x.push_back(v);
  constexpr double relative_error = 6 * 0x1p-52;
  with_every_target([&](const StackArithmetic& arithmetic) {
    std::vector<double> e = x;
    std::vector<double> m = x;
    arithmetic.exp(e);
    arithmetic.expm1(m);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double tiny = std::numeric_limits<double>::min();
      EXPECT_TRUE(std::abs(e[i] - std::exp(x[i])) <= relative_error * std::exp(x[i]) + tiny)
          << x[i];
      EXPECT_TRUE(std::abs(m[i] - std::expm1(x[i])) <= relative_error * std::abs(std::expm1(x[i])))
          << x[i];
    }
    std::vector<double> odd = {std::nan(""), -std::numeric_limits<double>::infinity(), -1e300};
    arithmetic.exp(odd);
    EXPECT_TRUE(std::isnan(odd[0]));
    EXPECT_EQ(odd[1], 0);
    EXPECT_EQ(odd[2], 0);
    odd = {std::nan(""), -std::numeric_limits<double>::infinity(), -1e300};
    arithmetic.expm1(odd);
    EXPECT_TRUE(std::isnan(odd[0]));
    EXPECT_EQ(odd[1], -1);
    EXPECT_EQ(odd[2], -1);
  });
}

TEST(stack_arithmetic, normals_have_the_bits_of_their_definition) {
  for (const std::size_t count : {1u, 4u, 63u, 64u, 200u, 1027u}) {
    std::vector<float> expected(count);
    plain_arithmetic().normals(7, 123, 5, expected);
    with_every_target([&](const StackArithmetic& arithmetic) {
      std::vector<float> got(count);
      arithmetic.normals(7, 123, 5, got);
      EXPECT_EQ(std::memcmp(got.data(), expected.data(), 4 * count), 0) << count;
    });
  }
}

/// A stack with everything that is computed apart.
Stack full_stack() {
  Stack stack;
  stack.layers = 4;
  stack.heads = 3;
  stack.temperature = 2;
  stack.maps = GaussianMaps{.query_key = 2, .k = 5, .value_dim = 5};
  stack.memory = 0.3;
  return stack;
}

/// Largest difference of R, sigma and m through the layers, the last two relative: a stack by the
/// definition and another on the cpu.
double largest_difference(const Stack& stack, const Stack& on_cpu, std::uint64_t replicate) {
  const MatrixXd x = some_matrix(11, 7, replicate);
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
  std::vector<MatrixXd> found;
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
