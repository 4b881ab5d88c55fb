// SPDX-License-Identifier: Apache-2.0
/// \file Exponents of any finite input, one query of one replicate at a time: the common part of
/// the fallback and of stage `keep` (fallback.cu, keep.cu), whose probe, selection and sums see the
/// same bits.
#pragma once

#include <cstdint>

#include "kernels/cuda/arguments.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/products.h"

#if defined(HEADLAB_DEVICE)  // under nvcc and in the emulated build
namespace headlab::HEADLAB_CUDA_NAMESPACE {

inline constexpr unsigned exact_threads = 128;
inline constexpr unsigned exact_warps = exact_threads / warp_threads;

struct Nearest {
  float value;
  std::int64_t key;
};
/// The smaller value, and for equal values the earlier key.
HEADLAB_DEVICE Nearest nearer(const Nearest& a, const Nearest& b) {
  return b.value < a.value || (b.value == a.value && b.key < a.key) ? b : a;
}

/// Combines one value per thread over the thread block, in a fixed order; every thread has the
/// result.
HEADLAB_DEVICE Nearest nearest_of_block(Nearest value, Nearest* of_warps) {
  for (int mask = 16; mask > 0; mask /= 2) {
    const Nearest other = {
        shuffle_xor(value.value, mask),
        static_cast<std::int64_t>(shuffle_xor(static_cast<long long>(value.key), mask))};
    value = nearer(value, other);
  }
  const unsigned thread = thread_index();
  if (thread % warp_threads == 0) of_warps[thread / warp_threads] = value;
  synchronise_block();
  Nearest best = of_warps[0];
  for (unsigned w = 1; w < exact_warps; ++w) best = nearer(best, of_warps[w]);
  synchronise_block();
  return best;
}

/// One query of one replicate.
struct ExactQuery {
  const WeighArguments& a;
  const float* keys;
  std::int64_t stride;  ///< from one row of the keys to the next
  std::int64_t index;

  /// Squared distance to a key in the units of the kernel, and log2 of its kernel value.
  struct Value {
    float distance, exponent;
  };
  HEADLAB_DEVICE Value at(int head, std::int64_t key) const {
    const std::int64_t rows = static_cast<std::int64_t>(head) * a.padded_k;
    const float* k = keys + rows * stride + key;
    const float* q = a.queries.points + rows * a.queries.padded + index;
    const float* p = a.queries.products + rows * a.queries.padded + index;
    float distance = 0;
    float product = 0;
    for (int j = 0; j < a.padded_k; ++j) {
      const float x = k[j * stride];
      const float difference = x - q[static_cast<std::int64_t>(j) * a.queries.padded];
      distance = math::fused(difference, difference, distance);
      product = math::fused(p[static_cast<std::int64_t>(j) * a.queries.padded], x, product);
    }
    float exponent = a.exponent == Exponent::product ? product : -distance;
    if (a.exponent == Exponent::law) {
      a.kernel.visit([&](const auto& law) { exponent = law.log_weight(distance) * log2_e; });
    }
    // Neither NaN nor +infinity, whatever the key.
    exponent = exponent < 1e38f ? exponent : 1e38f;
    return {distance == distance ? distance : __builtin_huge_valf(), exponent};
  }
};

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
#endif
