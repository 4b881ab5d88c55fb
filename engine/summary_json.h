// SPDX-License-Identifier: Apache-2.0
/// \file The summary of a run as JSON.
#pragma once

#include <string>
#include <vector>

#include "engine/index_value.h"
#include "engine/provenance.h"
#include "engine/run.h"

namespace headlab {

/// One JSON object (docs/results.md), ending in a newline: figures with their Monte Carlo standard
/// errors, null where undefined. `indices` holds those of result.conditions[i] at [i].
std::string summary_json(const Study& study, const RunResult& result,
                         const std::vector<ConditionIndices>& indices, const Provenance& program);

}  // namespace headlab
