// SPDX-License-Identifier: Apache-2.0
/// \file Symbols of formulas that a page uses and does not define.
#pragma once

#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tools/report/mathml.h"

namespace headlab::tools {

/// The parts of a page that begin with an item of a list or a paragraph, each on a line.
inline std::vector<std::string> items_with_words(const std::string& page) {
  std::vector<std::string> items(1);
  for (std::size_t at = 0; at < page.size(); ++at) {
    for (const char* begin : {"<dt>", "<dd>", "<li>", "<p>"}) {
      if (page.compare(at, std::string(begin).size(), begin) == 0) items.emplace_back();
    }
    items.back() += page[at] == '\n' ? ' ' : page[at];
  }
  return items;
}

/// Identifiers of the formulas of a page without those that it defines: in a list of symbols (the
/// term of a definition list that is a formula), on the left of a formula, as an index that a sum
/// runs over, as a parameter ("sd = 2") or in the words of the same item ("Groups g").
inline std::set<std::string> undefined_symbols(const std::string& page) {
  using Iterator = std::sregex_iterator;
  const std::regex identifier("<mi>([^<]+)</mi>");
  const auto names = [&](const std::string& html) {
    std::set<std::string> found;
    for (Iterator at(html.begin(), html.end(), identifier); at != Iterator(); ++at) {
      found.insert((*at)[1]);
    }
    return found;
  };
  // Names of functions that every reader knows, and the constant.
  std::set<std::string> defined = {"exp", "log", "cos", "sin", "max", "min", "π"};
  const std::regex term("<dt><math.*?</math>");
  for (Iterator at(page.begin(), page.end(), term); at != Iterator(); ++at) {
    defined.merge(names(at->str()));
  }
  std::set<std::string> used;
  const std::regex formula("<math.*?</math>"), tag("<[^>]*>");
  for (const std::string& html : items_with_words(page)) {
    const std::string words = std::regex_replace(std::regex_replace(html, formula, " "), tag, " ");
    for (Iterator at(html.begin(), html.end(), formula); at != Iterator(); ++at) {
      const std::string math = at->str();
      std::set<std::string> here;
      const std::regex index(
          "(?:<mo>(?:∑|∏)</mo>|<mi>(?:max|min)</mi>|<mtext>mean</mtext>)"
          "(<mrow>.*?</mrow>|<mi>.*?</mi>)");
      for (Iterator bound(math.begin(), math.end(), index); bound != Iterator(); ++bound) {
        here.merge(names((*bound)[1]));
      }
      // Clauses such as "r = |x|", "e ∼ N(0, 1)", "i ∈ A ⇔ ...".
      const std::regex left(
          "(?:^<math[^>]*><mrow>|<mo>,</mo>|<mo>∈</mo>)(?:<mrow>|<msu[bp]+>)*"
          "<mi>([^<]+)</mi>(?:(?!<mo>(?:,|·|\\+)</mo>).)*?<mo>(?:=|∼|∝|←|⇔)</mo>");
      for (Iterator clause(math.begin(), math.end(), left); clause != Iterator(); ++clause) {
        here.insert((*clause)[1]);
      }
      for (const std::string& name : names(math)) {
        const bool article = name == "a" || name == "A" || name == "I";
        if (here.contains(name) ||
            (!article && std::regex_search(words, std::regex("(?:\\b|_)" + name + "(?:\\b|_)")))) {
          continue;
        }
        used.insert(name);
      }
      defined.merge(here);
    }
  }
  std::set<std::string> missing;
  for (const std::string& name : used) {
    if (!defined.contains(name)) missing.insert(name);
  }
  return missing;
}

}  // namespace headlab::tools
