// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "kernels/counted.h"
#include "kernels/parameter.h"

namespace headlab {

/// The a_h as given, with any sum.
struct ExplicitWeights {
  static constexpr const char* name = "explicit";
  static constexpr const char* summary = "a_h as given, with any sum";
  static constexpr const char* example = "values = [1, 2]";

  std::vector<double> weights = {};  ///< [H]

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("values", weights, within(-1e6, 1e6), "[H], any sum");
  }

  void check(const Sizes& sizes) const {
    if (weights.size() != static_cast<std::size_t>(sizes.heads)) {
      throw ParameterError("values", "has " + counted(weights.size(), "element") + ", needs " +
                                         std::to_string(sizes.heads) + ", one for each head");
    }
  }

  /// a_h for h = 1..H.
  std::vector<double> values(const Sizes&) const { return weights; }
};

}  // namespace headlab
