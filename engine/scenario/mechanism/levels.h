// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "engine/scenario/mechanism/stage.h"
#include "kernels/counted.h"

namespace headlab {

/// Keys at several scales, see Levels in kernels/mechanism.h: block means in place of the trained
/// filters of the hierarchical kernel Transformer (arXiv:2604.08829).
struct LevelsStage {
  static constexpr const char* name = "levels";
  static constexpr const char* summary =
      "log weights averaged over key means of 1, 2, 4 ... tokens";
  static constexpr const char* example = "weights = [0.5, 0.5]";
  static constexpr const char* shorthand = "weights";
  static constexpr std::uint64_t max_block = 2048;  ///< tokens

  std::vector<double> weights = {};

  bool operator==(const LevelsStage&) const = default;

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("weights", weights, at_least(0), "of the levels, of sum 1");
  }

  void check(const StageSetting& setting) const {
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    if (!(std::abs(sum - 1) <= 1e-9)) {
      throw ParameterError("weights", "have the sum " + std::to_string(sum) + ", needs 1");
    }
    const std::uint64_t largest = std::min(setting.tokens, max_block);
    if (const auto most = static_cast<std::size_t>(std::bit_width(largest));
        weights.size() > most) {
      throw ParameterError(
          "weights", "has " + counted(weights.size(), "level") + ", needs at most " +
                         std::to_string(most) + ": blocks of 1, 2, 4 ... tokens have at most " +
                         std::to_string(largest) +
                         (setting.tokens < max_block ? ", all that there are" : ""));
    }
    if (!setting.has_log_weights) {
      throw ParameterError("",
                           "needs the kernel \"gaussian\" or \"softmax\", whose logarithms of "
                           "weights are sums over keys");
    }
  }

  void apply(Mechanism& mechanism, const Sizes&) const {
    std::vector<double> used = weights;
    while (used.back() == 0) used.pop_back();
    if (used.size() > 1) mechanism.levels.weights = used;
  }
};

}  // namespace headlab
