// SPDX-License-Identifier: Apache-2.0
#include "engine/files/words.h"

#include <algorithm>

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

std::string closest(const std::string& word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t least = word.size();
  for (const auto& candidate : candidates) {
    const std::size_t longest = std::max(candidate.size(), word.size());
    if (longest > 64) continue;
    const std::size_t distance = edit_distance(word, candidate);
    // Close: at most every third letter is wrong.
    if (distance < least && 3 * distance <= longest + 2) {
      least = distance;
      best = candidate;
    }
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
