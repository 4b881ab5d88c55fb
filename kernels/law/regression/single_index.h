// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/law/regression/cosine_sum.h"

namespace headlab {

/// m(x) = cos(frequency direction.x); direction is used as given, not normalised.
struct SingleIndexRegression {
  static constexpr const char* name = "single_index";
  static constexpr const char* summary = "m(x) = cos(frequency * direction.x)";
  static constexpr const char* equation = "m(x) = cos(frequency direction · x)";
  static constexpr const char* example = "direction = [1, 0, 0, 0], frequency = 2";

  std::vector<double> direction = {};  ///< [d]
  double frequency = 1;

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("direction", direction, within(-1e6, 1e6), "[d], used as given");
    visit.required("frequency", frequency, within(-1e6, 1e6), "radians a unit of direction.x");
  }
  void check(int d) const { require_dimension("direction", direction.size(), d); }

  /// The largest |m(x)|.
  double bound() const { return 1; }

  CosineSum function(Table& table, int) const {
    auto u = direction;
    for (auto& value : u) value *= frequency;
    return cosine_sum(table, {1.0}, {u}, {0.0});
  }
};

}  // namespace headlab
