// SPDX-License-Identifier: Apache-2.0
#include "engine/files/key_names.h"

#include <algorithm>

#include "engine/files/error.h"
#include "engine/files/words.h"

namespace headlab {
namespace {

/// Adds the keys of a table and of those in it.
void add_keys(const Value& table, const std::string& prefix, std::vector<std::string>& keys) {
  const auto* const members = std::get_if<Value::Members>(&table.data);
  if (members == nullptr) return;
  for (const Value::Entry& entry : *members) {
    keys.push_back(prefix + entry.key);
    add_keys(entry.value, keys.back() + ".", keys);
  }
}

}  // namespace

std::string last_part(const std::string& key) {
  std::string part = key.substr(key.rfind('.') + 1);
  if (part.size() > 1 && part.ends_with('"')) part = part.substr(1, part.size() - 2);
  return part;
}

std::vector<std::size_t> keys_named(const std::string& name, const std::vector<std::string>& keys) {
  if (name.empty()) return {};
  const auto whole = std::ranges::find(keys, name);
  if (whole != keys.end()) return {static_cast<std::size_t>(whole - keys.begin())};
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].ends_with("." + name) || last_part(keys[i]) == name) found.push_back(i);
  }
  return found;
}

std::string several_keys(const std::vector<std::size_t>& found,
                         const std::vector<std::string>& keys) {
  std::string text;
  for (const std::size_t i : found) text += (text.empty() ? "" : " or ") + one_line(keys[i]);
  return "several keys end so - write " + text;
}

std::optional<std::size_t> key_named(const std::string& option, const std::string& name,
                                     const std::vector<std::string>& keys) {
  const std::vector<std::size_t> found = keys_named(name, keys);
  if (found.empty()) return std::nullopt;
  if (found.size() == 1) return found.front();
  throw InvalidInput(option + ": \"" + one_line(name) + "\": " + several_keys(found, keys));
}

std::string near_key(const std::string& name, const std::vector<std::string>& keys) {
  const auto dots = std::ranges::count(name, '.');
  std::vector<std::string> ends;
  for (const std::string& key : keys) {
    std::size_t begin = key.size();
    for (auto parts = dots; begin != std::string::npos && parts >= 0; --parts) {
      begin = begin == 0 ? std::string::npos : key.rfind('.', begin - 1);
    }
    ends.push_back(begin == std::string::npos ? key : key.substr(begin + 1));
  }
  const std::string best = closest(name, ends);
  return best.empty()
             ? ""
             : keys[static_cast<std::size_t>(std::ranges::find(ends, best) - ends.begin())];
}

std::string key_suggestion(const std::string& name, const std::vector<std::string>& keys) {
  const std::string near = near_key(name, keys);
  return " (allowed: " + listed(keys) + ")" +
         (near.empty() ? "" : " - did you mean \"" + near + "\"?");
}

void require_whole_key(const Value& root, const std::string& key, const Location& location,
                       const std::string& name) {
  const std::string section = key.substr(0, key.find('.'));
  if (root.find(section) != nullptr) return;
  std::vector<std::string> all;
  add_keys(root, "", all);
  std::vector<std::string> keys;  // what a sweep sets has keys of its own
  for (const std::string& one : all) {
    if (!one.starts_with("sweep.")) keys.push_back(one);
  }
  const std::vector<std::size_t> found = keys_named(key, keys);
  if (found.empty()) {
    // A section may be new, and who reads them has words for a misspelt one.
    static const std::vector<std::string> sections = {"claim",    "data",     "heads", "labels",
                                                      "layers",   "measures", "run",   "queries",
                                                      "scenario", "sweep",    "tokens"};
    const std::string near = closest(section, sections).empty() ? near_key(key, keys) : "";
    if (near.empty()) return;
    reject(location, name, "unknown key - did you mean \"" + one_line(near) + "\"?");
  }
  const std::string& first = keys[found.front()];
  if (found.size() == 1 && std::ranges::count(all, "sweep." + first) > 0) {
    reject(location, name,
           "is the end of " + first + ", which the scenario sweeps - set the sweep itself: " +
               "'sweep.\"" + first + "\"=[...]'");
  }
  reject(location, name,
         found.size() == 1 ? "is not a whole key - write " + first : several_keys(found, keys));
}

}  // namespace headlab
