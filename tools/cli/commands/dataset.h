// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "tools/cli/exit_code.h"
#include "tools/cli/options.h"

namespace headlab::tools {

/// The arguments of `headlab dataset`, as written.
struct DatasetArguments {
  RunArguments run;  ///< scenario, sets, out, threads, seed, replicates, quiet
  std::optional<std::string> shards;
  std::optional<std::string> only_shard;
  std::string format = "netcdf";
  bool estimates = false;
  bool weights = false;
};

/// `headlab dataset`: writes the training sets of a scenario to files. Returns the exit code;
/// throws InvalidInput and RunFailed.
ExitCode command_dataset(const DatasetArguments& arguments);

}  // namespace headlab::tools
