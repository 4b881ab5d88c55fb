// SPDX-License-Identifier: Apache-2.0
/// \file A replayed replicate as a NetCDF-4 file (docs/datasets.md).
#pragma once

#include <cstddef>
#include <string>

#include "engine/files/netcdf/file.h"
#include "engine/files/provenance.h"
#include "engine/replay/replay.h"

namespace headlab {

struct Scenario;

/// Writes a complete replay of condition `condition` (from 0) to `path`. The file is there whole or
/// not at all; throws RunFailed with one line.
void write_replay(const std::string& path, const Scenario& scenario, std::size_t condition,
                  const Replay& replay, const Provenance& program);

/// Puts the same into the root of a new file.
void put_replay(const NetcdfGroup& root, const Scenario& scenario, std::size_t condition,
                const Replay& replay, const Provenance& program);

}  // namespace headlab
