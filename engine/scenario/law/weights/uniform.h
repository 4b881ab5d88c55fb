// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "kernels/parameter.h"

namespace headlab {

/// a_h = 1/H
struct UniformWeights : NoParameters {
  static constexpr const char* name = "uniform";
  static constexpr const char* summary = "a_h = 1/H";
  static constexpr const char* equation = "a_h = 1 / H";
  void check(const Sizes&) const {}

  /// a_h for h = 1..H.
  std::vector<double> values(const Sizes& sizes) const {
    return std::vector<double>(static_cast<std::size_t>(sizes.heads), 1.0 / sizes.heads);
  }
};

}  // namespace headlab
