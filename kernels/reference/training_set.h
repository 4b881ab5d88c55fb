// SPDX-License-Identifier: Apache-2.0
/// \file The training set of a replicate in float64.
#pragma once

#include <cstdint>
#include <vector>

namespace headlab {

struct Plan;

/// One training set in float64, or the tokens that are made of it.
struct TrainingSet {
  std::vector<double> x;           ///< [n][d]
  std::vector<double> regression;  ///< [n], m(X_i)
  std::vector<double> noise_sd;    ///< [n], s(X_i)
  std::vector<double> noise;       ///< [n], e_i; not read by the conditional estimator
};

/// Draws the training set of one replicate: X and the unit noise have the bits that every backend
/// draws, m and s are evaluated in float64.
TrainingSet draw_training_set(const Plan& plan, std::uint64_t replicate);

/// The tokens of a training set, by stage `merge`; the set itself where that is off. Noise of a
/// token is the sum of that of its points, times their weights.
TrainingSet tokens_of(const Plan& plan, TrainingSet sample);

}  // namespace headlab
