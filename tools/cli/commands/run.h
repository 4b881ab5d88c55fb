// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/cli/exit_code.h"
#include "tools/cli/options.h"

namespace headlab::tools {

/// `headlab run`: simulates a scenario, writes its files and prints its table. Returns the exit
/// code; throws InvalidInput and RunFailed.
ExitCode command_run(const RunArguments& arguments);

}  // namespace headlab::tools
