// SPDX-License-Identifier: Apache-2.0
#include "validation/claims/swept_conditions.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "engine/files/key_names.h"
#include "engine/files/words.h"
#include "engine/moments/measures.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/law_reader.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/stack/stack_setting.h"

namespace headlab {
namespace {

/// True where `written` in a claim means the swept value: by value, or a law by its name. Values of
/// a linspace differ from the decimal numbers of a claim by rounding.
bool means(const Value& written, const Value& swept) {
  const std::optional<double> a = written.number(), b = swept.number();
  if (a && b) return std::abs(*a - *b) <= 1e-12 * std::max(std::abs(*a), std::abs(*b));
  const auto* name = std::get_if<std::string>(&written.data);
  const std::string* law = law_of(swept);
  return name && law ? *name == *law : written == swept;
}

std::string short_text(const Value& value) {
  const std::string* law = law_of(value);
  return law ? *law : to_toml(value);
}

std::string short_text(const SweptValues& values) {
  std::string text;
  for (const auto& [key, value] : values) {
    text += (text.empty() ? "" : ", ") + key + " = " + short_text(value);
  }
  return text;
}

}  // namespace

std::optional<std::vector<double>> numbers_of(const Value& value) {
  if (const std::optional<double> number = value.number()) return std::vector{*number};
  const auto* array = std::get_if<Value::Array>(&value.data);
  if (array == nullptr) return std::nullopt;
  std::vector<double> all;
  for (const Value& one : *array) {
    const std::optional<std::vector<double>> numbers = numbers_of(one);
    if (!numbers) return std::nullopt;
    all.insert(all.end(), numbers->begin(), numbers->end());
  }
  return all;
}

const std::string* law_of(const Value& value) {
  const Value* law = value.find("law");
  return law == nullptr ? nullptr : std::get_if<std::string>(&law->data);
}

SweptConditions::SweptConditions(const Scenario& scenario) : keys_(scenario.swept) {
  if (!scenario.conditions.empty()) measures_ = names_of(scenario.conditions.front().measures);
  for (const Condition& condition : scenario.conditions) {
    const Value tree = condition.parameters.tree();
    layers_.emplace_back();
    if (condition.stack) layers_.back() = static_cast<std::size_t>(condition.stack->layers);
    SweptValues& values = values_.emplace_back();
    for (const std::string& key : keys_) {
      if (const Value* value = value_at(tree, key)) values.emplace_back(key, *value);
    }
  }
}

bool SweptConditions::is_swept(const std::string& key) const {
  return std::ranges::find(keys_, key) != keys_.end();
}

void SweptConditions::require_swept(const Location& location, const std::string& key,
                                    const std::string& swept) const {
  if (is_swept(swept)) return;
  std::string problem = "\"" + one_line(swept) + "\" is not ";
  const std::vector<std::size_t> ends = keys_named(swept, keys_);
  if (ends.size() > 1) {
    problem += "a whole key: " + several_keys(ends, keys_);
  } else if (!ends.empty()) {
    problem += "a whole key - write " + one_line(keys_[ends.front()]);
  } else if (keys_.empty()) {
    problem += "swept - there is no [sweep]";
  } else {
    problem += "swept" + key_suggestion(swept, keys_);
  }
  reject(location, key, problem);
}

std::size_t SweptConditions::find(const Location& location, const std::string& key,
                                  const SweptValues& wanted) const {
  std::vector<std::size_t> found(values_.size());
  for (std::size_t i = 0; i < found.size(); ++i) found[i] = i;
  for (const auto& one : wanted) {
    const auto& [name, value] = one;
    std::erase_if(found,
                  [&](std::size_t i) { return !means(one.second, *value_of(i, one.first)); });
    if (!found.empty()) continue;
    std::vector<std::string> swept;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const std::string value_is = value_text(i, name);
      if (std::ranges::find(swept, value_is) == swept.end()) swept.push_back(value_is);
    }
    reject(location, key,
           "no condition has " + short_text(wanted) + " (" + name + " is " + listed(swept) + ")");
  }
  if (found.size() == 1) return found[0];
  std::vector<std::string> open;
  for (const std::string& name : keys_) {
    const auto differs = [&](std::size_t i) {
      return *value_of(i, name) != *value_of(found[0], name);
    };
    if (!std::ranges::any_of(found, differs)) continue;
    const auto named = [&](const auto& one) { return one.first == name; };
    const auto given = std::ranges::find_if(wanted, named);
    if (given != wanted.end()) {
      reject(location, key,
             name + " = " + short_text(given->second) +
                 " is the name of more than one law of the sweep - write the whole table");
    }
    open.push_back(name);
  }
  reject(location, key,
         "fits " + std::to_string(found.size()) + " conditions - add " + listed(open) +
             " to `at`, or to `for_each`");
}

std::string SweptConditions::text(std::size_t i) const {
  std::string all;
  for (const auto& [key, value] : values_[i]) {
    all += (all.empty() ? "" : ", ") + key + " = " + value_text(i, key);
  }
  return all;
}

std::string SweptConditions::value_text(std::size_t i, const std::string& key) const {
  const Value& value = *value_of(i, key);
  const std::string* law = law_of(value);
  if (law == nullptr) return to_toml(value);
  for (std::size_t j = 0; j < values_.size(); ++j) {
    const Value& other = *value_of(j, key);
    const std::string* name = law_of(other);
    if (name != nullptr && *name == *law && value != other) return to_toml(value);
  }
  return *law;
}

std::vector<SweptValues> SweptConditions::choices(const std::vector<std::string>& keys) const {
  std::vector<SweptValues> all;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    SweptValues one;
    for (const std::string& key : keys) one.emplace_back(key, *value_of(i, key));
    const auto same = [&](const SweptValues& other) {
      return std::ranges::equal(one, other,
                                [](const auto& a, const auto& b) { return a.second == b.second; });
    };
    if (std::ranges::none_of(all, same)) all.push_back(std::move(one));
  }
  return all;
}

const Value* SweptConditions::value_of(std::size_t i, const std::string& key) const {
  for (const auto& [name, value] : values_[i]) {
    if (name == key) return &value;
  }
  return nullptr;
}

}  // namespace headlab
