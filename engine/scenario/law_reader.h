// SPDX-License-Identifier: Apache-2.0
/// \file From the tables of a scenario to laws, and from laws to what a user may write.
///
/// Two visitors of a law's parameters() (see kernels/parameter.h): TableReader fills them from a
/// table, Describer lists them. Both know the same law variants, so a law needs no line here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/words.h"
#include "engine/scenario/mechanism/stage.h"
#include "engine/scenario/table_form.h"
#include "kernels/parameter.h"

namespace headlab {

/// What a user may write for one parameter of a law.
struct ParameterDescription {
  std::string key;
  bool required = false;
  std::string range;  ///< "> 0", "in [0, 1]"; empty: any finite number, or no number at all
  std::string doc;
};

struct LawDescription {
  std::string family;  ///< design, regression, noise, sequence, subspaces, kernel, weights, queries
                       ///< or mechanism
  std::string name;
  std::string summary;
  std::string equation;  ///< in the notation of tools/report/mathml.h; empty: it has none
  std::string example;   ///< the least to say of it where d = 4, H = k = 2; empty: its name
  std::vector<ParameterDescription> parameters;
};

/// Every law of every family of a study of regression, in the order of the registry; those of a
/// study of depth are in engine/scenario/stack/stack_setting.h.
std::vector<LawDescription> describe_laws();

/// "> 0", "inside (-1, 1)", "in [0, 1)"; empty for all finite numbers.
std::string range_text(const Range& range);

/// What a seed may be: [0, 2^53), the whole numbers that every reader of JSON keeps.
inline Range seeds() {
  return {.low = 0, .high = 9007199254740992.0, .low_open = false};
}

/// A value that no other value could make fit: its type, range, name of a law or key is wrong.
class UnfitValue : public InvalidInput {
 public:
  using InvalidInput::InvalidInput;
};

/// reject(), as UnfitValue.
[[noreturn]] void reject_unfit(const Location& location, const std::string& key,
                               const std::string& problem);

/// Reads one value into a parameter; throws UnfitValue, naming `key`, where its type, an element
/// or the range does not fit. Whole numbers may be written 1e4; arrays must not be empty or ragged.
void read_value(const Value& value, const std::string& key, const Range& range, double& out);
void read_value(const Value& value, const std::string& key, const Range& range, int& out);
void read_value(const Value& value, const std::string& key, const Range& range, std::uint64_t& out);
void read_value(const Value& value, const std::string& key, const Range& range, bool& out);
void read_value(const Value& value, const std::string& key, const Range& range, std::string& out);
void read_value(const Value& value, const std::string& key, const Range& range,
                std::vector<double>& out);
void read_value(const Value& value, const std::string& key, const Range& range,
                std::vector<std::vector<double>>& out);
void read_value(const Value& value, const std::string& key, const Range& range,
                std::vector<std::vector<std::vector<double>>>& out);
void read_value(const Value& value, const std::string& key, const Range& range, PerHead& out);
void read_value(const Value& value, const std::string& key, const Range& range, NamedNumbers& out);
template <class T>
void read_value(const Value& value, const std::string& key, const Range& range,
                std::optional<T>& out) {
  read_value(value, key, range, out.emplace());
}

/// Range of a parameter that was declared without one: all, or for seeds what a seed may be.
template <class T>
Range default_range(const T&) {
  return std::is_same_v<T, std::uint64_t> ? seeds() : finite();
}

/// Lists the parameters of a law.
class Describer {
 public:
  template <class T>
  void required(const char* key, T&, const Range& range, const char* doc) {
    parameters_.push_back({key, true, range_text(range), doc});
  }
  template <class T>
  void required(const char* key, T& member, const char* doc) {
    required(key, member, default_range(member), doc);
  }
  template <class T>
  void optional(const char* key, T&, const Range& range, const char* doc) {
    parameters_.push_back({key, false, range_text(range), doc});
  }
  template <class T>
  void optional(const char* key, T& member, const char* doc) {
    optional(key, member, default_range(member), doc);
  }

  const std::vector<ParameterDescription>& parameters() const { return parameters_; }

 private:
  std::vector<ParameterDescription> parameters_;
};

/// The parameters that a law takes.
template <class Law>
std::vector<ParameterDescription> describe_parameters() {
  Law law;
  Describer describer;
  law.parameters(describer);
  if constexpr (names_table<Law>) {
    TableForm form;
    form.parameters(describer);
  }
  return describer.parameters();
}

template <class Law>
LawDescription describe_law(const char* family) {
  LawDescription law{.family = family, .name = Law::name, .summary = Law::summary};
  if constexpr (requires { Law::equation; }) law.equation = Law::equation;
  if constexpr (requires { Law::example; }) law.example = Law::example;
  law.parameters = describe_parameters<Law>();
  return law;
}

/// Adds the laws of a family.
template <class... Laws>
void describe_family(const char* family, const std::variant<Laws...>&,
                     std::vector<LawDescription>& out) {
  (out.push_back(describe_law<Laws>(family)), ...);
}

/// Reads the members of one table of a scenario: a section, or a law's parameters.
class TableReader {
 public:
  /// `key` is the table's dotted path, empty for the whole document. Throws InvalidInput where
  /// `table` is not a table.
  TableReader(const Value& table, std::string key);

  /// Refuses members that are not listed.
  void allow(const std::vector<std::string>& keys) const;

