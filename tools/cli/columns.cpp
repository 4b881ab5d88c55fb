// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/columns.h"

#include <algorithm>
#include <utility>

#include "tools/cli/figure_text.h"

namespace headlab::tools {
namespace {

std::string trimmed(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

void Columns::add(const std::string& heading, std::vector<std::string> cells, bool to_the_right) {
  std::size_t width = display_width(heading);
  for (const std::string& cell : cells) width = std::max(width, display_width(cell));
  headings_ += (headings_.empty() ? "" : "  ") +
               (to_the_right ? right(heading, width) : left(heading, width));
  rows_.resize(std::max(rows_.size(), cells.size()));
  for (std::size_t i = 0; i < cells.size(); ++i) {
    rows_[i] +=
        (started_ ? "  " : "") + (to_the_right ? right(cells[i], width) : left(cells[i], width));
  }
  started_ = true;
}

void Columns::add_figures(const std::string& heading, std::vector<std::string> cells) {
  align_figures(cells);
  add(heading, std::move(cells));
}

std::string Columns::text(const std::string& margin) const {
  std::string all = trimmed(margin + headings_) + "\n";
  for (const std::string& row : rows_) all += trimmed(margin + row) + "\n";
  return all;
}

std::string Columns::sweep_text(const std::string& margin) const {
  constexpr std::size_t shown = 20;  // at either end
  if (rows_.size() <= 2 * shown) return text(margin);
  std::string all = trimmed(margin + headings_) + "\n";
  for (std::size_t i = 0; i < shown; ++i) all += trimmed(margin + rows_[i]) + "\n";
  const std::size_t others = rows_.size() - 2 * shown;
  all += margin + "... " + std::to_string(others) + " more " +
         (others == 1 ? "condition" : "conditions") + ": --json FILE or --out DIR has all\n";
  for (std::size_t i = rows_.size() - shown; i < rows_.size(); ++i) {
    all += trimmed(margin + rows_[i]) + "\n";
  }
  return all;
}

}  // namespace headlab::tools
