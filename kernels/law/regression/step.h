// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/law/regression/regression.h"

namespace headlab {

/// m(x) = height where direction.x > threshold, else 0.
struct StepRegression {
  static constexpr const char* name = "step";
  static constexpr const char* summary = "m(x) = height where direction.x > threshold, else 0";
  static constexpr const char* equation = "m(x) = height 1[direction · x > threshold]";
  static constexpr const char* example = "direction = [1, 0, 0, 0]";

  std::vector<double> direction = {};  ///< [d]
  double threshold = 0;
  double height = 1;

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("direction", direction, within(-1e6, 1e6), "[d], used as given");
    visit.optional("threshold", threshold, within(-1e6, 1e6), "default 0");
    visit.optional("height", height, within(-1e6, 1e6), "default 1");
  }
  void check(int d) const { require_dimension("direction", direction.size(), d); }

  /// The largest |m(x)|.
  double bound() const { return std::abs(height); }

  struct Function {
    int d = 0;
    std::int64_t direction = 0;
    double threshold = 0;
    double height = 1;
    bool operator==(const Function&) const = default;
    template <class Number, class T, class Row>
    HEADLAB_HD T operator()(const Number* table, const T* x, std::ptrdiff_t stride,
                            const Row&) const {
      return math::where_greater(dot(table + direction, x, d, stride), T(threshold), T(height),
                                 T(0));
    }
  };

  Function function(Table& table, int d) const {
    return {.d = d, .direction = table.add(direction), .threshold = threshold, .height = height};
  }
};

}  // namespace headlab
