// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/cli/exit_code.h"
#include "tools/cli/options.h"

namespace headlab::tools {

/// `headlab import-heads`: the heads of a checkpoint as a file of subspaces. Returns the exit code;
/// throws InvalidInput and RunFailed.
ExitCode command_import_heads(const ImportHeadsArguments& arguments);

}  // namespace headlab::tools
