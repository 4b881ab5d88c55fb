// SPDX-License-Identifier: Apache-2.0
/// \file A counterexample that anyone can run again.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/files/fields.h"
#include "engine/moments/jackknife.h"

namespace headlab {

/// Two conditions of one scenario that contradict a claim: the first is better by the claim and
/// worse by the simulation.
struct Counterexample {
  std::string scenario;  ///< text of a scenario file whose conditions are the two
  std::uint64_t seed = 0;
  std::uint64_t replicates = 0;
  Estimate first_mse;
  Estimate second_mse;
  Estimate difference;  ///< first - second, on the same draws
  double z = 0;         ///< difference in units of its MCSE
  /// Closed-form figures of the two, by name: index, correlation, ...
  std::vector<std::pair<std::string, std::pair<double, double>>> closed_form = {};

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("scenario", scenario, "text of a scenario whose conditions are the two");
    visit("seed", seed, "seed");
    visit("replicates", replicates, "training sets of each");
    visit("mse", std::array{first_mse, second_mse}, "mean squared errors of the two");
    visit("difference", difference, "first less second");
    visit("z", z, "difference in units of its standard error");
    visit("closed_form", by_name(closed_form), "figures of the two from closed forms");
  }
};

}  // namespace headlab
