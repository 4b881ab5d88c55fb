// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "kernels/law/design/student_t.h"
#include "kernels/law/noise/noise.h"

namespace headlab {

/// e = sd sqrt((df-2)/df) t_df: Student t with standard deviation sd.
struct StudentNoise {
  static constexpr const char* name = "student_t";
  static constexpr const char* summary = "Student t with standard deviation sd";
  static constexpr const char* equation = "e ~ sd sqrt{(df - 2)/df} t_{df}";
  static constexpr const char* example = "df = 3, sd = 1";

  double df = 5;
  double sd = 1;

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("df", df, inside(2, 1e6), "degrees of freedom");
    visit.required("sd", sd, within(0, 1e6), "standard deviation");
  }
  void check(int) const {}

  /// Moments below this order are finite.
  double tail() const { return df; }

  struct Sampler : ConstantScale {
    static constexpr bool normal = false;
    float df = 0;
    float to_unit = 0;  ///< sqrt((df-2)/df)
    bool operator==(const Sampler&) const = default;
    HEADLAB_HD float unit(const Words& words) const {
      const NormalPair z = normal_pair(words.w[0], words.w[1]);
      float t[2] = {z.first, z.second};
      StudentDesign::Sampler{.d = 1, .df = df}(nullptr, 0, t, 1);
      return to_unit * t[0];
    }
  };

  Sampler sampler(Table&, int) const {
    return {{.sd = sd}, static_cast<float>(df), static_cast<float>(std::sqrt((df - 2) / df))};
  }
};

}  // namespace headlab
