// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/columns.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "engine/files/words.h"
#include "kernels/counted.h"

namespace headlab::tools {
namespace {

constexpr std::size_t gap = 2;  // between columns

std::string trimmed(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

/// The power of ten to write a column in, a multiple of 3 so that columns of a table have one in
/// common; 0 where the largest number is between 0.1 and 10^5.
int common_exponent(const std::vector<Estimate>& figures) {
  double largest = 0;
  for (const Estimate& figure : figures) {
    for (const double number : {std::abs(figure.value), figure.mcse}) {
      if (std::isfinite(number)) largest = std::max(largest, number);
    }
  }
  if (largest == 0) return 0;
  const int exponent = static_cast<int>(std::floor(std::log10(largest)));
  return exponent >= -1 && exponent < 5 ? 0 : 3 * static_cast<int>(std::floor(exponent / 3.0));
}

/// Whether a cell is a number, perhaps with a mark behind it, or stands for one that is undefined.
bool is_number_cell(const std::string& cell) {
  if (cell.empty() || cell == "–") return true;
  double number = 0;
  const char* end = cell.data() + cell.size();
  const auto [read, error] = std::from_chars(cell.data(), end, number);
  return error == std::errc() && (read == end || std::string_view(read, end) == "*");
}

}  // namespace

std::size_t Columns::Column::columns() const {
  std::size_t width = display_width(heading);
  for (const std::string& cell : cells) width = std::max(width, display_width(cell));
  return width;
}

void Columns::add(const std::string& heading, std::vector<std::string> cells, bool to_the_right) {
  for (std::string& cell : cells) cell = visible(cell);  // as wide as it will be shown
  if (to_the_right && std::ranges::all_of(cells, is_number_cell)) align_figures(cells);
  columns_.push_back({heading, std::move(cells), to_the_right});
}

void Columns::add_key(const std::string& heading, std::vector<std::string> cells,
                      bool to_the_right) {
  add(heading, with_few_digits(std::move(cells)), to_the_right);
  columns_.back().key = true;
}

void Columns::add_figures(const std::string& heading, std::vector<std::string> cells) {
  align_figures(cells);
  add(heading, std::move(cells));
}

void Columns::add_figures(const std::string& heading, const std::vector<Estimate>& figures) {
  std::vector<std::string> cells;
  for (const Estimate& figure : figures) cells.push_back(figure_text(figure));
  add_figures(heading, std::move(cells));
  columns_.back().estimates = figures;
}

std::string Columns::text(const std::string& margin) const {
  return lines(margin, rows());
}

std::string Columns::sweep_text(const std::string& margin) const {
  constexpr std::size_t shown = 20;  // at either end
  return lines(margin, rows() > 2 * shown ? shown : rows());
}

bool Columns::compact(const std::string& margin) const {
  return parts(columns_, margin).size() > 1 &&
         std::ranges::any_of(columns_, [](const Column& c) { return !c.estimates.empty(); });
}

std::size_t Columns::rows() const {
  std::size_t rows = 0;
  for (const Column& column : columns_) rows = std::max(rows, column.cells.size());
  return rows;
}

/// The columns with estimates in the shorter form.
std::vector<Columns::Column> Columns::compact_columns() const {
  constexpr std::size_t longest_compact = 18;
  std::vector<Column> columns = columns_;
  for (Column& column : columns) {
    if (column.estimates.empty()) continue;
    int exponent = common_exponent(column.estimates);
    std::size_t longest = 0;
    for (std::size_t i = 0; i < column.cells.size(); ++i) {
      column.cells[i] = compact_figure_text(column.estimates[i], exponent);
      longest = std::max(longest, display_width(column.cells[i]));
    }
    // Figures of many orders of magnitude have an exponent each.
    if (longest > longest_compact) {
      exponent = 0;
      for (std::size_t i = 0; i < column.cells.size(); ++i) {
        column.cells[i] = scientific_figure_text(column.estimates[i]);
      }
    }
    align_figures(column.cells);
    if (exponent != 0) column.heading += " /1e" + std::to_string(exponent);
  }
  return columns;
}

/// The columns that stand side by side, as many as fit, the keys first in every part.
std::vector<Columns::Part> Columns::parts(const std::vector<Column>& columns,
                                          const std::string& margin) const {
  Part keys;
  std::size_t of_keys = margin.size();
  for (const Column& column : columns) {
    if (!column.key) continue;
    of_keys += column.columns() + gap;
    keys.push_back(&column);
  }
  std::vector<Part> parts = {keys};
  std::size_t used = of_keys;
  for (const Column& column : columns) {
    if (column.key) continue;
    const bool fits = width_ == 0 || used + column.columns() <= width_;
    if (!fits && parts.back().size() > keys.size()) {
      parts.push_back(keys);
      used = of_keys;
    }
    parts.back().push_back(&column);
    used += column.columns() + gap;
  }
  return parts;
}

/// The first and the last `shown` rows, or all.
std::string Columns::lines(const std::string& margin, std::size_t shown) const {
  const std::vector<Column> columns = compact(margin) ? compact_columns() : columns_;
  const std::size_t count = rows();
  std::string all;
  for (const Part& part : parts(columns, margin)) {
    auto line = [&](auto&& cell_of) {
      std::string out = margin;
      for (const Column* column : part) {
        if (column != part.front()) out += std::string(gap, ' ');
        out += column->to_the_right ? right(cell_of(*column), column->columns())
                                    : left(cell_of(*column), column->columns());
      }
      return trimmed(out) + "\n";
    };
    auto row = [&](std::size_t i) {
      return line([&](const Column& column) {
        return i < column.cells.size() ? column.cells[i] : std::string();
      });
    };
    all += (all.empty() ? "" : "\n") + line([](const Column& column) { return column.heading; });
    for (std::size_t i = 0; i < std::min(shown, count); ++i) all += row(i);
    if (count <= shown) continue;
    all += margin + "... " + counted(count - 2 * shown, "more condition") +
           ": --json FILE or --out DIR has all\n";
    for (std::size_t i = count - shown; i < count; ++i) all += row(i);
  }
  return all;
}

}  // namespace headlab::tools
