// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "kernels/parameter.h"

namespace headlab {

/// a_h trained together with the subspaces of law "learned", from 1/H, of any sign and sum.
struct LearnedWeights : NoParameters {
  static constexpr const char* name = "learned";
  static constexpr const char* summary =
      "trained along with subspaces of law learned; their sum is free";
  void check(const Sizes&) const {}

  /// 1/H, with which learning starts. Where every replicate learns its own, a head's estimate is
  /// H a_h f_h.
  std::vector<double> values(const Sizes& sizes) const {
    return std::vector<double>(static_cast<std::size_t>(sizes.heads), 1.0 / sizes.heads);
  }
};

}  // namespace headlab
