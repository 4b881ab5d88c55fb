// SPDX-License-Identifier: Apache-2.0
/// \file Closed forms of a scenario: the same figures as a simulation's, without one.
#pragma once

#include <limits>
#include <string>

#include "engine/estimates.h"
#include "engine/scenario.h"

namespace headlab {

enum class TheorySource {
  automatic,   ///< exact where it applies, else first order
  exact,       ///< of a fixed design, or at finite n
  first_order  ///< in 1/n
};

/// A closed-form figure. The remainder is, for the first order, the signed second-order term; for
/// exact forms the change on refinement of the quadrature; NaN where there is none.
struct TheoryFigure {
  double value = std::numeric_limits<double>::quiet_NaN();
  double remainder = std::numeric_limits<double>::quiet_NaN();
};

struct Theory {
  std::string source;  ///< "exact" or "first_order"
  std::string form;    ///< in words: "exact at finite n, Gaussian kernel, d_k = 1"
  /// Largest deviation of the sum of the weights from 1, of forms by quadrature; else NaN.
  double certificate = std::numeric_limits<double>::quiet_NaN();
  EstimatesOf<TheoryFigure> figures;
};

/// Computes the closed forms of a scenario, pairs of heads in parallel on `threads` threads (0: all
/// of this machine). Throws Refused with one line where none applies: which assumption fails and
/// which other form would do; also where a remainder exceeds 10 % of its figure.
Theory compute_theory(const Scenario& scenario, TheorySource source = TheorySource::automatic,
                      int threads = 0);

}  // namespace headlab
