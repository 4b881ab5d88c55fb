// SPDX-License-Identifier: Apache-2.0
/// \file The results of a run as a NetCDF-4 file that opens in xarray (docs/results.md).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/files/provenance.h"
#include "engine/results/index_value.h"
#include "engine/results/result.h"
#include "engine/results/results_nodes.h"
#include "engine/scenario/scenario.h"

namespace headlab {

/// Raised whenever a reader of older files would misread a new one.
inline constexpr int results_format_version = 1;

/// Writes results.nc: summary figures over conditions in the root group, and one group a condition
/// (condition_000, ...) with the moments of its nodes, from which every figure and its standard
/// error can be recomputed. `indices` holds those of result.conditions[i] at [i]. The file is there
/// whole or not at all; throws CouldNotFinish with one line.
void write_results(const std::string& path, const Study& study, const RunResult& result,
                   const std::vector<ConditionIndices>& indices, const Provenance& program);

/// Reads the nodes of a condition (from 0) back: the bits that were written. Throws Refused for a
/// file that is not there or was not written by write_results().
StoredCondition read_nodes(const std::string& path, std::size_t condition);

}  // namespace headlab
