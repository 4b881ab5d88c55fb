// SPDX-License-Identifier: Apache-2.0
/// \file Text as HTML that is well-formed XML too.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/report/html.h"

namespace headlab::tools {

/// True of a text that ends in a symbol with a subscript, d_k or d_v.
bool ends_in_symbol(std::string_view text);

/// Text as HTML: its formulas as formula_html() sets them, and no line that ends within an
/// expression - around an operator, before a percent sign, between a name and its value, within [a,
/// b], at a slash - of at most 32 characters.
std::string prose(std::string_view text);

/// A command, or the name of a file: no line of it ends within an option or another short word.
std::string code_element(const std::string& text);

/// A definition list of names with content that is markup.
class DefinitionList {
 public:
  void add(const std::string& name, const std::string& html) {
    if (!html.empty()) text_ += element("dt", prose(name)) + element("dd", html) + "\n";
  }
  std::string html() const { return text_.empty() ? "" : element("dl", "\n" + text_) + "\n"; }

 private:
  std::string text_;
};

/// A part of a page under a heading.
struct Section {
  const char* title;
  std::string html;
};

/// A table with a heading row; the first cell of a row is its heading. Cells are plain text.
struct Table {
  std::string caption = {};
  std::string error = {};  ///< "MCSE": what ± means; the caption says it where a cell has one
  std::vector<std::string> headings = {};
  std::vector<std::vector<std::string>> rows = {};
};
std::string table_element(const Table& table);

/// Characters of a UTF-8 text.
std::size_t character_count(std::string_view text);

/// At most `most` characters of a text, the last of which is "…" where some are left out.
std::string shortened(const std::string& text, std::size_t most);

}  // namespace headlab::tools
