// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/law_reader.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "engine/files/toml_advice.h"
#include "engine/scenario/mechanism/mechanism.h"
#include "engine/scenario/setup_laws.h"
#include "kernels/laws.h"

namespace headlab {

namespace {

template <class... Stages>
void describe_stages(std::tuple<std::optional<Stages>...>, std::vector<LawDescription>& out) {
  (out.push_back(describe_law<Stages>("mechanism")), ...);
}

[[noreturn]] void reject_kind(const Value& value, const std::string& key, const char* needed,
                              ValueKind kind) {
  std::string problem = kind_problem(value, needed, kind);
  const std::string section = key.substr(0, key.find('.'));
  const bool varies = section == "data" || section == "heads" || section == "queries" ||
                      section == "run" || section == "tokens" || section == "layers";
  const auto* elements = std::get_if<Value::Array>(&value.data);
  if (kind == ValueKind::table && elements != nullptr && !elements->empty() &&
      elements->front().is<Value::Members>()) {
    problem += key == "claim" ? " - write [[claim.compare]]" : " - write [" + key + "] once";
  } else if (elements != nullptr && varies && key.find('[') == std::string::npos) {
    problem += " - values to compare stand in [sweep]";
  }
  if (kind == ValueKind::array && value.number() && key.ends_with(']')) {
    problem += " - rows have brackets of their own: [[1, 2], [3, 4]]";
  }
  reject_unfit(value.location, key, problem);
}

void require_range(const Value& value, const std::string& key, const Range& range, double number) {
  if (!std::isfinite(number)) {
    reject_unfit(value.location, key, "is " + number_text(number) + ", needs a finite number");
  }
  if (!range.holds(number)) {
    const bool degrees = range.radians && std::abs(number) > range.high;
    const std::string radians = formatted("%.4f", number * std::numbers::pi / 180);
    reject_unfit(
        value.location, key,
        "is " + to_toml(value) + ", must be " + range_text(range) +
            (degrees ? " - in radians: " + to_toml(value) + " degrees are " + radians : ""));
  }
}

/// A whole number, which may be written 1e4.
std::int64_t whole_number(const Value& value, const std::string& key, const Range& range) {
  if (const auto* integer = std::get_if<std::int64_t>(&value.data)) {
    require_range(value, key, range, static_cast<double>(*integer));
    return *integer;
  }
  const auto* number = std::get_if<double>(&value.data);
  if (number == nullptr) reject_kind(value, key, "a whole number", ValueKind::number);
  require_range(value, key, range, *number);
  if (*number != std::floor(*number)) {
    reject_unfit(value.location, key, "is " + number_text(*number) + ", needs a whole number");
  }
  // Exact: every range of a whole number ends at 2^53 or below.
  return static_cast<std::int64_t>(*number);
}

/// "3", "3 x 2": the lengths of an array whose rows have been found equal.
std::string extents(double) {
  return "";
}
template <class T>
std::string extents(const std::vector<T>& array) {
  const std::string inner = extents(array.front());
  return std::to_string(array.size()) + (inner.empty() ? "" : " x " + inner);
}

template <class T>
void read_array(const Value& value, const std::string& key, const Range& range, std::vector<T>& out,
                const char* needed) {
  const auto* elements = std::get_if<Value::Array>(&value.data);
  if (elements == nullptr) reject_kind(value, key, needed, ValueKind::array);
  if (elements->empty()) reject_unfit(value.location, key, "is an empty array");
  out.assign(elements->size(), T());
  for (std::size_t i = 0; i < elements->size(); ++i) {
    const std::string element_key = key + "[" + std::to_string(i) + "]";
    read_value((*elements)[i], element_key, range, out[i]);
    if (extents(out[i]) != extents(out[0])) {
      reject_unfit((*elements)[i].location, element_key,
                   "has " + extents(out[i]) +
                       (extents(out[i]) == "1" ? " element, " : " elements, ") + key + "[0] has " +
                       extents(out[0]));
    }
  }
}

}  // namespace

std::vector<LawDescription> describe_laws() {
  std::vector<LawDescription> laws;
  describe_family("design", DesignLaw(), laws);
  describe_family("regression", RegressionLaw(), laws);
  describe_family("noise", NoiseLaw(), laws);
  describe_family("sequence", SequenceLaw(), laws);
  describe_family("subspaces", SubspaceLaw(), laws);
  describe_family("kernel", KernelLaw(), laws);
  describe_family("weights", WeightLaw(), laws);
  describe_family("queries", QueryLaw(), laws);
  describe_family("controls", ControlLaw(), laws);
  describe_stages(MechanismStages(), laws);
  return laws;
}

void reject_unfit(const Location& location, const std::string& key, const std::string& problem) {
  try {
    reject(location, key, problem);
  } catch (const InvalidInput& refusal) {
    throw UnfitValue(refusal.what());
  }
}

std::string range_text(const Range& range) {
  const std::string low = number_text(range.low);
  const std::string high = number_text(range.high);
  if (std::isfinite(range.low) && std::isfinite(range.high)) {
    const bool open = range.low_open && range.high_open;
    return (open             ? "inside ("
            : range.low_open ? "in ("
                             : "in [") +
           low + ", " + high + (range.high_open ? ")" : "]");
  }
  if (std::isfinite(range.low)) return (range.low_open ? "> " : ">= ") + low;
  if (std::isfinite(range.high)) return (range.high_open ? "< " : "<= ") + high;
  return "";
}

void read_value(const Value& value, const std::string& key, const Range& range, double& out) {
  const std::optional<double> number = value.number();
  if (!number) reject_kind(value, key, "a number", ValueKind::number);
  out = *number;
  require_range(value, key, range, out);
}

void read_value(const Value& value, const std::string& key, const Range& range, int& out) {
  out = static_cast<int>(whole_number(value, key, range));
}

void read_value(const Value& value, const std::string& key, const Range& range,
                std::uint64_t& out) {
  out = static_cast<std::uint64_t>(whole_number(value, key, range));
}

void read_value(const Value& value, const std::string& key, const Range&, bool& out) {
  if (!std::holds_alternative<bool>(value.data))
    reject_kind(value, key, "true or false", ValueKind::boolean);
  out = std::get<bool>(value.data);
}

void read_value(const Value& value, const std::string& key, const Range&, std::string& out) {
  if (!std::holds_alternative<std::string>(value.data))
    reject_kind(value, key, "a string", ValueKind::text);
  out = std::get<std::string>(value.data);
}

void read_value(const Value& value, const std::string& key, const Range& range,
                std::vector<double>& out) {
  read_array(value, key, range, out, "an array of numbers");
}

void read_value(const Value& value, const std::string& key, const Range& range,
                std::vector<std::vector<double>>& out) {
  read_array(value, key, range, out, "an array of arrays of numbers");
}

void read_value(const Value& value, const std::string& key, const Range& range,
                std::vector<std::vector<std::vector<double>>>& out) {
  read_array(value, key, range, out, "an array of matrices");
}

void read_value(const Value& value, const std::string& key, const Range& range, NamedNumbers& out) {
  const auto* members = std::get_if<Value::Members>(&value.data);
  if (members == nullptr) {
    reject_kind(value, key, "a table of numbers", ValueKind::table);
  }
  for (const Value::Entry& entry : *members) {
    read_value(entry.value, key + "." + entry.key, range, out.emplace_back(entry.key, 0.0).second);
  }
}

void read_value(const Value& value, const std::string& key, const Range& range, PerHead& out) {
  const auto* elements = std::get_if<Value::Array>(&value.data);
  if (elements == nullptr) {
    out.values.resize(1);
    read_value(value, key, range, out.values[0]);
    return;
  }
  if (elements->empty()) reject_unfit(value.location, key, "is an empty array");
  out.values.resize(elements->size());
  for (std::size_t i = 0; i < elements->size(); ++i) {
    read_value((*elements)[i], key + "[" + std::to_string(i) + "]", range, out.values[i]);
  }
}

TableReader::TableReader(const Value& table, std::string key)
    : table_(table), key_(std::move(key)) {
  if (!std::holds_alternative<Value::Members>(table.data))
    reject_kind(table, key_, "a table", ValueKind::table);
}

void TableReader::allow(const std::vector<std::string>& keys) const {
  for (const auto& entry : std::get<Value::Members>(table_.data)) {
    if (std::find(keys.begin(), keys.end(), entry.key) == keys.end()) {
      reject_unfit(entry.location, path(entry.key), "unknown key" + suggestion(entry.key, keys));
    }
  }
}

std::vector<std::string> TableReader::words(const char* key) const {
  const Value* value = table_.find(key);
  if (value == nullptr) return {};
  std::vector<std::string> all;
  const auto* array = std::get_if<Value::Array>(&value->data);
  if (array == nullptr) {
    read_value(*value, path(key), finite(), all.emplace_back());
    return all;
  }
  for (const Value& one : *array) read_value(one, path(key), finite(), all.emplace_back());
  return all;
}

const Value& TableReader::need(const char* key, const std::string& doc) const {
  const Value* value = table_.find(key);
  if (value == nullptr) reject(table_.location, path(key), "is missing - " + doc);
  return *value;
}

void TableReader::reject_word(const char* key, const std::string& word,
                              const std::vector<std::string>& allowed) const {
  reject_unfit(table_.find(key)->location, path(key),
               "is \"" + one_line(word, 60) + "\"" + suggestion(word, allowed));
}

void TableReader::reject_parameter(const ParameterError& error) const {
  // A parameter, or one element of it: points, points[1]; of a stage: keep.top, or keep where that
  // is written in short.
  const std::size_t bracket = std::min(error.key().find('['), error.key().size());
  const Value* value = &table_;
  std::string key = error.key();
  for (std::size_t begin = 0; begin < bracket;) {
    const std::size_t end = std::min(error.key().find('.', begin), bracket);
    if (!std::holds_alternative<Value::Members>(value->data)) {
      key.resize(begin - 1);
      break;
    }
    const Value* member = value->find(error.key().substr(begin, end - begin));
    if (member == nullptr) break;
    value = member;
    begin = end + 1;
  }
  if (bracket < error.key().size()) {
    const auto* elements = std::get_if<Value::Array>(&value->data);
    const std::size_t index = std::strtoul(error.key().c_str() + bracket + 1, nullptr, 10);
    if (elements != nullptr && index < elements->size()) value = &(*elements)[index];
  }
  reject(value->location, key.empty() ? key_ : path(key), error.what());
}

}  // namespace headlab
