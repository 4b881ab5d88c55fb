// SPDX-License-Identifier: Apache-2.0
/// \file A condition whose figures were computed from closed forms instead of simulated, as the
/// writers and the table take it.
#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "engine/results/index_value.h"
#include "engine/results/result.h"

namespace headlab {

/// A simulated figure against the computed one.
struct ComparedFigure {
  std::string name;  ///< its key in the summary, or what it is of where it is the largest of many
  Figure simulated;
  Figure computed;                                      ///< with its remainder in place of the MCSE
  double z = std::numeric_limits<double>::quiet_NaN();  ///< NaN where the MCSE is 0 or unknown
};

/// Simulation and theory of one condition.
struct SideBySide {
  std::vector<ComparedFigure> figures;  ///< of the summary
  std::vector<ComparedFigure> largest;  ///< largest |z| of bias, variance, covariance
};

/// One condition from closed forms. In every Figure of `condition.estimates` the remainder, how far
/// the closed form may be off, stands in place of the MCSE: signed, NaN where it is unknown.
struct ComputedCondition {
  ConditionResult condition;
  ConditionIndices indices;
  std::string source;                                             ///< "exact" or "first_order"
  std::string form;                                               ///< in words
  double certificate = std::numeric_limits<double>::quiet_NaN();  ///< of a quadrature, ideally 0
  SideBySide simulated;  ///< empty unless the condition was simulated as well
};

}  // namespace headlab
