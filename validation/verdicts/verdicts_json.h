// SPDX-License-Identifier: Apache-2.0
/// \file Verdicts for programs (docs/verdicts.md says what each key means).
#pragma once

#include <string>

#include "engine/files/provenance.h"
#include "validation/verdicts/validate.h"

namespace headlab {

/// One JSON object with every verdict and its evidence; NaN and infinity become null.
std::string verdicts_json(const Validation& validation, const Provenance& program);

}  // namespace headlab
