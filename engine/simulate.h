// SPDX-License-Identifier: Apache-2.0
/// \file Replicates of one plan on a backend: blocks -> moments. Knows no scenario and no file, so
/// that a program on a bare machine can link it.
#pragma once

#include <cstdint>
#include <functional>

#include "engine/moment_tree.h"
#include "kernels/backend.h"

namespace headlab {

/// What a simulation asks and tells while it goes on; either may be empty.
struct SimulationHooks {
  std::function<bool()> stop = {};                       ///< true: finish the blocks under way
  std::function<void(const MomentTree&)> progress = {};  ///< about every tenth of a second
};

/// Simulates replicates 0 .. replicates - 1 of a plan. The moments have the same bits for any
/// number of threads.
MomentTree simulate(const Plan& plan, const Backend& backend, int threads, std::uint64_t replicates,
                    const SimulationHooks& hooks = {});

/// Goes on where `begun`, a tree of the same plan and backend, ends: the moments have the bits they
/// would have in one go. Its count must be below `first_leaf` or a multiple of 8.
MomentTree continue_simulation(MomentTree begun, const Plan& plan, const Backend& backend,
                               int threads, std::uint64_t replicates,
                               const SimulationHooks& hooks = {});

/// Cost of one replicate in kernel weights: those it takes, and the coordinates drawn for it.
double replicate_work(std::uint64_t n, int d, int heads, int queries);

/// Threads for a number asked, 0 being all of this machine.
int thread_count(int asked);

}  // namespace headlab
