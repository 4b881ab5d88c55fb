// SPDX-License-Identifier: Apache-2.0
/// \file The results of a run as a NetCDF-4 file that opens in xarray (docs/results-nc.md).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/files/netcdf_file.h"
#include "engine/files/provenance.h"
#include "engine/results/index_value.h"
#include "engine/results/result.h"
#include "engine/scenario/scenario.h"

namespace headlab {

/// Raised whenever a reader of older files would misread a new one.
inline constexpr int results_format_version = 2;

/// Attribute of a file without nodes.
inline constexpr const char* no_nodes_attribute = "without_nodes";

/// Attribute of a file merged without some shards, in words.
inline constexpr const char* missing_shards_attribute = "missing_shards";

/// Variables of exact controls: Controls in the order of its members, those of pairs as matrices.
inline constexpr struct {
  const char* log_scale = "control_log_scale";
  const char* estimate = "control_estimate";
  const char* estimate_mean = "control_estimate_mean";
  const char* noise_mean = "control_noise_mean";
  const char* estimate_coefficient = "control_estimate_coefficient";
  const char* noise_coefficient = "control_noise_coefficient";
  const char* like = "control_like";  // this and the next, which old files lack
  const char* estimate_replicates = "control_estimate_replicates";
  const char* noise_replicates = "control_noise_replicates";
  const char* estimate_rounding = "control_estimate_rounding";
  const char* noise_rounding = "control_noise_rounding";
  const char* covariance_left = "control_covariance_left";
} control_variables;

/// The group with conditions of one moment layout, from 0, where a file has several layouts.
std::string layout_group_name(std::size_t layout);

/// Writes results.nc: what has one value a condition in the root group; what has more, and the
/// group `nodes` with the moments from which every figure and its standard error can be recomputed,
/// there too or in a group for each moment layout, unless `nodes` is false. `indices` holds those
/// of result.conditions[i] at [i]. The file is there whole or not at all; throws RunFailed with one
/// line.
void write_results(const std::string& path, const Scenario& scenario, const RunResult& result,
                   const std::vector<ConditionIndices>& indices, const Provenance& program,
                   bool nodes = true);

/// Puts the same into the root of a new file, which must be saved while `result` is there.
void put_results(const NetcdfGroup& root, const Scenario& scenario, const RunResult& result,
                 const std::vector<ConditionIndices>& indices, const Provenance& program,
                 bool nodes = true);

}  // namespace headlab
