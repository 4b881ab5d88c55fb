// SPDX-License-Identifier: Apache-2.0
/// \file Random integers by name: a draw is a pure function of (seed, purpose, replicate, point,
/// coordinate), in cuRAND's counter layout for Philox4x32-10.
/// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#pragma once

#include <cstdint>

// Philox uses none of the types that Random123 has for SSE, whose headers are many.
#define R123_USE_SSE 0
#include <Random123/philox.h>
#if defined(__CUDACC__)
// The two headers give the same names to their constants and to the 32 by 32 bit product.
#undef PHILOX_W32_0
#undef PHILOX_W32_1
#undef PHILOX_M4x32_0
#undef PHILOX_M4x32_1
#define mulhilo32 curand_mulhilo32
#include <curand_philox4x32_x.h>
#undef mulhilo32
#endif

#include "kernels/hd.h"

namespace headlab {

/// What a stream of draws is for; streams of different purposes are independent.
enum class Purpose : std::uint64_t {
  design = 0,
  design_choice = 1,
  noise = 2,
  haar = 3,
  random_cosines = 4,
  queries = 5,
  queries_choice = 6,
  pilot_design = 7,
  pilot_design_choice = 8,
  pilot_noise = 9,
  learning_design = 10,
  learning_design_choice = 11,
  learning_noise = 12,
  learning_batch = 13,
  learning_start = 14,
  coordinate_subsets = 15,
  query_weights = 17,  // of stacks, from here on
  key_weights = 18,
  value_weights = 19,
  output_weights = 20,
  logits = 21,
  mlp_input = 22,
  mlp_bias = 23,
  mlp_output = 24,
  pruning_samples = 25,
  control_design = 26,  // of the pilot that fits controls
  control_design_choice = 27,
  control_noise = 28
};

/// The four integers of one counter: four consecutive draws of a stream.
struct Words {
  std::uint32_t w[4];
};

/// Names the stream of a purpose in a replicate: purpose 2^40 + replicate, for replicate < 2^40.
HEADLAB_HD std::uint64_t subsequence(Purpose purpose, std::uint64_t replicate) {
  return (static_cast<std::uint64_t>(purpose) << 40) + replicate;
}

/// The integers at offsets 4 quad .. 4 quad + 3 of cuRAND's stream (seed, subsequence): Philox4x32
/// with 10 rounds, counter {lo quad, hi quad, lo subsequence, hi subsequence}, key {lo, hi seed}.
/// A device computes them with cuRAND's own function, a host with Random123's.
HEADLAB_HD Words philox(std::uint64_t seed, std::uint64_t subsequence, std::uint64_t quad) {
#if defined(__CUDA_ARCH__)
  const uint4 out = curand_Philox4x32_10(
      make_uint4(static_cast<unsigned>(quad), static_cast<unsigned>(quad >> 32),
                 static_cast<unsigned>(subsequence), static_cast<unsigned>(subsequence >> 32)),
      make_uint2(static_cast<unsigned>(seed), static_cast<unsigned>(seed >> 32)));
  return {{out.x, out.y, out.z, out.w}};
#else
  const philox4x32_ctr_t counter = {
      {static_cast<std::uint32_t>(quad), static_cast<std::uint32_t>(quad >> 32),
       static_cast<std::uint32_t>(subsequence), static_cast<std::uint32_t>(subsequence >> 32)}};
  const philox4x32_key_t key = {
      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}};
  const philox4x32_ctr_t out = philox4x32_R(10, counter, key);
  return {{out.v[0], out.v[1], out.v[2], out.v[3]}};
#endif
}

/// Counters that one point of `coordinates` numbers takes: ceil(coordinates / 4). The draw of
/// (point, coordinate) is word coordinate % 4 of quad point * quads_per_point + coordinate / 4.
HEADLAB_HD constexpr int quads_per_point(int coordinates) {
  return (coordinates + 3) / 4;
}

}  // namespace headlab
