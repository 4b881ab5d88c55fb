// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/law/noise/noise.h"

namespace headlab {

/// Density exp(-sqrt(2) |e| / sd) / (sqrt(2) sd): Laplace with standard deviation sd.
struct LaplaceNoise {
  static constexpr const char* name = "laplace";
  static constexpr const char* summary = "Laplace with standard deviation sd";
  static constexpr const char* equation = "p(e) = frac{1}{sqrt{2} sd} exp(- sqrt{2} |e| / sd)";
  static constexpr const char* example = "sd = 1";

  double sd = 1;

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("sd", sd, within(0, 1e6), "standard deviation");
  }
  void check(int) const {}

  /// -log(u)/sqrt(2) with a random sign.
  struct Sampler : ConstantScale {
    bool operator==(const Sampler&) const = default;
    static constexpr bool normal = false;
    HEADLAB_HD float unit(const Words& words) const {
      const float size = -0.70710678f * math::log(uniform_open(words.w[0]));
      return (words.w[1] >> 31) != 0 ? -size : size;
    }
  };

  Sampler sampler(Table&, int) const { return {{.sd = sd}}; }
};

}  // namespace headlab
