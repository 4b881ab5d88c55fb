// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/law/noise/noise.h"

namespace headlab {

/// e ~ N(0, sd^2)
struct NormalNoise {
  static constexpr const char* name = "normal";
  static constexpr const char* summary = "e ~ N(0, sd^2)";
  static constexpr const char* equation = "e ~ N(0, sd^2)";
  static constexpr const char* example = "sd = 1";

  double sd = 1;

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("sd", sd, within(0, 1e6), "standard deviation");
  }
  void check(int) const {}

  struct Sampler : ConstantScale {
    bool operator==(const Sampler&) const = default;
    static constexpr bool normal = true;
    HEADLAB_HD float unit(const Words& words) const {
      return normal_pair(words.w[0], words.w[1]).first;
    }
  };

  Sampler sampler(Table&, int) const { return {{.sd = sd}}; }
};

}  // namespace headlab
