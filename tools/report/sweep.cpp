// SPDX-License-Identifier: Apache-2.0
#include "tools/report/sweep.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "engine/files/document.h"
#include "engine/files/json_writer.h"
#include "tools/report/figure.h"
#include "tools/report/markup.h"

namespace headlab::tools {
namespace {

using Column = std::vector<const Value*>;

bool all_equal(const Column& column) {
  return std::ranges::all_of(column, [&](const Value* one) { return *one == *column.front(); });
}

/// True for objects that have the same keys and do not choose between laws.
bool can_be_compared_by_member(const Column& column) {
  const Value& first = *column.front();
  return std::ranges::all_of(column, [&](const Value* one) {
    if (!one->is<Value::Members>()) return false;
    if (members_of(*one).size() != members_of(first).size()) return false;
    return std::ranges::all_of(members_of(first), [&](const Value::Entry& of_first) {
      const Value* same = one->find(of_first.key);
      return same != nullptr && (of_first.key != "law" || *same == of_first.value);
    });
  });
}

void find_differences(const std::string& path, const Column& column,
                      std::vector<DifferingKey>& found) {
  if (all_equal(column)) return;
  if (!can_be_compared_by_member(column)) {
    found.push_back({path, column});
    return;
  }
  for (const auto& [key, location, value] : members_of(*column.front())) {
    Column inside;
    for (const Value* one : column) inside.push_back(&member(*one, key));
    find_differences(path.empty() ? key : path + "." + key, inside, found);
  }
}

/// The number that a value is, or that all elements of an array of numbers are.
double number_of_value(const Value& value) {
  const Value::Array& items = items_of(value);
  if (items.empty()) return number_of(value);
  const bool one = std::ranges::all_of(items, [&](const Value& x) { return x == items.front(); });
  return one ? number_of(items.front()) : std::numeric_limits<double>::quiet_NaN();
}

/// The numbers that values are; an array is none where another has more or fewer elements, which
/// then say something too.
std::vector<double> level_numbers(const std::vector<const Value*>& values) {
  std::set<std::size_t> sizes;
  for (const Value* value : values) {
    if (value->is<Value::Array>()) sizes.insert(items_of(*value).size());
  }
  std::vector<double> numbers;
  for (const Value* value : values) {
    const bool varies = value->is<Value::Array>() && sizes.size() > 1;
    numbers.push_back(varies ? std::numeric_limits<double>::quiet_NaN() : number_of_value(*value));
  }
  return numbers;
}

constexpr std::size_t longest_part = 24;  ///< of a parameter in a label

/// The law of a value, and what distinguishes it from the others of that law.
std::string law_text(const Value& value, const std::vector<const Value*>& values) {
  const Value& law = member(value, "law");
  std::string text = text_of(law);
  for (const auto& [key, location, part] : members_of(value)) {
    if (key == "law") continue;
    const bool differs =
        std::ranges::any_of(values, [&, &name = key, &own = part](const Value* other) {
          return member(*other, "law") == law && member(*other, name) != own;
        });
    if (!differs) continue;
    text += (text.empty() ? "" : " ") + key + "=" + shortened(to_json(part), longest_part);
  }
  return text;
}

void add_key(const DifferingKey& found, Sweep& sweep) {
  SweptKey key{.key = found.key, .along = {}, .levels = {}};
  std::map<std::string, std::size_t> numbers;
  std::vector<const Value*> values;
  std::vector<std::size_t> places;
  for (const Value* value : found.values) {
    const auto [at, is_new] = numbers.emplace(to_json(*value), values.size());
    if (is_new) values.push_back(value);
    places.push_back(at->second);
  }
  const std::vector<std::string> texts = level_texts(values);
  const std::vector<double> level_values = level_numbers(values);
  for (std::size_t i = 0; i < texts.size(); ++i) key.levels.push_back({texts[i], level_values[i]});
  key.numeric =
      std::ranges::none_of(key.levels, [](const Level& level) { return std::isnan(level.number); });
  std::vector<std::size_t> order(key.levels.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (key.numeric) {
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return key.levels[i].number; });
  }
  std::vector<Level> sorted;
  std::vector<std::size_t> rank(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    sorted.push_back(key.levels[order[i]]);
    rank[order[i]] = i;
  }
  key.levels = std::move(sorted);
  for (std::size_t c = 0; c < places.size(); ++c) sweep.places[c].push_back(rank[places[c]]);
  sweep.keys.push_back(std::move(key));
}

/// True where each level of one key goes with one level of the other.
bool move_together(const Sweep& sweep, std::size_t a, std::size_t b) {
  std::set<std::pair<std::size_t, std::size_t>> pairs;
  for (const auto& place : sweep.places) pairs.emplace(place[a], place[b]);
  return pairs.size() == sweep.keys[a].levels.size() && pairs.size() == sweep.keys[b].levels.size();
}

void merge_keys(Sweep& sweep) {
  for (std::size_t a = 0; a < sweep.keys.size(); ++a) {
    for (std::size_t b = a + 1; b < sweep.keys.size();) {
      if (!move_together(sweep, a, b)) {
        ++b;
        continue;
      }
      // The one with numbers makes the axis.
      const bool swap = sweep.keys[b].numeric && !sweep.keys[a].numeric;
      if (swap) {
        std::swap(sweep.keys[a], sweep.keys[b]);
        for (auto& place : sweep.places) std::swap(place[a], place[b]);
      }
      std::vector<std::string>& along = sweep.keys[a].along;
      along.push_back(sweep.keys[b].key);
      along.insert(along.end(), sweep.keys[b].along.begin(), sweep.keys[b].along.end());
      sweep.keys.erase(sweep.keys.begin() + static_cast<std::ptrdiff_t>(b));
      for (auto& place : sweep.places) place.erase(place.begin() + static_cast<std::ptrdiff_t>(b));
    }
  }
}

}  // namespace

