// SPDX-License-Identifier: Apache-2.0
/// \file Calibration of claims that a scenario states itself, by the path of a user's file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "validation/claims/experiment.h"
#include "validation/verdicts/calibration.h"

namespace headlab {

/// A world whose scenario states claims of its own, as a user's file does. \param run more of its
/// [run]
std::string stating_scenario(const std::string& world, std::uint64_t replicates,
                             const std::vector<std::string>& claims, const std::string& run = "");

/// Repeats the claims that a scenario states, all in one call; a rate counts a run in which any of
/// them has its verdict, or, where it is of what is decided, all have the one they expect.
CalibrationStudy stated_study(const std::string& scenario, const BackendChoice& backend,
                              std::vector<CalibrationRate> rates,
                              const ClosedForms& closed_forms = {});

/// The studies of [[claim.compare]], on the backend of the session. True values are computed here,
/// once, on its threads.
std::vector<CalibrationStudy> stated_claim_studies(const Session& session);

}  // namespace headlab
