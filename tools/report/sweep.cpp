// SPDX-License-Identifier: Apache-2.0
#include "tools/report/sweep.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/json_writer.h"
#include "engine/files/key_names.h"
#include "engine/scenario/sweep.h"
#include "kernels/counted.h"
#include "tools/cli/figure_text.h"
#include "tools/report/figure.h"
#include "tools/report/labels.h"
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

/// True for several laws with parameters of the same names, each law with the same several values
/// of them.
bool is_grid_of_laws(const Column& column) {
  std::set<std::string> laws, parameters, both;
  const Value& first = *column.front();
  for (const Value* one : column) {
    if (!one->is<Value::Members>() || members_of(*one).size() != members_of(first).size()) {
      return false;
    }
    std::string rest;
    for (const Value::Entry& of_first : members_of(first)) {
      const Value* same = one->find(of_first.key);
      if (same == nullptr) return false;
      if (of_first.key != "law") rest += to_json(*same) + "\n";
    }
    const std::string law = text_of(member(*one, "law"));
    laws.insert(law);
    parameters.insert(rest);
    both.insert(law + "\n" + rest);
  }
  return laws.size() > 1 && parameters.size() > 1 && both.size() == laws.size() * parameters.size();
}

/// A member of each.
Column members_named(const Column& column, const std::string& key) {
  Column inside;
  for (const Value* one : column) inside.push_back(&member(*one, key));
  return inside;
}

