// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

#include "kernels/law/regression/regression.h"

namespace headlab {

/// m(x) = coefficients.x
struct LinearRegression {
  static constexpr const char* name = "linear";
  static constexpr const char* summary = "m(x) = coefficients.x";
  static constexpr const char* equation = "m(x) = coefficients · x";
  static constexpr const char* example = "coefficients = [1, 2, 3, 4]";

  std::vector<double> coefficients = {};  ///< [d]

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("coefficients", coefficients, within(-1e6, 1e6), "[d]");
  }
  void check(int d) const { require_dimension("coefficients", coefficients.size(), d); }

  /// m(x) grows with this power of |x|.
  static constexpr double growth = 1;
  /// The largest |m(x)|.
  double bound() const {
    return sum_of_sizes(coefficients) == 0 ? 0 : std::numeric_limits<double>::infinity();
  }

  struct Function {
    int d = 0;
    std::int64_t coefficients = 0;
    bool operator==(const Function&) const = default;
    template <class Number, class T, class Row>
    HEADLAB_HD T operator()(const Number* table, const T* x, std::ptrdiff_t stride,
                            const Row&) const {
      return dot(table + coefficients, x, d, stride);
    }
  };

  Function function(Table& table, int d) const {
    return {.d = d, .coefficients = table.add(coefficients)};
  }
};

}  // namespace headlab
