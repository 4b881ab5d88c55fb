// SPDX-License-Identifier: Apache-2.0
/// \file Verdicts for programs (docs/verdicts.md says what each key means).
#pragma once

#include <string>

#include "engine/provenance.h"
#include "validation/validate.h"

namespace headlab {

/// One JSON object with every verdict and its evidence; NaN and infinity become null.
std::string verdicts_json(const Validation& validation, const Provenance& program);

}  // namespace headlab
