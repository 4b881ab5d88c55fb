// SPDX-License-Identifier: Apache-2.0
/// \file Pages that tests read.
#pragma once

#include <cstddef>
#include <regex>
#include <string>

#include "tools/report/page.h"
#include "tools/report/read_sources.h"

namespace headlab::tools {

/// The page of a JSON document.
inline std::string page_of_document(const std::string& text) {
  return report_page({source_of_document(text)});
}

/// A page without what keeps expressions on a line.
inline std::string as_read(const std::string& page) {
  const std::string begin = "<span class=\"whole\">", end = "</span>";
  std::string text;
  for (std::size_t at = 0;;) {
    const std::size_t expression = page.find(begin, at);
    text += page.substr(at, expression - at);
    if (expression == std::string::npos) return text;
    const std::size_t first = expression + begin.size(), behind = page.find(end, first);
    text += page.substr(first, behind - first);
    at = behind + end.size();
  }
}

/// How often `part` is read in `page`.
inline std::size_t count(const std::string& page, const std::string& part) {
  const std::string text = as_read(page);
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

inline bool contains(const std::string& text, const std::string& part) {
  return count(text, part) > 0;
}

inline bool has_word(const std::string& text, const std::string& word) {
  return std::regex_search(text, std::regex("\\b" + word + "\\b"));
}

}  // namespace headlab::tools
