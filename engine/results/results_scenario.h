// SPDX-License-Identifier: Apache-2.0
/// \file What a results file says of the scenario it is from.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/files/netcdf_file.h"
#include "engine/files/provenance.h"
#include "engine/scenario/scenario.h"

namespace headlab {

/// Puts the attributes that name the scenario, its text and the program; `seed` where it has one
/// seed.
void write_scenario(const NetcdfGroup& root, const Scenario& scenario, const Provenance& program);

/// Writes one variable a swept key, over `dimension` with the values that `scenarios` have: whole
/// numbers or numbers where all are, texts otherwise; and the attribute `swept` with the keys.
void write_swept(const NetcdfGroup& root, const std::string& dimension,
                 const std::vector<std::string>& keys,
                 std::span<const Condition* const> conditions);

}  // namespace headlab
