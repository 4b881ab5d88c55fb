// SPDX-License-Identifier: Apache-2.0
/// \file The serial float64 backend: the definition that every fast path is tested against. It is
/// written to be read, and never tuned.
#pragma once

#include <memory>
#include <vector>

#include "kernels/backend.h"

namespace headlab {

/// One training set in float64.
struct TrainingSet {
  std::vector<double> x;           ///< [n][d]
  std::vector<double> regression;  ///< [n], m(X_i)
  std::vector<double> noise_sd;    ///< [n], s(X_i)
  std::vector<double> noise;       ///< [n], e_i; not read by the conditional estimator
};

/// Draws the training set of one replicate: X and the unit noise have the bits that every backend
/// draws, m and s are evaluated in float64.
TrainingSet draw_training_set(const Plan& plan, std::uint64_t replicate);

/// NW weights w_i [n] of one head at one query, in the log domain. Where every kernel value is
/// exactly zero the nearest key in the head's metric gets weight 1. Counts the window.
std::vector<double> nw_weights(const Plan& plan, const TrainingSet& sample, int head, int query,
                               WindowCounts& windows);

/// The statistics of one replicate [layout.statistics()], see kernels/moments.h.
std::vector<double> reference_statistics(const Plan& plan, const TrainingSet& sample,
                                         WindowCounts& windows);

/// What kernels/learning/ needs, in float64 and to be read; the kernel must have a
/// norm_coefficient.
std::unique_ptr<HeadGradients> make_reference_gradients(const KernelLaw& kernel);

std::unique_ptr<Backend> make_reference_backend();

}  // namespace headlab
