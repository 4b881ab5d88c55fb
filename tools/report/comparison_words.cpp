// SPDX-License-Identifier: Apache-2.0
// What a comparison is of, in the words of a report.
#include <algorithm>
#include <cctype>
#include <regex>

#include "engine/moments/figure_name.h"
#include "tools/cli/figure_text.h"
#include "tools/report/law_formulas.h"
#include "tools/report/sections.h"
#include "tools/report/sweep.h"

namespace headlab::tools {
namespace {

/// A text whose numbers have six significant digits at most: "1.5708" of "1.5707963267948966".
std::string with_short_numbers(const std::string& text) {
  constexpr std::size_t most = 8;  // characters of a number that stays as it is
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() &&
           (std::isdigit(static_cast<unsigned char>(text[end])) != 0 || text[end] == '.')) {
      ++end;
    }
    const std::string number = text.substr(at, end - at);
    const bool is_long = number.size() > most && std::ranges::count(number, '.') == 1;
    out += is_long ? short_number(std::stod(number), 6) : number;
    if (end < text.size()) out += text[end++];
    at = end;
  }
  return out;
}

/// "[0,1,2]" of an array of queries and heads as words.
std::string place_words(const std::string& index) {
  static const std::regex number("[0-9]+");
  std::vector<std::string> all;
  for (std::sregex_iterator at(index.begin(), index.end(), number), end; at != end; ++at) {
    all.push_back(at->str());
  }
  if (all.empty()) return "";
  const std::string heads = all.size() == 1   ? ""
                            : all.size() == 2 ? " of head " + all[1]
                                              : " of heads " + all[1] + " and " + all[2];
  return heads + " at query " + all[0];
}

/// A figure by its name, or the name where it is none.
std::string figure_in_words(const std::smatch& found) {
  const std::string layer = found[1], name = found[2], index = found[3];
  if (!layer.empty()) {
    return metric_words(name) + (layer == "0" ? " of the tokens" : " after layer " + layer);
  }
  const bool is_figure = std::ranges::count(figure_kinds(), name, &FigureKind::name) > 0;
  if (name == "mse" && index.empty()) return "MSE";
  if (!is_figure || (index.empty() && name.find('_') == std::string::npos)) return found.str();
  // "bias of head 0" of head_bias
  const std::string of_head = "head_";
  const bool says_head = !index.empty() && name.starts_with(of_head);
  return figure_words(says_head ? name.substr(of_head.size()) : name) + place_words(index);
}

/// A text with the keys of settings, as heads.kernel.temperature = 2, in words.
std::string with_keys_in_words(const std::string& text) {
  static const std::regex key(R"(\b[a-z]+(?:\.[a-z_]+)+(?= =))");
  std::string words;
  std::size_t shown = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), key), end; at != end; ++at) {
    const auto begin = static_cast<std::size_t>(at->position());
    words += text.substr(shown, begin - shown) + axis_title(at->str());
    shown = begin + static_cast<std::size_t>(at->length());
  }
  return words + text.substr(shown);
}

}  // namespace

std::string comparison_words(const std::string& comparison) {
  const std::string of = with_keys_in_words(comparison);
  static const std::regex names(R"((?:layers\[([0-9]+)\]\.)?\b([a-z][a-z_]*)((?:\[[0-9,]+\])?))");
  std::string words;
  std::size_t shown = 0;
  for (std::sregex_iterator at(of.begin(), of.end(), names), end; at != end; ++at) {
    const auto begin = static_cast<std::size_t>(at->position());
    const std::size_t behind = begin + static_cast<std::size_t>(at->length());
    const bool in_key = (begin > 0 && of[begin - 1] == '.') ||
                        (behind < of.size() && of[behind] == '.' && (*at)[1].length() == 0);
    const std::string figure = in_key ? at->str() : figure_in_words(*at);
    words += of.substr(shown, begin - shown);
    if (figure != at->str() && (words == "n " || words.ends_with(" n "))) words += "times ";
    words += figure;
    shown = behind;
  }
  return with_short_numbers(words + of.substr(shown));
}

}  // namespace headlab::tools
