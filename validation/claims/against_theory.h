// SPDX-License-Identifier: Apache-2.0
/// \file Simulated error components against their closed forms.
#pragma once

#include <span>
#include <vector>

#include "engine/moments/estimates.h"
#include "validation/statistics/comparison.h"
#include "validation/theory/theory.h"

namespace headlab {

/// Compares the bias of every head, the covariance of every pair and the MSE, at every query. Units
/// are the closed forms' own: biases in root mean squared errors of the head, covariances in
/// sqrt(V_h V_l), MSE relative. B is tested and not B^2, whose estimate is far from normal near 0.
std::vector<Comparison> against_theory(const JackknifedEstimates& observed, const Theory& theory,
                                       double margin);

}  // namespace headlab
