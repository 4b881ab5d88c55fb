// SPDX-License-Identifier: Apache-2.0
/// \file Whether a scenario fits in memory, known before it starts.
#pragma once

#include <cstdint>

#include "engine/files/available_memory.h"
#include "kernels/backend.h"

namespace headlab {

struct Condition;
struct MomentLayout;
struct Scenario;

/// Memory for the moments of a run and their estimates [bytes], 2^64 - 1 where it does not fit in
/// 64 bits: nodes as kept, as copied out of the run and as merged for the jackknife, nodes under
/// way from the workers, figures of every query.
std::uint64_t moments_bytes(const MomentLayout& layout, std::uint64_t replicates, int workers);

/// Memory to simulate plans together [bytes], 2^64 - 1 where it does not fit in 64 bits: the
/// workers, of which there are at most `workers`, and the moments of every plan.
std::uint64_t simulation_bytes(Plans plans, std::uint64_t replicates, const Backend& backend,
                               int workers);

/// Memory for the plan of a scenario and to make it [bytes], 2^64 - 1 where it does not fit in 64
/// bits: projections, queries, and the tables of the laws.
std::uint64_t plan_bytes(const Condition& condition);

/// Memory for the numbers of data files, which conditions share, and the most that it is while they
/// are read [bytes].
struct TableBytes {
  std::uint64_t kept = 0;
  std::uint64_t reading = 0;
};
TableBytes table_bytes(const Scenario& scenario);

/// Throws InvalidInput with the key to change unless heads that are still to be learned once can be
/// learned in memory.
void check_fit_memory(const Condition& condition);

/// Throws InvalidInput with the key to change unless the plan, the moments and the workers of a
/// scenario, of which there are at most `threads`, fit in memory together. Nothing large is
/// allocated before it is known to fit. Weights of law `optimal` and heads of law
/// `learned` need not be known yet.
void check_memory(const Condition& condition, const Backend& backend, int threads);

}  // namespace headlab
