// SPDX-License-Identifier: Apache-2.0
#include "tools/report/curves_figure.h"

#include <algorithm>
#include <cmath>

#include "tools/report/figure.h"

namespace headlab::tools {
namespace {

/// The numbers that an axis has to hold.
void add_values(const FigureCurve& curve, ScaleKind kind, std::vector<double>& all) {
  for (const Estimate& one : curve.y) {
    if (!has_place(kind, one.value)) continue;
    const double room = std::isfinite(one.mcse) ? band_errors * one.mcse : 0;
    all.insert(all.end(), {one.value, one.value + room});
    if (has_place(kind, one.value - room)) all.push_back(one.value - room);
  }
}

void draw_curve(Canvas& canvas, const Axes& axes, const FigureCurve& curve, std::size_t color) {
  const std::string of = "c" + std::to_string(color % colors);
  std::vector<Point> line, upper, lower;
  for (std::size_t i = 0; i < curve.x.size(); ++i) {
    const Estimate& one = curve.y[i];
    if (!has_place(axes.y.kind(), one.value) || !has_place(axes.x.kind(), curve.x[i])) continue;
    line.push_back(axes.at(curve.x[i], one.value));
    if (!std::isfinite(one.mcse)) continue;
    const double low = one.value - band_errors * one.mcse;
    upper.push_back(axes.at(curve.x[i], one.value + band_errors * one.mcse));
    lower.push_back(axes.at(curve.x[i], has_place(axes.y.kind(), low) ? low : axes.y.low()));
  }
  canvas.band(upper, lower, "band " + of);
  if (upper.size() == 1) canvas.line(upper[0], lower[0], "whisker " + of);
  canvas.polyline(line, "line " + of);
  for (const Point& at : line) canvas.mark(color, at, false, line.size() > 25 ? 2.5 : 4);
}

}  // namespace

std::string figure_words(const std::string& figure) {
  if (figure == "mse") return "mean squared error";
  std::string words = figure;
  std::ranges::replace(words, '_', ' ');
  return words;
}

std::string slope_note(const Estimate& slope) {
  return "slope " + with_minus_sign(estimate_text(slope));
}

Canvas draw_curves(const CurvesPicture& picture, double width) {
  std::vector<std::string> names;
  std::vector<LegendEntry> legend;
  std::vector<double> values;
  for (const CurvesPanel& panel : picture.panels) {
    for (const FigureCurve& curve : panel.curves) {
      add_values(curve, picture.y_kind, values);
      if (std::ranges::find(names, curve.name) != names.end()) continue;
      names.push_back(curve.name);
    }
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::string text = names[i];
    // A slope stands with its curve's name; of several panels in each.
    for (const CurvesPanel& panel : picture.panels) {
      for (const FigureCurve& curve : panel.curves) {
        if (curve.name != names[i] || curve.note.empty() || picture.panels.size() > 1) continue;
        text += (text.empty() ? "" : ": ") + curve.note;
      }
    }
    if (!text.empty()) legend.push_back({i, text, false, true});
  }
  std::vector<AxesPanel> all;
  for (const CurvesPanel& panel : picture.panels) {
    std::vector<double> x;
    for (const FigureCurve& curve : panel.curves) x.insert(x.end(), curve.x.begin(), curve.x.end());
    std::string title = panel.title;
    for (const FigureCurve& curve : panel.curves) {
      if (picture.panels.size() > 1 && !curve.note.empty()) title += ", " + curve.note;
    }
    const auto draw = [&panel, &names](Canvas& canvas, const Axes& axes) {
      for (const FigureCurve& curve : panel.curves) {
        const auto color = std::ranges::find(names, curve.name) - names.begin();
        draw_curve(canvas, axes, curve, static_cast<std::size_t>(color));
      }
    };
    // All panels have one range, so that they compare.
    all.push_back({title, picture.x_kind, x, values, draw});
  }
  return draw_panels(
      width, all,
      {picture.x_title, picture.y_title, all.size() == 1 ? 220.0 : 160.0, 0.06, picture.y_kind},
      legend);
}

}  // namespace headlab::tools
