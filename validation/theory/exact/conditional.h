// SPDX-License-Identifier: Apache-2.0
/// \file The heads' biases and covariances for given design points, exact for every law.
#pragma once

#include <vector>

#include "kernels/reference/training_set.h"
#include "kernels/statistics/moments.h"
#include "validation/theory/model/model.h"

namespace headlab {

/// What is known of the heads once the design points are.
struct ConditionalTheory {
  std::vector<HeadTheory> queries;  ///< [Q]; nothing is left out, so remainders are 0
  double weights_index = 0;         ///< mean over queries of 1 - mean cos(w_h, w_l); NaN for H = 1
  WindowCounts windows;             ///< of the one design
};

/// Computes, in float64 with the weights of the reference backend,
///
///     B_h = sum_i w_hi m(X_i) - m(x),  C_hl = sum_i s^2(X_i) w_hi w_li
///
/// for the points of `sample`; its noise is not read.
ConditionalTheory conditional_theory(const Plan& plan, const TrainingSet& sample);

/// The same for the design that a plan with a fixed design has. Requires plan.fixed_design_seed.
ConditionalTheory conditional_theory(const Plan& plan);

}  // namespace headlab
