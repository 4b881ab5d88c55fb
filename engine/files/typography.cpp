// SPDX-License-Identifier: Apache-2.0
#include "engine/files/typography.h"

#include <array>

namespace headlab {
namespace {

struct Character {
  std::string_view text;
  std::string_view name;
  std::string_view meant;
};

constexpr std::array<Character, 14> characters = {{{"“", "typographic quote", "\""},
                                                   {"”", "typographic quote", "\""},
                                                   {"„", "typographic quote", "\""},
                                                   {"«", "typographic quote", "\""},
                                                   {"»", "typographic quote", "\""},
                                                   {"‘", "typographic quote", "'"},
                                                   {"’", "typographic quote", "'"},
                                                   {"–", "dash", "-"},
                                                   {"—", "dash", "-"},
                                                   {"−", "minus sign", "-"},
                                                   {"\u2010", "typographic hyphen", "-"},
                                                   {"\u2011", "typographic hyphen", "-"},
                                                   {"\u00a0", "no-break space", " "},
                                                   {"\u202f", "no-break space", " "}}};

}  // namespace

std::string typographic_problem(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const Character& one : characters) {
      if (!text.substr(at).starts_with(one.text)) continue;
      const bool seen = one.meant != " ";
      return "has a " + std::string(one.name) + (seen ? " " + std::string(one.text) : "") +
             " - write " + (seen ? std::string(one.meant) : "a plain space");
    }
  }
  return "";
}

std::string hyphenated(std::string_view word) {
  std::string hyphens;
  bool dashes = false;
  while (true) {
    if (word.starts_with("-")) {
      hyphens += "-";
      word.remove_prefix(1);
    } else if (word.starts_with("–") || word.starts_with("—")) {
      hyphens += "--";
      word.remove_prefix(std::string_view("–").size());
      dashes = true;
    } else if (word.starts_with("−") || word.starts_with("\u2010") || word.starts_with("\u2011")) {
      hyphens += "-";
      word.remove_prefix(std::string_view("−").size());
      dashes = true;
    } else {
      break;
    }
  }
  return dashes && !word.empty() ? "--" + std::string(word) : "";
}

}  // namespace headlab
