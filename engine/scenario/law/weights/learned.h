// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/parameter.h"

namespace headlab {

/// a_h trained together with the subspaces of law "learned", from 1/H, of any sign and sum.
struct LearnedWeights {
  static constexpr const char* name = "learned";
  static constexpr const char* summary = "trained with subspaces of law learned; any sum";

  std::optional<std::vector<double>> resolved = {};  ///< [H], set by resolve_heads()

  template <class Visitor>
  void parameters(Visitor&) {}
  void check(const Sizes&) const {}

  /// The weights learned once, or where every replicate learns its own 1/H: a head's estimate is
  /// H a_h f_h then.
  std::vector<double> values(const Sizes& sizes) const {
    return resolved.value_or(
        std::vector<double>(static_cast<std::size_t>(sizes.heads), 1.0 / sizes.heads));
  }
};

}  // namespace headlab
