// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/law/design/design.h"

namespace headlab {

/// Elliptical multivariate Student t: density proportional to (1 + |x|^2/df)^(-(df+d)/2).
struct StudentDesign {
  static constexpr const char* name = "student_t";
  static constexpr const char* summary =
      "elliptical Student t, density (1 + |x|^2/df)^(-(df+d)/2) up to a constant";
  static constexpr const char* equation = "p(x) ∝ (1 + frac{|x|^2}{df})^{-(df + d)/2}";
  static constexpr const char* example = "dim = 4, df = 3";

  int dim = 1;
  double df = 3;

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("dim", dim, within(1, 4096), "d");
    visit.required("df", df, within(0.01, 1e6), "degrees of freedom");
  }

  /// Moments of |x| below this order are finite.
  double tail() const { return df; }
  int dimension() const { return dim; }
  void check() const {}

  /// Pair by pair, without rejection. For Z a pair of independent normals, exp(-|Z|^2/2) is uniform
  /// and independent of the direction of Z, and the pair Z sqrt(df expm1(|Z|^2/df)) / |Z| is
  /// bivariate t (Bailey 1994, for one coordinate). Given the coordinates so far, with
  /// G = df + |x|^2 and j of them, the next pair is t with df + j degrees of freedom, scaled by
  /// sqrt(G/(df+j)); so it is Z sqrt(G expm1(|Z|^2/(df+j))) / |Z|.
  /// Coordinates beyond 1e15 are held there: their squares must stay inside float32.
  struct Sampler {
    static constexpr BaseDraw base = BaseDraw::normal;
    static constexpr bool chooses = false;
    int d = 0;
    float df = 0;
    bool operator==(const Sampler&) const = default;

    template <class T>
    HEADLAB_HD std::uint32_t operator()(const float*, std::uint32_t, T* x,
                                        std::ptrdiff_t stride) const {
      T g(df);
      for (int j = 0; j < d; j += 2) {
        const T a = x[j * stride];
        const T b = x[(j + 1) * stride];
        const T r2 = math::max(math::fused(a, a, b * b), T(1e-30f));
        const T degrees(df + static_cast<float>(j));
        const T excess = math::min(math::expm1(r2 / degrees), T(1e30f));
        const T factor = math::sqrt(g / r2) * math::sqrt(excess);
        x[j * stride] = math::max(math::min(a * factor, T(1e15f)), T(-1e15f));
        if (j + 1 < d) {
          x[(j + 1) * stride] = math::max(math::min(b * factor, T(1e15f)), T(-1e15f));
        }
        g = math::min(math::fused(g, excess, g), T(1e30f));
      }
      return 0;
    }
  };

  Sampler sampler(Table&) const { return {.d = dim, .df = static_cast<float>(df)}; }
};

}  // namespace headlab
