// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>
#include <vector>

#include "engine/files/document.h"
#include "engine/scenario/mechanism/mechanism.h"
#include "tools/cli/table.h"

namespace headlab::tools {
namespace {

constexpr std::size_t longest_value = 60;

/// True where a sweep changes what stands at `path`, or a part of it.
bool is_swept(const Scenario& scenario, std::string_view path) {
  const auto within = [](std::string_view inner, std::string_view outer) {
    return inner == outer || (inner.starts_with(outer) && inner[outer.size()] == '.');
  };
  return std::ranges::any_of(scenario.swept, [&](const std::string& key) {
    return within(key, path) || within(path, key);
  });
}

/// "4", or "top 32, union true" of a table; the name of a law stands alone.
std::string value_text(const Value& value) {
  const auto* members = std::get_if<Value::Members>(&value.data);
  if (members == nullptr) return one_line(to_toml(value), longest_value);
  std::string text;
  for (const Value::Entry& entry : *members) {
    const auto* law = entry.key == "law" ? std::get_if<std::string>(&entry.value.data) : nullptr;
    text +=
        (text.empty() ? "" : ", ") +
        (law ? one_line(*law) : entry.key + " " + one_line(to_toml(entry.value), longest_value));
  }
  return text;
}

/// "window 128", "window swept"
std::string part_text(const Scenario& scenario, const std::string& name, const std::string& path) {
  if (is_swept(scenario, path)) return name + " swept";
  const Value tree = scenario.conditions.front().parameters.tree();
  const Value* value = value_at(tree, path);
  return name + (value == nullptr ? "" : " " + value_text(*value));
}

}  // namespace

std::string mechanism_text(const Scenario& scenario) {
  bool dependent = false;
  std::vector<std::string> in_force;
  for (const Condition& condition : scenario.conditions) {
    dependent |= !std::visit([](const auto& law) { return law.off(); }, condition.sequence);
    if (!any_stage(condition.mechanism)) continue;
    for (const std::string& name :
         stages_in_force(condition.mechanism, condition.n, condition.heads, condition.k)) {
      if (std::ranges::count(in_force, name) == 0) in_force.push_back(name);
    }
  }
  std::string text;
  if (dependent) text = part_text(scenario, "sequence", "data.sequence");
  for (const std::string& name : stage_names()) {
    if (std::ranges::count(in_force, name) == 0) continue;
    text += (text.empty() ? "" : "; ") + part_text(scenario, name, "heads.mechanism." + name);
  }
  return text;
}

}  // namespace headlab::tools
