// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "engine/scenario/law/subspaces/subspaces.h"
#include "engine/scenario/per_head.h"
#include "kernels/parameter.h"

namespace headlab {

/// Mutually orthogonal heads of different sizes: head h owns the sizes[h] coordinates after those
/// of head h - 1. heads.dim is the largest size; smaller heads have columns of zeros.
struct BlockSubspaces {
  static constexpr const char* name = "blocks";
  static constexpr const char* summary =
      "head h owns the next sizes[h] coordinates; heads.dim is the largest size";
  static constexpr const char* example = "sizes = [1, 2]";

  PerHead sizes = {};

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("sizes", sizes, within(1, 4096),
                   "coordinates of each head, one number or one a head");
  }

  void check(const Sizes& of) const {
    sizes.check("sizes", of.heads);
    std::uint64_t sum = 0, largest = 0;
    for (int h = 0; h < of.heads; ++h) {
      sum += sizes[h];
      largest = std::max(largest, sizes[h]);
    }
    if (largest != static_cast<std::uint64_t>(of.k)) {
      throw ParameterError("sizes", "have the largest size " + std::to_string(largest) +
                                        ", but heads.dim is " + std::to_string(of.k));
    }
    if (sum > static_cast<std::uint64_t>(of.d)) {
      throw ParameterError("sizes", "have the sum " + std::to_string(sum) +
                                        ", more than the dimension d = " + std::to_string(of.d) +
                                        " of the design");
    }
  }

  /// H matrices d x k whose first sizes[h] columns are unit vectors, the others 0.
  Subspaces generate(const Sizes& of) const {
    Subspaces subspaces(of);
    int first = 0;
    bool one_size = true;
    for (int h = 0; h < of.heads; ++h) {
      const auto size = static_cast<int>(sizes[h]);
      for (int j = 0; j < size; ++j) subspaces(h, first + j, j) = 1;
      first += size;
      one_size = one_size && size == of.k;
    }
    if (!one_size) subspaces.assign(subspaces.numbers(), {}, false);
    return subspaces;
  }
};

}  // namespace headlab
