// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/value_names.h"

#include <variant>

#include "engine/files/document.h"
#include "engine/files/error.h"

namespace headlab {
namespace {

/// Nothing where `text` is a word and not TOML.
std::optional<Value> parsed(const std::string& text) {
  try {
    return parse_value(text, "", Location());
  } catch (const InvalidInput&) {
    return std::nullopt;
  }
}

bool is_string(const std::optional<Value>& value, const std::string& text) {
  const auto* own = value ? std::get_if<std::string>(&value->data) : nullptr;
  return own != nullptr && *own == text;
}

bool has_law(const std::optional<Value>& value, const std::string& name) {
  const Value* law = value ? value->find("law") : nullptr;
  return law != nullptr && is_string(*law, name);
}

}  // namespace

std::optional<std::size_t> value_named(const std::string& option, const std::string& written,
                                       const std::vector<std::string>& values) {
  const std::optional<Value> wanted = parsed(written);
  std::vector<std::size_t> of_law;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] == written) return i;
    const std::optional<Value> own = parsed(values[i]);
    if ((own && own == wanted) || is_string(own, written)) return i;
    if (has_law(own, written)) of_law.push_back(i);
  }
  if (of_law.empty()) return std::nullopt;
  if (of_law.size() == 1) return of_law.front();
  std::string all;
  for (const std::size_t i : of_law) all += (all.empty() ? "" : " or ") + one_line(values[i], 80);
  throw InvalidInput(option + ": several values have the law " + one_line(written) + " - write " +
                     all);
}

bool same_value(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const std::optional<Value> parsed_a = parsed(a);
  return parsed_a && parsed_a == parsed(b);
}

}  // namespace headlab
