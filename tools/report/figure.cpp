// SPDX-License-Identifier: Apache-2.0
#include "tools/report/figure.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <utility>

#include "tools/cli/figure_text.h"

namespace headlab::tools {
namespace {

/// A text in which no line breaks before a percent sign, or around ±.
std::string kept_together(std::string text) {
  for (const auto& [from, to] : {std::pair(" ± ", "\u00a0±\u00a0"), std::pair("± ", "±\u00a0"),
                                 std::pair(" %", "\u00a0%")}) {
    const std::string_view part = from;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      text.replace(at, part.size(), to);
    }
  }
  return text;
}

}  // namespace

std::string figure_html(const Picture& figure, std::size_t number) {
  const std::string id = "figure-" + std::to_string(number);
  std::string caption =
      element("strong", "Figure " + std::to_string(number) + ". " + escaped(figure.title) + ".") +
      " " + escaped(kept_together(figure.finding));
  if (!figure.note.empty()) {
    caption += " " + element("span", {{"class", "note"}}, escaped(kept_together(figure.note)));
  }
  std::string text =
      element("div", {{"class", "scroll"}}, figure.canvas.svg(id, figure.title, figure.finding)) +
      element("figcaption", caption) + "\n";
  if (!figure.table.rows.empty()) {
    text += element("details", element("summary", "Table of figure " + std::to_string(number)) +
                                   table_element(figure.table));
  }
  return element("figure", {{"id", id}}, text) + "\n";
}

std::vector<Box> panel_cells(std::size_t count, double top, double height) {
  const std::size_t columns = count > 1 ? 2 : 1;
  const double width = figure_width / static_cast<double>(columns);
  std::vector<Box> cells;
  for (std::size_t i = 0; i < count; ++i) {
    const double left = width * static_cast<double>(i % columns);
    const double y = top + height * static_cast<double>(i / columns);
    cells.push_back({left, y, left + width, y + height});
  }
  return cells;
}

std::string estimate_text(const Estimate& estimate) {
  return std::isnan(estimate.mcse) ? short_number(estimate.value) : figure_text(estimate);
}

std::string percent_text(double share) {
  if (std::isnan(share)) return "–";
  char text[40];
  std::snprintf(text, sizeof text, "%.2g %%", 100 * share);
  if (std::abs(share) >= 0.995) std::snprintf(text, sizeof text, "%.0f %%", 100 * share);
  return text;
}

std::string sentences(const std::vector<std::string>& all) {
  std::string text;
  for (const std::string& one : all) {
    if (!one.empty()) text += (text.empty() ? "" : " ") + one;
  }
  return text;
}

std::string thin_rows(Table& table, std::size_t most) {
  const std::size_t count = table.rows.size();
  if (count <= most) return "";
  std::vector<std::vector<std::string>> rows;
  for (const std::size_t i : spread(count, most)) rows.push_back(table.rows[i]);
  table.rows = std::move(rows);
  return "The table has " + std::to_string(most) + " of " + std::to_string(count) + " rows.";
}

}  // namespace headlab::tools
