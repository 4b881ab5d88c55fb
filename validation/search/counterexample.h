// SPDX-License-Identifier: Apache-2.0
/// \file A counterexample that anyone can run again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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
};

}  // namespace headlab