void find_differences(const std::string& path, const Column& column,
                      std::vector<DifferingKey>& found) {
  if (all_equal(column)) return;
  const bool grid = is_grid_of_laws(column);
  if (grid) {
    // The key of the law says what it is a law of.
    found.push_back({path, members_named(column, "law")});
  } else if (!can_be_compared_by_member(column)) {
    found.push_back({path, column});
    return;
  }
  for (const auto& [key, location, value] : members_of(*column.front())) {
    if (grid && key == "law") continue;
    find_differences(path.empty() ? key : path + "." + key, members_named(column, key), found);
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

constexpr std::size_t longest_part = 24;   ///< of a parameter in a label
constexpr std::size_t longest_array = 32;  ///< of an array, where its ends do not tell it apart

/// A value as JSON, a number with a minus sign.
std::string value_text(const Value& value) {
  const std::string text = to_json(value);
  return value.number() ? with_minus_sign(text) : text;
}

/// A value in few letters: "(2, …, 2)" of a point, that of the first with their number of several.
std::string brief_text(const Value& value) {
  const Value::Array& items = items_of(value);
  if (items.empty()) return value_text(value);
  constexpr std::size_t few = 4;
  if (items.front().is<Value::Array>()) {
    const std::string first = brief_text(items.front());
    return items.size() == 1 ? first : first + ", … [" + std::to_string(items.size()) + "]";
  }
  if (items.size() > few)
    return "(" + value_text(items.front()) + ", …, " + value_text(items.back()) + ")";
  std::string text;
  for (const Value& item : items) text += (text.empty() ? "(" : ", ") + value_text(item);
  return text + ")";
}

/// Texts of other values than numbers, words and tables: brief where those tell them apart.
std::vector<std::string> array_texts(const std::vector<const Value*>& values) {
  std::vector<std::string> brief, whole;
  for (const Value* value : values) {
    brief.push_back(brief_text(*value));
    whole.push_back(to_json(*value));
  }
  const auto count = [](const std::vector<std::string>& texts) {
    return std::set(texts.begin(), texts.end()).size();
  };
  return count(brief) == count(whole) ? brief : distinct_labels(whole, longest_array);
}

/// Laws in words: the name of each, and what tells it from others of that name.
std::vector<std::string> law_texts(const std::vector<const Value*>& values) {
  std::vector<std::string> texts;
  std::map<std::string, std::vector<std::size_t>> by_law;
  for (const Value* value : values) {
    const std::string law = text_of(member(*value, "law"));
    by_law[law].push_back(texts.size());
    texts.push_back(in_words(law));
  }
  for (const auto& [law, same] : by_law) {
    std::vector<std::string> keys = {"law"};
    for (const std::size_t i : same) {
      for (const auto& [key, location, part] : members_of(*values[i])) {
        if (std::ranges::find(keys, key) != keys.end()) continue;
        keys.push_back(key);
        Column parts;
        for (const std::size_t j : same) parts.push_back(&member(*values[j], key));
        if (all_equal(parts)) continue;
        const std::vector<std::string> words = distinct_labels(array_texts(parts), longest_part);
        for (std::size_t j = 0; j < same.size(); ++j) {
          if (values[same[j]]->find(key) == nullptr) continue;
          std::string& text = texts[same[j]];
          text += (text.empty() ? "" : " ") + in_words(key) + " " + in_words(words[j]);
        }
      }
    }
  }
  return texts;
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
      // The one with labels makes the axis, else the one with numbers.
      const auto rank = [](const SweptKey& key) {
        return key.key.starts_with(std::string(labels_section) + ".") ? 2 : key.numeric ? 1 : 0;
      };
      const bool swap = rank(sweep.keys[b]) > rank(sweep.keys[a]);
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

std::string SweptKey::words() const {
  std::string text = axis_title(key);
  for (std::size_t i = 0; i < along.size(); ++i) {
    text += (i == 0 ? ", with " : ", ") + words_of_key(along[i]);
  }
  return text;
}

std::vector<std::string> level_texts(const std::vector<const Value*>& values) {
  std::vector<std::string> texts, written;
  const std::vector<double> numbers = level_numbers(values);
  for (const double number : numbers) written.push_back(number_text(number));
  written = with_few_digits(std::move(written));
  const std::vector<std::string> arrays = array_texts(values), laws = law_texts(values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Value& value = *values[i];
    texts.push_back(!std::isnan(numbers[i])      ? with_minus_sign(written[i])
                    : value.is<std::string>()    ? in_words(text_of(value))
                    : value.is<Value::Members>() ? laws[i]
                                                 : arrays[i]);
  }
  // Long values that begin alike are told apart by their numbers.
  const std::vector<std::string> own = texts;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (std::ranges::count(own, own[i]) > 1) texts[i] += " #" + std::to_string(i);
  }
  return texts;
}

Value written_value(const std::string& text) {
  try {
    return parse_value(text, "", Location());
  } catch (const InvalidInput&) {
    return {text, Location()};
  }
}

std::vector<std::string> level_labels(const std::vector<std::string>& written, std::size_t most) {
  std::vector<Value> values;
  for (const std::string& text : written) values.push_back(written_value(text));
  Column column;
  for (const Value& value : values) column.push_back(&value);
  return distinct_labels(level_texts(column), most);
}

std::string Sweep::short_key(std::size_t key) const {
  if (const std::string symbol = symbol_of_count(keys[key].key); !symbol.empty()) return symbol;
  const std::string name = last_part(keys[key].key);
  const auto same = std::ranges::count_if(
      keys, [&](const SweptKey& other) { return last_part(other.key) == name; });
  if (same == 1) return in_words(name);
  // The part before tells it from the others: "kernel bandwidth".
  std::string text = keys[key].key;
  std::ranges::replace(text, '.', ' ');
  return in_words(text);
}

std::string Sweep::level_words(std::size_t key, std::size_t level) const {
  const Level& one = keys[key].levels[level];
  return short_key(key) + (std::isnan(one.number) ? " = " : " ") + one.text;
}

std::string Sweep::text_of_keys(std::size_t condition, const std::vector<bool>& wanted) const {
  std::string text;
  for (std::size_t k = 0; k < keys.size(); ++k) {
    if (!wanted[k]) continue;
    text += (text.empty() ? "" : ", ") + level_words(k, places[condition][k]);
  }
  return text;
}

std::string Sweep::condition_text(std::size_t condition) const {
  return text_of_keys(condition, std::vector<bool>(keys.size(), true));
}

std::vector<std::string> Sweep::condition_texts(const std::vector<std::size_t>& conditions) const {
  std::vector<bool> varies(keys.size(), conditions.size() < 2);
  for (const std::size_t c : conditions) {
    for (std::size_t k = 0; k < keys.size(); ++k) {
      if (places[c][k] != places[conditions.front()][k]) varies[k] = true;
    }
  }
  std::vector<std::string> texts;
  for (const std::size_t c : conditions) texts.push_back(text_of_keys(c, varies));
  return texts;
}

std::string Sweep::shows_text(const std::vector<std::size_t>& shown, std::size_t all) const {
  constexpr std::size_t max_named = 3;
  if (shown.size() >= all) return "";
  const std::string text =
      "Shows " + grouped(shown.size()) + " of " + counted(std::uint64_t{all}, "condition");
  // No legend names what stands alone.
  if (shown.size() == 1) return text + ", " + condition_text(shown.front()) + ".";
  if (all > places.size() || all - shown.size() > max_named) return text + ".";
  std::string missing;
  std::size_t left = all - shown.size();
  for (std::size_t c = 0; c < places.size(); ++c) {
    if (std::ranges::find(shown, c) != shown.end()) continue;
    missing += condition_text(c);
    if (--left > 0) missing += left == 1 ? " and " : keys.size() > 1 ? "; " : ", ";
  }
  return text + ", without " + missing + ".";
}

std::vector<std::size_t> Sweep::thinned(std::size_t most) const {
  // Of the key with most levels some are left out, until few enough conditions are left.
  std::vector<std::size_t> kept;
  for (const SweptKey& key : keys) kept.push_back(key.levels.size());
  while (true) {
    std::vector<std::set<std::size_t>> levels;
    for (std::size_t k = 0; k < keys.size(); ++k) {
      const std::vector<std::size_t> some = spread(keys[k].levels.size(), kept[k]);
      levels.emplace_back(some.begin(), some.end());
    }
    std::vector<std::size_t> all;
    for (std::size_t c = 0; c < places.size(); ++c) {
      bool wanted = true;
      for (std::size_t k = 0; k < keys.size(); ++k) wanted &= levels[k].contains(places[c][k]);
      if (wanted) all.push_back(c);
    }
    const auto largest = std::ranges::max_element(kept);
    // Where levels do not cross, those that are kept may have few conditions in common.
    const bool sparse = all.size() < places.size() && 2 * all.size() < most;
    if (all.size() <= most && !sparse) return all;
    if (sparse) {
      all.resize(places.size());
      std::iota(all.begin(), all.end(), std::size_t{0});
    }
    if (sparse || largest == kept.end() || *largest < 3) {
      // Two levels of each key are too many still, or conditions differ in no key.
      std::vector<std::size_t> some;
      for (const std::size_t i : spread(all.size(), most)) some.push_back(all[i]);
      return some;
    }
    // Far from few enough the steps are longer.
    *largest -= all.size() > 4 * most ? std::max<std::size_t>(*largest / 4, 1) : 1;
  }
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

SweptKey swept_key(const DifferingKey& found, std::vector<std::size_t>& places) {
  SweptKey key{.key = found.key, .along = {}, .levels = {}};
  std::map<std::string, std::size_t> numbers;
  std::vector<const Value*> values;
  places.clear();
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
  for (std::size_t& place : places) place = rank[place];
  return key;
}

Sweep sweep_of(const Value::Array& conditions) {
  Sweep sweep;
  sweep.places.resize(conditions.size());
  std::vector<std::size_t> places;
  for (const DifferingKey& key : differing_keys(conditions)) {
    sweep.keys.push_back(swept_key(key, places));
    for (std::size_t c = 0; c < places.size(); ++c) sweep.places[c].push_back(places[c]);
  }
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

std::vector<Tick> Layout::ticks(const Scale& x) const {
  std::vector<Tick> ticks;
  if (along == nullptr) return ticks;
  std::vector<double> numbers;
  for (std::size_t i = 0; i < along->levels.size(); ++i) {
    ticks.push_back({static_cast<double>(i), along->levels[i].text});
    numbers.push_back(along->levels[i].number);
  }
  return along->numeric ? ticks_for(x, numbers) : ticks;
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
  Sweep of_panels;
  for (std::size_t k = 0; k < sweep.keys.size(); ++k) {
    if (k != layout.along_number) of_panels.keys.push_back(sweep.keys[k]);
  }
  for (std::size_t c = 0; c < sweep.places.size(); ++c) {
    std::vector<std::size_t> others = sweep.places[c];
    std::string title;
    for (std::size_t k = 0; k < sweep.keys.size(); ++k) {
      if (k == layout.along_number) continue;
      title += (title.empty() ? "" : ", ") + sweep.level_words(k, others[k]);
    }
    if (layout.along != nullptr) {
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(layout.along_number));
    }
    const auto [at, is_new] = numbers.emplace(others, all.size());
    if (is_new) {
      all.push_back({title, {}});
      of_panels.places.push_back(others);
    }
    all[at->second].conditions.push_back(c);
  }
  std::vector<std::size_t> shown;
  for (const std::size_t i : of_panels.thinned(panels)) {
    Panel& panel = all[i];
    std::ranges::stable_sort(panel.conditions, {},
                             [&](std::size_t c) { return layout.place(sweep, c); });
    std::vector<std::size_t> kept;
    for (const std::size_t j : spread(panel.conditions.size(), points)) {
      kept.push_back(panel.conditions[j]);
    }
    shown.insert(shown.end(), kept.begin(), kept.end());
    layout.panels.push_back({panel.title, kept});
  }
  layout.left_out = sweep.shows_text(shown, sweep.places.size());
  return layout;
}

}  // namespace headlab::tools
