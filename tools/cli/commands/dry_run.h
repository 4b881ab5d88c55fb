// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/run/session.h"
#include "engine/scenario/scenario.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/options.h"

namespace headlab::tools {

/// `headlab run --dry-run`: prints the scenario as it was understood, a text that runs, under
/// comments that say what the run takes. Writes no file. Throws InvalidInput for a scenario that
/// does not fit in memory, and RunFailed.
ExitCode dry_run(const RunArguments& arguments, const Scenario& scenario, const Session& session);

}  // namespace headlab::tools
