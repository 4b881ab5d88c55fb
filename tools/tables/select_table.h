// SPDX-License-Identifier: Apache-2.0
/// \file What of some results a table shows, and how its rows and columns lie.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/moments/jackknife.h"
#include "tools/tables/table_source.h"

namespace headlab::tools {

/// The word that stands for all figures.
inline constexpr const char* all_figures = "all";

/// Keys and the values that they shall have.
using WhereList = std::vector<std::pair<std::string, std::string>>;

/// The parts of "a,b,c". Throws InvalidInput, naming `option`, where one is empty.
std::vector<std::string> parse_names(const std::string& option, const std::string& text);

/// Of texts like "n=50". Throws InvalidInput.
WhereList parse_where(const std::vector<std::string>& texts);

struct TableRequest {
  std::vector<std::string> figures = {};  ///< those that a terminal shows where there is none
  bool one_figure_a_row = false;          ///< --long
  std::vector<std::string> rows = {};     ///< keys of a two-way table
  std::optional<std::string> columns = {};
  WhereList where = {};
};

/// A text, or a number with its error.
using Cell = std::variant<std::string, Estimate>;

struct ShownColumn {
  std::string name;
  std::string error = {};  ///< what the errors of the numbers are; empty: none
  bool text = false;
  bool whole = false;
  bool key = false;
  std::function<Cell(std::size_t row)> cell;
};

/// A table as it is written, made cell by cell.
struct ShownTable {
  std::vector<ShownColumn> columns;
  std::size_t rows = 0;
};

/// A key by its short name, by the whole of it or by the name that results.nc has for it; or a
/// figure without errors, as n. Throws InvalidInput, naming `option`.
TableColumn key_of(const TableSource& source, const std::string& name, const std::string& option);

/// The rows in which all of these keys have these values. Throws InvalidInput where none is left.
std::vector<std::size_t> rows_where(const TableSource& source, const WhereList& where);

/// The text of a cell in full.
std::string text_at(const TableColumn& column, std::size_t row);

/// Throws InvalidInput, naming the option, for what the results do not have and for a two-way table
/// with several conditions in one cell.
ShownTable select_table(std::shared_ptr<const TableSource> source, const TableRequest& request);

}  // namespace headlab::tools
