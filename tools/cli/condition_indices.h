// SPDX-License-Identifier: Apache-2.0
/// \file All diversity indices of a condition: those of its subspaces and those it simulated.
#pragma once

#include "engine/results/index_value.h"
#include "engine/run/run.h"

namespace headlab::tools {

/// chordal, spectral, overlap, qk, and those that follow from the error: output, weights.
template <class Number>
IndicesOf<Number> condition_indices(const Condition& condition, const Preparation& found,
                                    const Plan& plan, const ErrorTerms<Number>& terms);

/// Those of every condition of a run.
std::vector<ConditionIndices> condition_indices(const RunResult& result);

}  // namespace headlab::tools
