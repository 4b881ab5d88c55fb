// SPDX-License-Identifier: Apache-2.0
/// \file The bandwidth of each allocation from a pilot with draws of its own, and where to look for
/// the best width of a kernel, whatever tells the errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "validation/allocation/block_runs.h"

namespace headlab {

struct Condition;

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
/// with the least error in a pilot, searched as OctaveSearch says. All
/// share blocks of their own, which the selection that follows has no part in:
/// given the bandwidths it is one among fixed candidates. The least of estimates it takes here is
/// no advice, it only fixes what is compared. Throws TimeIsUp, RunFailed.
TuningCost tune(std::vector<Condition>& conditions, const Session& session,
                const ShareDone& share_done = {});

/// Errors of one allocation by width. Bandwidths (square roots of temperatures) are numbered by
/// steps of 2^(1/16) from the scenario's. A grid in steps of 2, from a sixteenth to sixteen times
/// it, is extended by up to eight octaves while the least error lies at its end; around the least,
/// steps of 2^(1/2), 2^(1/4), 2^(1/8) and 2^(1/16) follow.
class OctaveSearch {
 public:
  static constexpr int octave = 16;  ///< steps

  /// From the width of the scenario's kernel.
  explicit OctaveSearch(const Condition& condition);

  std::map<int, double> errors;  ///< by step

  double width(int step) const;
  /// Whether a width is in the range that kernels take and has no error yet.
  bool is_new(int step) const;
  int best() const;
  double best_width() const { return width(best()); }
  /// True if the best is the narrowest or the widest tried.
  bool is_at_boundary() const;

  std::vector<int> first_grid() const;
  /// One more step of the grid, where the least error is at its end.
  std::vector<int> beyond_the_end() const;
  std::vector<int> around_the_best(int reach) const;

 private:
  double from_;
  double power_;  ///< of a bandwidth that the kernel's width is
};

}  // namespace headlab
