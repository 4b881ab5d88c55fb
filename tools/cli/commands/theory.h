// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/cli/exit_code.h"
#include "tools/cli/options.h"

namespace headlab::tools {

/// `headlab theory`: the figures of a scenario from closed forms alone. Returns the exit code;
/// throws InvalidInput and RunFailed.
ExitCode command_theory(const TheoryArguments& arguments);

}  // namespace headlab::tools
