// SPDX-License-Identifier: Apache-2.0
/// \file Standard error of the MSE against the replicates.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "tools/cli/figure_text.h"
#include "tools/report/figure.h"
#include "tools/report/sweep.h"
#include "validation/statistics/intervals.h"

namespace headlab::tools {
namespace {

/// The relative MCSE that the run was asked for, as a share of the MSE of a condition, and the
/// largest one where an absolute one was given; NaN where none was.
double target_of(const Value& document, std::size_t condition, double mse) {
  double share = std::numeric_limits<double>::quiet_NaN();
  for (const Value& target : items_of(member(member(document, "until"), "targets"))) {
    if (text_of(member(target, "figure")) != "mse") continue;
    const Value& of = member(target, "condition");
    if (of.number() && static_cast<std::size_t>(number_of(of)) != condition) continue;
    const double limit = number_of(member(target, "limit"));
    share = is_true(member(target, "relative")) ? limit / 100 : limit / std::abs(mse);
  }
  return share;
}

/// With fewer groups an MCSE says little: the whiskers of 32 go from 0.80 to 1.33 times it.
constexpr std::size_t min_groups = 32;
constexpr double confidence = 0.95;

struct PrecisionSeries {
  std::string name;
  std::size_t color = 0;
  std::vector<Point> points = {};        ///< replicates, relative MCSE in percent
  std::vector<Interval> intervals = {};  ///< of the latter, as multiples of it
  double target = std::numeric_limits<double>::quiet_NaN();
};

/// \param reference  the series whose last point the line 1/sqrt(R) goes through
Canvas draw_precision(const std::vector<PrecisionSeries>& all, const PrecisionSeries& reference,
                      double width) {
  std::vector<double> replicates, percents;
  for (const PrecisionSeries& one : all) {
    for (const Point& point : one.points) {
      replicates.push_back(point.x);
      percents.push_back(point.y);
    }
    for (std::size_t i = 0; i < one.points.size(); ++i) {
      percents.push_back(one.points[i].y * one.intervals[i].low);
      percents.push_back(one.points[i].y * one.intervals[i].high);
    }
    percents.push_back(100 * one.target);
  }
  const double left = 62, right = width - 16;
  std::vector<LegendEntry> legend;
  for (const PrecisionSeries& one : all) {
    if (all.size() > 1) legend.push_back({one.color, one.name, false, true});
  }
  const double top = (legend.empty() ? 4 : legend_height(width, legend)) + 20;
  Canvas canvas(width, top + 220 + 44);
  if (!legend.empty()) draw_legend(canvas, legend);
  const Range x = range_of(ScaleKind::logarithmic, replicates, 0.04);
  const Range y = range_of(ScaleKind::logarithmic, percents, 0.08);
  const Axes axes{{left, top, right, top + 220},
                  Scale(ScaleKind::logarithmic, x.low, x.high, left, right),
                  Scale(ScaleKind::logarithmic, y.low, y.high, top + 220, top)};
  draw_y_axis(canvas, axes, {"relative MCSE of the MSE, %", axes.y.ticks(5)});
  draw_x_axis(canvas, axes, {"replicates R", axes.x.ticks(6)});
  // 1/sqrt(R), within the frame.
  const Point last = reference.points.back();
  const double from = std::max({axes.x.low(), last.x * std::pow(last.y / axes.y.high(), 2)});
  const double end = std::min(axes.x.high(), last.x * std::pow(last.y / axes.y.low(), 2));
  canvas.line(axes.at(from, last.y * std::sqrt(last.x / from)),
              axes.at(end, last.y * std::sqrt(last.x / end)),
              "whisker thin c" + std::to_string(reference.color));
  for (const PrecisionSeries& one : all) {
    const std::string color = "c" + std::to_string(one.color);
    std::vector<Point> places;
    for (const Point& point : one.points) places.push_back(axes.at(point.x, point.y));
    canvas.polyline(places, "line " + color);
    // Whiskers of one condition; those of the others are as long.
    for (std::size_t i = 0; i < places.size() && one.color == reference.color; ++i) {
      const Point& point = one.points[i];
      canvas.line(axes.at(point.x, point.y * one.intervals[i].low),
                  axes.at(point.x, point.y * one.intervals[i].high), "whisker thin " + color);
    }
    for (const Point& place : places) canvas.mark(one.color, place, false, 3.5);
    // Conditions with one target have one line.
    const bool drawn = std::ranges::any_of(
        std::span(all.data(), one.color),
        [&](const PrecisionSeries& other) { return other.target == one.target; });
    if (std::isfinite(one.target) && one.target > 0 && !drawn) {
      const double height = axes.y(100 * one.target);
      canvas.line({left, height}, {right, height}, "target " + color);
      // Precision comes from above, so that there is room at the left.
      canvas.text({left + 4, height - 5}, "target " + percent_text(one.target), "start", "halo");
    }
  }
  return canvas;
}

}  // namespace

std::vector<Picture> precision_figures(const Source& source) {
  const Value::Array& conditions = source.shown_conditions();
  // Numbers of conditions are those of the results, of which the document may hold some.
  if (conditions.size() != source.conditions) return {};
  const Sweep sweep = sweep_of(conditions);
  std::vector<PrecisionSeries> all;
  std::vector<PrecisionCurve> curves = source.precision;
  std::erase_if(curves,
                [&](const PrecisionCurve& curve) { return curve.condition >= conditions.size(); });
  std::vector<std::size_t> shown, drawn;
  for (const PrecisionCurve& curve : curves) shown.push_back(curve.condition);
  const std::vector<std::string> names = sweep.condition_texts(shown);
  Table table{.caption = "MSE ± MCSE after some of the replicates",
              .headings = {"condition", "replicates", "MSE", "relative MCSE"}};
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const PrecisionCurve& curve = curves[i];
    PrecisionSeries series{.name = names[i], .color = all.size()};
    if (series.name.empty()) series.name = sweep.condition_text(curve.condition);
    if (series.name.empty()) series.name = "the only condition";
    for (const MseAfter& point : curve.points) {
      if (point.nodes < min_groups) continue;
      const double share = point.mse.mcse / std::abs(point.mse.value);
      table.rows.push_back(
          {series.name, grouped(point.replicates), estimate_text(point.mse), percent_text(share)});
      if (!std::isfinite(share) || share <= 0) continue;
      series.points.push_back({static_cast<double>(point.replicates), 100 * share});
      series.intervals.push_back(
          deviation_interval(static_cast<double>(point.nodes - 1), confidence));
    }
    if (series.points.size() < 2) continue;
    series.target = target_of(source.document, curve.condition, curve.points.back().mse.value);
    all.push_back(series);
    drawn.push_back(curve.condition);
  }
  if (all.empty()) return {};
  const auto worst = std::ranges::max_element(
      all, {}, [](const PrecisionSeries& one) { return one.points.back().y; });
  const Point last = worst->points.back();

