// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/law/noise/noise.h"

namespace headlab {

/// e ~ N(0, s(x)^2), s(x) = sd (1 + slope |direction.x|)
struct HeteroscedasticNoise {
  static constexpr const char* name = "heteroscedastic";
  static constexpr const char* summary = "N(0, s(x)^2), s(x) = sd (1 + slope |direction.x|)";
  static constexpr const char* equation = "e ~ N(0, s(x)^2), s(x) = sd (1 + slope |direction · x|)";
  static constexpr const char* example = "sd = 1, slope = 1, direction = [1, 0, 0, 0]";

  double sd = 1;
  double slope = 0;
  std::vector<double> direction = {};  ///< [d]

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("sd", sd, within(0, 1e6), "standard deviation where direction.x = 0");
    visit.required("slope", slope, within(0, 1e6), "relative growth a unit of |direction.x|");
    visit.required("direction", direction, within(-1e6, 1e6), "[d], used as given");
  }
  void check(int d) const { require_dimension("direction", direction.size(), d); }

  /// s(x) grows with this power of |x|.
  static constexpr double growth = 1;
  /// The largest variance.
  double variance_bound() const {
    const bool grows = sd > 0 && slope > 0 && sum_of_sizes(direction) > 0;
    return grows ? std::numeric_limits<double>::infinity() : sd * sd;
  }

  struct Sampler {
    static constexpr bool constant_scale = false;
    static constexpr bool normal = true;
    double sd = 0;
    double slope = 0;
    int d = 0;
    std::int64_t direction = 0;
    bool operator==(const Sampler&) const = default;

    HEADLAB_HD float unit(const Words& words) const {
      return normal_pair(words.w[0], words.w[1]).first;
    }
    template <class Number, class T>
    HEADLAB_HD T scale(const Number* table, const T* x, std::ptrdiff_t stride) const {
      const T along = math::abs(dot(table + direction, x, d, stride));
      return T(sd) * math::fused(T(slope), along, T(1));
    }
  };

  Sampler sampler(Table& table, int d) const {
    return {.sd = sd, .slope = slope, .d = d, .direction = table.add(direction)};
  }
};

}  // namespace headlab
