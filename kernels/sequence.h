// SPDX-License-Identifier: Apache-2.0
/// \file How successive design points depend on one another.
#pragma once

#include <cmath>
#include <cstddef>
#include <optional>

#include "kernels/hd.h"
#include "kernels/math.h"

namespace headlab {

/// Points that are worked on together in a sequence; part of the definition of its bits.
inline constexpr int ar1_tile = 16;

/// X_1 ~ N(0, I), X_i = phi X_{i-1} + sqrt(1 - phi^2) Z_i, coordinate by coordinate, before the
/// mean and the covariance of the design are applied. Each number is rounded once from float64.
struct Ar1 {
  float powers[ar1_tile] = {};  ///< phi, phi^2, ...
  float innovation = 1;         ///< sqrt(1 - phi^2)

  Ar1() = default;
  explicit Ar1(double phi) : innovation(static_cast<float>(std::sqrt(1 - phi * phi))) {
    for (int r = 0; r < ar1_tile; ++r) powers[r] = static_cast<float>(std::pow(phi, r + 1));
  }

  /// Turns ar1_tile independent normals of one coordinate, z[r * stride], into points of the
  /// sequence. A tile is summed from 0, and what came before is added times powers of phi, so that
  /// tiles wait for one another only once each. \param last the last point of the tile before; gets
  /// that of this one \param first whether this is the first tile
  HEADLAB_HD void operator()(float* z, std::ptrdiff_t stride, float& last, bool first) const {
    float y = 0;
    float x = 0;
    for (int r = 0; r < ar1_tile; ++r) {
      float& at = z[r * stride];
      const float innovated = innovation * at;
      y = first && r == 0 ? at : math::fused(powers[0], y, innovated);
      x = first ? y : math::fused(powers[r], last, y);
      at = x;
    }
    last = x;
  }

  bool operator==(const Ar1&) const = default;
};

}  // namespace headlab
