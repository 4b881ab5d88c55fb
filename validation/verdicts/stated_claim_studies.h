// SPDX-License-Identifier: Apache-2.0
/// \file Calibration of claims that a scenario states itself, by the path of a user's file.
#pragma once

#include <vector>

#include "validation/verdicts/calibration.h"

namespace headlab {

/// The studies of [[claim.compare]], on the backend of the session. True values are computed here,
/// once, on its threads.
std::vector<CalibrationStudy> stated_claim_studies(const Session& session);

}  // namespace headlab
