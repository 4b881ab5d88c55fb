// SPDX-License-Identifier: Apache-2.0
/// \file The group of one condition in results.nc: the moments of its nodes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/files/netcdf_file.h"
#include "engine/results/result.h"

namespace headlab {

/// What a results file holds of one condition.
struct StoredCondition {
  std::string parameters;   ///< of the scenario, as JSON
  std::string plan_sha256;  ///< of the plan that was simulated
  MomentLayout layout;
  std::vector<Node> nodes;           ///< as MomentTree::nodes()
  std::vector<double> head_weights;  ///< [H]
  std::vector<double> query_points;  ///< [Q][d]
  std::vector<double> truth;         ///< [Q]
};

const char* name_of(Estimator estimator);
const char* name_of(MomentMode moments);

/// Adds the group of condition `number` (from 0) to a file; throws NetcdfError.
void write_nodes(const NetcdfGroup& root, std::size_t number, const ConditionResult& condition);

/// Reads it back; throws NetcdfError.
StoredCondition read_nodes(const NetcdfGroup& root, std::size_t number);

}  // namespace headlab
