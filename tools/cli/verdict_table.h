// SPDX-License-Identifier: Apache-2.0
/// \file Verdicts as a person reads them.
#pragma once

#include <string>

#include "validation/verdicts/validate.h"

namespace headlab::tools {

/// One line a verdict, and below it what is behind those that are not plain support.
std::string verdict_table(const Validation& validation);

/// The same with statements, assumptions and replay commands, in Markdown.
std::string verdict_report(const Validation& validation);

}  // namespace headlab::tools
