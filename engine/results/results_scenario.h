// SPDX-License-Identifier: Apache-2.0
/// \file What a results file says of the study it is from.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/files/netcdf_file.h"
#include "engine/files/provenance.h"
#include "engine/scenario/scenario.h"

namespace headlab {

/// Puts the attributes that name the study, its text and the program; `seed` where it has one seed.
void write_study(const NetcdfGroup& root, const Study& study, const Provenance& program);

/// Writes one variable a swept key, over `dimension` with the values that `scenarios` have: whole
/// numbers or numbers where all are, texts otherwise; and the attribute `swept` with the keys.
void write_swept(const NetcdfGroup& root, const std::string& dimension,
                 const std::vector<std::string>& keys, std::span<const Scenario* const> scenarios);

}  // namespace headlab
