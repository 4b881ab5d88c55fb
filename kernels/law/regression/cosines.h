// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/counted.h"
#include "kernels/law/regression/cosine_sum.h"

namespace headlab {

/// m(x) = sum_j amplitude_j cos(frequency_j.x + phase_j), radians.
struct CosinesRegression {
  static constexpr const char* name = "cosines";
  static constexpr const char* summary = "m(x) = sum_j amplitude_j cos(frequency_j.x + phase_j)";
  static constexpr const char* equation = "m(x) = sum_j amplitude_j cos(frequency_j · x + phase_j)";
  static constexpr const char* example = "amplitude = [1], frequency = [[1, 2, 3, 4]]";

  std::vector<double> amplitude = {};               ///< [terms]
  std::vector<std::vector<double>> frequency = {};  ///< [terms][d]
  std::vector<double> phase = {};                   ///< [terms], radians, empty: 0

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("amplitude", amplitude, within(-1e6, 1e6), "[terms]");
    visit.required("frequency", frequency, within(-1e6, 1e6), "[terms][d]");
    visit.optional("phase", phase, phase_in_radians(), "[terms], radians, default 0");
  }

  void check(int d) const {
    if (amplitude.empty()) throw ParameterError("amplitude", "is empty");
    if (frequency.size() != amplitude.size()) {
      throw ParameterError("frequency", "has " + counted(frequency.size(), "row") +
                                            ", amplitude has " +
                                            counted(amplitude.size(), "element"));
    }
    for (const auto& row : frequency) require_dimension("frequency", row.size(), d);
    if (!phase.empty() && phase.size() != amplitude.size()) {
      throw ParameterError("phase", "has " + counted(phase.size(), "element") + ", amplitude has " +
                                        std::to_string(amplitude.size()));
    }
  }

  /// The largest |m(x)|.
  double bound() const { return sum_of_sizes(amplitude); }

  CosineSum function(Table& table, int) const {
    return cosine_sum(table, amplitude, frequency,
                      phase.empty() ? std::vector<double>(amplitude.size(), 0.0) : phase);
  }
};

}  // namespace headlab
