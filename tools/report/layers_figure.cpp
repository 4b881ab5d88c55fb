// SPDX-License-Identifier: Apache-2.0
/// \file Metrics of a stack, layer by layer.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/moments/layer_estimates.h"
#include "kernels/counted.h"
#include "tools/report/figure.h"
#include "tools/report/law_formulas.h"
#include "tools/report/sweep.h"

namespace headlab::tools {
namespace {

constexpr std::size_t max_series = colors;
constexpr double panel_height = 190;

/// One condition.
struct DepthSeries {
  std::string name;
  std::size_t color = 0;
  const Value* condition = nullptr;

  const Value::Array& layers() const { return items_of(member(*condition, "layers")); }
  Estimate at(std::size_t layer, const std::string& metric) const {
    return estimate_of(member(layers()[layer], metric));
  }
  double computed(std::size_t layer, const std::string& metric) const {
    const Value::Array& closed = items_of(member(member(*condition, "theory"), "layers"));
    if (layer >= closed.size()) return std::nan("");
    return estimate_of(member(closed[layer], metric)).value;
  }
  /// Where the log residual of plain float64 stops; NaN where it never gets there.
  double floor() const {
    if (layers().empty()) return std::nan("");
    const Value& n = member(*condition, "n");
    const std::size_t last = layers().size() - 1;
    const double size =
        at(last, "residual_squared").value + number_of(n) * at(last, "mean_squared").value;
    const double floor = float64_floor(size);
    return at(last, "log_residual").value < floor ? floor : std::nan("");
  }
};

struct DepthPanel {
  std::string metric;
  std::string title;
};

/// One metric of every series; returns the width of the widest band in pixels.
double draw_panel(Canvas& canvas, const Box& box, const DepthPanel& panel,
                  const std::vector<DepthSeries>& all, bool with_floor) {
  std::vector<double> values;
  std::size_t layers = 1;
  for (const DepthSeries& one : all) {
    layers = std::max(layers, one.layers().size());
    for (std::size_t l = 0; l < one.layers().size(); ++l) {
      const Estimate estimate = one.at(l, panel.metric);
      values.push_back(estimate.value);
      if (estimate.mcse >= 0) {
        values.push_back(estimate.value - 2 * estimate.mcse);
        values.push_back(estimate.value + 2 * estimate.mcse);
      }
      values.push_back(one.computed(l, panel.metric));
    }
    if (with_floor) values.push_back(one.floor());
  }
  const Range y = range_of(ScaleKind::linear, values, 0.08);
  const Axes axes{box,
                  Scale(ScaleKind::linear, 0, static_cast<double>(layers - 1), box.left, box.right),
                  Scale(ScaleKind::linear, y.low, y.high, box.bottom, box.top)};
  std::vector<Tick> ticks = axes.x.ticks(8);
  std::erase_if(ticks, [](const Tick& tick) { return tick.value != std::floor(tick.value); });
  label_alike(ticks);
  draw_y_axis(canvas, axes, {panel.title, axes.y.ticks(5)});
  draw_x_axis(canvas, axes, {"layer", ticks});
  double floor = std::nan(""), widest = 0;
  for (const DepthSeries& one : all) {
    const std::string color = "c" + std::to_string(one.color);
    std::vector<Point> line, upper, lower, computed;
    for (std::size_t l = 0; l < one.layers().size(); ++l) {
      const auto x = static_cast<double>(l);
      const Estimate estimate = one.at(l, panel.metric);
      const double closed = one.computed(l, panel.metric);
      if (std::isfinite(closed)) computed.push_back(axes.at(x, closed));
      if (!std::isfinite(estimate.value)) continue;
      line.push_back(axes.at(x, estimate.value));
      if (!std::isfinite(estimate.mcse)) continue;
      const double room = band_errors * estimate.mcse;
      upper.push_back(axes.at(x, std::min(estimate.value + room, axes.y.high())));
      lower.push_back(axes.at(x, std::max(estimate.value - room, axes.y.low())));
      widest = std::max(widest, lower.back().y - upper.back().y);
    }
    canvas.band(upper, lower, "band " + color);
    canvas.polyline(line, "line " + color);
    canvas.polyline(computed, "theory " + color);
    const double radius = line.size() > 25 ? 1.5 : 3;
    for (const Point& at : line) canvas.mark(one.color, at, false, radius);
    if (with_floor) floor = std::fmax(floor, one.floor());
  }
  if (!std::isfinite(floor)) return widest;
  canvas.line({box.left, axes.y(floor)}, {box.right, axes.y(floor)}, "target c0");
  canvas.text({box.left + 8, axes.y(floor) + 15}, "plain float64 ends here", "start", "halo");
  return widest;
}

struct DrawnLayers {
  Canvas canvas;
  double widest_band = 0;  ///< in pixels
};

DrawnLayers draw_layers(const std::vector<DepthPanel>& panels, const std::vector<DepthSeries>& all,
                        bool with_floor, double width) {
  std::vector<LegendEntry> legend;
  for (const DepthSeries& one : all) {
    if (!one.name.empty()) legend.push_back({one.color, one.name, false, true});
  }
  const double top = legend.empty() ? 4 : legend_height(width, legend);
  const double cell = panel_height + 70;
  DrawnLayers drawn{canvas_of_panels(panels.size(), width, top, cell, legend)};
  const std::vector<Box> cells = panel_cells(panels.size(), width, top, cell);
  for (std::size_t p = 0; p < panels.size(); ++p) {
    const double y = cells[p].top + 18;
    const double band =
        draw_panel(drawn.canvas, {cells[p].left + 70, y, cells[p].right - 16, y + panel_height},
                   panels[p], all, with_floor);
    drawn.widest_band = std::max(drawn.widest_band, band);
  }
  return drawn;
}

Table table_of(const std::vector<DepthPanel>& panels, const std::vector<DepthSeries>& all) {
  Table table{
      .caption = "Metrics after each layer", .error = "MCSE", .headings = {"condition", "layer"}};
  for (const DepthPanel& panel : panels) table.headings.push_back(panel.title);
  for (const DepthSeries& one : all) {
    for (std::size_t l = 0; l < one.layers().size(); ++l) {
      std::vector<std::string> row = {one.name.empty() ? "the only condition" : one.name,
                                      std::to_string(l)};
      for (const DepthPanel& panel : panels) row.push_back(estimate_text(one.at(l, panel.metric)));
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

/// "falls from 2.592 ± 0.010 to −1048.1 ± 2.3 over 7 layers"
std::string history_of(const DepthSeries& one, const char* metric) {
  std::size_t first = 0;
  const std::size_t last = one.layers().size() - 1;
  while (first < last && !std::isfinite(one.at(first, metric).value)) ++first;
  const Estimate from = one.at(first, metric), to = one.at(last, metric);
  if (!std::isfinite(from.value) || !std::isfinite(to.value)) return "is undefined in some layers";
  const std::string over = " over " + counted(static_cast<std::uint64_t>(last), "layer");
  if (to.value == from.value) return "stays at " + estimate_text(to) + over;
  return (to.value < from.value ? "falls from " : "rises from ") + estimate_text(from) + " to " +
         estimate_text(to) + over;
}

std::string finding(const std::vector<DepthSeries>& all, const char* metric, const char* name) {
  const DepthSeries& first = all.front();
  const DepthSeries& last = all.back();
  const auto at = [](const DepthSeries& one) { return one.name.empty() ? "" : " at " + one.name; };
  std::string text = std::string(name) + " " + history_of(first, metric) + at(first);
  if (all.size() > 1) text += ", and " + history_of(last, metric) + at(last);
  return text + ".";
}

}  // namespace

std::vector<Picture> layers_figures(const Source& source) {
  const Value::Array& conditions = source.shown_conditions();
  const Sweep sweep = sweep_of(conditions);
  std::vector<DepthSeries> all;
  std::vector<std::size_t> shown = spread(conditions.size(), max_series);
  std::erase_if(shown,
                [&](std::size_t c) { return items_of(member(conditions[c], "layers")).empty(); });
  const std::vector<std::string> names = sweep.condition_texts(shown);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    all.push_back({.name = names[i], .color = i, .condition = &conditions[shown[i]]});
  }
  if (all.empty()) return {};
  const std::string left_out = sweep.shows_text(shown, source.conditions);
  const bool compared = std::ranges::any_of(all, [](const DepthSeries& one) {
    return member(member(*one.condition, "theory"), "layers").is<Value::Array>();
  });
  const bool has_errors = std::ranges::any_of(all, [](const DepthSeries& one) {
    return number_of(member(*one.condition, "replicates")) >= min_replicates_for_mcse;
  });
  const auto note_of = [&](const std::vector<DepthPanel>& panels, bool with_floor) {
    const double widest = draw_layers(panels, all, with_floor, page_width).widest_band;
    return sentences({has_errors ? bands_text(widest, "the table") : "",
                      compared ? "Finely dotted: closed forms." : "", left_out});
  };
  const std::vector<DepthPanel> residual = {{"log_residual", metric_words("log_residual")}};
  std::vector<DepthPanel> others;
  for (const std::string& metric : drawn_layer_metrics()) {
    if (metric == residual.front().metric) continue;
    const DepthPanel panel{metric, metric_words(metric)};
    const bool has = std::ranges::any_of(all, [&](const DepthSeries& one) {
      for (std::size_t l = 0; l < one.layers().size(); ++l) {
        if (std::isfinite(one.at(l, panel.metric).value)) return true;
      }
      return false;
    });
    if (has) others.push_back(panel);
  }
  const bool floors =
      std::ranges::any_of(all, [](const DepthSeries& one) { return std::isfinite(one.floor()); });
  std::vector<Picture> pictures;
  pictures.push_back(
      {.title = "What is left of the differences between tokens",
       .finding = sentences(
           {finding(all, "log_residual", "The log residual log |R|"),
            floors ? "Below the dashed line plain float64 arithmetic could not see them." : ""}),
       .draw = [=](double width) { return draw_layers(residual, all, true, width).canvas; },
       .table = table_of(residual, all),
       .note = note_of(residual, true)});
  if (others.empty()) return pictures;
  pictures.push_back(
      {.title = "Tokens and attention over depth",
       .finding = finding(all, "cosine", "The mean cosine of two tokens"),
       .draw = [=](double width) { return draw_layers(others, all, false, width).canvas; },
       .table = table_of(others, all),
       .note = note_of(others, false)});
  return pictures;
}

}  // namespace headlab::tools
