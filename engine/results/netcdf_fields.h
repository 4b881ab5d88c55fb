// SPDX-License-Identifier: Apache-2.0
/// \file Results as variables of a NetCDF file: a visitor of their fields (engine/files/fields.h).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/files/fields.h"
#include "engine/files/netcdf/file.h"

namespace headlab {

/// Axes of an array, of a text with spaces between them.
std::vector<std::string> axes_of(const std::string& text);

/// Variables of one group, filled part by part and then written. Where nothing is put numbers are
/// NaN, whole numbers 0 and texts empty.
class FieldTable {
 public:
  using Axes = std::vector<std::string>;
  using Value = std::variant<double, std::int64_t, std::string>;
  /// An index along some of the axes.
  struct Position {
    Axes axes;
    std::vector<std::size_t> index;
  };

  /// \param lengths of the dimensions, which the group has
  explicit FieldTable(std::map<std::string, std::size_t> lengths) : lengths_(std::move(lengths)) {}

  /// True where a variable has this name and does not extend along `axis`.
  bool has_without(const std::string& name, const std::string& axis) const;
  /// Puts a value; without one the variable is only made sure of.
  void put(const std::string& name, const Position& at, const VariableText& text,
           const Value& value, bool known);
  /// Puts an array [shape] that begins at index 0 of further axes, as long as it or longer.
  void put(const std::string& name, const Position& at, const Axes& axes,
           const std::vector<std::size_t>& shape, const VariableText& text,
           std::span<const double> values);
  /// Writes the variables in the order in which they were first put, and gives their values away.
  void write(const NetcdfGroup& group);

 private:
  template <class T>
  using Values = std::vector<T>;
  struct Variable {
    std::string name;
    Axes axes;
    VariableText text;
    std::variant<Values<double>, Values<std::int64_t>, Values<std::string>> values;
  };
  template <class T>
  Values<T>& values(const std::string& name, const Axes& axes, const VariableText& text,
                    const T& none);
  /// Of the values at a position.
  std::size_t offset_of(const Position& at) const;

  std::map<std::string, std::size_t> lengths_;
  std::map<std::string, std::size_t> numbers_;  ///< of the variables, by name
  std::vector<Variable> variables_;
};

/// Puts the fields of a result into the variables of a file. Names on the way to a number are
/// joined by `_`, without `value`: mse_mcse. Fields in a list have their own name, after that of an
/// item where it is taken: head_bias, query_mse.
class NetcdfFields {
 public:
  /// Where values go.
  struct Place {
    FieldTable* table;
    FieldTable::Position at;
  };

  /// \param single place of what has one value
  /// \param arrays place of all else
  NetcdfFields(Place single, Place arrays)
      : single_(std::move(single)), arrays_(std::move(arrays)), outside_(single_.table) {}

  template <class T>
  void operator()(const char* name, const T& value, const char* doc, const FieldText& text = {}) {
    if (std::string_view(name) == "value") {
      put(prefix_, value, doc_, text);
      of_value_ = " of " + prefix_;
    } else if (prefix_.empty()) {
      put(name, value, doc, text);
    } else {
      put(prefix_ + "_" + name, value, doc + of_value_, text);
    }
  }

 private:
  template <class T>
  void put(const std::string& name, const T& value, const std::string& doc, const FieldText& text,
           bool known = true) {
    if constexpr (std::floating_point<T>) {
      put_value(name, static_cast<double>(value), {doc, text.unit}, known);
    } else if constexpr (std::integral<T>) {
      put_value(name, static_cast<std::int64_t>(value), {doc, text.unit}, known);
    } else if constexpr (std::convertible_to<T, std::string_view>) {
      put_value(name, std::string(value), {doc, ""}, known);
    } else if (known) {
      NetcdfFields inside = *this;
      inside.prefix_ = name;
      inside.doc_ = doc;
      inside.of_value_.clear();
      value.fields(inside);
    }
  }
  void put(const std::string& name, const JsonText& json, const std::string& doc,
           const FieldText&) {
    put_value(name, json.text, {doc, ""}, true);
  }
  template <class T>
  void put(const std::string& name, const std::optional<T>& value, const std::string& doc,
           const FieldText& text) {
    put(name, value.value_or(T()), doc, text, value.has_value());
  }
  template <class T>
  void put(const std::string& name, const Shaped<T>& array, const std::string& doc,
           const FieldText& text) {
    const std::string flat = flat_name(name);
    flat_arrays(array, [&](const std::string& part, const char* of, std::span<const double> all) {
      arrays_.table->put(flat + part, arrays_.at, axes_of(text.axes), array.shape,
                         {of ? of + (" of " + flat) : doc, text.unit}, all);
    });
  }
  template <class T>
  void put(const std::string&, const std::vector<T>& list, const std::string&,
           const FieldText& text) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      NetcdfFields inside = *this;
      inside.item_ = text.item;
      inside.arrays_.at.axes.push_back(inside.item_);
      inside.arrays_.at.index.push_back(i);
      inside.single_ = inside.arrays_;
      list[i].fields(inside);
    }
  }
  template <class List>
  void put(const std::string&, const ByName<List>& members, const std::string& doc,
           const FieldText& text) {
    for (const auto& member : members.list) {
      const std::string& name = name_of_member(member);
      put((text.item + ("_" + name)), value_of_member(member), doc + " " + name, text);
    }
  }

  void put_value(const std::string& name, const FieldTable::Value& value, const VariableText& text,
                 bool known);
  /// The name of a field in this list.
  std::string flat_name(const std::string& name) const;

  Place single_, arrays_;
  const FieldTable* outside_;  ///< with what has one value outside of lists
  std::string prefix_;         ///< name of the result that the fields are in; empty: none
  std::string doc_;            ///< of that result
  std::string of_value_;       ///< " of NAME" behind a value, which the fields after it are about
  std::string item_;           ///< name of an item of the list that the fields are in; empty: none
};

