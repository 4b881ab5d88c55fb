// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/cli/commands/allocate_arguments.h"
#include "tools/cli/exit_code.h"

namespace headlab::tools {

/// `headlab allocate`: selects among the allocations of each budget at each n, and prints what it
/// found and advises. Returns the exit code; throws InvalidInput and RunFailed.
ExitCode command_allocate(const AllocateArguments& arguments);

}  // namespace headlab::tools
