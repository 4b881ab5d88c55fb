// SPDX-License-Identifier: Apache-2.0
#include "engine/files/toml_advice.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <variant>

#include "engine/files/error.h"
#include "engine/files/typography.h"
#include "engine/files/words.h"
#include "kernels/formula.h"

namespace headlab {

namespace {

std::string_view without_spaces(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t\r"), text.size());
  return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

/// Line `line` of a text, from 1.
std::string_view line_of(std::string_view text, int line) {
  while (--line > 0) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  return text.substr(0, text.find('\n'));
}

/// Whether a line without its comment and texts has a comma between digits outside of brackets.
bool has_decimal_comma(std::string_view line) {
  int brackets = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    quoted = quoted != (c == '"');
    if (quoted) continue;
    if (c == '#') break;
    brackets += c == '[' ? 1 : c == ']' ? -1 : 0;
    const auto is_digit = [&](std::size_t at) {
      return at < line.size() && line[at] >= '0' && line[at] <= '9';
    };
    if (c == ',' && brackets == 0 && i > 0 && is_digit(i - 1) && is_digit(i + 1)) return true;
  }
  return false;
}

/// The number of a formula that is made of numbers alone: 0.25 of "1/4".
std::optional<double> computed_number(const std::string& text) {
  // No date, and no range as 1-4.
  if (text.size() > 60 || (text.find_first_of("*/^") == std::string::npos && text != "pi")) {
    return std::nullopt;
  }
  try {
    const Formula formula = parse_formula(text, [](const std::string&) { return std::nullopt; });
    if (!formula.names.empty() || formula.steps.size() != 1) return std::nullopt;
    return formula.steps.front().operand;
  } catch (const FormulaError&) {
    return std::nullopt;
  }
}

std::optional<double> meant(std::string_view given) {
  std::string text(without_spaces(given));
  if (const auto number = written_number(text)) return number;
  if (text.ends_with('%') && std::ranges::count(text, '%') == 1) {
    const auto percent = meant(std::string_view(text).substr(0, text.size() - 1));
    return percent ? std::optional(*percent / 100) : std::nullopt;
  }
  const bool negative = text.starts_with('-');
  if (in_groups(std::string_view(text).substr(negative), ",' ")) {
    std::erase_if(text, [](char c) { return c != '-' && (c < '0' || c > '9'); });
    return written_number(text);
  }
  if (text.find_first_not_of("-0123456789,") == std::string::npos) {
    std::ranges::replace(text, ',', '.');
    return written_number(text);
  }
  if (text.ends_with('k') || text.ends_with('K') || text.ends_with('M')) {
    const auto number = written_number(text.substr(0, text.size() - 1));
    return number ? std::optional(*number * (text.back() == 'M' ? 1e6 : 1e3)) : std::nullopt;
  }
  return computed_number(text);
}

/// "true" and "false" of words that stand for them.
std::string boolean_meant(std::string_view word) {
  static constexpr std::array<std::string_view, 5> yes = {"true", "True", "TRUE", "yes", "on"};
  static constexpr std::array<std::string_view, 5> no = {"false", "False", "FALSE", "no", "off"};
  return std::ranges::count(yes, word) > 0  ? "true"
         : std::ranges::count(no, word) > 0 ? "false"
                                            : "";
}

/// Whether a text computes with names: "n^(-1/5)".
bool is_computed(std::string_view text) {
  return text.find_first_of("*/^") != std::string_view::npos &&
         text.find_first_of("\"'\\=<>[]{}") == std::string_view::npos;
}

/// Advice on a word that TOML cannot read, such as 50%, .5, True or 1/2: "write 0.5". Empty if none
/// applies.
std::string word_advice(std::string_view word) {
  if (const std::string boolean = boolean_meant(word); !boolean.empty() && boolean != word) {
    return "write " + boolean;
  }
  if (const std::string number = number_meant(word); !number.empty() && number != word) {
    return "write " + number;
  }
  for (const std::string_view null : {"null", "Null", "NULL", "None", "nil"}) {
    if (word == null) return "TOML has no such value: leave the key out";
  }
  for (const std::string_view not_finite : {"NaN", "NAN", "NA", "Inf", "INF", "Infinity"}) {
    if (word == not_finite) return "numbers of a scenario are finite";
  }
  if (word.ends_with(';')) return "no ; ends a line";
  return "";
}

/// The word around a place of a line of TOML, without what separates values.
std::string_view word_at(std::string_view line, std::size_t at) {
  static constexpr std::string_view separators = " \t\r,=[]{}#\"'";
  at = std::min(at, line.size());
  // A parser that misses something looks at what follows the word.
  if (at > 0 && (at == line.size() || separators.find(line[at]) != std::string_view::npos)) --at;
  const std::size_t end = std::min(line.find_first_of(separators, at), line.size());
  const std::size_t before = line.substr(0, end).find_last_of(separators);
  const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
  return line.substr(begin, end - begin);
}

bool is_word(std::string_view text) {
  return !text.empty() && text.find_first_not_of(
                              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVW"
                              "XYZ0123456789_-") == std::string_view::npos;
}

std::string no_value(std::string_view word) {
  return "is " + one_line(std::string(word), 60) + ", which is not a TOML value";
}

/// What the quotes of a text hold, where that is a value of the kind needed.
std::string unquoted(const std::string& text, ValueKind kind) {
  if (kind == ValueKind::number) return number_meant(text);
  if (kind == ValueKind::boolean) return boolean_meant(without_spaces(text));
  if (kind == ValueKind::text || text.size() > 200) return "";
  for (const std::string& candidate : {text, "[" + text + "]"}) {
    try {
      const Value value = parse_value(candidate, "", {});
      const bool fits = kind == ValueKind::array ? value.is<Value::Array>() && candidate != "[]"
                                                 : value.is<Value::Members>();
      if (fits) return to_toml(value);
    } catch (const InvalidInput&) {
    }
  }
  return "";
}

}  // namespace

std::optional<double> written_number(std::string_view text) {
  const auto is_digit = [&](std::size_t at) {
    return at < text.size() && text[at] >= '0' && text[at] <= '9';
  };
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_' || i == 0 || !is_digit(i - 1) || !is_digit(i + 1)) digits += text[i];
  }
  double number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number);
  if (error != std::errc() || stop != end || !std::isfinite(number)) return std::nullopt;
  return number;
}

