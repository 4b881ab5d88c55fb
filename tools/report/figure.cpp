// SPDX-License-Identifier: Apache-2.0
#include "tools/report/figure.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string_view>
#include <utility>

#include "engine/files/words.h"
#include "engine/moments/error_terms.h"
#include "tools/cli/figure_text.h"
#include "tools/report/labels.h"

namespace headlab::tools {
namespace {

struct PictureEntry {
  const char* name;
  std::vector<SourceKind> kinds;
  std::vector<Picture> (*make)(const Source&);
};

/// In the order of the page.
const std::vector<PictureEntry>& figure_entries() {
  static const std::vector<PictureEntry> all = {
      {"components", {SourceKind::run, SourceKind::theory}, components_figures},
      {"measures", {SourceKind::run, SourceKind::theory}, measures_figures},
      {"differences", {SourceKind::run}, difference_figures},
      {"decomposition", {SourceKind::run, SourceKind::theory}, decomposition_figures},
      {"covariance", {SourceKind::run, SourceKind::theory}, head_covariance_figures},
      {"precision", {SourceKind::run}, precision_figures},
      {"verdicts", {SourceKind::verdicts}, verdict_figures},
      {"allocations", {SourceKind::allocation}, allocation_figures},
      {"growth", {SourceKind::allocation}, growth_figures},
      {"map", {SourceKind::map}, regime_figures},
      {"diversity", {SourceKind::heads}, diversity_figures},
      {"alike", {SourceKind::heads}, alike_figures},
      {"heads", {SourceKind::measured}, measured_heads_figures},
      {"curves", {SourceKind::curves}, along_figures},
  };
  return all;
}

std::size_t columns_of_panels(std::size_t count, double width) {
  constexpr double two_panels = 560;
  return count > 1 && width >= two_panels ? 2 : 1;
}

/// True where a sentence has a name that does not go on: "n 100" of "n 100, d 2", not of "n 1000".
bool names(const std::string& sentence, const std::string& name) {
  for (std::size_t at = sentence.find(name); at != std::string::npos;
       at = sentence.find(name, at + 1)) {
    const std::string_view after = std::string_view(sentence).substr(at + name.size());
    const bool goes_on = !after.empty() && (std::isalnum(static_cast<unsigned char>(after[0])) ||
                                            (after[0] == '.' && after.size() > 1 &&
                                             std::isdigit(static_cast<unsigned char>(after[1]))));
    if (!goes_on) return true;
  }
  return false;
}

/// Evenly spread rows of a long table with those that the finding names, and a sentence that says
/// so.
std::string thin_rows(Table& table, std::size_t most, const std::string& finding) {
  const std::size_t count = table.rows.size();
  if (count <= most) return "";
  std::vector<bool> kept(count);
  for (const std::size_t i : spread(count, most)) kept[i] = true;
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string& name = table.rows[i].front();
    if (kept[i] || (!is_number_text(name) && names(finding, name))) rows.push_back(table.rows[i]);
  }
  table.rows = std::move(rows);
  return "The table has " + grouped(table.rows.size()) + " of " + grouped(count) + " rows.";
}

}  // namespace

std::string figure_html(const Picture& figure, std::size_t number) {
  const std::string id = "figure-" + std::to_string(number);
  std::string caption =
      element("strong", "Plot " + std::to_string(number) + ". " + prose(figure.title) + ".") + " " +
      prose(figure.finding);
  Table table = figure.table;
  const std::string note =
      sentences({figure.note, thin_rows(table, figure.max_rows, figure.finding)});
  if (!note.empty()) {
    caption += " " + element("span", {{"class", "note"}}, prose(note));
  }
  // The style shows the one that the window has room for.
  const Canvas wide = figure.draw(page_width);
  constexpr double tall = 900;  // its labels need most of a page
  std::string text =
      element("div", {{"class", wide.height() > tall ? "wide tall" : "wide"}},
              wide.svg(id, figure.title, figure.finding)) +
      element("div", {{"class", "narrow"}},
              figure.draw(narrow_width).svg(id + "-narrow", figure.title, figure.finding)) +
      element("figcaption", caption) + "\n";
  if (!table.rows.empty()) {
    text += element("details", element("summary", "Table of plot " + std::to_string(number)) +
                                   table_element(table));
  }
  return element("figure", {{"id", id}}, text) + "\n";
}

