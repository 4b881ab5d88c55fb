// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "engine/scenario/mechanism/stage.h"
#include "kernels/counted.h"

namespace headlab {

/// The newest tokens that a head sees: a sliding window of causal attention. More than there are is
/// all of them.
struct WindowStage {
  static constexpr const char* name = "window";
  static constexpr const char* summary = "a head sees its newest tokens only";
  static constexpr const char* example = "tokens = 1";
  static constexpr const char* shorthand = "tokens";

  PerHead tokens = {};

  bool operator==(const WindowStage&) const = default;

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("tokens", tokens, counts_from(1), "tokens seen, one number or one a head");
  }
  void check(const StageSetting& setting) const { tokens.check("tokens", setting.sizes.heads); }
};

/// The newest tokens that a head does not see; its window begins before them.
struct SkipStage {
  static constexpr const char* name = "skip";
  static constexpr const char* summary = "a head does not see the newest tokens";
  static constexpr const char* example = "tokens = 1";
  static constexpr const char* shorthand = "tokens";

  PerHead tokens = {};

  bool operator==(const SkipStage&) const = default;

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("tokens", tokens, counts_from(0), "tokens left out, one number or one a head");
  }
  void check(const StageSetting& setting) const {
    tokens.check("tokens", setting.sizes.heads);
    for (const std::uint64_t count : tokens.values) {
      if (count < setting.tokens) continue;
      throw ParameterError("tokens", "leaves out " + std::to_string(count) + " of " +
                                         counted(setting.tokens, "token") + ", so none is left");
    }
  }
};

/// The first tokens, which a head sees besides its window (Xiao et al., arXiv:2309.17453).
struct SinksStage {
  static constexpr const char* name = "sinks";
  static constexpr const char* summary = "a head sees the first tokens besides its window";
  static constexpr const char* example = "tokens = 1";
  static constexpr const char* shorthand = "tokens";

  PerHead tokens = {};

  bool operator==(const SinksStage&) const = default;

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("tokens", tokens, counts_from(0), "first tokens seen, one number or one a head");
  }
  void check(const StageSetting& setting) const { tokens.check("tokens", setting.sizes.heads); }
};

}  // namespace headlab
