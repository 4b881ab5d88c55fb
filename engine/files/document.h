// SPDX-License-Identifier: Apache-2.0
/// \file A document, TOML or JSON, as a tree. Values of TOML know where they were written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace headlab {

/// Where a value was written: "scenario.toml:12:5", or "--set data.n=5".
struct Location {
  /// Its text, which all values of a document share; null: none.
  using Source = std::shared_ptr<const std::string>;

  Location() = default;
  Location(const std::string& where) : source(std::make_shared<const std::string>(where)) {}
  Location(Source where, int at_line, int at_column)
      : source(std::move(where)), line(at_line), column(at_column) {}

  Source source;
  int line = 0;  ///< 0: no line, the source says it all
  int column = 0;
  std::string text() const;
};

/// A value. Copies keep their location.
struct Value {
  using Null = std::monostate;  ///< of JSON alone
  using Array = std::vector<Value>;
  struct Entry;
  using Members = std::vector<Entry>;  ///< in the order of the file

  /// A whole number is a std::uint64_t where it is too large for the other, in JSON alone.
  using Data =
      std::variant<Null, bool, std::int64_t, std::uint64_t, double, std::string, Array, Members>;

  Data data;
  Location location;

  // Compiled once: they copy and destroy whole trees.
  Value();
  Value(Data what, Location where);
  ~Value();
  Value(const Value&);
  Value(Value&&) noexcept;
  Value& operator=(const Value&);
  Value& operator=(Value&&) noexcept;

  /// The member called `key`, or nullptr where there is none or this is not a table.
  const Value* find(std::string_view key) const;
  Value* find(std::string_view key);

  template <class T>
  bool is() const {
    return std::holds_alternative<T>(data);
  }

  /// The number that it is, whole or not.
  std::optional<double> number() const;

  /// "a string", "an integer", ...
  const char* kind() const;
};

struct Value::Entry {
  std::string key;
  Location location;  ///< of the key
  Value value;
};

/// Wherever they were written; 1 is 1.0, and the order of members counts.
bool operator==(const Value& a, const Value& b);
bool operator==(const Value::Entry& a, const Value::Entry& b);

/// Parses a TOML text; throws InvalidInput with FILE:LINE:COL on a syntax error. `source` names it.
Value parse_toml(const std::string& text, const std::string& source);

/// Parses one TOML value, as behind `--set key=`; every part of it gets `location`. Throws
/// InvalidInput.
Value parse_value(const std::string& text, const std::string& key, const Location& location);

/// The parts of a dotted path; quotes hold a part together: sweep."data.n" has two, and so has
/// sweep[0], "sweep" and "[0]". Throws InvalidInput, as at `location`, where a part is empty or a
/// quote stays open.
std::vector<std::string> split_path(const std::string& path, const Location& location);

/// The value at a dotted path, or nullptr.
const Value* value_at(const Value& root, const std::string& path);

/// Sets the value at a dotted path, creating tables on the way; throws InvalidInput where the path
/// passes through something that is not a table, and for an element that an array does not have.
/// The key then stands where the value does.
void set_value(Value& root, const std::string& path, Value value);

/// The value on one line of TOML, for humans and for `--set`; numbers in their shortest exact form.
std::string to_toml(const Value& value);

/// A document, a table a section; what is deeper stands on one line.
std::string to_toml_document(const Value& root);

/// A number in its shortest exact form, whole numbers below 1e16 without exponent or point.
std::string number_text(double number);

/// `text` with control characters and bytes that are not UTF-8 replaced, cut where it is long: fit
/// to be quoted in an error.
std::string one_line(const std::string& text, std::size_t most = 2000);

/// Throws InvalidInput("LOCATION: KEY: PROBLEM") on one line, without the parts that are empty.
[[noreturn]] void reject(const Location& location, const std::string& key,
                         const std::string& problem);

}  // namespace headlab
