// SPDX-License-Identifier: Apache-2.0
/// \file Whether a scenario fits in memory, known before it starts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "engine/scenario/scenario.h"
#include "kernels/backend.h"

namespace headlab {

/// Memory that this process may still take [bytes]: the least of MemAvailable and of what the
/// limits of its control groups (v2 and v1, its own and those above) leave, where caches of files
/// count as free; up to a tenth of a second ago. HEADLAB_MEMORY_LIMIT, a number of bytes, overrides
/// it; throws InvalidInput where that is not a number. 2^64 - 1 where the system does not tell.
/// `root` stands for / in tests.
std::uint64_t available_bytes(const std::filesystem::path& root = "/");

/// "512 bytes", "3.1 GiB": three digits at most before the point, one after it from KiB on.
std::string format_bytes(std::uint64_t bytes);

/// Throws InvalidInput unless `bytes` are available:
///     WHERE: KNOB: needs 12.3 GiB of memory WHAT, 3.1 GiB available - lower KNOB ALTERNATIVE
/// with `what` as "for 2 workers", `knob` the key that decides, `where` the place it was written
/// and `alternative` as "or use --threads 1"; the last two may be empty.
void require_memory(std::uint64_t bytes, const std::string& what, const std::string& knob,
                    const std::string& alternative = "", const std::string& where = "");

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

/// Throws InvalidInput with the key to change unless heads that are still to be learned once can be
/// learned in memory.
void check_fit_memory(const Condition& condition);

/// Throws InvalidInput with the key to change unless the plan, the moments and the workers of a
/// scenario, of which there are at most `threads`, fit in memory together. Nothing large is
/// allocated before it is known to fit. Weights of law `optimal` and heads of law
/// `learned` need not be known yet.
void check_memory(const Condition& condition, const Backend& backend, int threads);

}  // namespace headlab
