// SPDX-License-Identifier: Apache-2.0
/// \file Training points to be kept: the bits of draw_training_set(), any range of them at a time.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/plan.h"

namespace headlab {

/// Where consecutive points of one training set go.
struct Points {
  std::span<float> x;            ///< [count][d], X_i, float32 as drawn
  std::span<double> regression;  ///< [count], m(X_i)
  std::span<double> noise_sd;    ///< [count], s(X_i)
  std::span<double> y;           ///< [count], Y_i = m(X_i) + e_i
};

/// Draws the points first .. first + count - 1 of the training set of `replicate`, count being
/// to.y.size(). X and the unit noise are drawn in SIMD, m and s evaluated in float64, so that
/// everything has the bits of draw_training_set(), at any SIMD target.
void draw_training_points(const Plan& plan, std::uint64_t replicate, std::uint64_t first,
                          const Points& to);

}  // namespace headlab
