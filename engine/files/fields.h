// SPDX-License-Identifier: Apache-2.0
/// \file How a result describes itself, so that one list serves JSON, NetCDF, text tables and docs.
///
/// A result is a struct with
///
///     template <class Visitor> void fields(Visitor& visit) const {
///       visit("mse", mse, "mean squared error of the ensemble", {.label = "MSE"});
///       visit("head_bias", shaped(head_bias, {heads}), "E f_h - m(x)", {.axes = "head"});
///     }
///
/// in the order of JSON. A field is a number, a text, a bool, a std::optional of these, an array
/// (Shaped), a list (a vector of these or of results), a result, or members found by their name
/// (ByName). Files with flat names join the names on the way to a field by `_` and leave `value`
/// out: mse.mcse is mse_mcse.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace headlab {

/// What a number is to the others of its list in a text table.
enum class TableRole {
  file_only,  ///< shown in files only
  figure,     ///< a row of its own
  sweep,      ///< the same, and a column where every condition has one row
  term,       ///< the same, one of those that add up to the total
  total       ///< the same, what they add up to
};

/// What readers of a field are told besides its name and its doc.
struct FieldText {
  const char* unit = "1";  ///< of numbers, as UDUNITS writes it
  const char* axes = "";   ///< of an array, with spaces between: "head head_2"
  const char* item = "";   ///< of a list or of named members: one of them; of a list, its axis too
  TableRole role = TableRole::file_only;
  const char* label = "";    ///< name in a text table
  const char* title = "";    ///< longer name for a table with room; empty: the label
  const char* part_of = "";  ///< field before this one, in whose JSON object it stands
  bool in_json = true;
  bool positive = false;  ///< always above 0, so that a share of it is a measure
};

/// A type that describes itself to this visitor.
template <class T, class Visitor>
concept Described = requires(const T& value, Visitor& visitor) {
  value.fields(visitor);
};

/// Row-major array [shape].
template <class T>
struct Shaped {
  std::span<const T> values;
  std::vector<std::size_t> shape;
};

template <class T>
Shaped<T> shaped(const std::vector<T>& values, std::vector<std::size_t> shape) {
  return {values, std::move(shape)};
}

/// Vector [size].
template <class T>
Shaped<T> shaped(const std::vector<T>& values) {
  return {values, {values.size()}};
}

/// Members found by their name: pairs of a name and a value, or results with a member `name`.
template <class List>
struct ByName {
  const List& list;
};

template <class List>
ByName<List> by_name(const List& list) {
  return {list};
}

template <class T>
const std::string& name_of_member(const std::pair<std::string, T>& member) {
  return member.first;
}
template <class T>
const T& value_of_member(const std::pair<std::string, T>& member) {
  return member.second;
}
template <class T>
const std::string& name_of_member(const T& member) {
  return member.name;
}
template <class T>
const T& value_of_member(const T& member) {
  return member;
}

/// Names and docs of the numbers that a result consists of.
struct NumberNames {
  std::vector<std::pair<std::string, const char*>> names;
  void operator()(const char* name, double, const char* doc, const FieldText& = {}) {
    names.emplace_back(name, doc);
  }
};

/// Number `index` of those that a result consists of.
struct NumberAt {
  std::size_t index;
  double value = 0;
  void operator()(const char*, double number, const char*, const FieldText& = {}) {
    if (index-- == 0) value = number;
  }
};

/// What an array of results is called in a flat file: calls use(part, doc, numbers) for every
/// number of theirs, `part` to be put behind the name of the array ("" or "_mcse"), `doc` nullptr
/// for the value itself. An array of numbers is its own value.
template <class T, class Use>
void flat_arrays(const Shaped<T>& array, const Use& use) {
  std::vector<double> numbers(array.values.size());
  if constexpr (std::is_arithmetic_v<T>) {
    std::ranges::copy(array.values, numbers.begin());
    use(std::string(), static_cast<const char*>(nullptr), std::span<const double>(numbers));
  } else {
    NumberNames parts;
    T().fields(parts);
    for (std::size_t p = 0; p < parts.names.size(); ++p) {
      std::ranges::transform(array.values, numbers.begin(), [p](const T& item) {
        NumberAt number{p};
        item.fields(number);
        return number.value;
      });
      const auto& [name, doc] = parts.names[p];
      const bool value = name == "value";
      use(value ? "" : "_" + name, value ? nullptr : doc, std::span<const double>(numbers));
    }
  }
}

/// Text that is JSON already.
struct JsonText {
  std::string text;
};

}  // namespace headlab
