// SPDX-License-Identifier: Apache-2.0
/// \file Tables of text that fit the width of the output.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

#include "engine/moments/jackknife.h"
#include "tools/cli/figure_text.h"

namespace headlab::tools {

/// What `cell` makes of each of the rows.
template <class Rows, class Cell>
auto cells_of(const Rows& rows, const Cell& cell) {
  std::vector<std::decay_t<decltype(cell(*rows.begin()))>> cells;
  for (const auto& row : rows) cells.push_back(cell(row));
  return cells;
}

/// What stands left of a table.
inline constexpr const char* table_margin = "  ";

/// Columns of text under their headings, two spaces apart. Where they would be wider than allowed,
/// estimates are written 4.6240(64) in one power of ten a column, which the heading names; where
/// that does not do, columns on the right follow below, each part behind the first columns again.
class Columns {
 public:
  /// For standard output.
  Columns() : Columns(output_width()) {}
  /// \param width of all lines; 0: no limit
  explicit Columns(std::size_t width) : width_(width) {}

  void add(const std::string& heading, std::vector<std::string> cells, bool to_the_right = false);
  /// The same, repeated at the left of every part of a table that is too wide.
  void add_key(const std::string& heading, std::vector<std::string> cells,
               bool to_the_right = false);
  /// The same with decimal points and "±" under one another.
  void add_figures(const std::string& heading, std::vector<std::string> cells);
  /// Estimates with their standard errors.
  void add_figures(const std::string& heading, const std::vector<Estimate>& figures);

  /// All lines, the headings first, behind `margin`.
  std::string text(const std::string& margin) const;
  /// The same of a sweep, a row a condition: where there are more than 40, the first and the last
  /// 20 with a line between them that counts the others.
  std::string sweep_text(const std::string& margin) const;
  /// Whether estimates are written 4.6240(64) behind `margin`.
  bool compact(const std::string& margin) const;

 private:
  struct Column {
    std::string heading;
    std::vector<std::string> cells;
    bool to_the_right = false;
    bool key = false;
    std::vector<Estimate> estimates = {};  ///< that `cells` show, or empty

    std::size_t columns() const;  ///< of a terminal
  };
  using Part = std::vector<const Column*>;

  std::size_t rows() const;
  std::string lines(const std::string& margin, std::size_t shown) const;
  std::vector<Part> parts(const std::vector<Column>& columns, const std::string& margin) const;
  std::vector<Column> compact_columns() const;

  std::size_t width_;
  std::vector<Column> columns_;
};

}  // namespace headlab::tools