/// Writes records along a new dimension: a variable for each field of list(record, visit), which
/// names them for read_records() too.
/// \param lengths of further axes, which the group has or inherits
template <class Record, class List>
void write_records(const NetcdfGroup& group, const std::string& axis,
                   const std::vector<Record>& records, const List& list,
                   std::map<std::string, std::size_t> lengths = {}) {
  group.define_dimension(axis, records.size());
  lengths[axis] = records.size();
  FieldTable table(std::move(lengths));
  for (std::size_t i = 0; i < records.size(); ++i) {
    const NetcdfFields::Place place{&table, FieldTable::Position{{axis}, {i}}};
    NetcdfFields visit(place, place);
    list(records[i], visit);
  }
  table.write(group);
}

/// Fills the numbers of records from their variables.
class RecordReader {
 public:
  RecordReader(NetcdfGroup group, std::string axis)
      : group_(group), axis_(std::move(axis)), size_(group.dimension(axis_)) {}

  /// Goes to the next record; false after the last.
  bool next() { return ++read_ <= size_; }

  template <class T>
  void operator()(const char* name, T& value, const char*, const FieldText& = {}) {
    if constexpr (std::floating_point<T>) {
      value = at(doubles_, name, [&] { return group_.doubles(name); });
    } else {
      const std::int64_t number = at(integers_, name, [&] { return group_.integers(name); });
      if (number < 0) throw NetcdfError(std::string(name) + ": is negative");
      value = static_cast<T>(number);
    }
  }

 private:
  template <class Columns, class Read>
  auto at(Columns& columns, const std::string& name, const Read& read) {
    const auto [found, is_new] = columns.try_emplace(name);
    if (is_new) found->second = read();
    if (found->second.size() != size_) {
      throw NetcdfError(axis_ + ": variables of different lengths");
    }
    return found->second[read_ - 1];
  }

  NetcdfGroup group_;
  std::string axis_;
  std::size_t size_, read_ = 0;
  std::map<std::string, std::vector<double>> doubles_;
  std::map<std::string, std::vector<std::int64_t>> integers_;
};

/// Records of numbers that write_records() wrote, whole numbers not negative. Throws NetcdfError.
template <class Record, class List>
std::vector<Record> read_records(const NetcdfGroup& group, const std::string& axis,
                                 const List& list) {
  std::vector<Record> records;
  for (RecordReader visit(group, axis); visit.next();) {
    Record one;
    list(one, visit);
    records.push_back(one);
  }
  return records;
}

/// Writes fields as attributes of a group: texts and whole numbers.
struct PutAttributes {
  const NetcdfGroup& group;
  template <class T>
  void operator()(const char* name, const T& value) const {
    if constexpr (std::integral<T>) {
      group.put_attribute(name, static_cast<std::int64_t>(value));
    } else {
      group.put_attribute(name, value);
    }
  }
};

/// Fills them again. Throws NetcdfError, for negative numbers too.
struct TakeAttributes {
  const NetcdfGroup& group;
  template <class T>
  void operator()(const char* name, T& value) const {
    if constexpr (std::integral<T>) {
      const std::int64_t number = group.integer_attribute(name);
      if (number < 0) throw NetcdfError(std::string(name) + ": is negative");
      value = static_cast<T>(number);
    } else {
      value = group.text_attribute(name);
    }
  }
};

}  // namespace headlab
