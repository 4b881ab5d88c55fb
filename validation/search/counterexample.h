// SPDX-License-Identifier: Apache-2.0
/// \file A counterexample that anyone can run again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/files/fields.h"
#include "engine/moments/jackknife.h"

namespace headlab {

/// Two figures of one scenario that contradict a claim: the first is the lesser, or equal, by the
/// claim and not by the simulation.
struct Counterexample {
  std::string scenario;  ///< text of a scenario file that has the conditions of both
  std::uint64_t seed = 0;
  std::uint64_t replicates = 0;
  std::array<std::string, 2> figures = {"mse", "mse"};  ///< as FigureName::text writes them
  std::array<std::size_t, 2> conditions = {0, 1};       ///< of the scenario, from 0
  Estimate first;
  Estimate second;
  Estimate difference;  ///< first - second, on the same draws
  double z = 0;         ///< difference in units of its MCSE
  std::string replay =
      {};  ///< command that gives the same bits; empty: the scenario is no file yet
  /// Closed-form figures of the two, by name: index, correlation, ...
  std::vector<std::pair<std::string, std::pair<double, double>>> closed_form = {};

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("scenario", scenario, "text of a scenario that has the conditions of both");
    visit("seed", seed, "seed");
    visit("replicates", replicates, "training sets of each");
    visit("figures", figures, "names of the two figures");
    visit("conditions", conditions, "their conditions in the scenario, from 0");
    visit("values", std::array{first, second}, "the two figures");
    visit("difference", difference, "first less second");
    visit("z", z, "difference in units of its standard error");
    visit("closed_form", by_name(closed_form), "figures of the two from closed forms");
    visit("replay", replay.empty() ? std::nullopt : std::optional(replay),
          "command that gives the same bits");
  }
};

}  // namespace headlab
