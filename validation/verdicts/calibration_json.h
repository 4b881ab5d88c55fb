// SPDX-License-Identifier: Apache-2.0
/// \file Calibration for programs (docs/calibration.md says what each key means).
#pragma once

#include <string>

#include "engine/files/provenance.h"
#include "validation/verdicts/calibration.h"

namespace headlab {

/// One JSON object with every rate; those without trials have null for rate and interval.
std::string calibration_json(const Calibration& calibration, const Provenance& program);

}  // namespace headlab
