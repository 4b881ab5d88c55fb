// SPDX-License-Identifier: Apache-2.0
/// \file Claims that a scenario states itself, in tables [[claim.compare]] (docs/claims.md).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/files/document.h"
#include "validation/claims/claim.h"

namespace headlab {

struct Scenario;

/// A claim of a scenario's own.
struct StatedClaim {
  ClaimForm form;
  double margin = 0;          ///< as written: absolute, relative, or in units of s2/n
  std::string expected = {};  ///< verdict fixed beforehand; empty: none
};

/// Those of one scenario.
struct StatedClaims {
  std::string name;  ///< [claim] name, or that of the scenario: what the claims are forms of
  std::vector<StatedClaim> all;
};

/// Reads what a table says of a form in words, where it says it.
void read_texts(const Value& table, const std::string& key, ClaimForm& form);

/// Number of tables [[claim.compare]] of the scenario.
std::size_t count_stated_claims(const Scenario& scenario);

/// True where the scenario has a table [[claim.compare]].
inline bool states_claims(const Scenario& scenario) {
  return count_stated_claims(scenario) > 0;
}

/// Reads them, in their order; throws InvalidInput with one line that says where, for a figure that
/// does not exist, a condition that is not in the sweep or not the only one, a missing margin.
StatedClaims read_stated_claims(const Scenario& scenario);

struct ClaimScenario {
  const char* file;  ///< "scenarios/claims/angles_centre.toml"
  const char* text;
};

/// All of them, by file name.
const std::vector<ClaimScenario>& claim_scenarios();

}  // namespace headlab
