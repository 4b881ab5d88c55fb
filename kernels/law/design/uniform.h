// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/law/design/design.h"

namespace headlab {

/// Independent coordinates, uniform on (-1, 1).
struct UniformDesign {
  static constexpr const char* name = "uniform";
  static constexpr const char* summary = "independent coordinates, uniform on (-1, 1)";
  static constexpr const char* equation = "X_c ~ U(-1, 1)";
  static constexpr const char* example = "dim = 4";

  int dim = 1;

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("dim", dim, within(1, 4096), "d");
  }

  int dimension() const { return dim; }
  void check() const {}

  struct Sampler {
    static constexpr BaseDraw base = BaseDraw::uniform;
    static constexpr bool chooses = false;
    bool operator==(const Sampler&) const = default;
    template <class T>
    HEADLAB_HD std::uint32_t operator()(const float*, std::uint32_t, T*, std::ptrdiff_t) const {
      return 0;
    }
  };

  Sampler sampler(Table&) const { return {}; }
};

}  // namespace headlab
