// SPDX-License-Identifier: Apache-2.0
/// \file The targets of a run and its looks at them, in results.nc.
#pragma once

#include <optional>

#include "engine/files/netcdf_file.h"
#include "engine/moments/precision.h"

namespace headlab {

/// Adds attributes `until...` and `target_met` to a root group, and the variables of the looks.
/// \param complete  no look is to come
void write_precision(const NetcdfGroup& root, const Precision& precision, bool complete);

/// The same as written, nothing where a run had no targets. Throws NetcdfError.
std::optional<Precision> read_precision(const NetcdfGroup& root);

}  // namespace headlab
