// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tools/cli/exit_code.h"
#include "tools/cli/options.h"
#include "validation/diversity/head_diversity.h"

namespace headlab::tools {

/// `headlab hdi`: how different the heads of a file are. Returns the exit code; throws InvalidInput
/// and RunFailed.
ExitCode command_hdi(const HdiArguments& arguments);

/// The diversity of every layer for a person; `file` is the name that heads it.
std::string diversity_text(const HeadDiversity& diversity, const std::string& file);

}  // namespace headlab::tools
