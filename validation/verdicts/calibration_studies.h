// SPDX-License-Identifier: Apache-2.0
/// \file What `headlab validate --calibrate` repeats: claims known to be true, claims known to be
/// false, and figures known exactly.
#pragma once

#include <vector>

#include "validation/verdicts/calibration.h"

namespace headlab {

/// The studies of a calibration, on the backend of the session. Closed forms are computed here,
/// once, on its threads.
std::vector<CalibrationStudy> calibration_studies(const Session& session);

}  // namespace headlab
