// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <vector>

#include "kernels/parameter.h"

namespace headlab {

/// a_h = ratio^h / sum_l ratio^l
struct GeometricWeights {
  static constexpr const char* name = "geometric";
  static constexpr const char* summary = "a_h proportional to ratio^h, sum 1";
  static constexpr const char* equation = "a_h ∝ ratio^h";
  static constexpr const char* example = "ratio = 2";

  double ratio = 1;

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("ratio", ratio, Range{.low = 0, .high = 1e3, .high_open = false},
                   "of each weight to the one before");
  }
  void check(const Sizes&) const {}

  /// a_h for h = 1..H. Powers are taken from the largest weight down: none overflows.
  std::vector<double> values(const Sizes& sizes) const {
    const int largest = ratio > 1 ? sizes.heads - 1 : 0;
    std::vector<double> a;
    double sum = 0;
    for (int h = 0; h < sizes.heads; ++h) {
      a.push_back(std::pow(ratio, h - largest));
      sum += a.back();
    }
    for (double& value : a) value /= sum;
    return a;
  }
};

}  // namespace headlab
