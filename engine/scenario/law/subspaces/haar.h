// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "engine/scenario/law/subspaces/orthonormal.h"
#include "engine/scenario/law/subspaces/subspaces.h"
#include "kernels/draws.h"
#include "kernels/parameter.h"
#include "kernels/philox.h"

namespace headlab {

/// H matrices d x k of independent normals. Row i of head h in a draw is point draw d + i of
/// replicate h, so a head does not depend on how many there are.
inline Subspaces normal_subspaces(const Sizes& sizes, std::uint64_t seed, Purpose purpose,
                                  std::uint64_t draw = 0) {
  Subspaces subspaces(sizes);
  const auto quads = static_cast<std::uint64_t>(quads_per_point(sizes.k));
  const std::uint64_t first_row = draw * static_cast<std::uint64_t>(sizes.d);
  for (int h = 0; h < sizes.heads; ++h) {
    const std::uint64_t stream = subsequence(purpose, static_cast<std::uint64_t>(h));
    for (int i = 0; i < sizes.d; ++i) {
      const std::uint64_t first_quad = (first_row + static_cast<unsigned>(i)) * quads;
      for (int j = 0; j < sizes.k; j += 2) {
        const Words words = philox(seed, stream, first_quad + static_cast<unsigned>(j / 4));
        const NormalPair z = normal_pair(words.w[j % 4], words.w[j % 4 + 1]);
        subspaces(h, i, j) = z.first;
        if (j + 1 < sizes.k) subspaces(h, i, j + 1) = z.second;
      }
    }
  }
  return subspaces;
}

/// Independent heads, each uniformly distributed over all d x k matrices of orthonormal columns.
struct HaarSubspaces {
  static constexpr const char* name = "haar";
  static constexpr const char* summary = "independent and uniformly distributed heads";

  std::uint64_t seed = 0;
  bool redraw = false;  ///< for every leaf

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.optional("seed", seed, "of the subspaces, default 0");
    visit.optional("redraw", redraw, "draw again for every 8 replicates, default false");
  }

  void check(const Sizes& sizes) const { require_fits(sizes); }

  /// H matrices d x k with orthonormal columns: the Q of a matrix of independent normals.
  Subspaces generate(const Sizes& sizes, std::uint64_t draw = 0) const {
    Subspaces subspaces = normal_subspaces(sizes, seed, Purpose::haar, draw);
    orthonormalise_each(subspaces);
    return subspaces;
  }
};

}  // namespace headlab
