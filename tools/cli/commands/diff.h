// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/results/stored_figures.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/options.h"
#include "validation/difference/results_difference.h"

namespace headlab::tools {

/// `headlab diff`: compares two results of `headlab run`. Returns the exit code; throws
/// InvalidInput and RunFailed.
ExitCode command_diff(const DiffArguments& arguments);

/// Two results side by side, for a person.
std::string difference_text(const ResultsDifference& difference, const StoredResults& a,
                            const StoredResults& b);

/// The document of --json.
std::string difference_json(const ResultsDifference& difference, const StoredResults& a,
                            const StoredResults& b);

}  // namespace headlab::tools