  template <class T>
  void required(const char* key, T& member, const Range& range, const std::string& doc) const {
    read_value(need(key, doc), path(key), range, member);
  }
  template <class T>
  void required(const char* key, T& member, const std::string& doc) const {
    required(key, member, default_range(member), doc);
  }
  template <class T>
  void optional(const char* key, T& member, const Range& range, const std::string& doc) const {
    if (table_.find(key) != nullptr) required(key, member, range, doc);
  }
  template <class T>
  void optional(const char* key, T& member, const std::string& doc) const {
    optional(key, member, default_range(member), doc);
  }

  /// A word or an array of words; absent: none.
  std::vector<std::string> words(const char* key) const;

  /// One of the words given; absent: left alone.
  template <class Enum>
  void choice(const char* key, Enum& member,
              const std::vector<std::pair<std::string, Enum>>& words) const {
    std::string word;
    optional(key, word, "");
    if (table_.find(key) == nullptr) return;
    std::vector<std::string> allowed;
    for (const auto& [name, value] : words) {
      if (name == word) {
        member = value;
        return;
      }
      allowed.push_back(name);
    }
    reject_word(key, word, allowed);
  }

  /// The member called `key`, or nullptr.
  const Value* find(const char* key) const { return table_.find(key); }
  /// The member called `key`; throws InvalidInput, with `doc` as the advice, where it is missing.
  const Value& need(const char* key, const std::string& doc) const;
  /// Dotted path of a member.
  std::string path(const std::string& key) const { return key_.empty() ? key : key_ + "." + key; }

  /// Throws InvalidInput: `word`, the value of `key`, is not one of those allowed.
  [[noreturn]] void reject_word(const char* key, const std::string& word,
                                const std::vector<std::string>& allowed) const;
  /// Throws InvalidInput for a problem that a law found in its parameters, at the value concerned.
  [[noreturn]] void reject_parameter(const ParameterError& error) const;
  [[noreturn]] void reject_parameter(const std::string& key, const std::string& problem) const {
    reject_parameter(ParameterError(key, problem));
  }
  /// Runs a law's own check, and rejects what it finds.
  template <class Check>
  void checked(const Check& check) const {
    try {
      check();
    } catch (const ParameterError& error) {
      reject_parameter(error);
    }
  }

 private:
  const Value& table_;
  std::string key_;
};

/// Reads one value into the parameter of a stage that its shorthand names.
class ShorthandReader {
 public:
  ShorthandReader(const Value& value, std::string key, std::string shorthand)
      : value_(value), key_(std::move(key)), shorthand_(std::move(shorthand)) {}

  template <class T>
  void required(const char* key, T& member, const Range& range, const char*) const {
    if (shorthand_ == key) read_value(value_, key_, range, member);
  }
  template <class T>
  void required(const char* key, T& member, const char* doc) const {
    required(key, member, default_range(member), doc);
  }
  template <class T>
  void optional(const char* key, T& member, const Range& range, const char* doc) const {
    required(key, member, range, doc);
  }
  template <class T>
  void optional(const char* key, T& member, const char* doc) const {
    required(key, member, default_range(member), doc);
  }

 private:
  const Value& value_;
  std::string key_;
  std::string shorthand_;
};

/// The keys that a law or a stage takes.
template <class Law>
std::vector<std::string> parameter_keys() {
  std::vector<std::string> keys;
  for (const auto& parameter : describe_parameters<Law>()) keys.push_back(parameter.key);
  return keys;
}

/// Reads the stages of a table, KEY = { parameters... } or KEY = value of the shorthand, into their
/// places.
template <class... Stages>
void read_stages(const Value& table, const std::string& key,
                 std::tuple<std::optional<Stages>...>& stages) {
  const TableReader reader(table, key);
  reader.allow({Stages::name...});
  const auto read = [&]<class Stage>(std::optional<Stage>& stage) {
    const Value* value = reader.find(Stage::name);
    if (value == nullptr) return;
    stage.emplace();
    const std::string shorthand = Stage::shorthand;
    if (shorthand.empty() || std::holds_alternative<Value::Members>(value->data)) {
      const TableReader parameters(*value, reader.path(Stage::name));
      parameters.allow(parameter_keys<Stage>());
      stage->parameters(parameters);
    } else {
      const ShorthandReader parameters(*value, reader.path(Stage::name), shorthand);
      stage->parameters(parameters);
    }
  };
  (read(std::get<std::optional<Stages>>(stages)), ...);
}

/// Reads a law table, { law = "name", parameters... }, into a variant of laws.
template <class... Laws>
void read_law(const Value& table, const std::string& key, std::variant<Laws...>& law) {
  const std::vector<std::string> names = {Laws::name...};
  if (std::holds_alternative<std::string>(table.data)) {
    reject_unfit(table.location, key,
                 "is a string, needs a table - write { law = " + to_toml(table) + " }");
  }
  const TableReader reader(table, key);
  std::string name;
  reader.required("law", name, "one of " + listed(names));
  const auto read = [&]<class Law>(Law one) {
    if (name != Law::name) return false;
    std::vector<std::string> allowed = parameter_keys<Law>();
    allowed.insert(allowed.begin(), "law");
    reader.allow(allowed);
    one.parameters(reader);
    law = std::move(one);
    return true;
  };
  if (!(read(Laws{}) || ...)) reader.reject_word("law", name, names);
}

}  // namespace headlab
