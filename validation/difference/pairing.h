// SPDX-License-Identifier: Apache-2.0
/// \file Standard errors of the difference of two simulations of a condition.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "engine/moments/jackknife.h"
#include "engine/results/results_reader.h"

namespace headlab {

/// How the standard error of a difference is found.
enum class Pairing {
  paired,        ///< node by node: both have the same draws
  independent,   ///< sqrt(MCSE^2 + MCSE^2): the seeds differ
  same_problem,  ///< the same: one problem, computed twice
  conservative   ///< the same, too large where what draws have in common is not known
};

/// "paired", "independent", ...
const char* pairing_name(Pairing pairing);

/// Nodes of the jackknife behind the standard errors of a run of so many replicates.
/// \param per_draw whether every leaf has a draw of heads or queries of its own
std::uint64_t jackknife_node_count(std::uint64_t replicates, bool per_draw);

/// Standard errors of b - a over the nodes of both, by the name of the figure: of those that both
/// have, at queries below `queries`, and defined. Nothing where the nodes are not of the same
/// replicates. Takes nodes x H^2 numbers.
std::optional<std::map<std::string, double>> paired_errors(StoredCondition a, StoredCondition b);

}  // namespace headlab
