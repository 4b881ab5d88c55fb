// SPDX-License-Identifier: Apache-2.0
/// \file Studies of depth as tables for a person.
#pragma once

#include <string>
#include <vector>

#include "engine/results/computed.h"
#include "engine/run/run.h"

namespace headlab::tools {

/// What tables call a metric of layers; empty for one that they leave out.
std::string layer_heading(const std::string& metric);

/// One condition with a row a layer, or of a sweep the last layer of each condition.
std::string layer_table(const Scenario& scenario, const RunResult& result);

/// The same of closed forms.
std::string layer_theory_table(const Scenario& scenario,
                               const std::vector<ComputedCondition>& theory);

/// Simulation and closed forms side by side, with z: a row a layer, or a row a condition.
std::string layer_comparison_table(const Scenario& scenario,
                                   const std::vector<ComputedCondition>& theory);

}  // namespace headlab::tools
