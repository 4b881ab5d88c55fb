// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/scenario/law/subspaces/subspaces.h"
#include "kernels/parameter.h"

namespace headlab {

/// All heads look at the same coordinates 0 .. k-1: no diversity at all.
struct AlignedSubspaces : NoParameters {
  static constexpr const char* name = "aligned";
  static constexpr const char* summary = "every head owns coordinates 0 to k - 1";
  static constexpr const char* equation = "W_h = W_l";

  void check(const Sizes& sizes) const { require_fits(sizes); }

  /// H matrices d x k with orthonormal columns.
  Subspaces generate(const Sizes& sizes) const {
    Subspaces subspaces(sizes);
    for (int h = 0; h < sizes.heads; ++h) {
      for (int j = 0; j < sizes.k; ++j) subspaces(h, j, j) = 1;
    }
    return subspaces;
  }
};

}  // namespace headlab
