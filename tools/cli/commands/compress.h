// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/cli/exit_code.h"
#include "tools/cli/options.h"

namespace headlab::tools {

/// `headlab compress`: what low-rank approximations of the heads of a file lose. Returns the exit
/// code; throws InvalidInput and RunFailed.
ExitCode command_compress(const CompressArguments& arguments);

}  // namespace headlab::tools
