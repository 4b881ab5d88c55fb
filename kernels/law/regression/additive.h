// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/law/regression/cosine_sum.h"

namespace headlab {

/// m(x) = sum_c amplitude_c cos(frequency_c x_c + phase_c), one cosine a coordinate.
struct AdditiveRegression {
  static constexpr const char* name = "additive";
  static constexpr const char* summary = "m(x) = sum_c amplitude_c cos(frequency_c x_c + phase_c)";
  static constexpr const char* equation = "m(x) = sum_c amplitude_c cos(frequency_c x_c + phase_c)";
  static constexpr const char* example = "amplitude = [1, 1, 1, 1], frequency = [1, 2, 3, 4]";

  std::vector<double> amplitude = {};  ///< [d]
  std::vector<double> frequency = {};  ///< [d]
  std::vector<double> phase = {};      ///< [d], radians, empty: 0

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("amplitude", amplitude, within(-1e6, 1e6), "[d]");
    visit.required("frequency", frequency, within(-1e6, 1e6), "[d]");
    visit.optional("phase", phase, phase_in_radians(), "[d], radians, default 0");
  }

  void check(int d) const {
    require_dimension("amplitude", amplitude.size(), d);
    require_dimension("frequency", frequency.size(), d);
    if (!phase.empty()) require_dimension("phase", phase.size(), d);
  }

  /// The largest |m(x)|.
  double bound() const { return sum_of_sizes(amplitude); }

  /// One cosine a coordinate; frequencies and phases in turns.
  struct Function {
    int d = 0;
    std::int64_t amplitudes = 0;
    std::int64_t frequencies = 0;
    std::int64_t phases = 0;
    bool operator==(const Function&) const = default;
    template <class Number, class T, class Row>
    HEADLAB_HD T operator()(const Number* table, const T* x, std::ptrdiff_t stride,
                            const Row&) const {
      T sum(0);
      for (int j = 0; j < d; ++j) {
        const T turns = math::fused(table[frequencies + j], x[j * stride], T(table[phases + j]));
        sum = math::fused(table[amplitudes + j], math::cos_turns(turns), sum);
      }
      return sum;
    }
  };

  Function function(Table& table, int d) const {
    auto in_turns = [](std::vector<double> radians) {
      for (auto& value : radians) value /= 2 * std::numbers::pi;
      return radians;
    };
    Function f{.d = d};
    f.amplitudes = table.add(amplitude);
    f.frequencies = table.add(in_turns(frequency));
    f.phases =
        table.add(in_turns(phase.empty() ? std::vector<double>(amplitude.size(), 0.0) : phase));
    return f;
  }
};

}  // namespace headlab
