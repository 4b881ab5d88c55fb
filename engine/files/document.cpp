// SPDX-License-Identifier: Apache-2.0
#include "engine/files/document.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>
#include <toml++/toml.h>

#include "engine/files/error.h"

namespace headlab {

namespace {

/// The problem of a TOML text in our words, where toml++ speaks of its own functions.
std::string toml_problem(const std::string& text, std::string_view description) {
  if (description.find("utf-8") != std::string_view::npos) {
    const bool utf16 = text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff");
    return std::string("is not UTF-8 text") + (utf16 ? " but UTF-16" : "") +
           " - save the file as UTF-8";
  }
  const std::string_view start = "Error while parsing ";
  if (!description.starts_with(start)) return std::string(description);
  description.remove_prefix(start.size());
  return "is not TOML: in " + std::string(description);
}

/// What to write instead of a setting that is no TOML value.
std::string value_advice(const std::string& key, const std::string& text) {
  if (!text.empty() && text.find_first_not_of("+-0123456789.eE_") == std::string::npos) {
    return "is " + one_line(text, 60) + ", which is not a number of TOML - as in 0.5, 20 or 1e-3";
  }
  if (text.find(',') != std::string::npos &&
      text.find_first_not_of("+-0123456789.,eE_ ") == std::string::npos) {
    return "is " + one_line(text, 60) +
           ", which is not a TOML value - numbers have a decimal point (0.4), arrays brackets "
           "([1, 2])";
  }
  const bool plain = one_line(text, 60) == text && text.find_first_of("\"'\\") == std::string::npos;
  return "is " + one_line(text, 60) + ", which is not a TOML value - write text in quotes: '" +
         key + "=\"" + (plain ? text : "...") + "\"'";
}

/// Number of bytes of the UTF-8 character that `text` begins with, 0 where it begins with none.
std::size_t utf8_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t length = first < 0x80                    ? 1
                             : first >= 0xc2 && first < 0xe0 ? 2
                             : first >= 0xe0 && first < 0xf0 ? 3
                             : first >= 0xf0 && first < 0xf5 ? 4
                                                             : 0;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  }
  return length;
}

constexpr const char* date_problem =
    "is a date or time, which no parameter takes - write text in quotes";

Location location_of(const toml::source_region& region, const std::string& source) {
  return {source, static_cast<int>(region.begin.line), static_cast<int>(region.begin.column)};
}

Value convert(const toml::node& node, const std::string& source, const std::string& path) {
  Value value{false, location_of(node.source(), source)};
  if (const auto* boolean = node.as_boolean()) {
    value.data = boolean->get();
  } else if (const auto* integer = node.as_integer()) {
    value.data = integer->get();
  } else if (const auto* number = node.as_floating_point()) {
    value.data = number->get();
  } else if (const auto* string = node.as_string()) {
    value.data = string->get();
  } else if (const auto* array = node.as_array()) {
    Value::Array elements;
    elements.reserve(array->size());
    for (const auto& element : *array) elements.push_back(convert(element, source, path));
    value.data = std::move(elements);
  } else if (const auto* table = node.as_table()) {
    Value::Members members;
    for (const auto& [key, member] : *table) {
      const std::string name(key.str());
      members.push_back({name, location_of(key.source(), source),
                         convert(member, source, path.empty() ? name : path + "." + name)});
    }
    // toml++ keeps its tables sorted by key; we want the order of the file.
    std::stable_sort(members.begin(), members.end(), [](const auto& a, const auto& b) {
      return std::tie(a.location.line, a.location.column) <
             std::tie(b.location.line, b.location.column);
    });
    value.data = std::move(members);
  } else {
    reject(value.location, path, date_problem);
  }
  return value;
}

void relocate(Value& value, const Location& location) {
  value.location = location;
  if (auto* array = std::get_if<Value::Array>(&value.data)) {
    for (auto& element : *array) relocate(element, location);
  } else if (auto* members = std::get_if<Value::Members>(&value.data)) {
    for (auto& entry : *members) {
      entry.location = location;
      relocate(entry.value, location);
    }
  }
}

nlohmann::ordered_json json_of(const Value& value) {
  if (const auto* array = std::get_if<Value::Array>(&value.data)) {
    auto json = nlohmann::ordered_json::array();
    for (const auto& element : *array) json.push_back(json_of(element));
    return json;
  }
  if (const auto* members = std::get_if<Value::Members>(&value.data)) {
    auto json = nlohmann::ordered_json::object();
    for (const auto& entry : *members) json[entry.key] = json_of(entry.value);
    return json;
  }
  if (const auto* boolean = std::get_if<bool>(&value.data)) return *boolean;
  if (const auto* integer = std::get_if<std::int64_t>(&value.data)) return *integer;
  if (const auto* number = std::get_if<double>(&value.data)) return *number;
  return std::get<std::string>(value.data);
}

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
  if (line == 0) return source;
  return source + ":" + std::to_string(line) + ":" + std::to_string(column);
}

