// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/law/noise/noise.h"
#include "kernels/point_formula.h"

namespace headlab {

/// e ~ N(0, s(x)^2), |s(x)| by a formula.
struct FormulaNoise : PointFormula {
  static constexpr const char* name = "formula";
  static constexpr const char* summary = "N(0, s(x)^2), s(x) the size of a formula of x1 ... xd";
  static constexpr const char* equation = "e ~ N(0, s(x)^2), s(x) = |sd(x_1, ..., x_d)|";
  static constexpr const char* example = "sd = \"1 + abs(x1)\"";

  template <class Visitor>
  void parameters(Visitor& visit) {
    PointFormula::parameters(visit, "sd", "s(x), a formula of x1 ... xd and the constants");
  }
  void check(int d) const { PointFormula::check("sd", d); }

  /// The largest variance.
  double variance_bound() const {
    const double largest = parsed().bound();
    return largest * largest;
  }
  /// The power of |x| with which s(x) grows.
  double growth_rate() const { return parsed().growth(); }

  struct Sampler : PointProgram {
    static constexpr bool constant_scale = false;
    static constexpr bool normal = true;
    bool operator==(const Sampler&) const = default;

    HEADLAB_HD float unit(const Words& words) const {
      return normal_pair(words.w[0], words.w[1]).first;
    }
    template <class Number, class T>
    HEADLAB_HD T scale(const Number* table, const T* x, std::ptrdiff_t stride) const {
      return math::abs(at(table, x, stride));
    }
  };

  Sampler sampler(Table& table, int) const {
    Sampler s;
    s.program = add_to(table, s.steps);
    return s;
  }
};

}  // namespace headlab
