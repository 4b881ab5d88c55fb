// SPDX-License-Identifier: Apache-2.0
/// \file The best dimension of a head over n, simulated, and the laws of its growth.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "engine/run/session.h"
#include "validation/allocation/allocations.h"
#include "validation/allocation/growth.h"
#include "validation/allocation/tuning.h"

namespace headlab {

/// How the best dimension of one budget grows with n.
struct GrowthStudy {
  int budget = 1;
  BandwidthRule rule = BandwidthRule::fixed;
  std::vector<int> dims;            ///< compared: the divisors of the budget, up to d
  std::uint64_t replicates = 0;     ///< of each dimension at each n
  std::vector<GrowthPoint> points;  ///< [sizes], those reached before time was up
  Growth growth;
  Outcome outcome;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("budget", budget, "budget D = H d_k");
    visit("rule", rule_name(rule), "bandwidth rule");
    visit("complete", outcome.complete, "finished before time was up or a signal came");
    visit("dims", dims, "dimensions compared");
    visit("replicates", replicates, "training sets of each dimension at each n");
    growth.fields(visit);
    visit("seconds", outcome.seconds, "wall time", {.unit = "s"});
  }
};

/// Most replicates of a growth study, fewer where the options ask for fewer: 128 blocks.
inline constexpr std::uint64_t growth_replicates = 4096;

/// Simulates every allocation H = D/k, k a divisor of D = `budget`, at each n of `sizes`, on the
/// same blocks, and fits the growth of k* (validation/allocation/growth.h). Dimensions that do not
/// divide D leave some of it unused, which would pull the interpolation; they are left out. The
/// resampling has the seed of `base`. Throws what allocate() throws; a study that time ends has no
/// growth.
GrowthStudy study_growth(const Condition& base, int budget, std::span<const std::uint64_t> sizes,
                         const Session& session = {}, const AllocateOptions& options = {});

/// Throws InvalidInput for too few replicates, or too many n for them.
void require_growth(std::span<const std::uint64_t> sizes, const AllocateOptions& options);

/// What study_growth() simulates at one n. Throws TimeIsUp where the session stops it.
GrowthPoint simulate_growth_point(Condition base, int budget, std::uint64_t n,
                                  const Session& session, const AllocateOptions& options);

/// Fewest n over which the best dimension is fitted.
inline constexpr std::size_t min_sizes = 4;

/// Fewest budgets over which the best number of heads is fitted.
inline constexpr std::size_t min_budgets = 3;

/// fit_head_growth() of complete studies of one setting and rule that differ in their budgets, at
/// number `size` of their n.
HeadGrowth head_growth(std::span<const GrowthStudy* const> studies, std::size_t size,
                       std::uint64_t seed);

}  // namespace headlab
