// SPDX-License-Identifier: Apache-2.0
#include "tools/report/markup.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <iterator>
#include <optional>
#include <sstream>

#include "tools/report/formula_text.h"

namespace headlab::tools {
namespace {

bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

/// "n" of a cell without line breaks, "long" of one that needs them within its words.
std::string class_of_cell(const std::string& text, bool first) {
  // No line breaks between a sign or a value and what follows; with plain spaces it can be copied.
  const bool estimate = text.find(" ± ") != std::string::npos ||
                        text.find(" (< ") != std::string::npos || text.starts_with("± ") ||
                        text.starts_with("≥ ");
  constexpr std::size_t short_name = 24, longest_word = 40;
  if (estimate || (first && character_count(text) <= short_name)) return "n";
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (character_count(word) > longest_word) return "long";
  }
  return "";
}

/// Where a wide table has to fit, the errors of its estimates have lines of their own, but for
/// those that share a power of ten with their values: "(4.2 ± 1.3)·10^−23".
std::string cell_html(const std::string& text) {
  const std::size_t sign = text.find(" ± ");
  if (sign == std::string::npos || text.starts_with('(')) return prose(text);
  return prose(text.substr(0, sign)) + " " + prose(text.substr(sign + 1));
}

/// Characters in front of the decimal point of a number or an estimate, nothing for words.
std::optional<std::size_t> whole_part(const std::string& cell) {
  std::string plain = cell;
  for (const std::string_view sign : {"−", "±", "–"}) {
    for (std::size_t at = 0; (at = plain.find(sign)) != std::string::npos;) {
      plain.replace(at, sign.size(), "-");
    }
  }
  if (plain.find_first_not_of("0123456789.,e-%()< ") != std::string::npos) return std::nullopt;
  return std::min(plain.find_first_not_of("0123456789-("), plain.size());
}

/// For each cell of a column of numbers the characters that it lacks in front of its decimal point,
/// so that the points stand under one another; zeros for words.
std::vector<std::size_t> missing_in_front(const Table& table, std::size_t column) {
  std::vector<std::size_t> fronts;
  for (const auto& row : table.rows) {
    const auto front = column < row.size() ? whole_part(row[column]) : std::nullopt;
    if (!front) return std::vector<std::size_t>(table.rows.size(), 0);
    fronts.push_back(*front);
  }
  const std::size_t most = fronts.empty() ? 0 : *std::ranges::max_element(fronts);
  for (std::size_t& front : fronts) front = most - front;
  return fronts;
}

/// A name that lines may break behind the signs that join its parts.
std::string with_breaks(const std::string& name) {
  std::string html;
  for (const char c : name) {
    html += c;
    if (c == '/' || c == '_' || c == '.') html += "<wbr/>";
  }
  return html;
}

constexpr std::size_t longest_whole = 32;  ///< characters that fit in a narrow window

bool is_operator(std::string_view word) {
  constexpr std::string_view all[] = {"±", "=", "≠",  "<",  "≤", ">", "≥", "≈",
                                      "×", "·", "<=", ">=", "~", "+", "−"};
  return std::ranges::find(all, word) != std::end(all);
}

/// True of "bandwidth", "(z" and "d_k", which a value may follow, and not of words such as "of".
bool is_name(std::string_view word) {
  constexpr std::string_view others[] = {"a",    "and",  "as",  "at", "by",   "for",
                                         "from", "in",   "is",  "of", "on",   "or",
                                         "over", "than", "the", "to", "where"};
  if (std::ranges::find(others, word) != std::end(others)) return false;
  while (word.starts_with('(') || word.starts_with('[')) word.remove_prefix(1);
  return !word.empty() && std::ranges::all_of(word, [](char c) {
    return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
  });
}

/// True of "1/H)" and "(R", beside which a hyphen is a minus and x is times.
bool is_term(std::string_view word) {
  while (!word.empty() && (word.front() == '(' || word.front() == '|')) word.remove_prefix(1);
  const auto letters = std::ranges::find_if_not(
      word, [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; });
  return letters - word.begin() <= 1 || word.find_first_of("_^") != std::string_view::npos;
}

/// True where a bracket is open: "[a,", or that of a function, "N(0,".
bool is_open(std::string_view expression) {
  const std::size_t square = expression.rfind('['), round = expression.rfind('(');
  const auto is_left_open = [&](std::size_t at, char end) {
    return at != std::string_view::npos && expression.find(end, at) == std::string_view::npos;
  };
  return is_left_open(square, ']') ||
         (is_left_open(round, ')') && round > 0 &&
          std::isalnum(static_cast<unsigned char>(expression[round - 1])) != 0);
}

/// True where no line may end between an expression and the next word.
bool goes_on(std::string_view expression, std::string_view word) {
  const std::string_view last = expression.substr(expression.rfind(' ') + 1);
  const auto divides = [](std::string_view sign) {
    return sign == "-" || sign == "/" || sign == "x";
  };
  const bool is_value =
      word.starts_with("−") || (!word.empty() && std::isdigit(static_cast<unsigned char>(word[0])));
  return is_open(expression) || (divides(word) && is_term(last)) ||
         (divides(last) && is_term(word)) || is_operator(last) || is_operator(word) ||
         word.starts_with('%') || (is_name(last) && is_value);
}

/// True where every bracket of an expression is closed.
bool is_closed(std::string_view expression) {
  return std::ranges::count(expression, '(') == std::ranges::count(expression, ')') &&
         std::ranges::count(expression, '[') == std::ranges::count(expression, ']');
}

/// Where the expression ends that begins at `begin`; one that is too long ends before an operator,
/// outside of brackets where it can.
std::size_t end_of_expression(std::string_view text, std::size_t begin) {
  const auto end_of_word = [&](std::size_t at) {
    return std::min(text.find(' ', at), text.size());
  };
  std::size_t before = end_of_word(begin), end = before;  // of the last word
  std::size_t outside = begin;                            // of the last term outside of brackets
  while (end < text.size()) {
    const std::size_t next = end_of_word(end + 1);
    if (!goes_on(text.substr(begin, end - begin), text.substr(end + 1, next - end - 1))) return end;
    const std::string_view last =
        before < end ? text.substr(before + 1, end - before - 1) : text.substr(begin, end - begin);
    if (is_closed(text.substr(begin, end - begin)) && !is_operator(last)) outside = end;
    if (character_count(text.substr(begin, next - begin)) > longest_whole) {
      if (outside > begin) return outside;
      return before < end && is_operator(last) ? before : end;
    }
    before = end;
    end = next;
  }
  return end;
}

}  // namespace

