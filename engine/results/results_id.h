// SPDX-License-Identifier: Apache-2.0
/// \file The name that the files of one state of a run share.
#pragma once

#include <optional>
#include <string>

#include "engine/results/result.h"

namespace headlab {

/// SHA-256 over the backend, its SIMD target, whether the run is complete and, for each condition,
/// its parameters, the fingerprint of its plan, its seed and its replicates so far. The same for
/// any number of threads. results.nc and summary.json written from one result have the same.
std::string results_id(const RunResult& result);

/// The results_id in the results.nc at `path`; empty if the file or the attribute is missing.
/// Throws NetcdfDamage.
std::optional<std::string> results_id_of_netcdf(const std::string& path);

/// The results_id in the summary.json at `path`; empty if the file or the key is missing.
std::optional<std::string> results_id_of_summary(const std::string& path);

}  // namespace headlab
