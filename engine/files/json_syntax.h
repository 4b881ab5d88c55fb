// SPDX-License-Identifier: Apache-2.0
/// \file The syntax of JSON: what a text says part by part, and strings and numbers as text. No
/// other source of the product knows nlohmann/json, which takes seconds to compile.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "engine/files/document.h"

namespace headlab {

/// Takes the parts of a JSON text in their order. What returns false ends the reading.
class JsonHandler {
 public:
  virtual ~JsonHandler() = default;
  virtual bool begin_object() = 0;
  virtual bool key(std::string name) = 0;
  virtual bool end_object() = 0;
  virtual bool begin_array() = 0;
  virtual bool end_array() = 0;
  /// Null, a boolean, a number or a string.
  virtual bool scalar(Value::Data value) = 0;
  /// The text stops being JSON at a byte, of which the first is number 1.
  virtual void no_json(std::size_t byte) = 0;
};

/// True where the text is JSON, and the handler took all of it.
bool read_json(std::string_view text, JsonHandler& handler);

/// A string in its quotes, with escapes for what is not visible() (words.h); bytes that are not
/// UTF-8 are replaced.
/// \param ascii escapes all other characters
std::string json_string(std::string_view text, bool ascii = false);

/// The shortest digits that read back to the same bits; null for what is not finite.
std::string json_number(double number);

}  // namespace headlab