bool ends_in_symbol(std::string_view text) {
  if (!text.ends_with("d_k") && !text.ends_with("d_v")) return false;
  const char before = text.size() > 3 ? text[text.size() - 4] : ' ';
  return std::isalnum(static_cast<unsigned char>(before)) == 0 && before != '_';
}

std::string prose(std::string_view written) {
  const std::string with = with_signs(written);
  const std::string_view text = with;
  std::string html;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = end_of_expression(text, begin);
    const std::string_view part = text.substr(begin, end - begin);
    const bool may_break = part.find_first_of(" /|") != std::string_view::npos ||
                           part.find("–") != std::string_view::npos;
    const bool whole = may_break && character_count(part) <= longest_whole;
    html +=
        (begin == 0 ? "" : " ") +
        (whole ? element("span", {{"class", "whole"}}, formula_html(part)) : formula_html(part));
    begin = end + 1;
  }
  return html;
}

std::string code_element(const std::string& text) {
  constexpr std::size_t longest = 24;  // characters that fit in a narrow column
  std::istringstream words(text);
  std::string html;
  for (std::string word; std::getline(words, word, ' ');) {
    const bool whole = character_count(word) <= longest;
    html += (html.empty() ? "" : " ") +
            (whole ? element("span", escaped(word)) : with_breaks(escaped(word)));
  }
  return element("code", html);
}

std::string table_element(const Table& table) {
  // On paper a page may end behind a <caption>, whatever its style: a paragraph keeps its table.
  const bool has_errors = std::ranges::any_of(table.rows, [](const auto& row) {
    return std::ranges::any_of(
        row, [](const std::string& cell) { return cell.find("±") != std::string::npos; });
  });
  const std::string words =
      table.caption + (table.error.empty() || !has_errors ? "" : ": value ± " + table.error);
  const std::string caption =
      words.empty() ? "" : element("p", {{"class", "caption"}}, prose(words));
  const Attributes label =
      words.empty() ? Attributes{} : Attributes{{"aria-label", with_signs(words)}};
  std::string headings;
  for (const std::string& heading : table.headings) {
    headings += element("th", {{"scope", "col"}}, prose(heading));
  }
  const std::string head = element("thead", element("tr", headings)) + "\n";
  std::vector<std::vector<std::size_t>> missing;  // [columns][rows]
  for (std::size_t i = 0; i < table.headings.size(); ++i) {
    missing.push_back(missing_in_front(table, i));
  }
  std::string rows;
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    const std::vector<std::string>& row = table.rows[r];
    std::string cells;
    for (std::size_t i = 0; i < row.size(); ++i) {
      Attributes attributes;
      if (i == 0) attributes.emplace_back("scope", "row");
      const std::string name = class_of_cell(row[i], i == 0);
      if (!name.empty()) attributes.emplace_back("class", name);
      const std::size_t front = i < missing.size() ? missing[i][r] : 0;
      if (front > 0) {
        attributes.emplace_back("style",
                                "padding-left:calc(.35rem + " + std::to_string(front) + "ch)");
      }
      cells += element(i == 0 ? "th" : "td", attributes, cell_html(row[i]));
    }
    rows += element("tr", cells) + "\n";
  }
  return caption +
         element("div", {{"class", "scroll"}},
                 element("table", label, head + element("tbody", rows))) +
         "\n";
}

std::size_t character_count(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return !continues_character(c); }));
}

std::string shortened(const std::string& text, std::size_t most) {
  if (character_count(text) <= most) return text;
  std::size_t end = 0;
  for (std::size_t characters = 0; end < text.size(); ++end) {
    if (!continues_character(text[end]) && ++characters == std::max<std::size_t>(most, 1)) break;
  }
  return text.substr(0, end) + "…";
}

}  // namespace headlab::tools