  std::string met;
  const Value& target_met = member(source.document, "target_met");
  if (target_met.is<bool>()) {
    met = is_true(target_met) ? "Every target is met." : "Not every target is met.";
  }

  return {
      {.title = "Precision against the replicates",
       .finding = sentences(
           {"After " + count_text(last.x) + " replicates the relative MCSE of the MSE is " +
                percent_text(last.y / 100) +
                (all.size() > 1 ? " where it is largest, at " + worst->name : "") +
                "; to halve it takes about " + count_text(4 * last.x) + " replicates.",
            met}),
       .draw =
           [=, which = worst - all.begin()](double width) {
             return draw_precision(all, all[static_cast<std::size_t>(which)], width);
           },
       .table = std::move(table),
       .note = sentences({all.size() > 1 ? "Of the condition where it is largest: 1/√R through "
                                           "the last point, a thin line, and 95 % intervals of the "
                                           "MCSE itself (chi-squared)."
                                         : "Thin line: 1/√R through the last point. Whiskers are "
                                           "95 % intervals of the MCSE itself (chi-squared).",
                          "An MCSE is shown from 32 groups of training sets on. Points of one "
                          "condition share their training sets.",
                          sweep.shows_text(drawn, source.conditions)})}};
}

}  // namespace headlab::tools
