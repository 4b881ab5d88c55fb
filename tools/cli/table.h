// SPDX-License-Identifier: Apache-2.0
/// \file The results of a run, a replayed replicate and what compression loses, as tables for a
/// person.
#pragma once

#include <string>
#include <vector>

#include "engine/results/computed.h"
#include "engine/run/run.h"

namespace headlab {
struct Compression;
struct Replay;
}  // namespace headlab

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

/// A row for each head at each query, and for the ensemble where it is one of several heads; of
/// more than 32 windows those of least effective sample size.
std::string replay_table(const Scenario& scenario, std::size_t condition, const Replay& replay);

/// The losses of heads of a file; `inputs` is the file of inputs, or the argument that takes one.
std::string compression_text(const Compression& compression, const std::string& file,
                             const std::string& inputs);

}  // namespace headlab::tools
