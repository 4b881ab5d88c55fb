// SPDX-License-Identifier: Apache-2.0
/// \file Where to look for the best width of a kernel, whatever tells the errors.
#pragma once

#include <map>
#include <vector>

#include "engine/scenario/scenario.h"

namespace headlab {

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
