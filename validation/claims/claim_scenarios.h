// SPDX-License-Identifier: Apache-2.0
/// \file The scenarios of the claims, as files of scenarios/claims/ that were built in.
#pragma once

#include <vector>

namespace headlab {

struct ClaimScenario {
  const char* file;  ///< "scenarios/claims/angles_centre.toml"
  const char* text;
};

/// All of them, by file name.
const std::vector<ClaimScenario>& claim_scenarios();

}  // namespace headlab
