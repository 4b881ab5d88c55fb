// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine/scenario/scenario.h"

namespace headlab::tools {

/// The scenario that a command names: a file, or standard input for "-". Messages call the latter
/// <stdin>, and relative paths in it begin at the working folder. Throws InvalidInput.
Scenario read_scenario_argument(const std::string& file, const std::vector<std::string>& sets,
                                const ReadHooks& hooks = {});

}  // namespace headlab::tools
