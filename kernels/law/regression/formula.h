// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/law/regression/regression.h"
#include "kernels/point_formula.h"

namespace headlab {

/// m(x) by a formula.
struct FormulaRegression : PointFormula {
  static constexpr const char* name = "formula";
  static constexpr const char* summary =
      "m(x) by a formula of x1 ... xd, as \"sin(2*pi*x1) + x2^2\"";
  static constexpr const char* equation = "m(x) = formula(x_1, ..., x_d)";
  static constexpr const char* example = "formula = \"x1 + x4\"";

  template <class Visitor>
  void parameters(Visitor& visit) {
    PointFormula::parameters(visit, "formula", "of x1 ... xd and the constants");
  }
  void check(int d) const { PointFormula::check("formula", d); }

  double bound() const { return parsed().bound(); }
  /// The power of |x| with which it grows.
  double growth_rate() const { return parsed().growth(); }

  struct Function : PointProgram {
    bool operator==(const Function&) const = default;
    template <class Number, class T, class Row>
    HEADLAB_HD T operator()(const Number* table, const T* x, std::ptrdiff_t stride,
                            const Row&) const {
      return at(table, x, stride);
    }
  };

  Function function(Table& table, int) const {
    Function f;
    f.program = add_to(table, f.steps);
    return f;
  }
};

}  // namespace headlab
