// SPDX-License-Identifier: Apache-2.0
/// \file JSON written piece by piece, so that no document has to fit in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/files/document.h"
#include "engine/files/json_sum.h"
#include "engine/files/text_sink.h"

namespace headlab {

/// How JSON is written.
struct JsonLayout {
  static constexpr std::size_t every_level = static_cast<std::size_t>(-1);

  std::size_t lines = every_level;  ///< levels of nesting whose members stand on lines of their own
  std::size_t indent = 2;           ///< of a level
  bool ascii = false;               ///< all other characters are escaped
  bool sum = false;                 ///< a sum is its last member; for objects
};

/// Writes one JSON document. Numbers have the shortest digits that read back to the same bits,
/// those that are not finite are null; bytes that are not UTF-8 are replaced.
class JsonWriter {
 public:
  explicit JsonWriter(TextSink sink, const JsonLayout& layout = {});
  /// Hands the rest of the text over.
  void finish();

  void begin_object() { begin('{'); }
  void end_object() { end('}'); }
  void begin_array() { begin('['); }
  void end_array() { end(']'); }
  void key(std::string_view name);

  void null() { element("null"); }
  void boolean(bool value) { element(value ? "true" : "false"); }
  void number(double value);
  void number(std::int64_t value) { element(std::to_string(value)); }
  void number(std::uint64_t value) { element(std::to_string(value)); }
  void string(std::string_view text);
  void value(const Value& value);
  /// A value that is JSON already.
  void json(std::string_view text) { element(text); }

 private:
  void begin(char bracket);
  void end(char bracket);
  /// What stands before a value or key: a comma, a line.
  void separate();
  void begin_line();
  void element(std::string_view text);
  void hand_over();

  TextSink sink_;
  JsonLayout layout_;
  std::string text_;           ///< not handed over yet
  std::vector<bool> members_;  ///< of every open bracket: it has members
  bool after_key_ = false;
  std::optional<JsonSum> sum_;
};

/// JSON text of a value; numbers keep their shortest exact form.
std::string to_json(const Value& value, const JsonLayout& layout = {.lines = 0});

}  // namespace headlab
