// SPDX-License-Identifier: Apache-2.0
#include "tools/report/html.h"

#include <algorithm>

#include "engine/files/json_reader.h"
#include "engine/files/json_syntax.h"
#include "engine/files/words.h"

namespace headlab::tools {
namespace {

/// `text` with U+FFFD in place of what is not UTF-8.
std::string valid_utf8(std::string_view text) {
  if (std::ranges::all_of(text, [](char c) { return static_cast<signed char>(c) >= 0; })) {
    return std::string(text);
  }
  return as<std::string>(parse_json(json_string(text)).value());
}

std::string tag(const char* name, const Attributes& attributes) {
  std::string text = "<";
  text += name;
  for (const auto& [key, value] : attributes) {
    text.append(" ").append(key).append("=\"").append(escaped(value)).append("\"");
  }
  return text;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : visible(valid_utf8(text))) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string element(const char* name, const Attributes& attributes, std::string_view content) {
  return tag(name, attributes).append(">").append(content).append("</").append(name).append(">");
}

std::string element(const char* name, std::string_view content) {
  return element(name, {}, content);
}

std::string empty_element(const char* name, const Attributes& attributes) {
  return tag(name, attributes) + "/>";
}

}  // namespace headlab::tools
