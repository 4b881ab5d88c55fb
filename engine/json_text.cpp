// SPDX-License-Identifier: Apache-2.0
#include "engine/json_text.h"

#include <charconv>
#include <cmath>

namespace headlab {

void JsonText::begin(char open, char close, Layout layout) {
  separate();
  if (!open_.empty() && open_.back().layout == Layout::line) layout = Layout::line;
  text_ += open;
  open_.push_back({close, layout});
}

void JsonText::end() {
  const Open closed = open_.back();
  open_.pop_back();
  if (!closed.empty && closed.layout == Layout::lines) new_line();
  text_ += closed.close;
}

void JsonText::key(std::string_view name) {
  separate();
  quote(name);
  text_ += ": ";
  after_key_ = true;
}

void JsonText::number(double number) {
  if (!std::isfinite(number)) return null();
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  value({digits, static_cast<std::size_t>(end - digits)});
}

void JsonText::string(std::string_view text) {
  separate();
  quote(text);
}

void JsonText::numbers(std::span<const double> list) {
  begin_array(Layout::line);
  for (const double item : list) number(item);
  end();
}

void JsonText::matrix(std::span<const double> rows, std::size_t columns) {
  begin_array();
  for (; !rows.empty(); rows = rows.subspan(columns)) numbers(rows.first(columns));
  end();
}

void JsonText::value(std::string_view json) {
  separate();
  text_ += json;
}

void JsonText::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (open_.empty()) return;
  Open& inside = open_.back();
  if (!inside.empty) text_ += inside.layout == Layout::line ? ", " : ",";
  inside.empty = false;
  if (inside.layout == Layout::lines) new_line();
}

void JsonText::new_line() {
  text_ += '\n';
  text_.append(2 * open_.size(), ' ');
}

void JsonText::quote(std::string_view text) {
  text_ += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += c;
    } else if (c == '\n') {
      text_ += "\\n";
    } else if (c == '\t') {
      text_ += "\\t";
    } else if (byte < 0x20) {
      constexpr char hex[] = "0123456789abcdef";
      text_ += "\\u00";
      text_ += hex[byte >> 4];
      text_ += hex[byte & 15];
    } else {
      text_ += c;
    }
  }
  text_ += '"';
}

}  // namespace headlab
