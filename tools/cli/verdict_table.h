// SPDX-License-Identifier: Apache-2.0
/// \file Verdicts as a person reads them.
#pragma once

#include <string>

#include "validation/verdicts/calibration.h"
#include "validation/verdicts/validate.h"

namespace headlab::tools {

/// One line a verdict, and below it what is behind those that are not plain support.
std::string verdict_table(const Validation& validation);

/// The same with statements, assumptions and replay commands, in Markdown.
std::string verdict_report(const Validation& validation);

/// One line a rate with its interval and what is required of it, and below the sums over each kind.
std::string calibration_table(const Calibration& calibration);

/// The same in Markdown, as docs/measured/calibration.md shows it.
std::string calibration_report(const Calibration& calibration);

}  // namespace headlab::tools
