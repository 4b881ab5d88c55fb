// SPDX-License-Identifier: Apache-2.0
#include "engine/files/document.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "engine/files/error.h"
#include "engine/files/typography.h"
#include "engine/files/words.h"
#include "kernels/counted.h"

namespace headlab {

namespace {

bool is_bare(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (code < 0x20 || code == 0x7f) {
      const char* digits = "0123456789abcdef";
      out += std::string("\\u00") + digits[code >> 4] + digits[code & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace

std::string Location::text() const {
  if (!source) return "";
  if (line == 0) return *source;
  return *source + ":" + std::to_string(line) + ":" + std::to_string(column);
}

Value::Value() = default;
Value::Value(Data what, Location where) : data(std::move(what)), location(std::move(where)) {}
Value::~Value() = default;
/// libstdc++ 12 takes a variant of such types for one that cannot be without a value, and destroys
/// what is not there where a copy of one fails (no memory): what may fail is done beside it.
Value::Value(const Value& other) : location(other.location) {
  std::visit(
      [this](const auto& what) {
        auto copy = what;
        data.emplace<decltype(copy)>(std::move(copy));
      },
      other.data);
}
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value& other) {
  Value copy = other;
  return *this = std::move(copy);
}
Value& Value::operator=(Value&&) noexcept = default;

const Value* Value::find(std::string_view key) const {
  if (const auto* members = std::get_if<Members>(&data)) {
    for (const auto& entry : *members) {
      if (entry.key == key) return &entry.value;
    }
  }
  return nullptr;
}

Value* Value::find(std::string_view key) {
  return const_cast<Value*>(std::as_const(*this).find(key));
}

const char* Value::kind() const {
  static constexpr const char* kinds[] = {"null",     "a boolean", "an integer", "an integer",
                                          "a number", "a string",  "an array",   "a table"};
  return kinds[data.index()];
}

std::optional<double> Value::number() const {
  if (const auto* integer = std::get_if<std::int64_t>(&data)) return static_cast<double>(*integer);
  if (const auto* large = std::get_if<std::uint64_t>(&data)) return static_cast<double>(*large);
  if (const auto* number = std::get_if<double>(&data)) return *number;
  return std::nullopt;
}

bool operator==(const Value& a, const Value& b) {
  if (a.data.index() != b.data.index() && a.number() && b.number()) return a.number() == b.number();
  return a.data == b.data;
}

bool operator==(const Value::Entry& a, const Value::Entry& b) {
  return a.key == b.key && a.value == b.value;
}

namespace {

constexpr const char* not_a_key = "is not a key - keys look like heads.kernel.bandwidth";

/// Why a path is none.
std::string key_problem(const std::string& path) {
  const std::string typographic = typographic_problem(path);
  return typographic.empty() ? not_a_key : typographic;
}

/// i of "[i]", which names an element of an array.
std::optional<std::size_t> element_number(const std::string& part) {
  std::size_t i = 0;
  const char* last = part.data() + part.size() - 1;
  if (part.size() < 3 || part.front() != '[' || *last != ']') return std::nullopt;
  const auto [end, error] = std::from_chars(part.data() + 1, last, i);
  return error == std::errc() && end == last ? std::optional(i) : std::nullopt;
}

/// The element of an array that a part of a path names, or nullptr.
template <class Array>
auto element(Array& array, const std::string& part) -> decltype(&array[0]) {
  const auto i = element_number(part);
  return i && *i < array.size() ? &array[*i] : nullptr;
}

}  // namespace

std::vector<std::string> split_path(const std::string& path, const Location& location) {
  std::vector<std::string> parts;
  std::size_t at = 0;
  do {
    std::string part;
    if (at < path.size() && (path[at] == '"' || path[at] == '\'')) {
      const auto end = path.find(path[at], at + 1);
      if (end == std::string::npos) reject(location, path, "has an open quote");
      part = path.substr(at + 1, end - at - 1);
      at = end + 1;
    } else {
      while (at < path.size() && is_bare(path[at])) part += path[at++];
    }
    if (part.empty()) reject(location, path, key_problem(path));
    parts.push_back(part);
    while (at < path.size() && path[at] == '[') {
      const auto end = path.find(']', at);
      if (end == std::string::npos) reject(location, path, key_problem(path));
      part = path.substr(at, end + 1 - at);
      if (!element_number(part)) reject(location, path, key_problem(path));
      parts.push_back(part);
      at = end + 1;
    }
    if (at < path.size() && path[at] != '.') reject(location, path, key_problem(path));
  } while (at++ < path.size());
  return parts;
}

const Value* value_at(const Value& root, const std::string& path) {
  const Value* value = &root;
  for (const std::string& part : split_path(path, root.location)) {
    if (value == nullptr) break;
    const auto* array = std::get_if<Value::Array>(&value->data);
    value = array != nullptr ? element(*array, part) : value->find(part);
  }
  return value;
}

void set_value(Value& root, const std::string& path, Value value) {
  const Location location = value.location;
  Value* at = &root;
  Value::Entry* set = nullptr;
  std::string so_far;
  for (const auto& part : split_path(path, value.location)) {
    if (auto* array = std::get_if<Value::Array>(&at->data)) {
      at = element(*array, part);
      if (at == nullptr) {
        reject(value.location, so_far,
               "has " + counted(array->size(), "element") + ", and no " + part);
      }
      set = nullptr;
      so_far += part;
      continue;
    }
    auto* members = std::get_if<Value::Members>(&at->data);
    if (members == nullptr) {
      reject(value.location, so_far, std::string("is ") + at->kind() + " and has no " + part);
    }
    auto entry = std::find_if(members->begin(), members->end(),
                              [&](const Value::Entry& one) { return one.key == part; });
    if (entry == members->end()) {
      if (element_number(part)) {
        reject(value.location, so_far, "is not an array, and has no " + part);
      }
      entry = members->insert(entry, {part, location, Value{Value::Members{}, location}});
    }
    set = &*entry;
    at = &entry->value;
    so_far += (so_far.empty() ? "" : ".") + part;
  }
  // A key that is set again stands where it was set, not where the file had it.
  if (set != nullptr) set->location = location;
  *at = std::move(value);
}

std::string to_toml(const Value& value) {
  std::string out;
  if (const auto* array = std::get_if<Value::Array>(&value.data)) {
    for (const auto& element : *array) out += (out.empty() ? "" : ", ") + to_toml(element);
    return "[" + out + "]";
  }
  if (const auto* members = std::get_if<Value::Members>(&value.data)) {
    for (const auto& entry : *members) {
      const bool bare =
          !entry.key.empty() && std::all_of(entry.key.begin(), entry.key.end(), is_bare);
      out += (out.empty() ? " " : ", ") + (bare ? entry.key : quoted(entry.key)) + " = " +
             to_toml(entry.value);
    }
    return "{" + out + (out.empty() ? "}" : " }");
  }
  if (value.is<Value::Null>()) return "null";
  if (const auto* boolean = std::get_if<bool>(&value.data)) return *boolean ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&value.data)) return std::to_string(*integer);
  if (const auto* large = std::get_if<std::uint64_t>(&value.data)) return std::to_string(*large);
  if (const auto* string = std::get_if<std::string>(&value.data)) return quoted(*string);
  out = number_text(std::get<double>(value.data));
  const bool whole = out.find_first_not_of("-0123456789") == std::string::npos;
  return whole ? out + ".0" : out;
}

std::string to_toml_document(const Value& root) {
  const auto key_text = [](const std::string& key) {
    const bool bare = !key.empty() && std::all_of(key.begin(), key.end(), is_bare);
    return bare ? key : quoted(key);
  };
  const auto line = [&](const Value::Entry& entry) {
    return key_text(entry.key) + " = " + to_toml(entry.value) + "\n";
  };
  std::string plain, sections;
  const auto section = [&](const std::string& heading, const Value& table) {
    sections += "\n" + heading + "\n";
    for (const Value::Entry& member : std::get<Value::Members>(table.data)) {
      sections += line(member);
    }
  };
  for (const Value::Entry& entry : std::get<Value::Members>(root.data)) {
    const auto* tables = std::get_if<Value::Array>(&entry.value.data);
    if (entry.value.is<Value::Members>()) {
      section("[" + key_text(entry.key) + "]", entry.value);
    } else if (tables != nullptr && !tables->empty() &&
               std::ranges::all_of(*tables, &Value::is<Value::Members>)) {
      for (const Value& table : *tables) section("[[" + key_text(entry.key) + "]]", table);
    } else {
      plain += line(entry);
    }
  }
  // What belongs to no section stands before the first.
  return plain + (plain.empty() && !sections.empty() ? sections.substr(1) : sections);
}

std::string number_text(double number) {
  char text[32];
  const bool whole = std::abs(number) < 1e16 && number == std::floor(number);
  const auto end = whole ? std::to_chars(text, text + sizeof text, number, std::chars_format::fixed)
                         : std::to_chars(text, text + sizeof text, number);
  return {text, end.ptr};
}

std::string one_line(const std::string& text, std::size_t most) {
  std::string out = text;
  std::ranges::replace_if(
      out, [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  out = visible(out);
  if (out.size() > most) {
    // Not inside a UTF-8 sequence.
    while (most > 0 && (static_cast<unsigned char>(out[most]) & 0xc0) == 0x80) --most;
    out = out.substr(0, most) + "...";
  }
  return out;
}

void reject(const Location& location, const std::string& key, const std::string& problem) {
  const std::string place = location.text();
  throw InvalidInput((place.empty() ? "" : one_line(place) + ": ") +
                     (key.empty() ? "" : one_line(key, 200) + ": ") + one_line(problem));
}

}  // namespace headlab
