// SPDX-License-Identifier: Apache-2.0
/// \file The test of the means of exact controls, in every run.
#pragma once

#include <string>

#include "engine/moments/moment_tree.h"
#include "engine/results/control_report.h"
#include "engine/results/result.h"
#include "engine/scenario/condition.h"

namespace headlab {

/// Probability that right means are refused.
inline constexpr double control_refusal_rate = 1e-6;

/// Tests whether adjustments have mean 0, and counts them; leaves `gains` empty. The standard
/// error of a mean over the run follows from the pilot. Adjustments whose mean is not normal,
/// |skewness| >= 0.1 sqrt(R), are not tested. \param rounding relative error of a backend's kernel
/// sums, added to the standard errors
ControlReport check_controls(const FoundControls& found, const MomentTree& tree, double rounding);

/// One line on the first condition whose controls were refused; empty where none was.
std::string refused_controls(const RunResult& result);

}  // namespace headlab
