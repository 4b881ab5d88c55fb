// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "engine/scenario/law/subspaces/subspaces.h"
#include "kernels/parameter.h"
#include "kernels/philox.h"

namespace headlab {

/// Independent heads, each on k of the d coordinates, all subsets of k being equally probable (the
/// random subspace method). Source: Ho, "The random subspace method for constructing decision
/// forests", IEEE PAMI 20(8), 1998.
struct CoordinateSubspaces {
  static constexpr const char* name = "coordinates";
  static constexpr const char* summary = "independent heads, each on k random coordinates";

  std::uint64_t seed = 0;
  bool redraw = false;  ///< for every leaf

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.optional("seed", seed, "of the subspaces, default 0");
    visit.optional("redraw", redraw, "draw again for every 8 replicates, default false");
  }

  void check(const Sizes& sizes) const { require_fits(sizes); }

  /// H matrices d x k whose columns are unit vectors of distinct coordinates in ascending order. A
  /// head does not depend on how many there are.
  Subspaces generate(const Sizes& sizes, std::uint64_t draw = 0) const {
    Subspaces subspaces(sizes);
    for (int h = 0; h < sizes.heads; ++h) {
      const std::vector<int> chosen = coordinates_of(h, sizes, draw);
      for (int j = 0; j < sizes.k; ++j) subspaces(h, chosen[static_cast<std::size_t>(j)], j) = 1;
    }
    return subspaces;
  }

 private:
  /// The first k places of a Fisher-Yates shuffle of 0 ... d - 1, place j with quad draw k + j.
  std::vector<int> coordinates_of(int h, const Sizes& sizes, std::uint64_t draw) const {
    std::vector<int> all(static_cast<std::size_t>(sizes.d));
    std::iota(all.begin(), all.end(), 0);
    const std::uint64_t stream =
        subsequence(Purpose::coordinate_subsets, static_cast<std::uint64_t>(h));
    const std::uint64_t first_quad = draw * static_cast<std::uint64_t>(sizes.k);
    for (std::size_t j = 0; j < static_cast<std::size_t>(sizes.k); ++j) {
      const Words words = philox(seed, stream, first_quad + j);
      // Of all.size() - j places one, to 1 in 2^32 / d of its probability.
      const std::uint64_t place = (words.w[0] * std::uint64_t{all.size() - j}) >> 32;
      std::swap(all[j], all[j + static_cast<std::size_t>(place)]);
    }
    all.resize(static_cast<std::size_t>(sizes.k));
    std::sort(all.begin(), all.end());
    return all;
  }
};

}  // namespace headlab
