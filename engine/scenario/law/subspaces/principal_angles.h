// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "engine/scenario/law/subspaces/subspaces.h"
#include "kernels/counted.h"
#include "kernels/parameter.h"

namespace headlab {

/// Heads 1 .. H - 1 at given principal angles to head 0, each turned into k directions of its own:
/// W_1 = E_0, W_h = E_0 diag(cos t) + E_(h-1) diag(sin t), where E_m holds the unit vectors of
/// coordinates m k .. (m+1) k - 1. Two of the heads 2 .. H are at the angles arccos(cos^2 t_j).
struct PrincipalAngleSubspaces {
  static constexpr const char* name = "principal_angles";
  static constexpr const char* summary = "every further head at these angles to head 0; H k <= d";
  static constexpr const char* example = "angles = [0, 1.5708]";

  std::vector<double> angles = {};  ///< [k], radians; from pi/2 on: pi/2, at which the cosine is 0

  template <class Visitor>
  void parameters(Visitor& visit) {
    // pi/2 rounded up, so that a right angle may be written with five digits.
    visit.required("angles", angles, in_radians(within(0, 1.5708)),
                   "[k], radians, 1.5708 for a right angle");
  }

  void check(const Sizes& sizes) const {
    if (angles.size() != static_cast<std::size_t>(sizes.k)) {
      throw ParameterError("angles", "has " + counted(angles.size(), "element") +
                                         ", needs k = " + std::to_string(sizes.k) +
                                         ", one for each dimension of a head");
    }
    require_side_by_side(sizes);
  }

  /// H matrices d x k with orthonormal columns.
  Subspaces generate(const Sizes& sizes) const {
    Subspaces subspaces(sizes);
    for (int h = 0; h < sizes.heads; ++h) {
      for (int j = 0; j < sizes.k; ++j) {
        const double angle = h == 0 ? 0.0 : angles[static_cast<std::size_t>(j)];
        const bool right = angle >= std::numbers::pi / 2;
        subspaces(h, j, j) = right ? 0.0 : std::cos(angle);
        if (h > 0) subspaces(h, h * sizes.k + j, j) = right ? 1.0 : std::sin(angle);
      }
    }
    return subspaces;
  }
};

}  // namespace headlab
