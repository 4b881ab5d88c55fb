// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/sweep.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "engine/scenario/law_reader.h"

namespace headlab {
namespace {

bool starts_with(const std::vector<std::string>& path, const std::vector<std::string>& start) {
  return start.size() <= path.size() && std::equal(start.begin(), start.end(), path.begin());
}

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
    const auto number = (*array)[i].number();
    if (!number || !std::isfinite(*number)) reject((*array)[i].location, key, "needs " + wanted);
    numbers[i] = *number;
  }
  const auto integer = [&](std::size_t i) {
    return std::holds_alternative<std::int64_t>((*array)[i].data) &&
           std::abs(numbers[i]) <= max_exact_integer;
  };
  return {numbers[0], numbers[1], numbers[2], integer(0) && integer(1)};
}

/// 0.6 in place of 0.6000000000000001: the nearest number of 15 significant digits.
double short_decimal(double value) {
  std::array<char, 40> text{};
  const auto written = std::to_chars(text.data(), text.data() + text.size(), value,
                                     std::chars_format::scientific, 14);
  std::from_chars(text.data(), written.ptr, value);
  return value;
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
  return values;
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

  if (!std::holds_alternative<Value::Members>(section.data)) {
    reject(section.location, "sweep", std::string("is ") + section.kind() + ", needs a table");
  }
  if (const Value* zip = section.find("zip")) read_value(*zip, "sweep.zip", finite(), zip_);
  read(section, "");
  check(section);
  if (zip_) {
    size_ = axes_[0].values.size();
  } else {
    for (const auto& axis : axes_) size_ *= axis.values.size();
  }
}

/// Collects the arrays and progressions of a table; "data.n" = [...] and data.n = [...] mean the
/// same.
void Sweep::read(const Value& table, const std::string& prefix) {
  for (const auto& entry : std::get<Value::Members>(table.data)) {
    if (prefix.empty() && entry.key == "zip") continue;
    const std::string key = prefix + entry.key;
    if (const auto* values = std::get_if<Value::Array>(&entry.value.data)) {
      axes_.push_back({key, entry.location, split_path(key, entry.location), *values});
    } else if (is_progression(entry.value)) {
      axes_.push_back({key, entry.location, split_path(key, entry.location),
                       progression(entry.value, "sweep." + key, max_conditions)});
    } else if (std::holds_alternative<Value::Members>(entry.value.data)) {
      read(entry.value, key + ".");
    } else {
      reject(entry.value.location, "sweep." + key,
             std::string("is ") + entry.value.kind() +
                 ", needs an array of values, or { linspace = [first, last, number] }");
    }
  }
}

void Sweep::check(const Value& section) const {
  if (axes_.empty()) {
    // --set sweep={} takes away the sweep of a file.
    if (section.location.line == 0) return;
    reject(section.location, "sweep",
           "has no keys - write a line such as \"heads.kernel.bandwidth\" = [0.2, 0.4]");
  }
  double count = 1;
  for (const auto& axis : axes_) {
    const std::string key = "sweep." + axis.key;
    if (axis.values.empty()) reject(axis.location, key, "is an empty array");
    if (axis.path[0] == "sweep") reject(axis.location, key, "is part of the sweep itself");
    for (const auto& other : axes_) {
      const bool same = axis.path == other.path;
      if (same && &axis <= &other) continue;  // the later one is the one too many
      if (&other != &axis && starts_with(axis.path, other.path)) {
        reject(axis.location, key,
               same ? "is swept twice, first at " + other.location.text() + " - leave one out"
                    : "is swept together with " + other.key + ", which holds it");
      }
    }
    if (zip_ && axis.values.size() != axes_[0].values.size()) {
      reject(axis.location, key,
             "has " + std::to_string(axis.values.size()) +
                 (axis.values.size() == 1 ? " value, " : " values, ") + axes_[0].key + " has " +
                 std::to_string(axes_[0].values.size()) +
                 " - with zip = true all need the same number");
    }
    count = zip_ ? static_cast<double>(axis.values.size())
                 : count * static_cast<double>(axis.values.size());
  }
  if (count > static_cast<double>(max_conditions)) {
    reject(section.location, "sweep",
           "has " + number_text(count) + " conditions (allowed: at most " +
               std::to_string(max_conditions) + ")");
  }
}

std::vector<std::string> Sweep::keys() const {
  std::vector<std::string> keys;
  for (const auto& axis : axes_) keys.push_back(axis.key);
  return keys;
}

const std::string* Sweep::key_that_undoes(const std::vector<std::string>& path) const {
  for (const auto& axis : axes_) {
    if (starts_with(path, axis.path)) return &axis.key;
    if (starts_with(axis.path, path) && value_at(base_, axis.key) != nullptr) return &axis.key;
  }
  return nullptr;
}

std::vector<const Value*> Sweep::values(std::size_t index) const {
  std::vector<const Value*> values(axes_.size());
  for (std::size_t a = axes_.size(); a-- > 0;) {
    const std::size_t length = axes_[a].values.size();
    values[a] = &axes_[a].values[index % length];
    if (!zip_) index /= length;
  }
  return values;
}

Value Sweep::condition(std::size_t index) const {
  Value scenario = base_;
  const auto picked = values(index);
  for (std::size_t a = 0; a < axes_.size(); ++a) set_value(scenario, axes_[a].key, *picked[a]);
  return scenario;
}

bool is_progression(const Value& value) {
  return std::ranges::any_of(progression_names,
                             [&](const char* name) { return value.find(name) != nullptr; });
}

Value::Array progression(const Value& table, const std::string& key, std::size_t max_values) {
  const Value* body = nullptr;
  std::string name;
  bool round = false;
  for (const auto& entry : std::get<Value::Members>(table.data)) {
    if (entry.key == "round") {
      const bool* given = std::get_if<bool>(&entry.value.data);
      if (given == nullptr) {
        reject(entry.value.location, key + ".round",
               std::string("is ") + entry.value.kind() + ", needs true or false");
      }
      round = *given;
    } else if (body == nullptr && std::ranges::find(progression_names, entry.key) !=
                                      std::ranges::end(progression_names)) {
      body = &entry.value;
      name = entry.key;
    } else {
      reject(entry.location, key + "." + entry.key,
             "cannot be given here (allowed: one of linspace, logspace and range, and round)");
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
