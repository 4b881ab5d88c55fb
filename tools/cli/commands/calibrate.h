// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/cli/commands/validate.h"

namespace headlab::tools {

/// `headlab validate --calibrate`: measures how often verdicts are wrong, writes calibration.json
/// and calibration.md and prints the table. Returns the exit code: 3 where a rate is not as
/// required. Throws InvalidInput and RunFailed.
int command_calibrate(const ValidateArguments& arguments);

}  // namespace headlab::tools
