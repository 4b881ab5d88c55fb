// SPDX-License-Identifier: Apache-2.0
/// \file Results as JSON objects: a visitor of their fields (engine/files/fields.h).
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/files/fields.h"
#include "engine/files/json_writer.h"

namespace headlab {

/// Writes fields into the object that is open. A field that is a result becomes an object, an array
/// of results one array a field of theirs: head_bias, head_bias_mcse.
class JsonFields {
 public:
  /// \param matrices false: arrays of two or more axes are null
  explicit JsonFields(JsonWriter& out, bool matrices = true) : out_(out), matrices_(matrices) {}

  template <class T>
  void operator()(const char* name, const T& value, const char*, const FieldText& text = {}) {
    if (!text.in_json) return;
    if (open_.empty() || open_ != text.part_of) {
      close();
      field(name, value);
    } else {
      field(name + open_.size() + 1, value);
    }
  }

  /// Ends the object of the last field.
  void close() {
    if (!open_.empty()) out_.end_object();
    open_.clear();
  }

  void write(std::same_as<bool> auto value) { out_.boolean(value); }
  void write(std::string_view text) { out_.string(text); }
  void write(const JsonText& json) { out_.json(json.text); }
  void write(const Value& value) { out_.value(value); }
  template <std::floating_point T>
  void write(T number) {
    out_.number(static_cast<double>(number));
  }
  template <std::integral T>
  requires(!std::same_as<T, bool>) void write(T number) {
    if constexpr (std::is_signed_v<T>) {
      out_.number(static_cast<std::int64_t>(number));
    } else {
      out_.number(static_cast<std::uint64_t>(number));
    }
  }
  template <class T>
  void write(const std::optional<T>& value) {
    if (value) {
      write(*value);
    } else {
      out_.null();
    }
  }
  template <class T>
  void write(const std::vector<T>& list) {
    out_.begin_array();
    for (const T& item : list) write(item);
    out_.end_array();
  }
  template <class T, std::size_t size>
  void write(const std::array<T, size>& list) {
    out_.begin_array();
    for (const T& item : list) write(item);
    out_.end_array();
  }
  template <class T>
  void write(const std::pair<T, T>& two) {
    write(std::array<T, 2>{two.first, two.second});
  }
  template <class List>
  void write(const ByName<List>& members) {
    out_.begin_object();
    for (const auto& member : members.list) {
      out_.key(name_of_member(member));
      write(value_of_member(member));
    }
    out_.end_object();
  }
  template <class T>
  requires Described<T, JsonFields>
  void write(const T& result) {
    out_.begin_object();
    JsonFields inside(out_, matrices_);
    result.fields(inside);
    inside.close();
    out_.end_object();
  }

 private:
  template <class T>
  void field(const char* name, const T& value) {
    if constexpr (Described<T, JsonFields>) {
      // Stays open for fields that are part of it.
      out_.key(name);
      out_.begin_object();
      JsonFields inside(out_, matrices_);
      value.fields(inside);
      inside.close();
      open_ = name;
    } else {
      out_.key(name);
      write(value);
    }
  }
  template <class T>
  void field(const char* name, const Shaped<T>& array) {
    const bool empty = array.shape.size() > 1 && (!matrices_ || array.values.empty());
    flat_arrays(array, [&](const std::string& part, const char*, std::span<const double> numbers) {
      out_.key(name + part);
      if (empty) {
        out_.null();
      } else {
        rows(numbers, array.shape, 0);
      }
    });
  }

  /// The part of an array that its axes from number `axis` on make up.
  void rows(std::span<const double>& numbers, const std::vector<std::size_t>& shape,
            std::size_t axis) {
    if (axis == shape.size()) {
      out_.number(numbers.front());
      numbers = numbers.subspan(1);
      return;
    }
    out_.begin_array();
    for (std::size_t i = 0; i < shape[axis]; ++i) rows(numbers, shape, axis + 1);
    out_.end_array();
  }

  JsonWriter& out_;
  bool matrices_;
  std::string open_;  ///< the field whose object may get more members
};

/// A result as a document of its own, with its sum and a newline at its end.
/// \param lines as in JsonLayout
template <class Result>
std::string json_text(const Result& result, std::size_t lines = JsonLayout::every_level) {
  std::string text;
  JsonWriter out([&](std::string_view part) { text += part; }, {.lines = lines, .sum = true});
  JsonFields(out).write(result);
  out.finish();
  return text;
}

}  // namespace headlab
