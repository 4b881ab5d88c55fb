// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tools/cli/commands/allocate_arguments.h"
#include "tools/cli/exit_code.h"
#include "validation/allocation/regime_map.h"

namespace headlab::tools {

/// `headlab allocate --map`: how the best dimension grows with n in every setting of the
/// scenario's sweep, under every rule and budget. Returns the exit code; throws InvalidInput and
/// RunFailed.
ExitCode command_allocate_map(const AllocateArguments& arguments, const Scenario& scenario,
                              const std::vector<BandwidthRule>& rules,
                              const std::vector<std::uint64_t>& budgets,
                              const std::vector<std::uint64_t>& sizes, Session session,
                              const AllocateOptions& options);

}  // namespace headlab::tools
