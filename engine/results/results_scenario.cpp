// SPDX-License-Identifier: Apache-2.0
#include "engine/results/results_scenario.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <variant>

#include "engine/files/document.h"

namespace headlab {
namespace {

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc = {};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace

void write_scenario(const NetcdfGroup& root, const Scenario& scenario, const Provenance& program) {
  root.put_attribute("Conventions", "CF-1.8");
  root.put_attribute("title", scenario.conditions.empty() ? "" : scenario.conditions.front().name);
  root.put_attribute("aims", scenario.conditions.empty() ? "" : scenario.conditions.front().aims);
  root.put_attribute("source", "headlab " + program.version);
  root.put_attribute("created", utc_now());
  root.put_attribute("headlab_version", program.version);
  root.put_attribute("git", program.git);
  root.put_attribute("compiler", program.compiler);
  root.put_attribute("build_type", program.build_type);
  // Where a sweep varies the seed it stands in the variable `seed` alone.
  const bool one_seed = std::all_of(scenario.conditions.begin(), scenario.conditions.end(),
                                    [&](const Condition& condition) {
                                      return condition.seed == scenario.conditions.front().seed;
                                    });
  if (one_seed && !scenario.conditions.empty()) {
    root.put_attribute("seed", static_cast<std::int64_t>(scenario.conditions.front().seed));
  }
  root.put_attribute("scenario_file", scenario.file);
  root.put_attribute("scenario_text", scenario.text);
  std::string sets;
  for (const std::string& set : scenario.sets) sets += (sets.empty() ? "" : "\n") + set;
  root.put_attribute("set_arguments", sets);
}

void write_swept(const NetcdfGroup& root, const std::string& dimension,
                 const std::vector<std::string>& keys,
                 std::span<const Condition* const> conditions) {
  std::string names;
  for (std::size_t s = 0; s < keys.size(); ++s) {
    const std::string& key = keys[s];
    // A whole section, as `heads`, bears the name of another variable.
    const std::string name = key.find('.') == std::string::npos ? "swept_" + key : key;
    std::vector<std::int64_t> integers;
    std::vector<double> numbers;
    std::vector<std::string> texts;
    for (const Condition* condition : conditions) {
      texts.push_back(condition->swept.at(s));
      const Value* value = value_at(condition->parameters, key);
      if (value == nullptr) continue;
      if (const auto* integer = std::get_if<std::int64_t>(&value->data)) {
        integers.push_back(*integer);
        numbers.push_back(static_cast<double>(*integer));
      } else if (const auto* number = std::get_if<double>(&value->data)) {
        numbers.push_back(*number);
      } else if (const auto* text = std::get_if<std::string>(&value->data)) {
        texts.back() = *text;
      }
    }
    const std::string long_name = "swept parameter " + key;
    names += (s == 0 ? "" : " ") + name;
    if (integers.size() == texts.size()) {
      root.write(name, {dimension}, {long_name}, integers);
    } else if (numbers.size() == texts.size()) {
      root.write(name, {dimension}, {long_name}, numbers);
    } else {
      root.write(name, {dimension}, {long_name, ""}, texts);
    }
  }
  root.put_attribute("swept", names);
}

}  // namespace headlab
