// SPDX-License-Identifier: Apache-2.0
#include "tools/report/labels.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <sstream>

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

/// The number of the character in which two texts first differ.
std::size_t first_difference(const std::string& a, const std::string& b) {
  auto at = static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  while (at > 0 && at < a.size() && (static_cast<unsigned char>(a[at]) & 0xc0) == 0x80) --at;
  return character_count(a.substr(0, at));
}

/// What tells a text from others: a part from a little before each place where one of them leaves
/// it, the last part to the end of the text. Nothing where so many parts have no room.
std::string telling_parts(const std::string& text, const std::set<std::string>& others,
                          std::size_t most) {
  std::set<std::size_t> places;
  for (const std::string& other : others) {
    if (other != text) places.insert(first_difference(text, other));
  }
  const std::size_t room = most / places.size();  // of a part and of "…" before it
  constexpr std::size_t least = 4, before = 3;
  if (room < least) return "";
  std::string label;
  std::size_t shown = 0;  // characters up to here have been seen to
  for (auto place = places.begin(); place != places.end(); ++place) {
    const std::size_t from = std::max(shown, *place - std::min({*place, before, room - 3}));
    if (from > shown) label += "…";
    const bool last = std::next(place) == places.end();
    shown = last ? character_count(text) : std::max(shown, from + room - 1);
    const std::string part = part_of(text, from, shown);
    const std::size_t left = most - character_count(label);
    const bool has_end = left > 2 * before + 2;  // and shows what differs as well
    label += !last ? part : has_end ? shortened_in_the_middle(part, left) : shortened(part, left);
  }
  return label;
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
  constexpr std::size_t few = 1000;  // more have no room in a picture, and take long
  for (const auto& [label, group] : alike()) {
    for (std::size_t i = 0; i < texts.size() && group.size() <= few; ++i) {
      if (labels[i] != label || !group.contains(texts[i])) continue;
      const std::string parts = telling_parts(texts[i], group, most);
      if (!parts.empty()) labels[i] = parts;
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

bool is_number_text(const std::string& text) {
  return text.find_first_not_of("0123456789.e+−-·^") == std::string::npos;
}

std::string in_lines(const std::string& text, std::size_t length) {
  std::string lines, line;
  const auto end_line = [&] {
    lines += (lines.empty() ? "" : "\n") + line;
    line.clear();
  };
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ' ');) {
    if (!line.empty() && character_count(line) + 1 + character_count(word) > length) {
      // A value goes with the name in front of it.
      const std::size_t space = line.rfind(' ');
      const bool is_value = std::isdigit(static_cast<unsigned char>(word[0])) != 0;
      const std::string name =
          is_value && space != std::string::npos ? line.substr(space + 1) : std::string();
      const bool goes_on = !name.empty() && character_count(name + " " + word) <= length;
      if (goes_on) line.resize(space);
      end_line();
      if (goes_on) line = name;
    }
    line += (line.empty() ? "" : " ") + word;
    for (std::size_t all = character_count(line); all > length; all = character_count(line)) {
      const std::string rest = part_of(line, length, all);
      line = part_of(line, 0, length);
      end_line();
      line = rest;
    }
  }
  end_line();
  return lines;
}

namespace {

/// The text in lines, with "…" between its first and its last words where they are too few; empty
/// where words have no room.
std::string first_and_last_words(const std::string& text, std::size_t length, std::size_t lines) {
  std::vector<std::string> words;
  std::istringstream parts(text);
  for (std::string word; parts >> word;) words.push_back(word);
  if (std::ranges::any_of(words,
                          [&](const auto& word) { return character_count(word) > length; })) {
    return "";
  }
  const auto fits = [&](const std::string& label) {
    return static_cast<std::size_t>(std::ranges::count(label, '\n')) < lines;
  };
  std::string label = in_lines(text, length);
  // Words are left out from the middle of the label on.
  for (std::size_t out = 1; !fits(label) && out + 2 <= words.size(); ++out) {
    std::string some;
    const std::size_t first = (words.size() - out + 1) / 2;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (i == first) some += " …";
      if (i < first || i >= first + out) some += (i == 0 ? "" : " ") + words[i];
    }
    label = in_lines(some, length);
  }
  return fits(label) ? label : "";
}

}  // namespace

std::vector<std::string> labels_in_lines(const std::vector<std::string>& texts, std::size_t length,
                                         std::size_t lines) {
  std::vector<std::string> of_words;
  for (const std::string& text : texts) {
    of_words.push_back(first_and_last_words(text, length, lines));
  }
  const auto distinct = [](const std::vector<std::string>& all) {
    return std::set(all.begin(), all.end()).size();
  };
  // Cut between words where that tells them apart, else within.
  if (std::ranges::find(of_words, "") == of_words.end() && distinct(of_words) == distinct(texts)) {
    return of_words;
  }
  for (std::size_t most = length * lines;; --most) {
    std::vector<std::string> labels;
    for (const std::string& label : distinct_labels(texts, most)) {
      labels.push_back(in_lines(label, length));
    }
    const bool fit = std::ranges::all_of(labels, [&](const std::string& label) {
      return static_cast<std::size_t>(std::ranges::count(label, '\n')) < lines;
    });
    if (fit || most <= length) return labels;
  }
}

std::string with_subscripts(const std::string& text, const std::string& down, const std::string& up,
                            const std::string& size) {
  std::string content, part;
  bool is_down = false;
  const auto end_part = [&] {
    content +=
        is_down && !part.empty() ? element("tspan", {{"dy", up}}, escaped(part)) : escaped(part);
    part.clear();
  };
  for (std::size_t end = 0; end < text.size(); ++end) {
    part += text[end];
    const char after = end + 1 < text.size() ? text[end + 1] : ' ';
    const bool goes_on = std::isalnum(static_cast<unsigned char>(after)) != 0 || after == '_';
    if (goes_on || !ends_in_symbol(std::string_view(text).substr(0, end + 1))) continue;
    part.resize(part.size() - 2);
    end_part();
    content += element("tspan", {{"dy", down}, {"font-size", size}}, std::string(1, text[end]));
    is_down = true;
  }
  end_part();
  return content;
}

}  // namespace headlab::tools
