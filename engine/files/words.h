// SPDX-License-Identifier: Apache-2.0
/// \file Words in messages: lists of them, the one that a misspelt word stands for, and words of a
/// command.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace headlab {

/// At most 127 characters by the format of std::printf.
template <class... Values>
std::string formatted(const char* format, Values... values) {
  char text[128];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

/// The candidate closest to `word` in edit distance, or empty where none is close.
std::string closest(const std::string& word, const std::vector<std::string>& candidates);

/// "a, b, c"
std::string listed(const std::vector<std::string>& words);

/// " (allowed: a, b)" and, where one is close to `word`, " - did you mean "b"?"
std::string suggestion(const std::string& word, const std::vector<std::string>& allowed);

/// "condition #3", of a sweep. Conditions are counted from 0 wherever a user reads or writes a
/// number.
std::string numbered_condition(std::size_t number);

/// Number of bytes of the UTF-8 character that `text` begins with, 0 where it begins with none.
std::size_t utf8_length(std::string_view text);

/// A text as it may be shown wherever it came from: control characters other than line ends and
/// tabs, and marks that turn the direction of writing, as in "\u001b"; what is not UTF-8 as "?".
std::string visible(std::string_view text);

/// A word as a shell takes it: quoted unless it is plain.
std::string shell_word(const std::string& word);

}  // namespace headlab
