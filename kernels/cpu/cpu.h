// SPDX-License-Identifier: Apache-2.0
/// \file The CPU backend: float32 in SIMD, chosen for the machine at run time; float64 across
/// blocks of keys and across replicates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/law/design/design.h"
#include "kernels/tile.h"

namespace headlab {

std::unique_ptr<Backend> make_cpu_backend();

/// The parts of the work on one replicate, one by one, for benchmarks. The whole training set is in
/// memory at once.
class CpuParts {
 public:
  virtual ~CpuParts() = default;
  virtual void draw(std::uint64_t replicate) = 0;  ///< X and the values at X
  virtual void project() = 0;                      ///< keys of all heads from X
  virtual void sum() = 0;  ///< kernel values and sums, all heads and queries
};
std::unique_ptr<CpuParts> make_cpu_parts(const Plan& plan);

/// The design points of a replicate as this backend draws them, x [n][d], for tests of the draws.
std::vector<float> draw_design_cpu(const Plan& plan, std::uint64_t replicate);

/// Base draws of the tile_points points from `first` on of the stream (seed, subsequence), as
/// `draw_design_point` before its sampler, x [4 quads]; for tests of far points.
void draw_base_cpu(BaseDraw base, std::uint64_t seed, std::uint64_t subsequence,
                   std::uint64_t first, std::uint64_t quads, Tile* x);

/// noise.unit() of the tile_points points from `first` on, for tests of the draws.
Tile draw_noise_cpu(const Plan& plan, std::uint64_t replicate, std::uint64_t first);

/// `normal_pair` of a and b [tile_points], aligned as a Tile, for tests of every word.
void normal_pair_cpu(const std::uint32_t* a, const std::uint32_t* b, Tile& first, Tile& second);

/// Highway's codes of the SIMD targets this machine can run, the fastest first, and a code's name.
std::vector<std::int64_t> cpu_targets();
std::string cpu_simd_name(std::int64_t target);

/// 2^(t + whole) as the kernel loop computes it, for tests of its error.
void exp2_cpu(const float* t, float whole, bool clamp, float* out, std::size_t count);

}  // namespace headlab
