// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/law/design/design.h"

namespace headlab {

/// Uniform on the sphere of radius 1 in R^d.
struct SphereDesign {
  static constexpr const char* name = "sphere";
  static constexpr const char* summary = "uniform on the unit sphere in R^d";
  static constexpr const char* equation = "X ~ U({x : |x| = 1})";
  static constexpr const char* example = "dim = 4";

  int dim = 2;

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("dim", dim, within(1, 4096), "d");
  }

  int dimension() const { return dim; }
  void check() const {}

  /// x = z / |z|; the first unit vector in the case z = 0.
  struct Sampler {
    static constexpr BaseDraw base = BaseDraw::normal;
    static constexpr bool chooses = false;
    int d = 0;
    bool operator==(const Sampler&) const = default;

    template <class T>
    HEADLAB_HD std::uint32_t operator()(const float*, std::uint32_t, T* x,
                                        std::ptrdiff_t stride) const {
      T norm2(0);
      for (int j = 0; j < d; ++j) norm2 = math::fused(x[j * stride], x[j * stride], norm2);
      const T least(1e-30f);
      const T scale =
          math::where_greater(norm2, least, T(1) / math::sqrt(math::max(norm2, least)), T(0));
      for (int j = 0; j < d; ++j) x[j * stride] = x[j * stride] * scale;
      x[0] = math::where_greater(norm2, least, x[0], T(1));
      return 0;
    }
  };

  Sampler sampler(Table&) const { return {.d = dim}; }
};

}  // namespace headlab
