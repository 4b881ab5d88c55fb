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

/// How often `part` stands in `text`.
inline std::size_t count(const std::string& text, const std::string& part) {
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
