// SPDX-License-Identifier: Apache-2.0
#include "tools/report/curves_figure.h"

#include <algorithm>
#include <cmath>

#include "tools/report/figure.h"

namespace headlab::tools {
namespace {

/// \param joined  by lines
/// \param shift   to the right, in units of the picture
void draw_curve(Canvas& canvas, const Axes& axes, const FigureCurve& curve, std::size_t color,
                bool joined, double shift) {
  const std::string of = "c" + std::to_string(color % colors);
  std::vector<Point> line, upper, lower, computed;
  for (std::size_t i = 0; i < curve.x.size(); ++i) {
    const Estimate& one = curve.y[i];
    if (i < curve.computed.size() && has_place(axes.y.kind(), curve.computed[i]) &&
        has_place(axes.x.kind(), curve.x[i])) {
      computed.push_back(axes.at(curve.x[i], curve.computed[i]));
      computed.back().x += shift;
    }
    if (!has_place(axes.y.kind(), one.value) || !has_place(axes.x.kind(), curve.x[i])) continue;
    line.push_back(axes.at(curve.x[i], one.value));
    if (!std::isfinite(one.mcse)) continue;
    const double low = one.value - band_errors * one.mcse;
    upper.push_back(axes.at(curve.x[i], one.value + band_errors * one.mcse));
    lower.push_back(axes.at(curve.x[i], has_place(axes.y.kind(), low) ? low : axes.y.low()));
  }
  for (std::vector<Point>* points : {&line, &upper, &lower}) {
    for (Point& at : *points) at.x += shift;
  }
  if (joined) {
    canvas.band(upper, lower, "band " + of);
    canvas.polyline(line, "line " + of);
    canvas.polyline(computed, "theory " + of);
  }
  for (std::size_t i = 0; i < upper.size() && (!joined || upper.size() == 1); ++i) {
    canvas.line(upper[i], lower[i], "whisker " + of);
  }
  for (std::size_t i = 0; i < computed.size() && (!joined || computed.size() == 1); ++i) {
    canvas.line({computed[i].x - 7, computed[i].y}, {computed[i].x + 7, computed[i].y},
                "theory " + of);
  }
  for (const Point& at : line) canvas.mark(color, at, false, line.size() > 25 ? 2.5 : 4);
}

}  // namespace

std::string slope_note(const Estimate& slope) {
  return "slope " + estimate_text(slope);
}

bool show_slopes(const std::vector<CurvesPanel>& panels) {
  bool any = false;
  for (const CurvesPanel& panel : panels) {
    for (const FigureCurve& curve : panel.curves) {
      any = any || !curve.note.empty();
      const bool positive =
          std::ranges::all_of(curve.x, [](double x) { return x > 0; }) &&
          std::ranges::all_of(curve.y, [](const Estimate& one) { return one.value > 0; });
      if (!positive) return false;
    }
  }
  return any;
}

void add_values(const FigureCurve& curve, ScaleKind kind, std::vector<double>& all) {
  for (const Estimate& one : curve.y) {
    if (!has_place(kind, one.value)) continue;
    const double room = std::isfinite(one.mcse) ? band_errors * one.mcse : 0;
    all.insert(all.end(), {one.value, one.value + room});
    if (has_place(kind, one.value - room)) all.push_back(one.value - room);
  }
  for (const double one : curve.computed) {
    if (has_place(kind, one)) all.push_back(one);
  }
}

std::vector<LegendEntry> legend_of(const std::vector<FigureCurve>& curves) {
  std::vector<LegendEntry> legend;
  bool computed = false;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const FigureCurve& curve = curves[i];
    const std::string text =
        curve.name + (curve.name.empty() || curve.note.empty() ? "" : ": ") + curve.note;
    if (!text.empty()) legend.push_back({i, text, false, true});
    computed = computed ||
               std::ranges::any_of(curve.computed, [](double one) { return std::isfinite(one); });
  }
  if (computed) legend.push_back({0, "closed form", false, false, "theory"});
  return legend;
}

Canvas draw_curves(const CurvesPicture& picture, double width) {
  std::vector<FigureCurve> named;  // one of each name, which has its colour
  std::vector<double> values;
  for (const CurvesPanel& panel : picture.panels) {
    for (const FigureCurve& curve : panel.curves) {
      add_values(curve, picture.y_kind, values);
      if (std::ranges::find(named, curve.name, &FigureCurve::name) != named.end()) continue;
      named.push_back(curve);
      // A slope stands with its curve's name; of several panels in each.
      if (picture.panels.size() > 1) named.back().note.clear();
    }
  }
  const bool joined = picture.x_words.empty();
  const double middle = (static_cast<double>(named.size()) - 1) / 2;
  std::vector<AxesPanel> all;
  for (const CurvesPanel& panel : picture.panels) {
    std::vector<double> x, own;
    for (const FigureCurve& curve : panel.curves) {
      x.insert(x.end(), curve.x.begin(), curve.x.end());
      add_values(curve, picture.y_kind, own);
    }
    if (own.empty() && !values.empty()) continue;
    std::string title = panel.title;
    for (const FigureCurve& curve : panel.curves) {
      if (picture.panels.size() > 1 && !curve.note.empty()) title += ", " + curve.note;
    }
    const auto draw = [&, joined, middle](Canvas& canvas, const Axes& axes) {
      // Points that are not joined stand side by side.
      const double step =
          std::min(9.0, axes.box.width() / static_cast<double>(std::max<std::size_t>(
                                               picture.x_words.size() * (named.size() + 1), 1)));
      for (const FigureCurve& curve : panel.curves) {
        const auto color = std::ranges::find(named, curve.name, &FigureCurve::name) - named.begin();
        draw_curve(canvas, axes, curve, static_cast<std::size_t>(color), joined,
                   joined ? 0 : step * (static_cast<double>(color) - middle));
      }
    };
    // All panels have one range, so that they compare.
    all.push_back({title, picture.x_kind, x, values, draw});
  }
  return draw_panels(width, all,
                     {picture.x_title, picture.y_title, all.size() == 1 ? 220.0 : 160.0, 0.06,
                      picture.y_kind, picture.x_words},
                     legend_of(named));
}

}  // namespace headlab::tools
