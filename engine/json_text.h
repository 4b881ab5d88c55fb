// SPDX-License-Identifier: Apache-2.0
/// \file JSON as text: numbers in their shortest form that reads back to the same bits, NaN and
/// infinities as null, lists of numbers on one line.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headlab {

/// Appends to a JSON text from left to right; the caller closes what it opens.
class JsonText {
 public:
  /// How the members of an object or array are laid out; what is inside a `line` is on it too.
  enum class Layout { lines, line };

  void begin_object(Layout layout = Layout::lines) { begin('{', '}', layout); }
  void begin_array(Layout layout = Layout::lines) { begin('[', ']', layout); }
  /// Closes the object or array opened last.
  void end();

  /// Names the next value, inside an object.
  void key(std::string_view name);

  void null() { value("null"); }
  void boolean(bool flag) { value(flag ? "true" : "false"); }
  void number(double number);
  template <std::integral T>
  void integer(T number) {
    value(std::to_string(number));
  }
  void string(std::string_view text);
  /// A text that is JSON already.
  void raw(std::string_view json) { value(json); }
  void numbers(std::span<const double> list);
  /// rows.size() / columns rows of `columns` numbers.
  void matrix(std::span<const double> rows, std::size_t columns);

  /// The text so far.
  const std::string& text() const { return text_; }

 private:
  struct Open {
    char close;
    Layout layout;
    bool empty = true;
  };
  void begin(char open, char close, Layout layout);
  void value(std::string_view json);
  /// Comma and line break before a member.
  void separate();
  void new_line();
  void quote(std::string_view text);

  std::string text_;
  std::vector<Open> open_;
  bool after_key_ = false;
};

}  // namespace headlab
