// SPDX-License-Identifier: Apache-2.0
/// \file Closed forms of a scenario: which one applies, and the same figures as a simulation's from
/// it.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "engine/results/computed.h"
#include "engine/scenario/preparation.h"
#include "validation/theory/model/model.h"

namespace headlab {

struct Condition;

enum class TheorySource {
  automatic,   ///< exact where it applies, else first order
  exact,       ///< of a fixed design, or at finite n
  first_order  ///< in 1/n
};

/// Where a form stops being worth anything: a larger remainder, relative to its figure, is refused.
inline constexpr double largest_remainder = 0.1;

/// Closed forms with what they are made of.
struct Theory : TheoryResult {
  Measures measures;                                                ///< of the scenario
  std::vector<HeadTheory> heads;                                    ///< [Q]
  double weights_index = std::numeric_limits<double>::quiet_NaN();  ///< known for a fixed design
};

/// Computes the closed forms of a scenario, pairs of heads in parallel on `threads` threads (0: all
/// of this machine). Weights of law `optimal` become those that a pilot has found, or else those
/// that are optimal for the closed forms themselves. Throws InvalidInput with one line where no
/// form applies: which assumption fails and which other form would do; also where a remainder
/// exceeds 10 % of its figure.
Theory compute_theory(const Condition& condition, TheorySource source = TheorySource::automatic,
                      int threads = 0, const Preparation& found = {});

/// Throws InvalidInput where compute_theory() of source exact would before it computes anything,
/// for given head weights.
void require_exact(const Condition& condition);

/// Computes the figures of `theory` for other head weights [H]: those of plan and figures change.
void set_head_weights(Theory& theory, const std::vector<double>& head_weights);

}  // namespace headlab
