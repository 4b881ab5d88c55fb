// SPDX-License-Identifier: Apache-2.0
/// \file Advice on how many heads of what dimension to use under a budget, with its uncertainty.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "engine/moments/jackknife.h"
#include "engine/run/session.h"
#include "engine/scenario/scenario.h"
#include "validation/allocation/allocate_options.h"
#include "validation/allocation/tuning.h"

namespace headlab {

/// How a selection came out.
enum class AdviceKind {
  best,         ///< one allocation is left
  within_zone,  ///< several may be best, but the one advised is shown to lie within the zone of it
  too_close,    ///< neither, with the replicates allowed
  unfinished    ///< time was up before it was decided
};

/// "best", "within zone", "too close to call", "unfinished".
const char* advice_name(AdviceKind kind);

/// One candidate with what was seen of it.
struct AllocationRow {
  int heads = 1;
  int k = 1;
  std::string subspaces;  ///< law of its heads
  KernelLaw kernel;       ///< with the width that the rule gave it
  Estimate mse = {};      ///< at the look it was last simulated for; NaN where there was none
  std::uint64_t replicates = 0;
  bool in_best_set = true;
};

/// A selection among the allocations of one budget at one n.
struct AllocationStudy {
  int budget = 1;
  std::uint64_t n = 1;
  bool fixed_design = false;  ///< one set of n points, not their law
  int queries = 1;
  std::uint64_t seed = 0;
  BandwidthRule rule = BandwidthRule::fixed;
  SelectionGuarantee guarantee;
  std::vector<AllocationRow> rows;  ///< by k

  AdviceKind kind = AdviceKind::unfinished;
  std::optional<std::size_t> advised;  ///< the row of the best set with the least estimated MSE
  /// Upper bound of MSE(advised) - MSE(best), in units of the former.
  double largest_loss = std::numeric_limits<double>::infinity();
  /// Replicates that would decide if errors are what they look like, where it is too close.
  double replicates_needed = std::numeric_limits<double>::quiet_NaN();
  TuningCost tuning;  ///< no settings but under the rule `tuned`

  Machine machine;
  Outcome outcome;
};

/// Selects among the allocations of `budget` for the design, truth, noise, queries and kernel of
/// `base`, its n and its seed. All candidates are simulated on common training sets to a first
/// look, those that screen() leaves to the next, until one is left
/// or the least is shown to lie within the zone of the best. Throws InvalidInput for what
/// allocation_scenarios() refuses, for too few replicates, for a backend that is not there and for
/// what does not fit in memory; RunFailed.
AllocationStudy allocate(const Condition& base, int budget, const Session& session = {},
                         const AllocateOptions& options = {});

/// What is advised, in one sentence.
std::string advice_text(const AllocationStudy& study);

/// What the advice holds for, in one sentence.
std::string advice_limits(const AllocationStudy& study);

}  // namespace headlab
