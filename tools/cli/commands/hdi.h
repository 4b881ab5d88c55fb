// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/cli/exit_code.h"
#include "tools/cli/options.h"

namespace headlab::tools {

/// `headlab hdi`: how different the heads of a file are. Returns the exit code; throws InvalidInput
/// and RunFailed.
ExitCode command_hdi(const HdiArguments& arguments);

}  // namespace headlab::tools
