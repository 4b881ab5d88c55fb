// SPDX-License-Identifier: Apache-2.0
/// \file The results of a run as a table for a person.
#pragma once

#include <string>
#include <vector>

#include "engine/results/computed.h"
#include "engine/run/run.h"

namespace headlab::tools {

/// One condition in detail, or one row a condition for a sweep: every figure with its Monte Carlo
/// standard error. `indices` holds those of result.conditions[i] at [i].
std::string result_table(const Scenario& scenario, const RunResult& result,
                         const std::vector<ConditionIndices>& indices);

/// The same of closed forms, with their remainders and which forms they are. `theory` has one entry
/// a condition of the scenario.
std::string theory_table(const Scenario& scenario, const std::vector<ComputedCondition>& theory);

/// Simulation and closed forms side by side, with z: one condition in detail, or one row a
/// condition for a sweep.
std::string comparison_table(const Scenario& scenario,
                             const std::vector<ComputedCondition>& theory);

}  // namespace headlab::tools
