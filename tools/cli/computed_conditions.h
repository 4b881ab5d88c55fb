// SPDX-License-Identifier: Apache-2.0
/// \file What tables and writers take beside the figures of a condition: indices, closed forms.
#pragma once

#include <functional>
#include <vector>

#include "engine/results/computed.h"
#include "engine/run/run.h"
#include "validation/theory/theory.h"

namespace headlab::tools {

/// All diversity indices of a condition, those of its subspaces and those it simulated: chordal,
/// spectral, overlap, qk, and those that follow from the error: output, weights.
template <class Number>
IndicesOf<Number> condition_indices(const Condition& condition, const Preparation& found,
                                    const Plan& plan, const ErrorTerms<Number>& terms);

/// Those of every condition of a run.
std::vector<ConditionIndices> condition_indices(const RunResult& result);

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
