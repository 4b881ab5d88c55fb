// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/sweep.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string_view>

#include "engine/files/key_names.h"
#include "engine/files/notes.h"
#include "engine/files/toml_advice.h"
#include "engine/scenario/key_formulas.h"
#include "engine/scenario/law_reader.h"
#include "kernels/counted.h"

namespace headlab {
namespace {

bool starts_with(const std::vector<std::string>& path, const std::vector<std::string>& start) {
  return start.size() <= path.size() && std::equal(start.begin(), start.end(), path.begin());
}

/// Keys of a table of the sweep that are not keys of the scenario.
constexpr std::array<std::string_view, 3> words_of_grids = {"zip", "label", "labels"};

constexpr std::array<const char*, 3> progression_names = {"linspace", "logspace", "range"};

/// Doubles up to here hold every integer.
constexpr double max_exact_integer = 9007199254740992.0;

/// The three numbers of a progression.
struct Terms {
  double first = 0;
  double last = 0;
  double third = 0;  ///< N or the step
  bool integers = false;
};

Terms read_terms(const Value& value, const std::string& key, const std::string& wanted) {
  const auto* array = std::get_if<Value::Array>(&value.data);
  if (array == nullptr || array->size() != 3) reject(value.location, key, "needs " + wanted);
  std::array<double, 3> numbers{};
  for (std::size_t i = 0; i < 3; ++i) {
    read_value((*array)[i], key + "[" + std::to_string(i) + "]", finite(), numbers[i]);
  }
  const auto integer = [&](std::size_t i) {
    return std::holds_alternative<std::int64_t>((*array)[i].data) &&
           std::abs(numbers[i]) <= max_exact_integer;
  };
  return {numbers[0], numbers[1], numbers[2], integer(0) && integer(1)};
}

/// The number of values, from N.
std::size_t count_of(const Terms& terms, const Value& value, const std::string& key,
                     std::size_t max_values) {
  if (!(terms.third >= 2 && terms.third <= static_cast<double>(max_values) &&
        terms.third == std::floor(terms.third))) {
    reject(value.location, key,
           "number of values is " + number_text(terms.third) + ", must be an integer in [2, " +
               std::to_string(max_values) + "]");
  }
  return static_cast<std::size_t>(terms.third);
}

std::vector<double> equal_steps(const Terms& terms, std::size_t count) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(count - 1);
    values[i] = short_decimal((1 - share) * terms.first + share * terms.last);
  }
  values.front() = terms.first;
  values.back() = terms.last;
  return values;
}

std::vector<double> equal_ratios(const Terms& terms, std::size_t count) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(count - 1);
    values[i] = short_decimal(terms.first * std::pow(terms.last / terms.first, share));
  }
  values.front() = terms.first;
  values.back() = terms.last;
  return values;
}

/// A value as it is told from others: 1, 1.0 and 1e0 are one.
std::string value_text(const Value& value) {
  const auto number = value.number();
  return number ? number_text(*number) : to_toml(value);
}

std::vector<double> given_steps(const Terms& terms, const Value& value, const std::string& key,
                                std::size_t max_values) {
  const double steps = (terms.last - terms.first) / terms.third;
  if (!(steps >= 0) || !std::isfinite(steps)) {
    reject(value.location, key,
           "has a step of " + number_text(terms.third) + ", which does not lead from " +
               number_text(terms.first) + " to " + number_text(terms.last));
  }
  // A step that is written in decimals, as 0.1 is, meets the last value to rounding.
  const double whole = std::floor(steps * (1 + 4 * std::numeric_limits<double>::epsilon()));
  if (whole >= static_cast<double>(max_values)) {
    reject(value.location, key,
           "has more than " + std::to_string(max_values) + " values (allowed: at most " +
               std::to_string(max_values) + ")");
  }
  std::vector<double> values(static_cast<std::size_t>(whole) + 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = short_decimal(terms.first + terms.third * static_cast<double>(i));
  }
  values.front() = terms.first;
  if (values.back() != short_decimal(terms.last)) {
    note(key + ": ends at " + number_text(values.back()) + ", as a step of " +
         number_text(terms.third) + " does not meet " + number_text(terms.last));
  }
  return values;
}

/// Labels of the values of a table, as a key of their own.
struct Labels {
  std::string key;
  Location location;
  Value::Array values;
};

/// The last part of a key: letters, digits, _ and - as they are, else in quotes.
std::string key_part(const std::string& name) {
  const auto is_bare = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-';
  };
  return std::ranges::all_of(name, is_bare) ? name : "\"" + name + "\"";
}

