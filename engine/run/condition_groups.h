// SPDX-License-Identifier: Apache-2.0
/// \file Which conditions of a scenario are simulated together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/scenario/scenario.h"
#include "kernels/backend.h"

namespace headlab {

/// Conditions by number, ascending.
using ConditionGroup = std::vector<std::size_t>;

/// Every condition of a scenario in one group, in the order of their first conditions. The
/// conditions of a group share their draws, all redraw heads or queries or none does, and have
/// equally many replicates, of which equally many are there already; they are as many as the
/// backend gains from, and no more than fit in `available` bytes with `workers` workers on all of
/// them. `plans` are those of the conditions, `begun` the replicates that each has already.
std::vector<ConditionGroup> condition_groups(const Scenario& scenario, Plans plans,
                                             std::span<const std::uint64_t> begun,
                                             const Backend& backend, int workers,
                                             std::uint64_t available);

}  // namespace headlab