bool in_groups(std::string_view text, std::string_view separators) {
  std::size_t digits = 0;
  bool separated = false;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      ++digits;
    } else {
      if (separators.find(c) == std::string_view::npos || digits == 0 || digits > 3) return false;
      if (separated && digits < 3) return false;
      separated = true;
      digits = 0;
    }
  }
  return separated && digits == 3;
}

std::string number_meant(std::string_view text) {
  if (const auto plain = written_number(without_spaces(text))) return number_text(*plain);
  const auto number = meant(text);
  if (!number || !std::isfinite(*number)) return "";
  // What was computed has no more digits than a number of the scenario.
  return number_text(std::strtod(formatted("%.15g", *number).c_str(), nullptr));
}

std::string kind_problem(const Value& value, const std::string& needed, ValueKind kind) {
  const auto* const text = std::get_if<std::string>(&value.data);
  const bool is_nested = value.is<Value::Array>() || value.is<Value::Members>();
  const std::string shown = one_line(to_toml(value), 60);
  const std::string problem =
      std::string("is ") + (is_nested ? value.kind() : shown) + ", needs " + needed;
  std::string instead;
  if (text != nullptr) {
    instead = unquoted(*text, kind);
  } else if (kind == ValueKind::text && value.number()) {
    return problem + " - text stands in quotes";
  } else if (kind == ValueKind::boolean && (value.number() == 0 || value.number() == 1)) {
    instead = value.number() == 1 ? "true" : "false";
  }
  return problem + (instead.empty() ? "" : " - write " + instead);
}

