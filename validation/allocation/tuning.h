// SPDX-License-Identifier: Apache-2.0
/// \file The bandwidth of each allocation from a pilot with draws of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/scenario/scenario.h"
#include "validation/allocation/block_runs.h"

namespace headlab {

/// What the search for bandwidths cost.
struct TuningCost {
  std::size_t settings = 0;      ///< allocations with a bandwidth, each simulated once
  std::uint64_t replicates = 0;  ///< of each
  int at_boundary = 0;  ///< allocations whose best is the end of the grid that was searched

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("settings", settings, "allocations with a bandwidth");
    visit("replicates", replicates, "training sets of each");
    visit("at_the_end", at_boundary, "allocations whose best is an end of the grid");
  }
};

/// Replicates of the pilot for each bandwidth tried.
inline constexpr std::uint64_t tuning_replicates = 1024;

/// Gives each scenario, of those in validation/allocation/allocations.h, the width of its kernel
/// with the least error in a pilot, searched as validation/allocation/octave_search.h says. All
/// share blocks of their own, which the selection that follows has no part in:
/// given the bandwidths it is one among fixed candidates. The least of estimates it takes here is
/// no advice, it only fixes what is compared. Throws TimeIsUp, RunFailed.
TuningCost tune(std::vector<Condition>& conditions, const Session& session,
                const ShareDone& share_done = {});

}  // namespace headlab
