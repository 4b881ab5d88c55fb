// SPDX-License-Identifier: Apache-2.0
/// \file Closed forms of every condition of a scenario, as the table and the writers take them.
#pragma once

#include <functional>
#include <vector>

#include "engine/results/computed.h"
#include "engine/run/run.h"
#include "validation/theory/theory.h"

namespace headlab::tools {

/// Closed forms of the heads of every condition. Throws InvalidInput for the first condition that
/// has none, naming it where there are several, and Stopped before one where `stop` is true.
std::vector<Theory> compute_theories(const Scenario& scenario, TheorySource source, int threads,
                                     const std::function<bool()>& stop = {});

/// The figures of every condition under the head weights that its theory has.
std::vector<ComputedCondition> computed_conditions(const Scenario& scenario,
                                                   const std::vector<Theory>& theories);

/// The figures of every condition that a run began, under the head weights of the run, compared
/// with its own.
std::vector<ComputedCondition> compared_conditions(const RunResult& result,
                                                   const std::vector<Theory>& theories);

}  // namespace headlab::tools
