// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/run/session.h"
#include "engine/scenario/scenario.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/options.h"

namespace headlab::tools {

/// The arguments of `headlab merge`, as written.
struct MergeArguments {
  RunArguments run;  ///< out, overwrite, threads, max_time and quiet alone
  std::vector<std::string> folders;
  bool allow_missing = false;
};

/// Throws InvalidInput where an option of `headlab run` has no meaning for a shard.
void require_fits_shard(const RunArguments& arguments);

/// `headlab run --shard`: simulates the share of one shard and writes its file. Returns the exit
/// code; throws InvalidInput and RunFailed, as the others do.
ExitCode command_run_shard(const RunArguments& arguments,
                           const std::shared_ptr<const Scenario>& scenario, Session& session);

/// `headlab merge`: joins shards and writes the files of the run.
ExitCode command_merge(const MergeArguments& arguments);

/// `headlab status`: prints the shards in a folder and what they still take.
ExitCode command_status(const std::string& folder);

}  // namespace headlab::tools
