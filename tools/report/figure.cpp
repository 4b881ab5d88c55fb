// SPDX-License-Identifier: Apache-2.0
#include "tools/report/figure.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "engine/files/words.h"
#include "engine/moments/error_terms.h"
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

struct PictureEntry {
  std::vector<SourceKind> kinds;
  std::vector<Picture> (*make)(const Source&);
};

/// In the order of the page.
const std::vector<PictureEntry>& figure_entries() {
  static const std::vector<PictureEntry> all = {
      {{SourceKind::run, SourceKind::theory}, components_figures},
      {{SourceKind::run}, difference_figures},
      {{SourceKind::run, SourceKind::theory}, decomposition_figures},
      {{SourceKind::run, SourceKind::theory}, head_covariance_figures},
      {{SourceKind::run}, precision_figures},
      {{SourceKind::verdicts}, verdict_figures},
      {{SourceKind::allocation}, allocation_figures},
      {{SourceKind::allocation}, growth_figures},
      {{SourceKind::map}, regime_figures},
      {{SourceKind::heads}, diversity_figures},
      {{SourceKind::heads}, alike_figures},
  };
  return all;
}

/// Evenly spread rows of a long table, and a sentence that says so.
std::string thin_rows(Table& table, std::size_t most) {
  const std::size_t count = table.rows.size();
  if (count <= most) return "";
  std::vector<std::vector<std::string>> rows;
  for (const std::size_t i : spread(count, most)) rows.push_back(table.rows[i]);
  table.rows = std::move(rows);
  return "The table has " + std::to_string(most) + " of " + std::to_string(count) + " rows.";
}

}  // namespace

std::string figure_html(const Picture& figure, std::size_t number) {
  const std::string id = "figure-" + std::to_string(number);
  std::string caption =
      element("strong", "Figure " + std::to_string(number) + ". " + escaped(figure.title) + ".") +
      " " + escaped(kept_together(figure.finding));
  Table table = figure.table;
  const std::string note = sentences({figure.note, thin_rows(table, figure.max_rows)});
  if (!note.empty()) {
    caption += " " + element("span", {{"class", "note"}}, escaped(kept_together(note)));
  }
  std::string text =
      element("div", {{"class", "scroll"}}, figure.canvas.svg(id, figure.title, figure.finding)) +
      element("figcaption", caption) + "\n";
  if (!table.rows.empty()) {
    text += element("details", element("summary", "Table of figure " + std::to_string(number)) +
                                   table_element(table));
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

double legend_height(const std::vector<LegendEntry>& legend) {
  Canvas measure(figure_width, 1);
  return draw_legend(measure, legend);
}

Canvas canvas_of_panels(std::size_t count, double top, double height,
                        const std::vector<LegendEntry>& legend) {
  const std::size_t rows = count > 1 ? (count + 1) / 2 : 1;
  Canvas canvas(figure_width, top + height * static_cast<double>(rows));
  if (!legend.empty()) draw_legend(canvas, legend);
  return canvas;
}

Canvas draw_panels(const std::vector<AxesPanel>& panels, const PanelAxes& all,
                   const std::vector<LegendEntry>& legend) {
  constexpr double top = 30, above = 42, below = 42;
  const double cell = above + all.height + below;
  Canvas canvas = canvas_of_panels(panels.size(), top, cell, legend);
  const std::vector<Box> cells = panel_cells(panels.size(), top, cell);
  for (std::size_t p = 0; p < panels.size(); ++p) {
    const AxesPanel& panel = panels[p];
    const Box& of = cells[p];
    const Box box{of.left + 62, of.top + above, of.right - 16, of.top + above + all.height};
    const Range x = range_of(panel.x_kind, panel.x, 0.04);
    const Range y = range_of(ScaleKind::linear, panel.y, all.margin);
    const Axes axes{box, Scale(panel.x_kind, x.low, x.high, box.left, box.right),
                    Scale(ScaleKind::linear, y.low, y.high, box.bottom, box.top)};
    canvas.text({of.left + 18, of.top + 16}, panel.title, "start", "strong");
    std::vector<Tick> ticks;
    for (const double place : panel.x) ticks.push_back({place, axis_number(place)});
    draw_y_axis(canvas, axes, {all.y_title, axes.y.ticks(5)});
    draw_x_axis(canvas, axes, {all.x_title, ticks});
    panel.draw(canvas, axes);
  }
  return canvas;
}

std::string estimate_text(const Estimate& estimate) {
  return std::isnan(estimate.mcse) ? short_number(estimate.value) : figure_text(estimate);
}

std::string percent_text(double share) {
  if (std::isnan(share)) return "–";
  return formatted(std::abs(share) >= 0.995 ? "%.0f %%" : "%.2g %%", 100 * share);
}

std::string sentences(const std::vector<std::string>& all) {
  std::string text;
  for (const std::string& one : all) {
    if (!one.empty()) text += (text.empty() ? "" : " ") + one;
  }
  return text;
}

std::string shows_text(std::size_t shown, std::size_t all, const std::string& what_and_end) {
  if (shown >= all) return "";
  return "Shows " + std::to_string(shown) + " of " + std::to_string(all) + " " + what_and_end;
}

const std::vector<Component>& error_components() {
  static const std::vector<Component> all = [] {
    std::vector<Component> found;
    const ErrorTerms<Estimate> terms;
    for (const auto& [name, number, text] : numbers_of(terms)) {
      if (text.role != TableRole::total && text.role != TableRole::term) continue;
      found.push_back({name, text.label, found.size()});
    }
    return found;
  }();
  return all;
}

std::vector<Picture> figures_of(const Source& source) {
  if (source.is_study_of_depth()) return layers_figures(source);
  std::vector<Picture> all;
  for (const PictureEntry& entry : figure_entries()) {
    if (std::ranges::find(entry.kinds, source.kind) == entry.kinds.end()) continue;
    std::ranges::move(entry.make(source), std::back_inserter(all));
  }
  return all;
}

}  // namespace headlab::tools
