// SPDX-License-Identifier: Apache-2.0
/// \file JSON that comes from elsewhere as a tree, and what its readers ask of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "engine/files/document.h"

namespace headlab {

/// Arrays and objects inside one another, more than any file of headlab or of a model has.
inline constexpr std::size_t max_json_depth = 100;

enum class MemberOrder { by_key, of_file };

/// Whether element number `item` of the array that a document has as its member `key` is kept.
using KeepItem = std::function<bool(std::string_view key, std::size_t item)>;

/// A JSON text as a tree without locations; nothing where it is none, or is nested too deeply: what
/// copies, compares and prints a tree needs stack for each level. Of a key that stands twice in an
/// object the last value counts.
std::optional<Value> parse_json(std::string_view text, MemberOrder order = MemberOrder::by_key,
                                const KeepItem& keep = {});

/// Where a text stops being what parse_json() reads, for the words "is not JSON": " from line 3,
/// column 7 on", or " of at most 100 levels from line 1, column 101 on"; empty where it is read.
std::string end_of_json(std::string_view text);

// Of a tree that may lack anything.

/// The member of an object, null where there is none.
const Value& member(const Value& object, std::string_view key);
/// The members of an object, none for everything else.
const Value::Members& members_of(const Value& value);
/// The elements of an array, none for everything else.
const Value::Array& items_of(const Value& value);
/// A number, NaN for null and everything else.
double number_of(const Value& value);
/// A whole number that is not negative.
std::optional<std::uint64_t> count_of(const Value& value);
/// A text, empty for everything else.
std::string text_of(const Value& value);
/// A text as it is, else the value as JSON.
std::string words_of(const Value& value);
/// False for everything but true.
bool is_true(const Value& value);

// Of a tree that has to be complete.

/// A tree lacks a value, or has one of another kind.
class JsonMismatch : public std::runtime_error {
 public:
  JsonMismatch() : std::runtime_error("JSON of another shape") {}
};

/// The value, throws JsonMismatch where it is of another kind than T.
template <class T>
const T& as(const Value& value) {
  if (const T* of_kind = std::get_if<T>(&value.data)) return *of_kind;
  throw JsonMismatch();
}
template <class T>
T& as(Value& value) {
  return const_cast<T&>(as<T>(std::as_const(value)));
}

/// The member of an object, throws JsonMismatch where there is none.
const Value& required(const Value& object, std::string_view key);
Value& required(Value& object, std::string_view key);
/// The element of an array, throws JsonMismatch where there is none.
const Value& required(const Value& array, std::size_t item);

}  // namespace headlab
