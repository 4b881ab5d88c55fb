// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/law/design/design.h"

namespace headlab {

/// Uniform on the sphere of radius 1 in R^d.
struct SphereDesign {
  static constexpr const char* name = "sphere";
  static constexpr const char* summary = "uniform on the unit sphere in R^d";

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

    HEADLAB_HD std::uint32_t operator()(const float*, std::uint32_t, float* x, int stride) const {
      float norm2 = 0;
      for (int j = 0; j < d; ++j) norm2 = math::fused(x[j * stride], x[j * stride], norm2);
      const bool null = !(norm2 > 1e-30f);
      const float scale = null ? 0.0f : 1.0f / math::sqrt(norm2);
      for (int j = 0; j < d; ++j) x[j * stride] *= scale;
      if (null) x[0] = 1.0f;
      return 0;
    }
  };

  Sampler sampler(Table&) const { return {.d = dim}; }
};

}  // namespace headlab
