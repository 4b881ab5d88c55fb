// SPDX-License-Identifier: Apache-2.0
/// \file Puts a proposed inversion to the simulation: two conditions of one scenario, on the same
/// draws, as anyone can run them again.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/moments/estimates.h"
#include "engine/scenario/scenario.h"
#include "kernels/backend.h"
#include "validation/search/counterexample.h"
#include "validation/search/search.h"

namespace headlab {

/// Returns the scenario whose two conditions are the more diverse and the plainer head set, in this
/// order, and that is `base` otherwise; see head_sets_scenario().
std::string inversion_scenario(const Condition& base, const Inversion& inversion,
                               std::uint64_t replicates);

/// Returns what the closed forms say of both: the index, and the error they were scored by, under
/// the name of its units.
std::vector<std::pair<std::string, std::pair<double, double>>> closed_form(
    const Inversion& inversion, const std::string& error);

/// Puts the estimates of both conditions of `scenario` side by side. The difference is first -
/// second, paired node by node; z is in units of its MCSE, to be compared to Student's t with
/// nodes - 1 degrees of freedom.
Counterexample pair_counterexample(std::string scenario, std::uint64_t seed,
                                   const JackknifedEstimates& first,
                                   const JackknifedEstimates& second);

/// Simulates both conditions from the first replicate on, with the seed of `base`.
Counterexample confirm(const Condition& base, const Inversion& inversion, std::uint64_t replicates,
                       const Backend& backend, int threads);

}  // namespace headlab
