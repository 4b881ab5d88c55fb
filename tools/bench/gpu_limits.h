// SPDX-License-Identifier: Apache-2.0
/// \file Maximum kernel weights per second of a GPU: the numbers and the formula. One weight is one
/// kernel value and its share of the sums.
#pragma once

#include <algorithm>
#include <string>

#include "kernels/plan.h"

namespace headlab::bench {

/// Operations of a multiprocessor per clock cycle, and bytes of the GPU's memory per second.
struct Rates {
  double exponentials;  ///< ex2
  double instructions;  ///< float32 instructions, an ex2 taking the slot of one too
  double tensor;        ///< multiplications and additions of dense float16 products by mma.sync
  double memory;        ///< 0.9 of the data sheet's figure
};

/// By compute capability, from the CUDA programming guide's table of arithmetic throughput, the
/// architecture papers (sm_80: 312e12 float16 operations/s with 108 multiprocessors at 1.41 GHz;
/// sm_90: 989e12 with 132 at 1.98 GHz) and data sheets. Large products sustain 0.8 of these
/// operations; on sm_90 mma.sync reaches 0.63 of them (arXiv 2501.12084). Other GPUs count as the
/// nearest of these.
inline Rates rates_of(const std::string& name, int major, int minor) {
  if (major == 8 && minor == 0) return {16, 64, 0.8 * 1024, 0.9 * 2.04e12};
  if (major == 8) return {16, 128, 0.8 * 512, 0.9 * 1.01e12};
  const bool h200 = name.find("H200") != std::string::npos;
  return {16, 128, 0.63 * 1892, 0.9 * (h200 ? 4.8e12 : 3.35e12)};
}

/// Multiprocessors of a GPU and their clock [Hz].
struct Gpu {
  Rates rates;
  double multiprocessors = 1;
  double clock = 1;
};

/// What a limit depends on.
struct WorkSize {
  int k = 1, d = 1, heads = 1, queries = 1;
};

/// The kernels multiply on the tensor cores from d_k = 5 on, of a d_k padded to 8, 16, 32 or 64.
inline constexpr bool on_tensor_cores(int k) {
  return k > 4;
}
inline constexpr int padded_dimension(int k) {
  return !on_tensor_cores(k) ? k : k <= 8 ? 8 : k <= 16 ? 16 : k <= 32 ? 32 : k <= 64 ? 64 : k;
}

struct Limit {
  double weights_per_second = 0;
  std::string binds;  ///< "exp", "FP32", "tensor" or "memory"
};

inline const Limit& slower(const Limit& a, const Limit& b) {
  return b.weights_per_second < a.weights_per_second ? b : a;
}

/// Limit of one pass over the keys by the units of a multiprocessor: dot products on the CUDA cores
/// (d_k fused multiply-adds) or on the tensor cores (three float16 products in place of a float32
/// one, an instruction for 16 coordinates of 16 queries and 8 keys), one ex2, and three more slots:
/// of ex2, sum w Y and sum w. `pair_slots` are for sums over pairs of heads. On the tensor cores
/// keys are projected as they are weighed, which takes three products once for all queries.
inline Limit pass_limit(const Gpu& gpu, const WorkSize& sizes, double pair_slots) {
  const bool tensor = on_tensor_cores(sizes.k);
  const int padded = padded_dimension(sizes.k);
  const double products = tensor ? 3 * ((padded + 15) / 16) / 4.0 : sizes.k;
  const double cycles = gpu.multiprocessors * gpu.clock;
  Limit limit = {gpu.rates.exponentials * cycles, "exp"};
  limit = slower(limit, {gpu.rates.instructions / (products + 3 + pair_slots) * cycles, "FP32"});
  if (tensor) {
    const double projection = static_cast<double>(sizes.d) * std::max(padded, 16) / sizes.queries;
    limit = slower(limit, {gpu.rates.tensor / (3 * (padded + projection)) * cycles, "tensor"});
  }
  return limit;
}

/// Bytes of memory for one weight: the fused kernel reads keys and values once for all queries, or
/// X in place of keys that it projects.
inline double fused_bytes(const WorkSize& sizes) {
  const double keys = on_tensor_cores(sizes.k) ? 4.0 * sizes.d / sizes.heads : 4.0 * sizes.k;
  return (keys + 4.0 / sizes.heads) / sizes.queries;
}
/// A job also writes X and the values; and reads X and writes the keys where they are stored.
inline double job_bytes(const WorkSize& sizes) {
  const double points = (4.0 * sizes.d + 4) / sizes.heads;
  const double keys =
      on_tensor_cores(sizes.k) ? 0 : 4.0 * sizes.k + (4.0 * sizes.d + 4) / sizes.heads;
  return fused_bytes(sizes) + (points + keys) / sizes.queries;
}

/// Limit of an estimator. Both estimators need sum w and sum w Y. The conditional one adds
/// the sums over pairs of heads, (H + 1)/2 slots; for the aggregate moments two passes without
/// them, which compute every exponential twice, may be faster.
/// \param bytes of a weight in one pass, fused_bytes or job_bytes
inline Limit limit_of(const Gpu& gpu, const WorkSize& sizes, Estimator estimator, MomentMode mode,
                      double bytes) {
  const Limit memory = {gpu.rates.memory / bytes, "memory"};
  const Limit plain = pass_limit(gpu, sizes, 0);
  if (estimator == Estimator::plain) return slower(plain, memory);
  Limit units = pass_limit(gpu, sizes, (sizes.heads + 1) / 2.0);
  if (mode == MomentMode::aggregate && 2 * units.weights_per_second < plain.weights_per_second) {
    units = {plain.weights_per_second / 2, plain.binds + ", two passes"};
  }
  return slower(units, memory);
}

}  // namespace headlab::bench
