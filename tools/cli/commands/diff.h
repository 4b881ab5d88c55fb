// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/cli/exit_code.h"
#include "tools/cli/options.h"

namespace headlab::tools {

/// `headlab diff`: compares two results of `headlab run`. Returns the exit code; throws
/// InvalidInput and RunFailed.
ExitCode command_diff(const DiffArguments& arguments);

}  // namespace headlab::tools
