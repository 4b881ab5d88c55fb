// SPDX-License-Identifier: Apache-2.0
/// \file One design point by the plain scalar definition of the draw, which every faster way to
/// draw must match to the bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "kernels/hd.h"
#include "kernels/law/design/design.h"
#include "kernels/laws.h"
#include "kernels/philox.h"

namespace headlab {

/// Numbers a buffer for one design point must hold: 4 ceil(d/4).
HEADLAB_HD constexpr int point_buffer(int d) {
  return 4 * quads_per_point(d);
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
  const auto quads = static_cast<std::uint64_t>(quads_per_point(d));
  if constexpr (Sampler::base != BaseDraw::none) {
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
  std::uint32_t word = 0;
  if constexpr (Sampler::chooses) {
    word = philox(seed, subsequence(choice, replicate), point).w[0];
  }
  return sampler(table, word, x, stride);
}

/// The same for whichever sampler a plan holds.
inline std::uint32_t draw_design_point(const DesignSampler& design, const float* table, int d,
                                       std::uint64_t seed, Purpose base, Purpose choice,
                                       std::uint64_t replicate, std::uint64_t point, float* x) {
  return std::visit(
      [&](const auto& sampler) {
        return draw_design_point(sampler, table, d, seed, base, choice, replicate, point, x);
      },
      design);
}

}  // namespace headlab
