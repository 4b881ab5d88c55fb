// SPDX-License-Identifier: Apache-2.0
/// \file Calibration of claims that are easily decided wrongly: rare events, denominators that are
/// noise, heavy tails, zeros, many comparisons.
#pragma once

#include <vector>

#include "validation/verdicts/calibration.h"

namespace headlab {

/// Studies of claims whose true values are elementary or those of the exact theory, on the backend
/// of the session. True values are computed here, once, on its threads.
std::vector<CalibrationStudy> doubtful_studies(const Session& session);

}  // namespace headlab
