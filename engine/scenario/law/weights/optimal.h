// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "kernels/parameter.h"

namespace headlab {

/// a* = M^-1 1 / (1^T M^-1 1), M = C + B B^T averaged over the queries: the weights of sum 1 with
/// the least mean squared error, estimated once in a pilot study that draws from streams of its
/// own, then fixed and recorded.
struct OptimalWeights {
  static constexpr const char* name = "optimal";
  static constexpr const char* summary = "least-MSE weights of sum 1, from a pilot study";

  std::string source = "pilot";
  std::uint64_t replicates = 2000;
  std::uint64_t seed = 0;

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.optional("source", source, "pilot");
    visit.optional("replicates", replicates, within(100, 1e9), "of the pilot, default 2000");
    visit.optional("seed", seed, "of the pilot, default 0");
  }

  void check(const Sizes& sizes) const {
    if (source != "pilot") throw ParameterError("source", "is \"" + source + "\" (allowed: pilot)");
    if (replicates < 4 * static_cast<std::uint64_t>(sizes.heads)) {
      throw ParameterError("replicates",
                           "must be at least 4 H = " + std::to_string(4 * sizes.heads));
    }
  }

  std::vector<double> values(const Sizes&) const {
    throw ParameterError("", "optimal weights need their pilot study first");
  }
};

}  // namespace headlab
