// SPDX-License-Identifier: Apache-2.0
/// \file Maximum kernel weights per second of a GPU: the numbers and the formula. One weight is one
/// kernel value and its share of the sums.
#pragma once

#include <algorithm>
#include <string>

#include "kernels/plan.h"

namespace headlab::bench {

/// Operations of a multiprocessor per clock cycle.
struct MultiprocessorRates {
  double exponentials;  ///< ex2
  double instructions;  ///< float32 instructions, an ex2 taking the slot of one too
  /// Multiplications and additions of dense float16 products: 0.8 of the data sheet's figure, which
  /// large products sustain.
  double tensor;
};

/// By compute capability, from the CUDA programming guide's table of arithmetic throughput and the
/// architecture papers (sm_80: 312e12 float16 operations/s with 108 multiprocessors at 1.41 GHz;
/// sm_90: 989e12 with 132 at 1.98 GHz). Other GPUs count as the nearest of these.
inline MultiprocessorRates multiprocessor_rates(int major, int minor) {
  if (major == 8 && minor == 0) return {16, 64, 0.8 * 1024};
  if (major == 8) return {16, 128, 0.8 * 512};
  return {16, 128, 0.8 * 1892};
}

struct Limit {
  double weights_per_second = 0;
  std::string binds;  ///< "exp", "FP32" or "tensor"
};

/// Limit of one pass over the keys with dot products on the CUDA cores (d_k fused
/// multiply-adds) or on the tensor cores (three float16 products in place of a float32 one), one
/// ex2, and three more slots: of ex2, sum w Y and sum w. `pair_slots` are for sums over pairs of
/// heads. The slowest of the three units binds.
inline Limit pass_limit(const MultiprocessorRates& rates, double multiprocessors, double clock,
                        int k, bool tensor, double pair_slots) {
  const double exponentials = rates.exponentials;
  const double cores = rates.instructions / ((tensor ? 0 : k) + 3 + pair_slots);
  const double products = tensor ? rates.tensor / (3 * k) : exponentials;
  const double least = std::min({exponentials, cores, products});
  return {least * multiprocessors * clock, least == exponentials ? "exp"
                                           : least == cores      ? "FP32"
                                                                 : "tensor"};
}

/// Limit of an estimator. Both estimators need sum w and sum w Y. The conditional one adds
/// the sums over pairs of heads, (H + 1)/2 slots; for the aggregate moments two passes without
/// them, which compute every exponential twice, may be faster. Tensor cores from d_k = 16.
inline Limit limit_of(const MultiprocessorRates& rates, double multiprocessors, double clock, int k,
                      int heads, Estimator estimator, MomentMode mode) {
  const bool tensor = k >= 16;
  const Limit plain = pass_limit(rates, multiprocessors, clock, k, tensor, 0);
  if (estimator == Estimator::plain) return plain;
  const Limit pairs = pass_limit(rates, multiprocessors, clock, k, tensor, (heads + 1) / 2.0);
  if (mode == MomentMode::pairwise || 2 * pairs.weights_per_second >= plain.weights_per_second) {
    return pairs;
  }
  return {plain.weights_per_second / 2, plain.binds + ", two passes"};
}

}  // namespace headlab::bench
