// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/scenario/mechanism/stage.h"

namespace headlab {

/// Which tokens keep their weight, see Keep in kernels/mechanism.h. Exactly one of `top`,
/// `fraction`, `ratio` and `block` with `top` is given.
struct KeepStage {
  static constexpr const char* name = "keep";
  static constexpr const char* summary = "only the largest weights are kept, and normalised again";
  static constexpr const char* example = "top = 1";
  static constexpr const char* shorthand = "";

  PerHead top = {};
  std::optional<double> fraction = {};
  std::optional<double> ratio = {};
  std::optional<std::uint64_t> block = {};
  std::string by = {};
  bool shared = false;

  bool operator==(const KeepStage&) const = default;

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.optional("top", top, counts_from(1),
                   "weights kept, with block: blocks; one number or one a head");
    visit.optional("fraction", fraction, share(),
                   "of the tokens seen that is kept, in place of top");
    visit.optional("ratio", ratio, share(), "least weight kept over the largest, in place of top");
    visit.optional("block", block, counts_from(1), "tokens of a block, which are kept together");
    visit.optional("by", by, "score of a block: \"mass\" (default) or \"pooled\"");
    visit.optional("union", shared, "each head keeps what any head keeps, default false");
  }

  void check(const StageSetting& setting) const {
    const bool has_top = !top.values.empty();
    if (int{has_top} + int{fraction.has_value()} + int{ratio.has_value()} != 1) {
      throw ParameterError("", "needs one of top, fraction and ratio, or block with top");
    }
    if (block && !has_top) throw ParameterError("block", "needs top, the number of blocks kept");
    if (!by.empty() && by != "mass" && by != "pooled") {
      throw ParameterError("by", "is \"" + by + "\" - allowed: mass, pooled");
    }
    if (!by.empty() && !block) throw ParameterError("by", "is the score of a block - give block");
    if (by == "pooled" && setting.is_compact) {
      throw ParameterError("by", "\"pooled\" needs a kernel that is positive everywhere");
    }
    top.check("top", setting.sizes.heads);
  }

  void apply(Mechanism& mechanism, const Sizes& sizes) const {
    Keep keep{.shared = shared};
    bool keeps_all = true;
    if (ratio) {
      keep.rule = Keep::Rule::ratio;
      keep.ratio = *ratio;
      keeps_all = false;
    } else {
      keep.rule = block ? Keep::Rule::block : Keep::Rule::top;
      keep.block = block.value_or(1);
      keep.pooled = by == "pooled";
      for (int h = 0; h < sizes.heads; ++h) {
        const std::uint64_t seen = mechanism.seen_by(h, sizes.n).count();
        const std::uint64_t units = (seen + keep.block - 1) / keep.block;
        keep.top.push_back(std::min(units, kept_of(h, seen)));
        keeps_all = keeps_all && keep.top.back() == units;
      }
    }
    if (!keeps_all) mechanism.keep = keep;
  }

 private:
  static Range share() { return {.low = 0, .high = 1, .low_open = true, .high_open = false}; }
  /// Weights or blocks that a head keeps, of `seen` tokens.
  std::uint64_t kept_of(int head, std::uint64_t seen) const {
    if (!fraction) return top[head];
    const double kept = std::ceil(*fraction * static_cast<double>(seen) - 1e-9);
    return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(kept));
  }
};

}  // namespace headlab
