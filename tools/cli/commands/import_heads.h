// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/files/model_config.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/options.h"

namespace headlab::tools {

/// `headlab import-heads`: the heads of a checkpoint as a file of subspaces. Returns the exit code;
/// throws InvalidInput and RunFailed.
ExitCode command_import_heads(const ImportHeadsArguments& arguments);

/// The family and its counts: from --config or the config.json next to the checkpoint, or from
/// --arch and --heads. Throws InvalidInput.
ModelConfig model_config_of(const ImportHeadsArguments& arguments);

}  // namespace headlab::tools
