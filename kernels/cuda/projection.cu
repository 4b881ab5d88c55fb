// SPDX-License-Identifier: Apache-2.0
// Projections of points to keys, in float32 on the CUDA cores. A coordinate of a key is one chain
// of fused multiply-adds over the coordinates of its point, in their order, by one thread. Its bits
// follow from the point and the matrix: they depend neither on the number of points of a batch nor
// on where a point stands, on the device or on a library. A library of matrix products chooses its
// kernel by all sizes, and promises no more than equal bits for equal calls.
//
// A thread has four points and up to 16 coordinates of their keys: 64 multiply-adds for one load of
// points and four of the matrix, which all lanes of a warp share. Warps of a block share points.
#include <algorithm>
#include <cstdint>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/projection.h"
#include "kernels/math.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

constexpr int project_threads = 128;
constexpr int project_warps = project_threads / static_cast<int>(warp_threads);
constexpr int points_of_thread = 4;
/// Thread blocks that project replicates with a listed row.
constexpr std::int64_t max_needed_blocks = 1024;

/// Warps of a block at the same points, each with coordinates of its own.
HEADLAB_HD constexpr int warps_side_by_side(int groups) {
  return groups >= 4 ? 4 : groups >= 2 ? 2 : 1;
}

/// Warps side by side, thread blocks of work, and those that take them in turns.
struct Division {
  int groups = 1;  ///< of coordinates
  std::int64_t blocks = 1, launched = 1;
};

template <int Outputs>
HEADLAB_DEVICE void project_block(const ProjectArguments& a, int groups, std::int64_t block) {
  const TrainingSets& sets = a.sets;
  const int side = warps_side_by_side(groups);
  const int blocks_of_points = (groups + side - 1) / side;
  const int warp = static_cast<int>(thread_index() / warp_threads);
  const int group = static_cast<int>(block % blocks_of_points) * side + warp % side;
  const std::int64_t four =
      (block / blocks_of_points * (project_warps / side) + warp / side) * warp_threads +
      thread_index() % warp_threads;
  const std::int64_t fours = sets.padded_n / points_of_thread;
  if (group >= groups || four >= a.replicates * fours) return;
  const std::int64_t replicate = four / fours;
  const std::int64_t position = four % fours * points_of_thread;
  if (a.needed.rows != nullptr) {
    const std::uint32_t* end = a.needed.counts + (replicate + 1) * a.queries - 1;
    if (*end == (replicate == 0 ? 0 : end[-a.queries])) return;
  }

  const float* x = sets.x_of(replicate) + position;
  const float* projection = a.projections + group * Outputs;
  float sum[Outputs][points_of_thread] = {};
  HEADLAB_UNROLL_BY_4
  for (int c = 0; c < sets.d; ++c) {
    Four point = *reinterpret_cast<const Four*>(x);
    const float centre = a.centre == nullptr ? 0.0f : a.centre[c];
    HEADLAB_UNROLL
    for (int i = 0; i < points_of_thread; ++i) point.v[i] -= centre;
    HEADLAB_UNROLL
    for (int first = 0; first < Outputs; first += 4) {
      const Four w = *reinterpret_cast<const Four*>(projection + first);
      HEADLAB_UNROLL
      for (int o = 0; o < 4; ++o) {
        HEADLAB_UNROLL
        for (int i = 0; i < points_of_thread; ++i) {
          sum[first + o][i] = math::fused(w.v[o], point.v[i], sum[first + o][i]);
        }
      }
    }
    x += sets.padded_n;
    projection += static_cast<std::int64_t>(groups) * Outputs;
  }
  float* key = sets.keys_of(replicate) + group * Outputs * sets.padded_n + position;
  HEADLAB_UNROLL
  for (int o = 0; o < Outputs; ++o) {
    if (group * Outputs + o >= sets.key_rows) return;
    *reinterpret_cast<Four*>(key + o * sets.padded_n) = {sum[o][0], sum[o][1], sum[o][2],
                                                         sum[o][3]};
  }
}

template <int Outputs>
HEADLAB_KERNEL void HEADLAB_LAUNCH_BOUNDS(project_threads, 4)
    project_kernel(const ProjectArguments a, const Division division) {
  // Most lists are empty.
  if (a.needed.rows != nullptr && a.needed.count() == 0) return;
  HEADLAB_NO_UNROLL
  for (std::int64_t block = block_index_x(); block < division.blocks; block += division.launched) {
    project_block<Outputs>(a, division.groups, block);
  }
}

}  // namespace

void project(Stream& stream, const ProjectArguments& a) {
  const int step = projection_step(a.sets.key_rows);
  const int groups = projection_width(a.sets.key_rows) / step;
  const int side = warps_side_by_side(groups);
  const std::int64_t threads_of_points =
      static_cast<std::int64_t>(project_warps / side) * warp_threads;
  const std::int64_t tiles =
      (a.replicates * a.sets.padded_n / points_of_thread + threads_of_points - 1) /
      threads_of_points;
  Division division = {.groups = groups, .blocks = tiles * ((groups + side - 1) / side)};
  division.launched =
      a.needed.rows == nullptr ? division.blocks : std::min(division.blocks, max_needed_blocks);
  launch(stream, "project", {.blocks_x = division.launched, .threads = project_threads},
         step == 16  ? project_kernel<16>
         : step == 8 ? project_kernel<8>
                     : project_kernel<4>,
         a, division);
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