PartTitles::PartTitles(const std::vector<std::string>& titles, double room)
    : titles_(labels_in_lines(titles, characters_in(room), 2)) {}

double PartTitles::more_height() const {
  double height = text_height("");
  for (const std::string& title : titles_) height = std::max(height, text_height(title));
  return height - text_height("");
}

void PartTitles::draw(Canvas& canvas, std::size_t part, Point last_line) const {
  const std::string& title = titles_[part];
  last_line.y -= text_height(title) - text_height("");
  canvas.text(last_line, title, "start", "strong label");
}

std::vector<Box> panel_cells(std::size_t count, double width, double top, double height) {
  const std::size_t columns = columns_of_panels(count, width);
  const double of_one = width / static_cast<double>(columns);
  std::vector<Box> cells;
  for (std::size_t i = 0; i < count; ++i) {
    const double left = of_one * static_cast<double>(i % columns);
    const double y = top + height * static_cast<double>(i / columns);
    cells.push_back({left, y, left + of_one, y + height});
  }
  return cells;
}

double legend_height(double width, const std::vector<LegendEntry>& legend) {
  Canvas measure(width, 1);
  return draw_legend(measure, legend);
}

std::vector<Tick> ticks_for(const Scale& scale, const std::vector<double>& values, int about) {
  std::vector<Tick> ticks = scale.ticks(about);
  const auto is_whole = [](double value) { return value == std::floor(value); };
  if (std::ranges::all_of(values, is_whole)) {
    std::erase_if(ticks, [&](const Tick& tick) { return !is_whole(tick.value); });
    label_alike(ticks);
  }
  return ticks;
}

Canvas canvas_of_panels(std::size_t count, double width, double top, double height,
                        const std::vector<LegendEntry>& legend) {
  const std::size_t columns = columns_of_panels(count, width);
  const std::size_t rows = std::max<std::size_t>((count + columns - 1) / columns, 1);
  Canvas canvas(width, top + height * static_cast<double>(rows));
  if (!legend.empty()) draw_legend(canvas, legend);
  return canvas;
}

Canvas draw_panels(double width, std::vector<AxesPanel> panels, const PanelAxes& all,
                   const std::vector<LegendEntry>& legend) {
  // A panel without a value is left out, unless none has any.
  const auto is_empty = [&](const AxesPanel& panel) {
    return std::ranges::none_of(panel.y, [&](double y) { return has_place(all.y_kind, y); });
  };
  if (!std::ranges::all_of(panels, is_empty)) std::erase_if(panels, is_empty);
  std::vector<Tick> words;
  for (const std::string& word : all.x_words) {
    words.push_back({static_cast<double>(words.size()), word});
  }
  const auto places = static_cast<double>(words.size());
  const Range of_words{-0.5, places - 0.5};
  const Scale of_one_panel(ScaleKind::linear, of_words.low, of_words.high, 0,
                           panel_cells(panels.size(), width, 0, 1).front().width() - 78);
  const double below = words.empty() ? 42 : room_for_labels(of_one_panel, words).height + 24;
  const bool titled =
      std::ranges::any_of(panels, [](const auto& one) { return !one.title.empty(); });
  const double top = legend.empty() ? 4 : legend_height(width, legend) + 4;
  std::vector<std::string> names;
  for (const AxesPanel& panel : panels) names.push_back(panel.title);
  const PartTitles titles(names, panel_cells(panels.size(), width, 0, 1).front().width() - 24);
  const double above = titled ? 42 + titles.more_height() : 24;
  const double cell = above + all.height + below;
  Canvas canvas = canvas_of_panels(panels.size(), width, top, cell, legend);
  const std::vector<Box> cells = panel_cells(panels.size(), width, top, cell);
  for (std::size_t p = 0; p < panels.size(); ++p) {
    const AxesPanel& panel = panels[p];
    const Box& of = cells[p];
    const Box box{of.left + 62, of.top + above, of.right - 16, of.top + above + all.height};
    const Range x = words.empty() ? range_of(panel.x_kind, panel.x, 0.04) : of_words;
    const Range y = range_of(all.y_kind, panel.y, all.margin);
    const Axes axes{box, Scale(panel.x_kind, x.low, x.high, box.left, box.right),
                    Scale(all.y_kind, y.low, y.high, box.bottom, box.top)};
    if (titled) titles.draw(canvas, p, {of.left + 18, box.top - 26});
    draw_y_axis(canvas, axes, {all.y_title, ticks_for(axes.y, panel.y)});
    draw_x_axis(canvas, axes, {all.x_title, words.empty() ? ticks_for(axes.x, panel.x) : words});
    panel.draw(canvas, axes);
  }
  return canvas;
}

