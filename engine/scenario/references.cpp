// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/references.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/key_names.h"
#include "engine/files/words.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/value_names.h"

namespace headlab {
namespace {

void require_sweep(const std::string& option, const Scenario& scenario) {
  if (scenario.conditions.size() > 1) return;
  throw InvalidInput(option + ": the scenario has one condition - give it a [sweep]");
}

/// The number of the swept key that `key` stands for.
std::size_t swept_key(const std::string& option, const Scenario& scenario, const std::string& key) {
  if (const auto found = key_named(option, key, scenario.swept)) return *found;
  throw InvalidInput(option + ": \"" + one_line(key) + "\" is not a swept key" +
                     key_suggestion(key, scenario.swept));
}

/// Whether each value of a key goes with one value of another, as of keys that are swept together.
bool vary_together(const Scenario& scenario, std::size_t a, std::size_t b) {
  std::map<std::string, std::string> of_a, of_b;
  return std::ranges::all_of(scenario.conditions, [&](const Condition& one) {
    const std::string &left = one.swept[a], &right = one.swept[b];
    return of_a.try_emplace(left, right).first->second == right &&
           of_b.try_emplace(right, left).first->second == left;
  });
}

/// For each condition the one that has value number `value` of key `s`, else the same values, but
/// for keys that vary together with `s`.
std::vector<std::optional<std::size_t>> with_value(const Scenario& scenario, std::size_t s,
                                                   const std::string& value) {
  std::vector<std::size_t> together;
  for (std::size_t k = 0; k < scenario.swept.size(); ++k) {
    if (k != s && vary_together(scenario, k, s)) together.push_back(k);
  }
  const auto values_of = [&](std::size_t i) {
    std::vector<std::string> values = scenario.conditions[i].swept;
    for (const std::size_t k : together) values[k].clear();
    return values;
  };
  std::map<std::vector<std::string>, std::size_t> places;
  for (std::size_t i = 0; i < scenario.conditions.size(); ++i) places.try_emplace(values_of(i), i);
  std::vector<std::optional<std::size_t>> references(scenario.conditions.size());
  for (std::size_t i = 0; i < references.size(); ++i) {
    std::vector<std::string> values = values_of(i);
    if (values[s] == value) continue;
    values[s] = value;
    if (const auto at = places.find(values); at != places.end()) references[i] = at->second;
  }
  return references;
}

std::vector<std::optional<std::size_t>> one_for_all(const Scenario& scenario, std::size_t which) {
  std::vector<std::optional<std::size_t>> references(scenario.conditions.size(), which);
  references[which].reset();
  return references;
}

References by_value(const std::string& option, const Scenario& scenario, std::size_t s,
                    const std::string& value) {
  References references{.text = scenario.swept[s] + " = " + value,
                        .of = with_value(scenario, s, value)};
  if (std::ranges::none_of(references.of, [](const auto& one) { return one.has_value(); })) {
    throw InvalidInput(option + ": no two conditions differ in " + scenario.swept[s] +
                       " alone - name one condition, --against '#0'");
  }
  return references;
}

}  // namespace

References references_against(const Scenario& scenario, const std::string& text) {
  const std::string option = "--against";
  require_sweep(option, scenario);
  const std::size_t count = scenario.conditions.size();
  if (text.starts_with('#')) {
    std::size_t which = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + 1, end, which);
    if (error != std::errc() || stop != end || which >= count) {
      throw InvalidInput(option + ": there is no condition \"" + one_line(text) +
                         "\" (allowed: #0 to #" + std::to_string(count - 1) + ")");
    }
    return {.text = "condition " + text, .of = one_for_all(scenario, which)};
  }
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) {
    const bool is_number =
        !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    throw InvalidInput(option + ": \"" + one_line(text) +
                       "\" is not a condition (allowed: #N, from 0, or KEY=VALUE of a swept key)" +
                       (is_number ? " - write '#" + text + "'" : ""));
  }
  const std::size_t s = swept_key(option, scenario, text.substr(0, equals));
  const std::string written = text.substr(equals + 1);
  std::vector<std::string> values;
  std::set<std::string> seen;
  for (const Condition& condition : scenario.conditions) {
    if (seen.insert(condition.swept[s]).second) values.push_back(condition.swept[s]);
  }
  const std::optional<std::size_t> named = value_named(option, written, values);
  if (!named) {
    std::vector<std::string> shown(
        values.begin(), values.begin() + std::min<std::ptrdiff_t>(20, std::ssize(values)));
    if (shown.size() < values.size()) shown.push_back("...");
    throw InvalidInput(option + ": no condition has " + scenario.swept[s] + " = " +
                       one_line(written) + " (allowed: " + one_line(listed(shown)) + ")");
  }
  const std::string& value = values[*named];
  const auto has_value = [&](const Condition& one) { return one.swept[s] == value; };
  if (std::ranges::count_if(scenario.conditions, has_value) > 1) {
    return by_value(option, scenario, s, value);
  }
  const auto only = std::ranges::find_if(scenario.conditions, has_value);
  return {
      .text = scenario.swept[s] + " = " + value,
      .of = one_for_all(scenario, static_cast<std::size_t>(only - scenario.conditions.begin()))};
}

References references_by_key(const Scenario& scenario, const std::string& key) {
  const std::string option = "--difference";
  require_sweep(option, scenario);
  const std::size_t s = swept_key(option, scenario, key);
  return by_value(option, scenario, s, scenario.conditions.front().swept[s]);
}

}  // namespace headlab
