// SPDX-License-Identifier: Apache-2.0
/// \file What is found out before a condition is simulated.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/controls.h"

namespace headlab {

struct LearnedHeads;

/// Controls with coefficients from a pilot, and how each adjustment is spread there.
struct FoundControls {
  Controls controls;
  std::vector<double> estimate_sd;        ///< [Q][H]
  std::vector<double> estimate_skewness;  ///< [Q][H]
  std::vector<double> noise_sd;           ///< [Q][P]
  std::vector<double> noise_skewness;     ///< [Q][P]
  std::uint64_t replicates = 0;           ///< of the pilot
  double seconds = 0;                     ///< that it took
};

/// What is found out before a condition is simulated, where its laws ask for it.
struct Preparation {
  std::shared_ptr<const LearnedHeads> heads = {};        ///< of law "learned", learned once
  std::optional<std::vector<double>> head_weights = {};  ///< [H], optimal or learned once
  std::shared_ptr<const FoundControls> controls = {};    ///< of law "exact"
};

}  // namespace headlab
