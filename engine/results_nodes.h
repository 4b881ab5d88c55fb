// SPDX-License-Identifier: Apache-2.0
/// \file The group of one condition in results.nc: the moments of its nodes.
#pragma once

#include <cstddef>

#include "engine/netcdf_file.h"
#include "engine/results_netcdf.h"
#include "engine/run.h"

namespace headlab {

const char* name_of(Estimator estimator);
const char* name_of(MomentMode moments);

/// Adds the group of condition `number` (from 0) to a file; throws NetcdfError.
void write_nodes(const NetcdfGroup& root, std::size_t number, const ConditionResult& condition);

/// Reads it back; throws NetcdfError.
StoredCondition read_nodes(const NetcdfGroup& root, std::size_t number);

}  // namespace headlab
