// SPDX-License-Identifier: Apache-2.0
/// \file The worker of the CPU backend.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "kernels/backend.h"
#include "kernels/cpu/given_points.h"

namespace headlab {

struct Plan;

/// A worker on plans that share their draws and outlive it, for the SIMD target of the machine.
std::unique_ptr<Worker> make_cpu_worker(Plans plans);

/// Nadaraya-Watson estimates f_h(x) = sum_i w_hi(x) Y_i / sum_i w_hi(x) of every head at every
/// query from given points, to `estimates` [H][Q]. Of the plan it reads n, d, heads, k, queries,
/// kernel, projections and query points. The bits do not depend on the threads.
/// \param plan of the plain estimator, with no stage but `transform`
/// \param points up to `max_given` in size
/// \param stop null, or set by another thread to leave the rest undone
/// \return windows of kernel values that are all below 2^-126
std::uint64_t estimate_heads_cpu(const Plan& plan, const GivenPoints& points, int threads,
                                 std::span<float> estimates,
                                 const std::atomic<bool>* stop = nullptr);

/// Place of the first number that is NaN or above `max_given` in size; numbers.size() if there is
/// none.
std::size_t first_immoderate(std::span<const float> numbers);

/// The steps of one replicate, one by one, for benchmarks. The whole training set is in memory.
class CpuParts {
 public:
  virtual ~CpuParts() = default;
  virtual void draw(std::uint64_t replicate) = 0;  ///< X and the values at X
  virtual void project() = 0;                      ///< keys of all heads from X
  virtual void sum() = 0;  ///< kernel values and sums, all heads and queries
};
std::unique_ptr<CpuParts> make_cpu_parts(const Plan& plan);

/// 2^(t + offset) as the kernel loop computes it, for tests of its error.
void exp2_cpu(const float* t, float offset, bool clamp, float* out, std::size_t count);

}  // namespace headlab
