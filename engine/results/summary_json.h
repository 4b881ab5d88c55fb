// SPDX-License-Identifier: Apache-2.0
/// \file The summary of a run, or of closed forms, as JSON.
#pragma once

#include <string>
#include <vector>

#include "engine/files/json_writer.h"
#include "engine/files/provenance.h"
#include "engine/results/computed.h"
#include "engine/results/result.h"

namespace headlab {

struct Scenario;

/// Writes one JSON object (docs/results.md) with a line for each condition: figures with their
/// Monte Carlo standard errors, null where undefined. `indices` holds those of result.conditions[i]
/// at [i], `theory` the closed forms it is compared with, where it is.
void write_summary_json(const TextSink& out, const Scenario& scenario, const RunResult& result,
                        const std::vector<ConditionIndices>& indices, const Provenance& program,
                        const std::vector<ComputedCondition>& theory = {});

/// The same of closed forms alone: with `remainder` in place of `mcse`.
/// \param replay  the command that makes it again; empty: none
void write_theory_json(const TextSink& out, const std::vector<ComputedCondition>& theory,
                       int threads, const Provenance& program, const std::string& replay);

}  // namespace headlab
