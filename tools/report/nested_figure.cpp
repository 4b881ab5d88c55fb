// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tools/report/curves_figure.h"
#include "tools/report/figure.h"
#include "tools/report/labels.h"

namespace headlab::tools {
namespace {

/// Horizontal pieces over the settings, joined where one follows the other.
void draw_steps(Canvas& canvas, const Axes& axes, const FigureCurve& curve,
                const std::vector<double>& values, const std::string& classes) {
  std::vector<Point> line;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!has_place(axes.y.kind(), values[i])) continue;
    const Point from = axes.at(curve.x[i], values[i]), to = axes.at(curve.x[i] + 1, values[i]);
    if (!line.empty() && std::abs(line.back().x - from.x) > 0.01) {
      canvas.polyline(line, classes);
      line.clear();
    }
    line.insert(line.end(), {from, to});
  }
  canvas.polyline(line, classes);
}

void draw_bands(Canvas& canvas, const Axes& axes, const FigureCurve& curve,
                const std::string& classes) {
  for (std::size_t i = 0; i < curve.y.size(); ++i) {
    const Estimate& one = curve.y[i];
    if (!has_place(axes.y.kind(), one.value) || !std::isfinite(one.mcse)) continue;
    const double high = one.value + band_errors * one.mcse;
    const double low = one.value - band_errors * one.mcse;
    const Point upper = axes.at(curve.x[i], high);
    const Point lower = axes.at(curve.x[i] + 1, has_place(axes.y.kind(), low) ? low : axes.y.low());
    canvas.rectangle({upper.x, upper.y, lower.x, lower.y}, classes);
  }
}

/// "kernel: gaussian, softmax" in lines of this length, shortened in the middle beyond a few of
/// them.
std::string name_with_levels(const NestedKey& key, std::size_t length) {
  std::string text = key.name + ":";
  for (std::size_t i = 0; i < key.levels.size(); ++i) {
    text += (i > 0 ? ", " : " ") + key.levels[i];
  }
  constexpr std::size_t lines = 4;
  return in_lines(shortened_in_the_middle(text, (lines - 1) * length), length);
}

}  // namespace

Canvas draw_nested(const NestedPicture& picture, double width) {
  constexpr double height = 220, step_height = 14;
  const std::vector<LegendEntry> legend = legend_of(picture.curves);
  const double top = legend.empty() ? 28 : legend_height(width, legend) + 28;
  std::vector<double> values;
  for (const FigureCurve& curve : picture.curves) add_values(curve, picture.y_kind, values);
  const Range range = range_of(picture.y_kind, values);
  const Box box{62, top, width - 16, top + height};
  const std::size_t settings = picture.keys.front().places.size();
  const Axes axes{box,
                  Scale(ScaleKind::linear, 0, static_cast<double>(settings), box.left, box.right),
                  Scale(picture.y_kind, range.low, range.high, box.bottom, box.top)};
  double below = 30;
  std::vector<std::string> names;
  for (const NestedKey& key : picture.keys) {
    names.push_back(name_with_levels(key, characters_in(box.width())));
    below += text_height(names.back()) + step_height + 12;
  }
  Canvas canvas(width, box.bottom + below);
  if (!legend.empty()) draw_legend(canvas, legend);
  draw_y_axis(canvas, axes, {picture.y_title, axes.y.ticks(5)});
  canvas.line({box.left, box.bottom}, {box.right, box.bottom}, "axis");
  const std::vector<std::size_t>& outermost = picture.keys.front().places;
  for (std::size_t i = 1; i < settings; ++i) {
    if (outermost[i] == outermost[i - 1]) continue;
    const double x = axes.x(static_cast<double>(i));
    canvas.line({x, box.top}, {x, box.bottom}, "grid");
  }
  for (std::size_t k = 0; k < picture.curves.size(); ++k) {
    const FigureCurve& curve = picture.curves[k];
    const std::string color = "c" + std::to_string(k % colors);
    std::vector<double> estimates;
    for (const Estimate& one : curve.y) estimates.push_back(one.value);
    draw_bands(canvas, axes, curve, "band " + color);
    draw_steps(canvas, axes, curve, estimates, "line " + color);
    draw_steps(canvas, axes, curve, curve.computed, "theory " + color);
  }
  double y = box.bottom + 8;
  for (std::size_t k = 0; k < picture.keys.size(); ++k) {
    const NestedKey& key = picture.keys[k];
    canvas.text({box.left, y + text_size}, names[k], "start", "small");
    FigureCurve steps;
    std::vector<double> levels;
    for (std::size_t i = 0; i < settings; ++i) {
      steps.x.push_back(static_cast<double>(i));
      levels.push_back(static_cast<double>(key.places[i]));
    }
    const double bottom = y + text_height(names[k]) + 4 + step_height;
    y = bottom + 8;
    const Axes of_key{{box.left, bottom - step_height, box.right, bottom},
                      axes.x,
                      Scale(ScaleKind::linear, 0, static_cast<double>(key.levels.size() - 1),
                            bottom, bottom - step_height)};
    draw_steps(canvas, of_key, steps, levels, "line c0");
  }
  canvas.text({box.right, canvas.height() - 4},
              "nested settings; the lowest step is the first value named", "end", "soft small");
  return canvas;
}

}  // namespace headlab::tools