/// The labels of a table named `name`, or nothing. \param values  those of its first key
std::optional<Labels> read_labels(const Value& table, const std::string& name,
                                  const Value::Array& values) {
  constexpr std::size_t longest = 40;
  const Value* label = table.find("label");
  const Value* labels = table.find("labels");
  if (label == nullptr && labels == nullptr) return std::nullopt;
  std::string word = "label";
  if (label != nullptr) {
    const std::string key = name + ".label";
    read_value(*label, key, finite(), word);
    constexpr std::string_view other = ".[]\"'\\/";
    const auto fits = [&](char c) {
      return static_cast<unsigned char>(c) >= ' ' && other.find(c) == std::string_view::npos;
    };
    if (word.empty() || word.size() > longest || !std::ranges::all_of(word, fits)) {
      reject(label->location, key,
             "is not a name for a column, as \"angle (rad)\": 1 to 40 characters, and none of " +
                 std::string(other));
    }
  }
  Labels found{.key = std::string(labels_section) + "." + key_part(word),
               .location = label != nullptr ? label->location : labels->location,
               .values = values};
  if (labels == nullptr) return found;
  const std::string key = name + ".labels";
  const auto* texts = std::get_if<Value::Array>(&labels->data);
  if (texts == nullptr || texts->size() != values.size()) {
    reject(labels->location, key,
           (texts == nullptr ? std::string("is ") + labels->kind()
                             : "has " + counted(texts->size(), "label")) +
               ", needs an array of " + std::to_string(values.size()) + ", one a value");
  }
  for (std::size_t i = 0; i < texts->size(); ++i) {
    const Value& text = (*texts)[i];
    if (!std::holds_alternative<std::string>(text.data)) {
      reject(text.location, key, std::string("has ") + text.kind() + ", needs strings");
    }
    for (std::size_t before = 0; before < i; ++before) {
      if ((*texts)[before] == text) reject(text.location, key, "has one label twice");
    }
  }
  found.values = *texts;
  return found;
}

bool is_integer(double value) {
  return value == std::floor(value);
}

}  // namespace

Sweep::Sweep(Value root) : base_(std::move(root)) {
  const Value* found = base_.find("sweep");
  if (found == nullptr) return;
  const Value section = *found;
  auto& members = std::get<Value::Members>(base_.data);
  std::erase_if(members, [](const auto& entry) { return entry.key == "sweep"; });

  if (const auto* tables = std::get_if<Value::Array>(&section.data)) {
    for (std::size_t i = 0; i < tables->size(); ++i) {
      read_grid((*tables)[i], "sweep[" + std::to_string(i) + "]");
    }
  } else {
    read_grid(section, "sweep");
  }
  check(section);
  for (const Grid& grid : grids_) size_ *= grid.size();
}

std::size_t Sweep::Grid::size() const {
  if (axes.empty()) return 1;
  if (zip) return axes[0].values.size();
  std::size_t product = 1;
  for (const Axis& axis : axes) product *= axis.values.size();
  return product;
}

std::vector<const Sweep::Axis*> Sweep::all_axes() const {
  std::vector<const Axis*> all;
  for (const Grid& grid : grids_) {
    for (const Axis& axis : grid.axes) all.push_back(&axis);
  }
  for (const Axis& axis : formulas_) all.push_back(&axis);
  return all;
}

void Sweep::read_grid(const Value& table, const std::string& name) {
  if (!std::holds_alternative<Value::Members>(table.data)) {
    reject(table.location, name, kind_problem(table, "a table", ValueKind::table));
  }
  Grid& grid = grids_.emplace_back();
  if (const Value* zip = table.find("zip")) read_value(*zip, name + ".zip", finite(), grid.zip);
  const auto first_key = std::ssize(keys_);
  const std::size_t formulas = formulas_.size();
  read(table, "", grid);
  if (grid.axes.empty()) {
    // Of a sweep without tables, check() has more to say.
    if (name != "sweep" && formulas_.size() == formulas) {
      reject(table.location, name, "has no keys - name one to vary, or leave the table out");
    }
    return;
  }
  std::optional<Labels> labels = read_labels(table, name, grid.axes[0].values);
  if (!labels) return;
  if (!grid.zip && grid.axes.size() > 1) {
    reject(labels->location, name,
           "has labels and several keys that are crossed - give these keys tables of their own, "
           "or zip = true");
  }
  // They vary with the keys of the table, and stand before them.
  grid.zip = true;
  keys_.insert(keys_.begin() + first_key, labels->key);
  const std::vector<std::string> path = split_path(labels->key, labels->location);
  grid.axes.insert(grid.axes.begin(),
                   Axis{labels->key, labels->location, path, std::move(labels->values)});
}

