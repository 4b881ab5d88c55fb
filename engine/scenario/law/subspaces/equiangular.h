// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <numbers>
#include <string>

#include "engine/scenario/law/subspaces/subspaces.h"
#include "kernels/parameter.h"

namespace headlab {

/// Every pair of heads at the same angle in all k directions: W_h^T W_l = cos(angle) I_k.
struct EquiangularSubspaces {
  static constexpr const char* name = "equiangular";
  static constexpr const char* summary = "every pair of heads at one angle; H k <= d";
  static constexpr const char* equation = "W_h^T W_l = cos(angle) I, h ≠ l";
  static constexpr const char* example = "angle = 1";

  double angle = 1;  ///< radians

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("angle", angle, in_radians(inside(0, std::numbers::pi / 2)),
                   "radians, below a right angle");
  }

  void check(const Sizes& sizes) const { require_side_by_side(sizes); }

  /// H matrices d x k with orthonormal columns: W_h = sum_m L_hm E_m, E_m the unit vectors of
  /// coordinates m k .. (m+1) k - 1, L the Cholesky factor of the Gram matrix (1-c) I + c 1 1^T,
  ///     L_mm^2 = (1-c) (1 + m c) / (1 + (m-1) c),  L_hm = c (1-c) / ((1 + (m-1) c) L_mm), h > m,
  /// with m from 0; in this form it is accurate however small the angle.
  Subspaces generate(const Sizes& sizes) const {
    const double c = std::cos(angle);
    const double half = std::sin(angle / 2);
    const double one_minus_c = 2 * half * half;
    Subspaces subspaces(sizes);
    for (int m = 0; m < sizes.heads; ++m) {
      const double before = m == 0 ? one_minus_c : 1 + (m - 1) * c;
      const double diagonal = std::sqrt(one_minus_c * (1 + m * c) / before);
      for (int h = m; h < sizes.heads; ++h) {
        const double element = h == m ? diagonal : c * one_minus_c / (before * diagonal);
        for (int j = 0; j < sizes.k; ++j) subspaces(h, m * sizes.k + j, j) = element;
      }
    }
    return subspaces;
  }
};

}  // namespace headlab
