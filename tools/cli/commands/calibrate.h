// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/cli/commands/validate.h"
#include "tools/cli/exit_code.h"

namespace headlab::tools {

/// `headlab validate --calibrate`: measures how often verdicts are wrong, writes calibration.json
/// and calibration.md and prints the table. Returns the exit code; throws InvalidInput and
/// RunFailed.
ExitCode command_calibrate(const ValidateArguments& arguments);

}  // namespace headlab::tools
