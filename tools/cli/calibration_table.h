// SPDX-License-Identifier: Apache-2.0
/// \file Measured error rates as a person reads them.
#pragma once

#include <string>

#include "validation/verdicts/calibration.h"

namespace headlab::tools {

/// One line a rate with its interval and what is required of it, and below the sums over each kind.
std::string calibration_table(const Calibration& calibration);

/// The same in Markdown, as docs/measured/calibration.md shows it.
std::string calibration_report(const Calibration& calibration);

}  // namespace headlab::tools
