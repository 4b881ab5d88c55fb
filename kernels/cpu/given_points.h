// SPDX-License-Identifier: Apache-2.0
/// \file Points of a caller, in place of draws.
#pragma once

#include <span>

namespace headlab {

/// A training set that is given, not drawn.
struct GivenPoints {
  std::span<const float> x;  ///< [n][d]
  std::span<const float> y;  ///< [n]
};

/// Sums of products of larger numbers would leave float32.
inline constexpr float max_given = 1e30f;

}  // namespace headlab
