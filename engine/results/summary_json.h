// SPDX-License-Identifier: Apache-2.0
/// \file The summary of a run, or of closed forms, as JSON.
#pragma once

#include <string>
#include <vector>

#include "engine/files/provenance.h"
#include "engine/results/computed.h"
#include "engine/results/index_value.h"
#include "engine/results/result.h"
#include "engine/scenario/scenario.h"

namespace headlab {

/// One JSON object (docs/results.md), ending in a newline: figures with their Monte Carlo standard
/// errors, null where undefined. `indices` holds those of result.conditions[i] at [i], `theory` the
/// closed forms it is compared with, where it is.
std::string summary_json(const Study& study, const RunResult& result,
                         const std::vector<ConditionIndices>& indices, const Provenance& program,
                         const std::vector<ComputedCondition>& theory = {});

/// The same of closed forms alone: with `remainder` in place of `mcse`.
std::string theory_json(const std::vector<ComputedCondition>& theory, int threads,
                        const Provenance& program);

}  // namespace headlab
