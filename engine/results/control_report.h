// SPDX-License-Identifier: Apache-2.0
/// \file What exact controls brought to the figures of a condition.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/files/fields.h"

namespace headlab {

/// An adjustment is what controls subtract from a statistic; its mean is 0 where the means of the
/// controls are right.
struct ControlReport {
  std::uint64_t pilot = 0;       ///< replicates of the pilot
  double pilot_seconds = 0;      ///< that it took
  std::uint64_t statistics = 0;  ///< of all queries, heads and pairs of heads
  std::uint64_t adjusted = 0;    ///< of these, with an adjustment
  std::uint64_t tested = 0;      ///< of these, used: a run uses those whose mean it can test
  double largest_z = 0;          ///< largest |mean| of those tested, in standard errors
  bool refused = false;          ///< some mean is not 0: figures are those without controls
  bool wilder = false;           ///< some adjustment varies far more than in the pilot: likewise
  /// By name of the figure, squared standard error without controls over that with them; NaN where
  /// unknown.
  std::vector<std::pair<std::string, double>> gains = {};

  /// True where the figures are those with controls.
  bool used() const { return !refused && !wilder; }

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("pilot", pilot, "replicates of the pilot that fitted the controls");
    visit("pilot_seconds", pilot_seconds, "wall time of the pilot", {.unit = "s"});
    visit("statistics", statistics, "statistics of all queries, heads and pairs of heads");
    visit("adjusted", adjusted, "statistics from which controls can subtract something");
    visit("tested", tested, "adjustments that are used, whose means were tested");
    visit("largest_z", largest_z, "largest |mean| of an adjustment, in standard errors");
    visit("refused", refused, "a mean is not 0, so that figures are those without controls");
    visit("wilder", wilder,
          "an adjustment varies far more than in the pilot, so that figures are those without "
          "controls");
    visit("gain", by_name(gains), "variance without controls over variance with them",
          {.item = "gain"});
  }
};

}  // namespace headlab
