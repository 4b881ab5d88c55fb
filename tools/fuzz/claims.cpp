// SPDX-License-Identifier: Apache-2.0
// The claims that a scenario states in [[claim.compare]].
#include "engine/files/error.h"
#include "engine/scenario/testing/any_scenario.h"
#include "tools/fuzz/target.h"
#include "validation/claims/stated_claim.h"

namespace headlab::fuzz {
namespace {

void read_claims(const std::string& bytes) {
  if (Sweep(parse_toml(bytes, "any")).size() > any_scenario::max_conditions) {
    throw InvalidInput("has many conditions");
  }
  const Scenario scenario = parse_scenario(bytes, "any", {}, "/nonexistent");
  if (!states_claims(scenario)) throw InvalidInput("states no claims");
  const StatedClaims claims = read_stated_claims(scenario);
  require(!claims.all.empty(), "no claim");
  for (const StatedClaim& claim : claims.all) {
    require(static_cast<bool>(claim.form.examine), "a claim that cannot be examined");
  }
}

}  // namespace

const Target reader::claims = {"claims", read_claims, any_scenario::words};

}  // namespace headlab::fuzz