std::string estimate_text(const Estimate& estimate) {
  if (std::isnan(estimate.mcse)) return measured_number(estimate.value);
  const double largest = std::fmax(std::abs(estimate.value), estimate.mcse);
  return with_minus_sign(figure_text(estimate, largest < min_plain ? 0 : table_decimals));
}

std::string percent_text(double share) {
  if (!std::isfinite(share)) return "–";
  // Two digits, the last of which may be 0: those of a column stand under one another.
  const std::string rounded = formatted("%.1e", 100 * share);
  const int exponent = std::stoi(rounded.substr(rounded.find('e') + 1));
  if (share != 0 && exponent < -4) return formatted("%.2g %%", 100 * share);
  int decimals = share == 0 ? 0 : std::max(1 - exponent, 0);
  // What is left to all of it stands beside small shares: "99.7 %".
  const double left = std::abs(1 - share);
  if (left > 1e-6 && left < 0.01) decimals = static_cast<int>(std::ceil(-std::log10(left))) - 2;
  return formatted("%.*f %%", decimals, 100 * share);
}

std::string bands_text(double widest, const std::string& see) {
  constexpr double line_width = 1.8, min_seen = 4;  // in pixels
  if (widest >= min_seen) return "Bands are ± 2 MCSE.";
  return "Bands of ± 2 MCSE are " + std::string(widest < line_width ? "narrower" : "hardly wider") +
         " than the lines: see " + see + ".";
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
  return "Shows " + grouped(shown) + " of " + grouped(all) + " " + what_and_end;
}

bool have_covariance(const Value::Array& conditions) {
  return conditions.empty() || std::ranges::any_of(conditions, [](const Value& one) {
           return number_of(member(member(member(one, "parameters"), "heads"), "count")) != 1;
         });
}

std::vector<Component> components_of(const Value::Array& conditions) {
  const bool covary = have_covariance(conditions);
  std::vector<Component> all;
  std::size_t color = 0;
  const ErrorTerms<Estimate> terms;
  for (const auto& [name, number, text] : numbers_of(terms)) {
    if (text.role != TableRole::total && text.role != TableRole::term) continue;
    if (covary || number != &terms.covariance_term) all.push_back({name, text.label, color});
    ++color;
  }
  return all;
}

bool is_picture_name(const std::string& name) {
  return std::ranges::any_of(figure_entries(),
                             [&](const PictureEntry& entry) { return entry.name == name; });
}

std::vector<Picture> figures_of(const Source& source) {
  std::vector<Picture> all;
  const auto add = [&](const std::string& name, std::vector<Picture> pictures) {
    for (std::size_t i = 0; i < pictures.size(); ++i) {
      pictures[i].name = i == 0 ? name : name + "-" + std::to_string(i + 1);
      all.push_back(std::move(pictures[i]));
    }
  };
  if (source.is_study_of_depth()) {
    add("layers", layers_figures(source));
    return all;
  }
  for (const PictureEntry& entry : figure_entries()) {
    if (std::ranges::find(entry.kinds, source.kind) == entry.kinds.end()) continue;
    add(entry.name, entry.make(source));
  }
  return all;
}

}  // namespace headlab::tools