std::string toml_problem(const std::string& text, int line, int column,
                         std::string_view description) {
  const bool utf16 = text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff");
  if (!utf16 && (text.starts_with("\x89HDF") || text.find('\0') != std::string::npos)) {
    return "is not text - a scenario is a file of TOML";
  }
  if (description.find("utf-8") != std::string_view::npos) {
    return std::string("is not UTF-8 text") + (utf16 ? " but UTF-16" : "") +
           " - save the file as UTF-8";
  }
  const std::string_view start = "Error while parsing ";
  if (!description.starts_with(start)) return std::string(description);
  description.remove_prefix(start.size());
  const auto says = [&](std::string_view words) {
    return description.find(words) != std::string_view::npos;
  };
  const std::string_view redefined = "cannot redefine existing ";
  if (const auto at = description.find(redefined); at != std::string_view::npos) {
    const auto name = description.find('\'', at);
    // Of keys with points toml++ does not say which part it is: the place has to do.
    if (name == std::string_view::npos) return "is set twice: a part of its key is set above";
    return "is set twice: " + std::string(description.substr(name));
  }
  const std::string_view written = line_of(text, line);
  if (const std::string typographic = typographic_problem(written); !typographic.empty()) {
    return "is not TOML: the line " + typographic;
  }
  if (has_decimal_comma(written)) {
    return "is not TOML: numbers have a decimal point, as in 0.4, and no comma";
  }
  const std::string problem = "is not TOML: in " + std::string(description);
  if (says("saw '/'") && (written.find("//") != std::string_view::npos ||
                          written.find("/*") != std::string_view::npos)) {
    return problem + " - comments begin with #";
  }
  if (says("expected '=', saw ':'")) return problem + " - write = between key and value";
  const std::size_t at =
      std::min(static_cast<std::size_t>(std::max(column, 1) - 1), written.size());
  if (says("could not determine value type") && written.substr(at).starts_with('=')) {
    return "is not TOML: has == - write one = between key and value";
  }
  if (says("expected '=', saw '\\n'")) {
    return problem + " - a section stands in brackets, a key has = and a value";
  }
  if (says("expected a comment or whitespace, saw ','")) {
    return problem + " - no comma ends a line";
  }
  // Of "10 000" the parser sees what follows the value.
  const std::size_t equals = std::min(written.find('='), written.size() - 1);
  const std::string_view word =
      says("expected a comment or whitespace")
          ? without_spaces(
                written.substr(equals + 1).substr(0, written.substr(equals + 1).find('#')))
          : word_at(written, at);
  if (const std::string advice = word_advice(word); !advice.empty()) {
    // A percentage is of something, and the number alone would be an absolute margin.
    const bool relative =
        word.ends_with('%') && without_spaces(written.substr(0, equals)) == "margin";
    return no_value(word) + " - " +
           (relative ? "write { relative = " + number_meant(word) + " }" : advice);
  }
  if (is_computed(word)) {
    return no_value(word) + " - a number may be { formula = \"" + std::string(word) + "\" }";
  }
  if (says("could not determine value type")) {
    return is_word(word)
               ? no_value(word) + " - text stands in quotes: \"" + std::string(word) + "\""
               : problem + " - text stands in quotes";
  }
  if (says("expected digit")) return no_value(word) + " - numbers look like 0.5, 20 or 1e-3";
  return problem;
}

std::string value_problem(const std::string& key, const std::string& text, std::size_t at) {
  if (const std::string typographic = typographic_problem(text); !typographic.empty()) {
    return "is " + one_line(text, 60) + ", which " + typographic;
  }
  const std::string_view value = without_spaces(text);
  if (value.starts_with('{') || value.starts_with('[')) {
    const std::string_view word = word_at(text, at);
    if (const std::string advice = word_advice(word); !advice.empty()) {
      return no_value(word) + " - " + advice;
    }
    if (is_word(word) && std::isalpha(static_cast<unsigned char>(word[0])) != 0) {
      return no_value(word) + " - text stands in quotes: \"" + std::string(word) + "\"";
    }
    return no_value(text) + (value.starts_with('{')
                                 ? " - tables look like { law = \"normal\", sd = 1 }"
                                 : " - arrays look like [1, 2]");
  }
  const bool has_list = text.find(',') != std::string::npos;
  if (const std::string advice = has_list ? "" : word_advice(value); !advice.empty()) {
    return no_value(text) + " - " + advice;
  }
  if (has_list && text.find_first_not_of("+-0123456789.,eE_ ") == std::string::npos) {
    return no_value(text) + " - numbers have a decimal point (0.4), arrays brackets ([1, 2])";
  }
  if (text.starts_with('=')) return no_value(text) + " - write one = between key and value";
  if (has_list && text.find('=', text.find(',')) != std::string::npos) {
    return no_value(text) + " - write a --set for each key";
  }
  if (value.starts_with('(')) return no_value(text) + " - arrays have brackets, as [1, 2]";
  const bool plain = one_line(text, 60) == text && text.find_first_of("\"'\\") == std::string::npos;
  const std::string in_quotes = "\"" + (plain ? text : "...") + "\"";
  if (is_computed(text)) {
    return no_value(text) + " - write text in quotes: '" + key + "=" + in_quotes +
           "', a number as '" + key + "={ formula = " + in_quotes + " }'";
  }
  if (!has_list && text.find_first_of("+-.0123456789") == 0) {
    return "is " + one_line(text, 60) + ", which is not a number of TOML - as in 0.5, 20 or 1e-3";
  }
  return no_value(text) + " - write text in quotes: '" + key + "=" + in_quotes + "'";
}

}  // namespace headlab
