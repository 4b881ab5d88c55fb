// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/cli/exit_code.h"

namespace headlab::tools {

/// What `headlab list` can be asked for.
const std::vector<std::string>& list_words();

/// `headlab list [laws|claims|architectures|scenarios]`: what a scenario may contain, what can be
/// validated, and the scenarios that come with headlab; all of it for an empty `what`. Returns the
/// exit code; throws InvalidInput for anything else.
ExitCode command_list(const std::string& what);

}  // namespace headlab::tools
