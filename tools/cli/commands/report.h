// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/cli/exit_code.h"
#include "tools/cli/options.h"

namespace headlab::tools {

/// `headlab report`: one HTML file of the results in folders. Returns the exit code; throws
/// InvalidInput and RunFailed.
ExitCode command_report(const ReportArguments& arguments);

}  // namespace headlab::tools
