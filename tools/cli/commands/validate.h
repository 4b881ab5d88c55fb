// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/cli/exit_code.h"
#include "tools/cli/options.h"

namespace headlab::tools {

/// The arguments of `headlab validate`, as written.
struct ValidateArguments {
  std::vector<std::string> claims;
  std::string level = "quick";
  bool calibrate = false;
  RunArguments run;  ///< what every command that simulates takes
};

/// `headlab validate`: examines claims, writes verdicts.json and report.md and prints the table.
/// Returns the exit code; throws InvalidInput and RunFailed.
ExitCode command_validate(const ValidateArguments& arguments);

}  // namespace headlab::tools
