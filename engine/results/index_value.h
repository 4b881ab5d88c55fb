// SPDX-License-Identifier: Apache-2.0
/// \file Diversity indices as the result writers and the table take them.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "engine/moments/estimates.h"

namespace headlab {

/// A diversity index with the largest value it can take; NaN where undefined (null in the outputs).
/// A Number is a Estimate of a simulation, or the Remainder of a closed form.
template <class Number>
struct IndexOf {
  std::string name;
  Number figure = {};
  double upper_bound = std::numeric_limits<double>::quiet_NaN();
  bool simulated = false;  ///< follows from the error, so that it has a standard error or remainder

  template <class Visitor>
  void fields(Visitor& visit) const {
    if (simulated) {
      figure.fields(visit);
    } else {
      visit("value", figure.value, "value");
    }
    visit("ceiling", upper_bound, "largest value");
  }
};

/// The indices of one condition, in the order they are shown.
template <class Number>
using IndicesOf = std::vector<IndexOf<Number>>;
using ConditionIndices = IndicesOf<Estimate>;

}  // namespace headlab
