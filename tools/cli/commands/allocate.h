// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/cli/commands/allocate_arguments.h"
#include "tools/cli/exit_code.h"
#include "validation/allocation/allocate.h"

namespace headlab::tools {

/// `headlab allocate`: selects among the allocations of each budget at each n, and prints what it
/// found and advises. Returns the exit code; throws InvalidInput and RunFailed.
ExitCode command_allocate(const AllocateArguments& arguments);

/// Throws InvalidInput where a scenario sweeps what allocate does not choose by itself.
void require_one_setting(const Scenario& scenario, BandwidthRule rule);

/// The candidates of a study with the advice, for a person.
std::string allocation_table(const AllocationStudy& study);

}  // namespace headlab::tools