/// Collects the arrays, progressions and formulas of a table; "data.n" = [...] and data.n = [...]
/// mean the same.
void Sweep::read(const Value& table, const std::string& prefix, Grid& grid) {
  for (const auto& entry : std::get<Value::Members>(table.data)) {
    if (prefix.empty() && std::ranges::count(words_of_grids, entry.key) > 0) continue;
    const std::string key = prefix + entry.key;
    const auto axis = [&](Value::Array values) {
      keys_.push_back(key);
      return Axis{key, entry.location, split_path(key, entry.location), std::move(values)};
    };
    if (const auto* values = std::get_if<Value::Array>(&entry.value.data)) {
      grid.axes.push_back(axis(*values));
    } else if (is_progression(entry.value)) {
      grid.axes.push_back(axis(progression(entry.value, "sweep." + key, max_conditions)));
    } else if (is_formula(entry.value)) {
      formulas_.push_back(axis({entry.value}));
    } else if (std::holds_alternative<Value::Members>(entry.value.data)) {
      read(entry.value, key + ".", grid);
    } else {
      reject(
          entry.value.location, "sweep." + key,
          kind_problem(entry.value, "an array of values, or { linspace = [first, last, number] }",
                       ValueKind::array));
    }
  }
}

void Sweep::require_different(const Grid& grid) {
  std::vector<std::vector<const Axis*>> together;  // whose values are taken at one place
  for (const Axis& axis : grid.axes) {
    if (together.empty() || !grid.zip) together.emplace_back();
    together.back().push_back(&axis);
  }
  for (const std::vector<const Axis*>& axes : together) {
    std::map<std::string, std::size_t> first_of;
    const Axis& axis = *axes.back();
    for (std::size_t i = 0; i < axis.values.size(); ++i) {
      std::string text;
      for (const Axis* one : axes) text += value_text(one->values[i]) + "\n";
      const auto [first, is_new] = first_of.try_emplace(std::move(text), i);
      if (is_new) continue;
      reject(axis.location, "sweep." + axis.key,
             axes.size() == 1
                 ? "has " + one_line(value_text(axis.values[i]), 60) + " twice - leave one out"
                 : "and the keys swept with it have the same values at places " +
                       std::to_string(first->second) + " and " + std::to_string(i) +
                       " - leave one out");
    }
  }
}

void Sweep::check(const Value& section) const {
  const std::vector<const Axis*> all = all_axes();
  if (all.size() == formulas_.size()) {
    // --set sweep={} takes away the sweep of a file.
    if (all.empty() && section.location.line == 0) return;
    reject(section.location, "sweep",
           all.empty()
               ? "has no keys - write a line such as \"heads.kernel.bandwidth\" = [0.2, 0.4]"
               : "has formulas alone - put them where the keys stand");
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Axis* axis = all[i];
    const std::string key = "sweep." + axis->key;
    if (axis->values.empty()) reject(axis->location, key, "is an empty array");
    if (axis->path[0] == "sweep") reject(axis->location, key, "is part of the sweep itself");
    require_whole_key(base_, axis->key, axis->location, key);
    for (std::size_t o = 0; o < all.size(); ++o) {
      const Axis* other = all[o];
      const bool same = axis->path == other->path;
      if (same && i <= o) continue;  // the later one is the one too many
      if (other != axis && starts_with(axis->path, other->path)) {
        reject(axis->location, key,
               same ? "is swept twice, first at " + other->location.text() + " - leave one out"
                    : "is swept together with " + other->key + ", which holds it");
      }
    }
  }
  double count = 1;
  for (const Grid& grid : grids_) {
    for (const Axis& axis : grid.axes) {
      const Axis& first = grid.axes[0];
      if (grid.zip && axis.values.size() != first.values.size()) {
        reject(axis.location, "sweep." + axis.key,
               "has " + counted(axis.values.size(), "value") + ", " + first.key + " has " +
                   std::to_string(first.values.size()) +
                   " - with zip = true all need the same number");
      }
      if (!grid.zip || &axis == &first) count *= static_cast<double>(axis.values.size());
    }
    require_different(grid);
  }
  if (count > static_cast<double>(max_conditions)) {
    reject(section.location, "sweep",
           "has " + number_text(count) + " conditions (allowed: at most " +
               std::to_string(max_conditions) + ")");
  }
}

