// SPDX-License-Identifier: Apache-2.0
#include "tools/report/labels.h"

#include <algorithm>
#include <map>
#include <set>

#include "tools/report/markup.h"

namespace headlab::tools {
namespace {

/// The text from one character to before another one, by their numbers.
std::string part_of(const std::string& text, std::size_t from, std::size_t to) {
  std::string part;
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size(); ++number) {
    std::size_t end = at + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) ++end;
    if (number >= from && number < to) part += text.substr(at, end - at);
    at = end;
  }
  return part;
}

/// Bytes that all texts begin with, whole characters of them.
std::size_t common_beginning(const std::vector<std::string>& texts) {
  std::size_t length = texts.front().size();
  for (const std::string& text : texts) {
    const auto [one, other] = std::ranges::mismatch(text, texts.front());
    length = std::min(length, static_cast<std::size_t>(one - text.begin()));
  }
  while (length > 0 && length < texts.front().size() &&
         (static_cast<unsigned char>(texts.front()[length]) & 0xc0) == 0x80) {
    --length;
  }
  return length;
}

}  // namespace

std::string shortened_in_the_middle(const std::string& text, std::size_t most) {
  const std::size_t count = character_count(text);
  if (count <= most) return text;
  const std::size_t kept = std::max<std::size_t>(most, 1) - 1;
  const std::size_t end = kept / 2;
  return part_of(text, 0, kept - end) + "…" + part_of(text, count - end, count);
}

std::vector<std::string> distinct_labels(const std::vector<std::string>& texts, std::size_t most) {
  constexpr std::size_t least = 12;
  most = std::max(most, least);
  std::vector<std::string> labels;
  for (const std::string& text : texts) labels.push_back(shortened_in_the_middle(text, most));
  const auto alike = [&] {
    std::map<std::string, std::set<std::string>> by_label;
    for (std::size_t i = 0; i < texts.size(); ++i) by_label[labels[i]].insert(texts[i]);
    std::erase_if(by_label, [](const auto& one) { return one.second.size() == 1; });
    return by_label;
  };
  // Where texts part, a little before it.
  constexpr std::size_t before = 3;
  for (const auto& [label, group] : alike()) {
    const std::vector<std::string> all(group.begin(), group.end());
    const std::size_t part = character_count(all.front().substr(0, common_beginning(all)));
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (labels[i] != label || !group.contains(texts[i]) || part <= before) continue;
      const std::string rest = part_of(texts[i], part - before, character_count(texts[i]));
      labels[i] = "…" + shortened_in_the_middle(rest, most - 1);
    }
  }
  for (const auto& [label, group] : alike()) {
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (labels[i] != label || !group.contains(texts[i])) continue;
      const auto first = std::ranges::find(texts, texts[i]) - texts.begin();
      const std::string number = " #" + std::to_string(first);
      labels[i] = shortened_in_the_middle(texts[i], most - number.size()) + number;
    }
  }
  return labels;
}

}  // namespace headlab::tools
