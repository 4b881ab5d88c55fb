// SPDX-License-Identifier: Apache-2.0
/// \file The test of the means of exact controls, in every run.
#pragma once

#include <string>

#include "engine/moments/moment_tree.h"
#include "engine/results/result.h"

namespace headlab {

/// Probability that right means are refused.
inline constexpr double control_refusal_rate = 1e-6;

/// Tests whether the adjustments that a run of so many replicates uses have mean 0, and counts
/// them; leaves `gains` empty. The standard error of a mean is that of the pilot's spread or of the
/// run's, whichever is larger, with the bound of the rounding; a skewed one is taken for a gamma
/// law.
ControlReport check_controls(const FoundControls& found, const MomentTree& tree);

/// One line on the first condition whose controls were refused; empty where none was.
std::string refused_controls(const RunResult& result);

}  // namespace headlab
