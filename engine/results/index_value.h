// SPDX-License-Identifier: Apache-2.0
/// \file Diversity indices as the result writers and the table take them.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "engine/moments/estimates.h"

namespace headlab {

/// A diversity index beside the largest value it can take; NaN where undefined (null in the
/// outputs).
struct IndexValue {
  std::string name;
  Figure figure;
  double ceiling = std::numeric_limits<double>::quiet_NaN();
  bool simulated = false;  ///< estimated in the run, so that it has a standard error
};

/// The indices of one condition, in the order they are shown.
using ConditionIndices = std::vector<IndexValue>;

}  // namespace headlab
