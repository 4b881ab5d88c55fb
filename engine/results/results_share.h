// SPDX-License-Identifier: Apache-2.0
/// \file The share that a shard has, in its results file.
#pragma once

#include <optional>

#include "engine/files/netcdf_file.h"
#include "engine/results/share.h"

namespace headlab {

/// Adds attributes `shard`, `shards`, `shard_...` to a root group and the variables of the parts,
/// over the dimension `part`.
void write_share(const NetcdfGroup& root, const Share& share);

/// The same as written, nothing for the results of a whole run. Throws NetcdfError.
std::optional<Share> read_share(const NetcdfGroup& root);

}  // namespace headlab
