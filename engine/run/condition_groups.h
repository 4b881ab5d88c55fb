// SPDX-License-Identifier: Apache-2.0
/// \file Which conditions of a scenario are simulated together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/moments/moment_tree.h"
#include "kernels/backend.h"

namespace headlab {

struct Scenario;

/// Conditions by number, ascending.
using ConditionGroup = std::vector<std::size_t>;

/// All replicates of each condition.
std::vector<ReplicateRange> all_replicates(const Scenario& scenario);

/// Every condition of a scenario in one group, in the order of their first conditions: conditions
/// that share their draws and have the same range of replicates `left`, at most `most` of them, as
/// long as one more `fits`.
std::vector<ConditionGroup> groups_by_draws(
    const Scenario& scenario, Plans plans, std::span<const ReplicateRange> left, std::size_t most,
    const std::function<bool(const ConditionGroup& group, std::size_t which)>& fits = {});

/// Every condition of a scenario in one group, in the order of their first conditions. The
/// conditions of a group share their draws, all redraw heads or queries or none does, and have
/// the same range of replicates left to simulate; they are as many as the
/// backend gains from, and no more than fit in `available` bytes with `workers` workers on all of
/// them. `plans` are those of the conditions, `left` what each still lacks.
std::vector<ConditionGroup> condition_groups(const Scenario& scenario, Plans plans,
                                             std::span<const ReplicateRange> left,
                                             const Backend& backend, int workers,
                                             std::uint64_t available);

}  // namespace headlab
