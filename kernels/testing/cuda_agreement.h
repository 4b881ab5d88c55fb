// SPDX-License-Identifier: Apache-2.0
/// \file Bounds of the rounding error of the CUDA backend, for its tests.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/testing/agreement.h"

namespace headlab::test {

/// constant: m(X), the value less its centre, exp2 and the product with the value (about 10
/// together; the exponential unit has 2^-22.5), and the float32 sums of a thread, over up to 256
/// keys. of_exponent: as for the cpu backend, and half as much again for split products on the
/// tensor cores, which lose up to 2^-20 of |query| |key|, an eighth of the exponent of absolute
/// values.
inline Rounding cuda_rounding(const Plan& plan) {
  return {.constant = 10 + static_cast<double>(std::min<std::uint64_t>(plan.n, 256)),
          .of_exponent = 12};
}

/// Of estimates and gradients of heads that are learned. constant: exp2 and the products of a term
/// (about 10), then for a key the sum over a tile of 32 queries and over the tiles of up to 96, and
/// the sum of a tile of 64 keys in four lanes. of_exponent: as for the cpu backend.
inline constexpr Rounding cuda_fit_rounding() {
  return {.constant = 10 + (32 + 3) + (16 + 2), .of_exponent = 8};
}

}  // namespace headlab::test
