// SPDX-License-Identifier: Apache-2.0
#include "kernels/statistics/safe_sums.h"

#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/subnormals.h"

namespace headlab {
namespace {

constexpr Underflow modes[] = {Underflow::flushed, Underflow::gradual};

/// Relative error of the float32 sum of w^2 over 256 keys, of which n like them have the sum W. The
/// kernel values are 2^0 to 2^-spread times the largest.
double error_of_squares(double sum, double n, double spread, Underflow underflow) {
  std::vector<double> values;
  double total = 0;
  for (std::size_t i = 0; i < 256; ++i) {
    values.push_back(std::exp2(-spread * static_cast<double>(i) / 255));
    total += values.back();
  }
  double exact = 0;
  volatile float rounded = 0;  // computed in the arithmetic of the run, not of the compiler
  {
    std::optional<WithoutSubnormals> flush;
    if (underflow == Underflow::flushed) flush.emplace();
    for (const double value : values) {
      volatile float w = static_cast<float>(value / total * 256 * sum / n);
      exact += static_cast<double>(w) * static_cast<double>(w);
      rounded = rounded + w * w;
    }
  }
  return std::abs(static_cast<double>(rounded) - exact) / exact;
}

TEST(SafeSums, KeepTheDigitsOfSumsOfSquares) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "subnormal numbers are flushed on x86-64 only";
#endif
  for (const Underflow underflow : modes) {
    for (int bits = 0; bits <= 48; bits += 4) {
      const double n = std::exp2(bits);
      const double sum =
          min_safe_sum(Estimator::conditional, static_cast<std::uint64_t>(n), underflow);
      for (const double spread : {0.0, 1.0, 10.0, 40.0}) {
        EXPECT_LT(error_of_squares(1.1 * sum, n, spread, underflow), 0x1p-15)
            << "n 2^" << bits << " spread " << spread << " mode " << static_cast<int>(underflow);
      }
    }
  }
  // Negative controls: a limit that does not grow with n, and that of gradual underflow where
  // results are flushed.
  EXPECT_GT(error_of_squares(1.1 * 0x1p-40, 0x1p24, 0, Underflow::flushed), 0.5);
  EXPECT_GT(error_of_squares(1.1 * 0x1p-40, 0x1p34, 0, Underflow::gradual), 0.01);
  const double gradual = min_safe_sum(Estimator::conditional, 1ull << 40, Underflow::gradual);
  EXPECT_GT(error_of_squares(1.1 * gradual, 0x1p40, 10, Underflow::flushed), 0x1p-13);
}

TEST(SafeSums, GrowWithTheNumberOfPointsWhereSquaresAreNeeded) {
  for (const Underflow underflow : modes) {
    EXPECT_EQ(min_safe_sum(Estimator::plain, 1ull << 40, underflow), 0x1p-40);
    EXPECT_EQ(min_safe_sum(Estimator::conditional, 100, underflow), 0x1p-40);
  }
  EXPECT_EQ(min_safe_sum(Estimator::conditional, 1u << 8, Underflow::flushed), 0x1p-40);
  EXPECT_EQ(min_safe_sum(Estimator::conditional, 1u << 20, Underflow::flushed), 0x1p-28);
  EXPECT_EQ(min_safe_sum(Estimator::conditional, 1u << 20, Underflow::gradual), 0x1p-40);
  EXPECT_EQ(min_safe_sum(Estimator::conditional, 1u << 24, Underflow::gradual), 0x1p-36);
}

}  // namespace
}  // namespace headlab