std::string SweptKey::title() const {
  std::string text = key;
  for (std::size_t i = 0; i < along.size(); ++i) text += (i == 0 ? " (with " : ", ") + along[i];
  return text + (along.empty() ? "" : ")");
}

std::vector<std::string> level_texts(const std::vector<const Value*>& values) {
  std::vector<std::string> texts;
  const std::vector<double> numbers = level_numbers(values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Value& value = *values[i];
    texts.push_back(!std::isnan(numbers[i])      ? number_text(numbers[i])
                    : value.is<std::string>()    ? text_of(value)
                    : value.is<Value::Members>() ? law_text(value, values)
                                                 : shortened(to_json(value), longest_part));
  }
  // Long values that begin alike are told apart by their numbers.
  const std::vector<std::string> own = texts;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (std::ranges::count(own, own[i]) > 1) texts[i] += " #" + std::to_string(i);
  }
  return texts;
}

std::string Sweep::short_key(std::size_t key) const {
  const auto last = [](const std::string& path) { return path.substr(path.rfind('.') + 1); };
  const std::string name = last(keys[key].key);
  const auto same =
      std::ranges::count_if(keys, [&](const SweptKey& other) { return last(other.key) == name; });
  return same == 1 ? name : keys[key].key;
}

std::string Sweep::condition_text(std::size_t condition) const {
  std::string text;
  for (std::size_t k = 0; k < keys.size(); ++k) {
    text +=
        (text.empty() ? "" : ", ") + short_key(k) + " " + keys[k].levels[places[condition][k]].text;
  }
  return text;
}

std::vector<DifferingKey> differing_keys(const Value::Array& conditions) {
  Column parameters;
  for (const Value& condition : conditions) {
    parameters.push_back(&member(condition, "parameters"));
  }
  std::vector<DifferingKey> found;
  if (!parameters.empty()) find_differences("", parameters, found);
  return found;
}

Sweep sweep_of(const Value::Array& conditions) {
  Sweep sweep;
  sweep.places.resize(conditions.size());
  for (const DifferingKey& key : differing_keys(conditions)) add_key(key, sweep);
  merge_keys(sweep);
  return sweep;
}

double Layout::place(const Sweep& sweep, std::size_t condition) const {
  if (along == nullptr) return 0;
  const std::size_t level = sweep.places[condition][along_number];
  return along->numeric ? along->levels[level].number : static_cast<double>(level);
}

ScaleKind Layout::scale() const {
  if (!numeric()) return ScaleKind::linear;
  std::vector<double> numbers;
  for (const Level& level : along->levels) numbers.push_back(level.number);
  return kind_for_levels(numbers);
}

std::vector<Tick> Layout::ticks() const {
  std::vector<Tick> ticks;
  if (along == nullptr) return ticks;
  for (std::size_t i = 0; i < along->levels.size(); ++i) {
    const Level& level = along->levels[i];
    ticks.push_back({along->numeric ? level.number : static_cast<double>(i),
                     along->numeric ? axis_number(level.number) : level.text});
  }
  return ticks;
}

Layout layout_of(const Sweep& sweep, std::size_t panels, std::size_t points) {
  Layout layout;
  if (!sweep.keys.empty()) {
    // Numbers make the axis where there are three or more of them, else the key of most levels.
    const auto rank = [](const SweptKey& key) {
      return std::pair(key.numeric && key.levels.size() > 2, key.levels.size());
    };
    const auto longest = std::ranges::max_element(sweep.keys, {}, rank);
    layout.along = &*longest;
    layout.along_number = static_cast<std::size_t>(longest - sweep.keys.begin());
  }
  std::map<std::vector<std::size_t>, std::size_t> numbers;
  std::vector<Panel> all;
  for (std::size_t c = 0; c < sweep.places.size(); ++c) {
    std::vector<std::size_t> others = sweep.places[c];
    std::string title;
    for (std::size_t k = 0; k < sweep.keys.size(); ++k) {
      if (k == layout.along_number) continue;
      title += (title.empty() ? "" : ", ") + sweep.short_key(k) + " " +
               sweep.keys[k].levels[others[k]].text;
    }
    if (layout.along != nullptr) others[layout.along_number] = 0;
    const auto [at, is_new] = numbers.emplace(others, all.size());
    if (is_new) all.push_back({title, {}});
    all[at->second].conditions.push_back(c);
  }
  std::size_t shown = 0;
  for (const std::size_t i : spread(all.size(), panels)) {
    Panel& panel = all[i];
    std::ranges::stable_sort(panel.conditions, {},
                             [&](std::size_t c) { return layout.place(sweep, c); });
    std::vector<std::size_t> kept;
    for (const std::size_t j : spread(panel.conditions.size(), points)) {
      kept.push_back(panel.conditions[j]);
    }
    shown += kept.size();
    layout.panels.push_back({panel.title, kept});
  }
  layout.left_out = shows_text(shown, sweep.places.size(), "conditions, evenly spaced.");
  return layout;
}

}  // namespace headlab::tools
