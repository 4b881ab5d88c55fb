// SPDX-License-Identifier: Apache-2.0
/// \file The reader of scenarios on any text, for tests and for tools/fuzz.
#pragma once

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/files/error.h"
#include "engine/scenario/law_reader.h"
#include "engine/scenario/plan_fingerprint.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/setup_laws.h"
#include "engine/scenario/stack/stack_setting.h"
#include "engine/scenario/sweep.h"
#include "kernels/parameter.h"
#include "kernels/plan.h"

namespace headlab::any_scenario {

/// Sizes up to which conditions are read and planned: what a text of a few kilobytes may ask for
/// would take hours.
inline constexpr std::size_t max_conditions = 16;
inline constexpr double max_numbers = 20000;  ///< of projections, of queries, of d x d matrices

inline void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

inline bool is_small(const Condition& condition) {
  if (condition.stack) {
    const StackBytes all = stack_bytes(*condition.stack);
    return static_cast<double>(all.tokens + all.maps) <= 8 * max_numbers;
  }
  const Sizes sizes = sizes_of(condition);
  const double d = sizes.d;
  return d * d <= max_numbers && d * sizes.heads * sizes.k <= max_numbers &&
         d * layout_of(condition).queries <= max_numbers;
}

/// What make_plan() takes as found where a law asks for it.
inline Preparation prepared(const Condition& condition) {
  Preparation found;
  if (std::holds_alternative<OptimalWeights>(*condition.weights)) {
    found.head_weights.emplace(static_cast<std::size_t>(condition.heads), 1.0 / condition.heads);
  }
  return found;
}

/// Plans the condition where it is small. True where there is a plan.
inline bool plan_small(const Condition& condition, std::string& sum) {
  if (!is_small(condition) || learns_heads_once(condition)) return false;
  try {
    const Plan plan = make_plan(condition, prepared(condition));
    sum = plan_sha256(plan);
    if (plan.stack) return true;
    const auto numbers =
        static_cast<std::size_t>(plan.heads) * static_cast<std::size_t>(plan.d * plan.k);
    require(plan.projections.size() == numbers, "projections do not fit the sizes");
    require(plan.truth.size() == static_cast<std::size_t>(plan.queries), "truth misses queries");
    require(plan.mechanism.seen.empty() ||
                plan.mechanism.seen.size() == static_cast<std::size_t>(plan.heads),
            "some heads see nothing");
    return true;
  } catch (const ParameterError&) {
    return false;  // of subspaces and weights: rejected by name as InvalidInput is
  }
}

/// Reads a text as a scenario and plans its conditions. It is rejected in one line, or what it says
/// is well formed and means the same after it was resolved; throws std::logic_error else. True
/// where it is a scenario.
inline bool read(const std::string& text) {
  try {
    // Where there are no data files.
    const std::string folder = "/nonexistent";
    if (Sweep(parse_toml(text, "any")).size() > max_conditions) return false;
    const Scenario scenario = parse_scenario(text, "any", {}, folder);
    require(!scenario.conditions.empty(), "a scenario without conditions");
    const std::string resolved = resolved_toml(scenario);
    const Scenario again = parse_scenario(resolved, "resolved", {}, folder);
    require(again.conditions.size() == scenario.conditions.size(), "resolved to another sweep");
    for (std::size_t i = 0; i < scenario.conditions.size(); ++i) {
      const std::vector<std::string> stages = stages_in_force(scenario.conditions[i]);
      require(stages == stages_in_force(again.conditions[i]), "resolved to other stages");
      std::string first, second;
      const bool planned = plan_small(scenario.conditions[i], first);
      require(planned == plan_small(again.conditions[i], second) && first == second,
              "resolved to another plan");
    }
    return true;
  } catch (const InvalidInput& refusal) {
    const std::string_view line = refusal.what();
    require(!line.empty() && line.find('\n') == std::string_view::npos, "a message of two lines");
    return false;
  }
}

/// Every word that laws and stages know, as TOML: `law = "normal"`, `bandwidth = `,
/// `"heads.mechanism.window"`.
inline std::vector<std::string> words() {
  std::vector<std::string> all;
  const auto add = [&](const std::string& word) {
    if (std::ranges::count(all, word) == 0) all.push_back(word);
  };
  std::vector<LawDescription> laws = describe_laws();
  for (const LawDescription& law : describe_stack_laws()) laws.push_back(law);
  for (const LawDescription& law : laws) {
    const bool stage = law.family == "mechanism";
    add(stage ? law.name + " = " : "law = \"" + law.name + "\"");
    if (stage) add("\"heads.mechanism." + law.name + "\" = ");
    for (const ParameterDescription& parameter : law.parameters) add(parameter.key + " = ");
  }
  return all;
}

}  // namespace headlab::any_scenario
