// SPDX-License-Identifier: Apache-2.0
/// \file Studies of depth as tables for a person.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "engine/files/document.h"
#include "engine/results/computed.h"
#include "engine/results/result.h"
#include "engine/run/run.h"
#include "engine/scenario/sweep.h"
#include "tools/cli/columns.h"

namespace headlab {
struct Scenario;
}  // namespace headlab

namespace headlab::tools {

/// What tables call a metric of layers; empty for one that they leave out.
std::string layer_heading(const std::string& metric);

/// One condition with a row a layer, or of a sweep the last layer of each condition.
std::string layer_table(const Scenario& scenario, const RunResult& result);

/// The same of closed forms.
std::string layer_theory_table(const Scenario& scenario,
                               const std::vector<ComputedCondition>& theory);

/// Simulation and closed forms side by side, with z: a row a layer, or a row a condition.
std::string layer_comparison_table(const Scenario& scenario,
                                   const std::vector<ComputedCondition>& theory);

inline const Condition& condition_of(const ConditionResult& one) {
  return *one.condition;
}
inline const Condition& condition_of(const ComputedCondition& computed) {
  return *computed.condition;
}

/// The last part of a dotted key where that names one swept key only, else the whole key.
inline std::string heading_of(const std::string& key, const std::vector<std::string>& keys) {
  auto last = [](const std::string& path) {
    const std::string part = path.substr(path.rfind('.') + 1);
    return part.ends_with('"') ? part.substr(1, part.size() - 2) : part;
  };
  const auto same = std::count_if(
      keys.begin(), keys.end(), [&](const std::string& other) { return last(other) == last(key); });
  return same == 1 ? last(key) : key;
}

/// A column for each swept key.
template <class Result>
void add_swept(const std::vector<std::string>& keys, const std::vector<Result>& conditions,
               Columns& columns) {
  for (std::size_t s = 0; s < keys.size(); ++s) {
    std::vector<std::string> values;
    const bool is_label = keys[s].starts_with(std::string(labels_section) + ".");
    for (const Result& one : conditions) {
      const std::string& value = condition_of(one).swept.at(s);
      // Labels stand as they are, other values as TOML.
      const Value parsed = is_label ? parse_value(value, "", {}) : Value();
      const auto* label = std::get_if<std::string>(&parsed.data);
      values.push_back(label != nullptr ? *label : value);
    }
    columns.add_key(heading_of(keys[s], keys), values, true);
  }
}

}  // namespace headlab::tools
