// SPDX-License-Identifier: Apache-2.0
/// \file Plans with stages of a mechanism, for the tests of the backends.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/kernel_laws.h"
#include "kernels/plan.h"

namespace headlab::test {

/// A stage with small parameters, as it is set on a plan that has the stages before it.
struct NamedStage {
  std::string name;
  std::function<void(Plan&)> set;
};

/// Every stage of kernels/mechanism.h in its order, each rule and option at least once.
inline std::vector<NamedStage> all_stages() {
  const auto see = [](std::uint64_t window, std::uint64_t skip, std::uint64_t sinks) {
    return [=](Plan& plan) {
      const std::uint64_t tokens = plan.mechanism.merge.tokens(plan.n);
      for (int h = 0; h < plan.heads; ++h) {
        // Each head another part.
        const auto shift = static_cast<std::uint64_t>(h);
        plan.mechanism.seen.push_back(seen_tokens(tokens, window + 5 * shift, skip * shift, sinks));
      }
    };
  };
  const auto keep = [](Keep rule, std::uint64_t top) {
    return [=](Plan& plan) {
      plan.mechanism.keep = rule;
      for (int h = 0; h < plan.heads; ++h) {
        plan.mechanism.keep.top.push_back(top + static_cast<std::uint64_t>(h));
      }
    };
  };
  return {
      {"merge", [](Plan& plan) { plan.mechanism.merge = {.stride = 3, .gate = {}}; }},
      {"gate", [](Plan& plan) { plan.mechanism.merge = {.stride = 2, .gate = 0.4}; }},
      {"levels",
       [](Plan& plan) {
         plan.mechanism.levels.weights = {0.5, 0, 0.2, 0.3};
       }},
      {"window", see(11, 4, 0)},
      {"sinks", see(13, 0, 3)},
      {"top", keep({.rule = Keep::Rule::top}, 5)},
      {"ratio", keep({.rule = Keep::Rule::ratio, .ratio = 0.3}, 0)},
      {"block", keep({.rule = Keep::Rule::block, .block = 5}, 1)},
      {"pooled", keep({.rule = Keep::Rule::block, .block = 4, .pooled = true}, 2)},
      {"union", keep({.rule = Keep::Rule::top, .shared = true}, 3)},
  };
}

/// True for two stages that a plan can have together.
inline bool go_together(const NamedStage& a, const NamedStage& b) {
  const auto kind = [](const std::string& name) {
    if (name == "merge" || name == "gate") return 0;
    if (name == "levels") return 1;
    if (name == "window" || name == "sinks") return 2;
    return 3;
  };
  return kind(a.name) < kind(b.name);
}

/// True where a kernel has the stage.
inline bool has_stage(const KernelLaw& kernel, const NamedStage& stage) {
  const bool compact =
      std::visit([](const auto& law) { return std::isinf(law.log_weight(1e12)); }, kernel);
  if (stage.name == "pooled") return !compact;
  return stage.name != "levels" || norm_coefficient_of(kernel);
}

}  // namespace headlab::test
