// SPDX-License-Identifier: Apache-2.0
#include "validation/claims/swept_conditions.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <variant>

#include "engine/files/words.h"
#include "engine/scenario/law_reader.h"

namespace headlab {
namespace {

bool same_value(const Value& a, const Value& b) {
  const auto number = [](const Value& value) -> std::optional<double> {
    if (const auto* whole = std::get_if<std::int64_t>(&value.data)) {
      return static_cast<double>(*whole);
    }
    if (const auto* real = std::get_if<double>(&value.data)) return *real;
    return std::nullopt;
  };
  if (number(a) && number(b)) return number(a) == number(b);
  const auto* one = std::get_if<Value::Array>(&a.data);
  const auto* other = std::get_if<Value::Array>(&b.data);
  if (one && other) return std::ranges::equal(*one, *other, same_value);
  return to_toml(a) == to_toml(b);
}

/// True where `written` in a claim means the swept value: by value, or a law by its name.
bool means(const Value& written, const Value& swept) {
  const auto* name = std::get_if<std::string>(&written.data);
  const std::string* law = law_of(swept);
  return name && law ? *name == *law : same_value(written, swept);
}

std::string short_text(const Value& value) {
  const std::string* law = law_of(value);
  return law ? *law : to_toml(value);
}

}  // namespace

const std::string* law_of(const Value& value) {
  const Value* law = value.find("law");
  return law == nullptr ? nullptr : std::get_if<std::string>(&law->data);
}

std::string short_text(const SweptValues& values) {
  std::string text;
  for (const auto& [key, value] : values) {
    text += (text.empty() ? "" : ", ") + key + " = " + short_text(value);
  }
  return text;
}

SweptConditions::SweptConditions(const Scenario& scenario) : keys_(scenario.swept) {
  for (const Condition& condition : scenario.conditions) {
    const Value tree = condition.parameters.tree();
    SweptValues& values = values_.emplace_back();
    for (const std::string& key : keys_) {
      if (const Value* value = value_at(tree, key)) values.emplace_back(key, *value);
    }
  }
}

void SweptConditions::require_swept(const Location& location, const std::string& key,
                                    const std::string& swept) const {
  if (std::ranges::find(keys_, swept) != keys_.end()) return;
  reject(location, key,
         "\"" + one_line(swept) + "\" is not swept" +
             (keys_.empty() ? " - there is no [sweep]" : suggestion(swept, keys_)));
}

std::size_t SweptConditions::find(const Location& location, const std::string& key,
                                  const SweptValues& wanted) const {
  std::vector<std::size_t> found(values_.size());
  for (std::size_t i = 0; i < found.size(); ++i) found[i] = i;
  for (const auto& [name, value] : wanted) {
    std::erase_if(found, [&](std::size_t i) { return !means(value, *value_of(i, name)); });
    if (!found.empty()) continue;
    std::vector<std::string> swept;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const std::string text = short_text(*value_of(i, name));
      if (std::ranges::find(swept, text) == swept.end()) swept.push_back(text);
    }
    reject(location, key,
           "no condition has " + short_text(wanted) + " (" + name + " is " + listed(swept) + ")");
  }
  if (found.size() == 1) return found[0];
  std::vector<std::string> open;
  for (const std::string& name : keys_) {
    const auto differs = [&](std::size_t i) {
      return !same_value(*value_of(i, name), *value_of(found[0], name));
    };
    if (std::ranges::any_of(found, differs)) open.push_back(name);
  }
  reject(location, key,
         "fits " + std::to_string(found.size()) + " conditions - add " + listed(open) +
             " to `at`, or to `for_each`");
}

std::vector<SweptValues> SweptConditions::choices(const std::vector<std::string>& keys) const {
  std::vector<SweptValues> all;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    SweptValues one;
    for (const std::string& key : keys) one.emplace_back(key, *value_of(i, key));
    const auto same = [&](const SweptValues& other) {
      return std::ranges::equal(
          one, other, [](const auto& a, const auto& b) { return same_value(a.second, b.second); });
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
