// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tools/cli/exit_code.h"

namespace headlab::tools {

/// `headlab init`: writes a commented scenario to a file that is not there yet, or to standard
/// output for "-". Returns the exit code; throws InvalidInput and RunFailed.
ExitCode command_init(const std::string& file);

}  // namespace headlab::tools
