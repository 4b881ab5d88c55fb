// SPDX-License-Identifier: Apache-2.0
/// \file What `headlab allocate` is asked, checked and in numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/scenario/scenario.h"
#include "tools/cli/commands/allocate_arguments.h"
#include "validation/allocation/allocate_options.h"
#include "validation/allocation/theory_study.h"

namespace headlab::tools {

struct AllocateRequest {
  std::vector<BandwidthRule> rules;  ///< several of a map alone
  std::optional<TheoryMean> theory;  ///< none: a simulation
  std::vector<std::uint64_t> budgets;
  std::vector<std::uint64_t> sizes;  ///< n, ascending
  AllocateOptions options;           ///< with the first of the rules
};

/// Reads the arguments; throws InvalidInput for those that do not go together.
AllocateRequest allocate_request(const AllocateArguments& arguments);

/// Takes the n of the scenario where none was asked; throws InvalidInput where the scenario cannot
/// give what is asked.
void complete_request(AllocateRequest& request, const AllocateArguments& arguments,
                      const Scenario& scenario);

}  // namespace headlab::tools
