// SPDX-License-Identifier: Apache-2.0
/// \file What `headlab validate --calibrate` repeats: claims known to be true, claims known to be
/// false, and figures known exactly.
#pragma once

#include <string>
#include <vector>

#include "validation/verdicts/calibration.h"

namespace headlab {

/// The studies of a calibration. Closed forms are computed here, once, on `threads` threads.
std::vector<CalibrationStudy> calibration_studies(const std::string& backend, int threads);

}  // namespace headlab
