// SPDX-License-Identifier: Apache-2.0
#include "engine/files/json_reader.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "engine/files/json_syntax.h"
#include "engine/files/json_writer.h"

namespace headlab {
namespace {

class TreeBuilder : public JsonHandler {
 public:
  TreeBuilder(MemberOrder order, const KeepItem& keep) : order_(order), keep_(keep) {}

  Value root;
  std::size_t end = 0;  ///< the byte where the text stops being JSON, of which the first is 1

  bool begin_object() override { return open(Value::Members()); }
  bool begin_array() override { return open(Value::Array()); }

  bool key(std::string name) override {
    if (left_out_ > 0) return true;
    if (open_.size() == 1) {
      section_ = name;
      item_ = 0;
    }
    Value& object = *open_.back();
    member_ = order_ == MemberOrder::of_file ? object.find(name) : nullptr;
    if (member_ == nullptr) {
      auto& members = std::get<Value::Members>(object.data);
      member_ = &members.emplace_back(Value::Entry{std::move(name), {}, {}}).value;
    }
    return true;
  }

  bool end_object() override {
    if (left_out_ == 0 && order_ == MemberOrder::by_key) {
      auto& members = std::get<Value::Members>(open_.back()->data);
      std::ranges::stable_sort(members, {}, &Value::Entry::key);
      // Of equal keys the last one stays.
      const auto same_key = [](const auto& one, const auto& other) { return one.key == other.key; };
      const auto kept = std::unique(members.rbegin(), members.rend(), same_key);
      members.erase(members.begin(), kept.base());
    }
    return close();
  }
  bool end_array() override { return close(); }

  bool scalar(Value::Data value) override {
    if (left_out_ > 0) return true;
    if (Value* at = place()) at->data = std::move(value);
    return true;
  }

  void no_json(std::size_t byte) override { end = byte; }

 private:
  /// Where the next value goes, nullptr where it is left out.
  Value* place() {
    if (open_.empty()) return &root;
    auto* array = std::get_if<Value::Array>(&open_.back()->data);
    if (array == nullptr) return member_;
    if (keep_ && open_.size() == 2 && !keep_(section_, item_++)) return nullptr;
    return &array->emplace_back();
  }

  bool open(Value::Data empty) {
    Value* at = left_out_ > 0 ? nullptr : place();
    if (at == nullptr) {
      ++left_out_;
    } else {
      at->data = std::move(empty);
      open_.push_back(at);
    }
    return open_.size() + left_out_ <= max_json_depth;
  }

  bool close() {
    if (left_out_ > 0) {
      --left_out_;
    } else {
      open_.pop_back();
    }
    return true;
  }

  MemberOrder order_;
  const KeepItem& keep_;
  std::vector<Value*> open_;  ///< arrays and objects around the next value, innermost last
  Value* member_ = nullptr;   ///< of the innermost object, its value comes next
  std::string section_;       ///< member of the document that the next value is in
  std::size_t item_ = 0;      ///< of its array
  std::size_t left_out_ = 0;  ///< arrays and objects around the next value that are not kept
};

/// Where JSON opens more levels than are read.
std::size_t end_of_levels(std::string_view text) {
  std::size_t levels = 0, at = 0;
  bool in_string = false;
  for (; at < text.size() && levels <= max_json_depth; ++at) {
    const char c = text[at];
    if (c == '\\' && in_string) ++at;
    if (c == '"') in_string = !in_string;
    if (in_string) continue;
    if (c == '[' || c == '{') ++levels;
    if (c == ']' || c == '}') --levels;
  }
  return at;
}

template <class T>
const T& of_kind_or_empty(const Value& value) {
  static const T none;
  const T* found = std::get_if<T>(&value.data);
  return found == nullptr ? none : *found;
}

}  // namespace

std::optional<Value> parse_json(std::string_view text, MemberOrder order, const KeepItem& keep) {
  TreeBuilder builder(order, keep);
  if (!read_json(text, builder)) return std::nullopt;
  return std::move(builder.root);
}

std::string end_of_json(std::string_view text) {
  const KeepItem none = [](std::string_view, std::size_t) { return false; };
  TreeBuilder builder(MemberOrder::by_key, none);
  if (read_json(text, builder)) return "";
  const bool too_deep = builder.end == 0;
  const std::string_view before =
      text.substr(0, (too_deep ? end_of_levels(text) : builder.end) - 1);
  const auto line = std::ranges::count(before, '\n') + 1;
  const std::string_view own = before.substr(before.rfind('\n') + 1);
  // Characters: their bytes but the first are continuations.
  const auto column = std::ranges::count_if(own, [](char c) { return (c & '\xc0') != '\x80'; }) + 1;
  const std::string levels =
      too_deep ? " of at most " + std::to_string(max_json_depth) + " levels" : "";
  return levels + " from line " + std::to_string(line) + ", column " + std::to_string(column) +
         " on";
}

const Value& member(const Value& object, std::string_view key) {
  static const Value none;
  const Value* found = object.find(key);
  return found == nullptr ? none : *found;
}

const Value::Members& members_of(const Value& value) {
  return of_kind_or_empty<Value::Members>(value);
}

const Value::Array& items_of(const Value& value) {
  return of_kind_or_empty<Value::Array>(value);
}

double number_of(const Value& value) {
  return value.number().value_or(std::numeric_limits<double>::quiet_NaN());
}

std::optional<std::uint64_t> count_of(const Value& value) {
  if (const auto* large = std::get_if<std::uint64_t>(&value.data)) return *large;
  const auto* whole = std::get_if<std::int64_t>(&value.data);
  if (whole == nullptr || *whole < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*whole);
}

std::string text_of(const Value& value) {
  return of_kind_or_empty<std::string>(value);
}

std::string words_of(const Value& value) {
  return value.is<std::string>() ? text_of(value) : to_json(value);
}

bool is_true(const Value& value) {
  const bool* truth = std::get_if<bool>(&value.data);
  return truth != nullptr && *truth;
}

const Value& required(const Value& object, std::string_view key) {
  if (const Value* found = object.find(key)) return *found;
  throw JsonMismatch();
}

Value& required(Value& object, std::string_view key) {
  return const_cast<Value&>(required(std::as_const(object), key));
}

const Value& required(const Value& array, std::size_t item) {
  const auto& items = as<Value::Array>(array);
  if (item < items.size()) return items[item];
  throw JsonMismatch();
}

}  // namespace headlab
