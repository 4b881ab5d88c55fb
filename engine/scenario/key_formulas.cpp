// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/key_formulas.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/files/key_names.h"
#include "engine/files/toml_advice.h"
#include "engine/files/words.h"
#include "kernels/formula.h"

namespace headlab {
namespace {

/// A number of the scenario, or a formula that becomes one.
struct Numbered {
  std::string key;
  Value* value;
  bool in_progress = false;
};

class Numbers {
 public:
  explicit Numbers(Value& scenario) { collect(scenario, ""); }

  void compute() {
    for (Numbered& one : all_) {
      if (is_formula(*one.value)) compute(one);
    }
  }

 private:
  void collect(Value& at, const std::string& key) {
    if (at.number() || is_formula(at)) {
      all_.push_back({key, &at});
    } else if (auto* members = std::get_if<Value::Members>(&at.data)) {
      for (Value::Entry& entry : *members) {
        collect(entry.value, key.empty() ? entry.key : key + "." + entry.key);
      }
    } else if (auto* elements = std::get_if<Value::Array>(&at.data)) {
      for (std::size_t i = 0; i < elements->size(); ++i) {
        collect((*elements)[i], key + "[" + std::to_string(i) + "]");
      }
    }
  }

  Numbered& find(const std::string& name, const Numbered& of) {
    std::vector<std::string> keys;
    for (const Numbered& one : all_) keys.push_back(one.key);
    std::vector<std::size_t> found = keys_named(name, keys);
    std::erase_if(found, [&](std::size_t i) { return &all_[i] == &of && keys[i] != name; });
    if (found.size() == 1) return all_[found[0]];
    if (found.empty()) {
      std::erase_if(keys,
                    [](const std::string& key) { return key.find('[') != std::string::npos; });
      reject(of.value->location, of.key,
             "has a formula with " + one_line(name, 60) +
                 ", which is not a number of the scenario" + suggestion(name, keys));
    }
    reject(of.value->location, of.key,
           "has a formula with " + name + ": " + several_keys(found, keys));
  }

  double compute(Numbered& one) {
    if (const auto number = one.value->number()) return *number;
    if (one.in_progress) reject(one.value->location, one.key, "has a formula that needs itself");
    one.in_progress = true;
    const Value& text = *one.value->find("formula");
    const auto* words = std::get_if<std::string>(&text.data);
    if (words == nullptr) {
      reject(text.location, one.key + ".formula", kind_problem(text, "a string", ValueKind::text));
    }
    Formula formula;
    try {
      formula = parse_formula(*words, [](const std::string&) { return std::nullopt; });
    } catch (const FormulaError& error) {
      reject(text.location, one.key + ".formula", error.what());
    }
    std::vector<double> numbers;
    std::string at;
    for (const std::string& name : formula.names) {
      numbers.push_back(compute(find(name, one)));
      at += (at.empty() ? " for " : ", ") + name + " = " + number_text(numbers.back());
    }
    const std::vector<double> program = formula.program();
    const double exact =
        formulas::value<double>(program.data(), static_cast<int>(formula.steps.size()),
                                [&](int i) { return numbers[static_cast<std::size_t>(i)]; });
    if (!std::isfinite(exact)) {
      reject(text.location, one.key + ".formula", "is not finite" + at);
    }
    const double value = short_decimal(exact);
    constexpr double largest_whole = 9007199254740992.0;
    if (value == std::floor(value) && std::abs(value) <= largest_whole) {
      *one.value = {static_cast<std::int64_t>(value), text.location};
    } else {
      *one.value = {value, text.location};
    }
    return value;
  }

  std::vector<Numbered> all_;
};

bool holds_formula(const Value& value) {
  if (is_formula(value)) return true;
  if (const auto* members = std::get_if<Value::Members>(&value.data)) {
    return std::ranges::any_of(
        *members, [](const Value::Entry& entry) { return holds_formula(entry.value); });
  }
  const auto* elements = std::get_if<Value::Array>(&value.data);
  return elements != nullptr && std::ranges::any_of(*elements, holds_formula);
}

}  // namespace

double with_digits(double value, int digits) {
  std::array<char, 40> text{};
  const auto written = std::to_chars(text.data(), text.data() + text.size(), value,
                                     std::chars_format::scientific, digits - 1);
  std::from_chars(text.data(), written.ptr, value);
  return value;
}

bool is_formula(const Value& value) {
  const auto* members = std::get_if<Value::Members>(&value.data);
  return members != nullptr && members->size() == 1 && members->front().key == "formula";
}

void compute_formulas(Value& scenario) {
  if (holds_formula(scenario)) Numbers(scenario).compute();
}

}  // namespace headlab
