// SPDX-License-Identifier: Apache-2.0
/// \file The draws of the CPU backend: training points to be kept, and parts of a draw for tests.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/law/design/design.h"
#include "kernels/tile.h"

namespace headlab {

struct Plan;

/// Where a sequence of points is: the tile that comes next and the last point before it.
struct SequenceState {
  std::uint64_t replicate = 0;  ///< 0 for a fixed design
  std::uint64_t next = 0;
  std::vector<float> last = {};  ///< [4 ceil(d/4)]
};

/// Consecutive points of one training set.
struct Points {
  std::span<float> x;            ///< [count][d], X_i, float32 as drawn
  std::span<double> regression;  ///< [count], m(X_i)
  std::span<double> noise_sd;    ///< [count], s(X_i)
  std::span<double> y;           ///< [count], Y_i = m(X_i) + e_i
};

/// Draws the points first .. first + count - 1 of the training set of `replicate`, count =
/// to.y.size(), with the bits of draw_training_set() on every SIMD target: X and the unit noise are
/// drawn in SIMD, m and s evaluated in float64. Of a sequence of law `ar1` `first` has to be a
/// multiple of tile_points, and the draw resumes at `sequence` where that is not behind it, else at
/// point 0; any other design leaves `sequence` alone.
void draw_training_points(const Plan& plan, std::uint64_t replicate, std::uint64_t first,
                          const Points& to, SequenceState& sequence);

/// The design points of a replicate, x [n][d], as the backend draws them.
std::vector<float> draw_design_cpu(const Plan& plan, std::uint64_t replicate);

/// Base draws of the tile_points points from `first` on of the stream (seed, subsequence), before
/// the sampler of `draw_design_point`, x [4 quads].
void draw_base_cpu(BaseDraw base, std::uint64_t seed, std::uint64_t subsequence,
                   std::uint64_t first, std::uint64_t quads, Tile* x);

/// noise.unit() of the tile_points points from `first` on.
Tile draw_noise_cpu(const Plan& plan, std::uint64_t replicate, std::uint64_t first);

/// `normal_pair` of a and b [tile_points], aligned as a Tile.
void normal_pair_cpu(const std::uint32_t* a, const std::uint32_t* b, Tile& first, Tile& second);

}  // namespace headlab
