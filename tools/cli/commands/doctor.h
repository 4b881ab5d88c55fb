// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/cli/exit_code.h"

namespace headlab::tools {

/// `headlab doctor`: what this build and machine are, and a short test against closed forms.
/// Returns the exit code: done when every check passed, else failed.
ExitCode command_doctor();

}  // namespace headlab::tools
