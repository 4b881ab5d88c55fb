// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/scenario/scenario.h"
#include "tools/cli/commands/allocate_arguments.h"
#include "tools/cli/exit_code.h"
#include "validation/allocation/theory_study.h"

namespace headlab::tools {

/// What the theory that `headlab allocate` is asked for is the mean over, none for a simulation.
/// Throws InvalidInput, naming --source, for a source that is unknown, and for options that theory
/// has no use for.
std::optional<TheoryMean> theory_mean(const AllocateArguments& arguments);

/// The errors of every dimension with the best and its growth, for a person.
std::string allocation_theory_table(const Condition& base,
                                    const std::vector<TheoryGrowth>& growths);

/// `headlab allocate --source theory` and `--source exact`: computes the error of every dimension
/// at each budget and n and prints it with the best, its growth and the predicted constants.
/// Returns the exit code; throws InvalidInput and RunFailed.
ExitCode allocate_by_theory(const AllocateArguments& arguments, TheoryMean mean,
                            const Condition& base, BandwidthRule rule,
                            const std::vector<std::uint64_t>& budgets,
                            const std::vector<std::uint64_t>& sizes, int threads);

}  // namespace headlab::tools
