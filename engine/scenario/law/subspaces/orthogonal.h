// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/scenario/law/subspaces/subspaces.h"
#include "kernels/parameter.h"

namespace headlab {

/// Mutually orthogonal heads: head h owns coordinates h k .. (h+1) k - 1.
struct OrthogonalSubspaces : NoParameters {
  static constexpr const char* name = "orthogonal";
  static constexpr const char* summary = "head h owns coordinates h k to (h+1) k - 1";
  static constexpr const char* equation = "W_h^T W_l = 0, h ≠ l";

  void check(const Sizes& sizes) const { require_side_by_side(sizes); }

  /// H matrices d x k with orthonormal columns.
  Subspaces generate(const Sizes& sizes) const {
    Subspaces subspaces(sizes);
    for (int h = 0; h < sizes.heads; ++h) {
      for (int j = 0; j < sizes.k; ++j) subspaces(h, h * sizes.k + j, j) = 1;
    }
    return subspaces;
  }
};

}  // namespace headlab
