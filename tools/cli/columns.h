// SPDX-License-Identifier: Apache-2.0
/// \file Tables of text.
#pragma once

#include <string>
#include <vector>

namespace headlab::tools {

/// Columns of text under their headings, two spaces apart.
class Columns {
 public:
  void add(const std::string& heading, std::vector<std::string> cells, bool to_the_right = false);
  /// The same with decimal points and "±" under one another.
  void add_figures(const std::string& heading, std::vector<std::string> cells);

  /// All lines, the headings first, behind `margin`.
  std::string text(const std::string& margin) const;
  /// The same of a sweep, a row a condition: where there are more than 40, the first and the last
  /// 20 with a line between them that counts the others.
  std::string sweep_text(const std::string& margin) const;

 private:
  std::string headings_;
  std::vector<std::string> rows_;
  bool started_ = false;
};

}  // namespace headlab::tools
