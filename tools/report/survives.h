// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tools/report/source.h"

namespace headlab::tools {

/// What survives of the theory: a row a claim, with the readings under which it holds, those under
/// which it fails, and the commands that show its counterexamples. Empty without verdicts.
std::string survives_html(const Source& source);

}  // namespace headlab::tools
