// SPDX-License-Identifier: Apache-2.0
/// \file Smallest sum of kernel values that float32 keeps accurate.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/statistics/moments.h"

namespace headlab {

/// Arithmetic of a backend below 2^-126, the smallest normal float32.
enum class Underflow {
  flushed,  ///< smaller results are zero: an addition loses up to 2^-126 (cpu, see subnormals.h)
  gradual,  ///< subnormal numbers: an addition loses up to 2^-150 (cuda, nvcc's -ftz=false)
};

/// Smallest sum W of n kernel values w, relative to no largest one, whose float32 sums are safe;
/// below it a backend subtracts the largest exponent first.
///
/// Kernel values below 2^-126 are zero on every backend, so that sum w loses at most n 2^-126. With
/// W at least 2^-40 that is a share of n 2^-86. Sum w^2 loses up to u in each addition, n u in all,
/// and is itself at least W^2 / n: a share of n^2 u / W^2, at most 2^-30 where W is at least n
/// sqrt(2^30 u). Products w_g w_l of two heads lose as much of sqrt(sum w_g^2 sum w_l^2). The plain
/// estimator needs sum w^2 only to tell whether one w is more than W / 2, which underflow cannot
/// change.
///
/// With a noise scale s in place of 1 the products are (s w)^2, and s should be near 1.
inline double min_safe_sum(Estimator estimator, std::uint64_t n, Underflow underflow) {
  constexpr double min_sum = 0x1p-40;
  if (estimator == Estimator::plain) return min_sum;
  const double mean = underflow == Underflow::flushed ? 0x1p-48 : 0x1p-60;  // sqrt(2^30 u)
  return std::max(min_sum, mean * static_cast<double>(n));
}

}  // namespace headlab
