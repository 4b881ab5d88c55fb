// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "tools/cli/exit_code.h"
#include "tools/cli/options.h"

namespace headlab::tools {

/// The arguments of `headlab replay`, as written.
struct ReplayArguments {
  RunArguments run;  ///< scenario, sets, out, overwrite, and what everything that simulates takes
  std::optional<std::string> replicate;
  std::optional<std::string> condition;
};

/// `headlab replay`: one replicate in full, by the reference and by the backend in use. Returns the
/// exit code; throws InvalidInput and RunFailed.
ExitCode command_replay(const ReplayArguments& arguments);

}  // namespace headlab::tools
