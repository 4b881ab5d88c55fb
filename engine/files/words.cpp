// SPDX-License-Identifier: Apache-2.0
#include "engine/files/words.h"

#include <algorithm>
#include <cctype>
#include <cstdio>

namespace headlab {
namespace {

/// Number of insertions, deletions, replacements and swaps of neighbours from a to b.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1,
                             cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

namespace {

std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace

std::string closest(const std::string& word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t least = word.size();
  for (const auto& candidate : candidates) {
    const std::size_t longest = std::max(candidate.size(), word.size());
    if (longest > 64) continue;
    // A word in capitals is the same word.
    const std::size_t distance = edit_distance(lower_case(word), lower_case(candidate));
    // Close: at most every third letter is wrong, and of short words less than half.
    if (distance < least && 3 * distance <= longest + 2 && 2 * distance < longest) {
      least = distance;
      best = candidate;
    }
  }
  if (!best.empty()) return best;
  // A word may be the first of several: "max" of "max-time".
  for (const auto& candidate : candidates) {
    if (word.empty() || !(candidate.starts_with(word + "-") || candidate.starts_with(word + "_"))) {
      continue;
    }
    if (!best.empty()) return "";
    best = candidate;
  }
  return best;
}

std::string listed(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

std::string suggestion(const std::string& word, const std::vector<std::string>& allowed) {
  const std::string best = closest(word, allowed);
  return " (allowed: " + listed(allowed) + ")" +
         (best.empty() ? "" : " - did you mean \"" + best + "\"?");
}

std::string numbered_condition(std::size_t number) {
  return "condition #" + std::to_string(number);
}

std::size_t utf8_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t length = first < 0x80                    ? 1
                             : first >= 0xc2 && first < 0xe0 ? 2
                             : first >= 0xe0 && first < 0xf0 ? 3
                             : first >= 0xf0 && first < 0xf5 ? 4
                                                             : 0;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  }
  return length;
}

std::string visible(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    char32_t code = static_cast<unsigned char>(text[0]);
    if (length == 2) code = (code & 0x1f) << 6 | (static_cast<unsigned char>(text[1]) & 0x3f);
    if (length == 3) {
      code = (code & 0x0f) << 12 | (static_cast<unsigned char>(text[1]) & 0x3fu) << 6 |
             (static_cast<unsigned char>(text[2]) & 0x3f);
    }
    // Lines of CSV end in CR LF.
    const bool line_end = code == '\n' || text.starts_with("\r\n");
    const bool control =
        (code < 0x20 && !line_end && code != '\t') || code == 0x7f || (length == 2 && code < 0xa0);
    const bool turns = code == 0x61c || code == 0x200e || code == 0x200f ||
                       (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
    if (length == 0) {
      out += '?';
    } else if (control || (length > 1 && turns)) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(code));
      out += escape;
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string shell_word(const std::string& word) {
  const bool plain = !word.empty() && word.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_./=+,:@%-") == std::string::npos;
  if (plain) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace headlab