const std::string* Sweep::key_that_undoes(const std::vector<std::string>& path) const {
  for (const Axis* axis : all_axes()) {
    if (starts_with(path, axis->path)) return &axis->key;
    if (starts_with(axis->path, path) && value_at(base_, axis->key) != nullptr) return &axis->key;
  }
  return nullptr;
}

Value Sweep::condition(std::size_t index) const {
  Value scenario = base_;
  std::vector<std::pair<const Axis*, std::size_t>> picked;
  for (auto grid = grids_.rbegin(); grid != grids_.rend(); ++grid) {
    std::size_t rest = index % grid->size();
    index /= grid->size();
    for (auto axis = grid->axes.rbegin(); axis != grid->axes.rend(); ++axis) {
      picked.emplace_back(&*axis, rest % axis->values.size());
      if (!grid->zip) rest /= axis->values.size();
    }
  }
  // In the order of the file: a value that is written first is not lost under a table that holds
  // it.
  for (auto one = picked.rbegin(); one != picked.rend(); ++one) {
    set_value(scenario, one->first->key, one->first->values[one->second]);
  }
  for (const Axis& axis : formulas_) set_value(scenario, axis.key, axis.values[0]);
  compute_formulas(scenario);
  return scenario;
}

std::vector<Value> Sweep::with_overwritten() const {
  std::vector<Value> all;
  for (const Axis* axis : all_axes()) {
    const Value* own = value_at(base_, axis->key);
    if (own == nullptr || is_formula(*own)) continue;
    if (std::ranges::count(axis->values, *own) > 0) continue;
    set_value(all.emplace_back(condition(0)), axis->key, *own);
  }
  return all;
}

bool is_progression(const Value& value) {
  return std::ranges::any_of(progression_names,
                             [&](const char* name) { return value.find(name) != nullptr; });
}

Value::Array progression(const Value& table, const std::string& key, std::size_t max_values) {
  const Value* body = nullptr;
  std::string name;
  bool round = false;
  std::optional<int> digits;
  for (const auto& entry : std::get<Value::Members>(table.data)) {
    if (entry.key == "round") {
      read_value(entry.value, key + ".round", finite(), round);
    } else if (entry.key == "digits") {
      read_value(entry.value, key + ".digits", within(1, 15), digits);
    } else if (body == nullptr && std::ranges::find(progression_names, entry.key) !=
                                      std::ranges::end(progression_names)) {
      body = &entry.value;
      name = entry.key;
    } else {
      reject(entry.location, key + "." + entry.key,
             "cannot be given here (allowed: one of linspace, logspace and range, with round or "
             "digits)");
    }
  }

  const std::string where = key + "." + name;
  std::vector<double> values;
  Terms terms;
  if (name == "range") {
    terms = read_terms(*body, where, "[first, last, step]");
    values = given_steps(terms, *body, where, max_values);
  } else {
    terms = read_terms(*body, where, "[first, last, number of values]");
    const std::size_t count = count_of(terms, *body, where, max_values);
    if (name == "linspace") {
      values = equal_steps(terms, count);
    } else {
      if (!(terms.first > 0 && terms.last > 0)) {
        reject(body->location, where, "needs a first and a last value above 0");
      }
      values = equal_ratios(terms, count);
    }
  }
  if (std::ranges::any_of(values, [](double value) { return !std::isfinite(value); })) {
    reject(body->location, where, "has values beyond the largest number");
  }

  if (digits && round) reject(table.location, key, "has both round and digits - leave one out");
  if (digits) {
    for (double& value : values) value = with_digits(value, *digits);
    values.erase(std::unique(values.begin(), values.end()), values.end());
  }
  const bool integers = terms.integers && std::ranges::all_of(values, is_integer);
  Value::Array result;
  result.reserve(values.size());
  for (const double value : values) {
    if (!round && !integers) {
      result.push_back({value, body->location});
      continue;
    }
    if (std::abs(value) > max_exact_integer) {
      reject(body->location, where, "cannot round " + number_text(value) + " to an integer");
    }
    const auto rounded = static_cast<std::int64_t>(std::llround(value));
    if (result.empty() || std::get<std::int64_t>(result.back().data) != rounded) {
      result.push_back({rounded, body->location});
    }
  }
  return result;
}

}  // namespace headlab
