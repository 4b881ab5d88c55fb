// SPDX-License-Identifier: Apache-2.0
/// \file One design point by the plain scalar definition of the draw, which every faster way to
/// draw must match to the bit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/hd.h"
#include "kernels/law/design/design.h"
#include "kernels/philox.h"

namespace headlab {

struct DesignSampler;

/// True for a sampler of successive rows, which one word draws for a whole training set.
template <class Sampler>
HEADLAB_HD constexpr bool is_sequence(const Sampler& sampler) {
  if constexpr (requires { sampler.successive; }) return sampler.successive != 0;
  return false;
}

/// Numbers a buffer for one design point must hold: 4 ceil(d/4).
HEADLAB_HD constexpr int point_buffer(int d) {
  return 4 * quads_per_point(d);
}

/// Turns the base draws of a point into X in place, the second half of draw_design_point().
template <class Sampler>
HEADLAB_HD std::uint32_t finish_design_point(const Sampler& sampler, const float* table,
                                             std::uint64_t seed, Purpose choice,
                                             std::uint64_t replicate, std::uint64_t point, float* x,
                                             std::ptrdiff_t stride = 1) {
  std::uint32_t word = 0;
  if constexpr (Sampler::chooses) {
    const std::uint64_t counter = is_sequence(sampler) ? 0 : point;
    word = philox(seed, subsequence(choice, replicate), counter).w[0];
  }
  if constexpr (requires { sampler.successive; }) return sampler(table, word, x, stride, point);
  return sampler(table, word, x, stride);
}

/// Draws the base draws of a point, the first half of draw_design_point().
template <class Sampler>
HEADLAB_HD void draw_base_point(const Sampler&, int d, std::uint64_t seed, Purpose base,
                                std::uint64_t replicate, std::uint64_t point, float* x,
                                std::ptrdiff_t stride = 1) {
  if constexpr (Sampler::base == BaseDraw::none) return;
  const auto quads = static_cast<std::uint64_t>(quads_per_point(d));
  const std::uint64_t stream = subsequence(base, replicate);
  for (std::uint64_t quad = 0; quad < quads; ++quad) {
    const Words words = philox(seed, stream, point * quads + quad);
    float* to = x + static_cast<std::ptrdiff_t>(4 * quad) * stride;
    if constexpr (Sampler::base == BaseDraw::normal) {
      for (int pair = 0; pair < 4; pair += 2) {
        const NormalPair z = normal_pair(words.w[pair], words.w[pair + 1]);
        to[pair * stride] = z.first;
        to[(pair + 1) * stride] = z.second;
      }
    } else {
      for (int j = 0; j < 4; ++j) to[j * stride] = uniform_symmetric(words.w[j]);
    }
  }
}

/// Draws design point `point` of `replicate` into x [4 ceil(d/4)], whose first d places are X, and
/// returns the row of the data file it is (0 for other designs). Place j stands at x[j * stride].
///
/// Base draw j of the point comes from word j % 4 of quad point * ceil(d/4) + j / 4 of the stream
/// (seed, `base`, replicate): normals two by two from words 0, 1 and 2, 3 of a quad, uniforms one
/// by one. The choice, where the law makes one, is word 0 of quad `point` of the stream (seed,
/// `choice`, replicate). The sampler then turns the base draws into X in place. `table` is the
/// plan's, rounded.
template <class Sampler>
HEADLAB_HD std::uint32_t draw_design_point(const Sampler& sampler, const float* table, int d,
                                           std::uint64_t seed, Purpose base, Purpose choice,
                                           std::uint64_t replicate, std::uint64_t point, float* x,
                                           std::ptrdiff_t stride = 1) {
  draw_base_point(sampler, d, seed, base, replicate, point, x, stride);
  return finish_design_point(sampler, table, seed, choice, replicate, point, x, stride);
}

/// The same for whichever sampler a plan holds.
std::uint32_t draw_design_point(const DesignSampler& design, const float* table, int d,
                                std::uint64_t seed, Purpose base, Purpose choice,
                                std::uint64_t replicate, std::uint64_t point, float* x);

}  // namespace headlab
