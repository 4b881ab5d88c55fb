// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/progression.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

namespace headlab {
namespace {

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
