// SPDX-License-Identifier: Apache-2.0
/// \file The results of a run as a NetCDF-4 file that opens in xarray (docs/results.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/files/netcdf/file.h"
#include "engine/files/provenance.h"
#include "engine/results/computed.h"
#include "engine/results/result.h"

namespace headlab {

struct Scenario;

/// Raised whenever a reader of older files would misread a new one.
inline constexpr int results_format_version = 3;

/// Whether a file of a version is laid out as today: the version before lacks sums alone.
constexpr bool has_layout_of_today(std::int64_t version) {
  return version == results_format_version || version == results_format_version - 1;
}

/// Attribute of a file without nodes.
inline constexpr const char* no_nodes_attribute = "without_nodes";

/// Attribute of a file merged without some shards, in words.
inline constexpr const char* missing_shards_attribute = "missing_shards";

/// Variables of exact controls that say what a file has of them: old ones lack the second, and all
/// behind it.
inline constexpr const char* controls_variable = "control_log_scale";
inline constexpr const char* use_of_controls_variable = "control_like";

/// Calls use(name, axes, numbers, doc) for every variable of exact controls. Those of pairs of
/// heads, along `head_2`, are matrices in a file.
template <class Of, class Use>
void for_each_control_variable(Of& controls, const Use& use) {
  use(controls_variable, "query head", controls.means.log_scale, "log of the scale of kernel sums");
  use("control_estimate", "query head", controls.means.estimate,
      "r_h, mean of sum w m over that of sum w");
  use("control_estimate_mean", "query head estimate_control", controls.means.of_estimates,
      "mean of a control of an estimate");
  use("control_estimate_coefficient", "query head estimate_control", controls.of_estimates,
      "coefficient of a control of an estimate");
  use("control_noise_mean", "query head head_2 noise_control", controls.means.of_noise,
      "mean of a control of the noise of two heads, for head <= head_2");
  use("control_noise_coefficient", "query head head_2 noise_control", controls.of_noise,
      "coefficient of a control of the noise of two heads, for head <= head_2");
  use(use_of_controls_variable, "query head", controls.alike,
      "the first head that is like a head at a query");
  use("control_estimate_replicates", "query bound", controls.use.estimates,
      "least and most replicates of a run whose estimates are taken with controls");
  use("control_noise_replicates", "query head head_2 bound", controls.use.noise,
      "least and most replicates of a run whose noise is taken with controls");
  use("control_estimate_rounding", "query head", controls.use.estimate_rounding,
      "bound of the rounding of an estimate with controls");
  use("control_noise_rounding", "query head head_2", controls.use.noise_rounding,
      "bound of the rounding of noise with controls");
  use("control_covariance_left", "query head head_2", controls.use.covariance_left,
      "covariance of two estimates minus that of their adjustments, in the pilot");
}

/// The shape of such a variable, of one condition.
struct ControlShape {
  std::vector<std::size_t> lengths;
  bool of_pairs = false;
  std::size_t size = 1;  ///< numbers of a pair
};
ControlShape control_shape(const std::string& axes, std::size_t queries, std::size_t heads);

/// Conditions of one moment layout, whose arrays and nodes stand in one group.
struct ResultsBlock {
  NetcdfGroup group;
  std::vector<std::size_t> conditions;  ///< of its rows
};
/// The blocks of a file: all conditions in its root, or a group for each layout where they have
/// several. Throws NetcdfError.
std::vector<ResultsBlock> results_blocks(const NetcdfGroup& root);

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
