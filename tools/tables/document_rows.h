// SPDX-License-Identifier: Apache-2.0
/// \file Rows of a document of JSON.
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/files/error.h"
#include "engine/files/json_reader.h"
#include "engine/files/words.h"
#include "tools/tables/table_source.h"

namespace headlab::tools {

/// Members of an object that are found by their name bear that of one of them: index_chordal.
inline constexpr std::pair<const char*, const char*> named_members[] = {{"indices", "index_"},
                                                                        {"gain", "gain_"}};

/// What the standard errors and remainders of a figure are called behind its name.
inline constexpr const char* error_names[] = {"mcse", "remainder", "se"};

inline bool is_whole(const Value& value) {
  return value.is<std::int64_t>() || value.is<std::uint64_t>() || value.is<bool>();
}

inline std::string text_in(const Value& value) {
  return value.is<std::string>() ? visible(text_of(value)) : to_toml(value);
}

/// Texts and numbers of rows, filled from JSON.
class DocumentTable : public TableSource {
 public:
  bool has(const std::string& name) const override { return numbers_.contains(name); }
  TableColumn figure(const std::string& name) const override {
    const auto found = numbers_.find(name);
    if (found == numbers_.end()) throw InvalidInput(name + ": no such figure");
    TableColumn column = columns_[found->second];
    for (const char* error : error_names) {
      const auto errors = numbers_.find(name + "_" + error);
      if (errors == numbers_.end()) continue;
      column.error = error;
      column.errors = std::get<std::vector<double>>(columns_[errors->second].cells);
    }
    return column;
  }

  void begin_row() { ++rows; }

  /// Puts a value into the last row: a number, a text, true or false; null leaves it empty.
  void put(const std::string& name, const Value& value) {
    if (value.is<Value::Array>() || value.is<Value::Members>()) return;
    const auto [at, is_new] = numbers_.try_emplace(name, columns_.size());
    if (is_new) columns_.push_back({.name = name, .whole = true});
    TableColumn& column = columns_[at->second];
    column.whole = column.whole && (is_whole(value) || value.is<Value::Null>());
    put(column.cells, value);
  }

  /// Puts a value, or all single values in an object.
  void put_one(const std::string& name, const Value& value) {
    if (value.is<Value::Members>()) {
      put_all(name, value);
    } else {
      put(name, value);
    }
  }

  /// Puts all single values in an object, the names on the way to one joined by `_` without
  /// `value`.
  void put_all(const std::string& prefix, const Value& object) {
    for (const auto& [key, location, value] : members_of(object)) {
      if (key == "parameters") continue;
      const auto named =
          std::ranges::find(named_members, key, &std::pair<const char*, const char*>::first);
      if (named != std::end(named_members)) {
        // Those of closed forms beside the simulation's; gains of controls bear no other name.
        const bool alone = prefix.empty() || key == "gain";
        const std::string before = alone ? "" : prefix + "_";
        for (const auto& [name, at, one] : members_of(value))
          put_one(before + named->second + name, one);
      } else if (key == "value" && !prefix.empty()) {
        put(prefix, value);
      } else {
        put_one(prefix.empty() ? key : prefix + "_" + key, value);
      }
    }
  }

  /// Makes a column a key.
  void make_key(const std::string& name) {
    const auto found = numbers_.find(name);
    if (found == numbers_.end()) return;
    keys.push_back(columns_[found->second]);
  }

  /// Fills all columns up to the last row and lists the figures, which are all but keys and errors.
  void finish() {
    for (TableColumn& column : columns_) fill(column.cells, rows);
    for (TableColumn& key : keys) fill(key.cells, rows);
    for (const TableColumn& column : columns_) {
      if (!is_error(column.name) &&
          std::ranges::count(keys, column.name, &TableColumn::name) == 0) {
        figures.push_back(column.name);
      }
    }
  }

  /// Whether any row has a value of the figure.
  bool has_values(const std::string& name) const {
    if (!has(name)) return false;
    const Cells& cells = columns_[numbers_.at(name)].cells;
    if (const auto* numbers = std::get_if<std::vector<double>>(&cells)) {
      return std::ranges::any_of(*numbers, [](double number) { return number == number; });
    }
    return std::ranges::any_of(std::get<std::vector<std::string>>(cells),
                               [](const std::string& text) { return !text.empty(); });
  }

  /// Shows the figures that have values.
  void show(std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (has_values(name)) shown.emplace_back(name);
    }
  }

 private:
  static void fill(Cells& cells, std::size_t count) {
    if (auto* numbers = std::get_if<std::vector<double>>(&cells)) numbers->resize(count, no_number);
    if (auto* texts = std::get_if<std::vector<std::string>>(&cells)) texts->resize(count);
  }
  void put(Cells& cells, const Value& value) const {
    fill(cells, rows);
    if (value.is<Value::Null>()) return;
    auto* numbers = std::get_if<std::vector<double>>(&cells);
    const std::optional<double> number =
        value.is<bool>() ? std::optional(is_true(value) ? 1.0 : 0.0) : value.number();
    if (numbers != nullptr && number) {
      numbers->back() = *number;
      return;
    }
    if (numbers != nullptr) cells = texts_of(cells);
    std::get<std::vector<std::string>>(cells).back() =
        number ? number_text(*number) : text_in(value);
  }
  bool is_error(const std::string& name) const {
    return std::ranges::any_of(error_names, [&](const std::string& error) {
      return name.ends_with("_" + error) &&
             numbers_.contains(name.substr(0, name.size() - error.size() - 1));
    });
  }

  std::vector<TableColumn> columns_;
  std::map<std::string, std::size_t> numbers_;  ///< of the columns, by name
};

}  // namespace headlab::tools