const Value* Value::find(const std::string& key) const {
  if (const auto* members = std::get_if<Members>(&data)) {
    for (const auto& entry : *members) {
      if (entry.key == key) return &entry.value;
    }
  }
  return nullptr;
}

Value* Value::find(const std::string& key) {
  return const_cast<Value*>(std::as_const(*this).find(key));
}

const char* Value::kind() const {
  static constexpr const char* kinds[] = {"a boolean", "an integer", "a number",
                                          "a string",  "an array",   "a table"};
  return kinds[data.index()];
}

Value parse_toml(const std::string& text, const std::string& source) {
  try {
    return convert(toml::parse(std::string_view(text)), source, "");
  } catch (const toml::parse_error& error) {
    reject(location_of(error.source(), source), "", toml_problem(text, error.description()));
  }
}

Value parse_value(const std::string& text, const std::string& key, const Location& location) {
  if (text.find_first_not_of(" \t") == std::string::npos) reject(location, key, "has no value");
  try {
    const auto table = toml::parse(std::string_view("value = " + text));
    // A line break would start a second key: only one value may stand here.
    if (text.find('\n') == std::string::npos) {
      Value value = convert(*table.get("value"), location.source, "value");
      relocate(value, location);
      return value;
    }
  } catch (const toml::parse_error&) {
    // toml++'s own words count columns of a text that nobody wrote: say it in ours.
  } catch (const InvalidInput&) {
    reject(location, key, date_problem);
  }
  reject(location, key, value_advice(key, text));
}

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
    if (part.empty() || (at < path.size() && path[at] != '.')) {
      reject(location, path, "is not a key - keys look like heads.kernel.bandwidth");
    }
    parts.push_back(part);
  } while (at++ < path.size());
  return parts;
}

const Value* value_at(const Value& root, const std::string& path) {
  const Value* value = &root;
  for (const std::string& part : split_path(path, root.location)) {
    if (value) value = value->find(part);
  }
  return value;
}

void set_value(Value& root, const std::string& path, Value value) {
  const Location location = value.location;
  Value* at = &root;
  Value::Entry* set = nullptr;
  std::string so_far;
  for (const auto& part : split_path(path, value.location)) {
    auto* members = std::get_if<Value::Members>(&at->data);
    if (members == nullptr) {
      reject(value.location, so_far, std::string("is ") + at->kind() + " and has no " + part);
    }
    auto entry = std::find_if(members->begin(), members->end(),
                              [&](const Value::Entry& one) { return one.key == part; });
    if (entry == members->end()) {
      entry = members->insert(entry, {part, location, {Value::Members{}, location}});
    }
    set = &*entry;
    at = &entry->value;
    so_far += (so_far.empty() ? "" : ".") + part;
  }
  // A key that is set again stands where it was set, not where the file had it.
  if (set != nullptr) set->location = location;
  *at = std::move(value);
}

std::string to_json(const Value& value) {
  return json_of(value).dump();
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
  if (const auto* boolean = std::get_if<bool>(&value.data)) return *boolean ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&value.data)) return std::to_string(*integer);
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
  for (const Value::Entry& entry : std::get<Value::Members>(root.data)) {
    const auto* members = std::get_if<Value::Members>(&entry.value.data);
    if (members == nullptr) {
      plain += line(entry);
      continue;
    }
    sections += "\n[" + key_text(entry.key) + "]\n";
    for (const Value::Entry& member : *members) sections += line(member);
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
  std::string out;
  for (std::string_view left = text; !left.empty();) {
    const auto code = static_cast<unsigned char>(left[0]);
    const std::size_t length = utf8_length(left);
    if (length == 0) {
      out += '?';
    } else if (code < 0x20 || code == 0x7f) {
      out += ' ';
    } else {
      out += left.substr(0, length);
    }
    left.remove_prefix(std::max<std::size_t>(length, 1));
  }
  if (out.size() > most) {
    // Not inside a UTF-8 sequence.
    while (most > 0 && (static_cast<unsigned char>(out[most]) & 0xc0) == 0x80) --most;
    out = out.substr(0, most) + "...";
  }
  return out;
}

void reject(const Location& location, const std::string& key, const std::string& problem) {
  throw InvalidInput(one_line(location.text()) + ": " +
                     (key.empty() ? "" : one_line(key, 200) + ": ") + one_line(problem));
}

}  // namespace headlab
