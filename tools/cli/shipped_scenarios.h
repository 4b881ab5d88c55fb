// SPDX-License-Identifier: Apache-2.0
/// \file The scenarios that come along with the program.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace headlab::tools {

/// Where they are: next to an installed program, in the source tree, or in the prefix that the
/// build was meant for. Empty where they are in none of these.
std::filesystem::path scenario_folder();

/// Their files in order, without those of claims.
std::vector<std::filesystem::path> shipped_scenarios();

/// What to write in place of a scenario that is not there: " - did you mean a.toml?" of one beside
/// it, " - one of this name comes along: ..."; empty where none has its name or nearly so.
std::string advice_on_missing_scenario(const std::string& file);

}  // namespace headlab::tools
