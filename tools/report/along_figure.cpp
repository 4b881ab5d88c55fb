// SPDX-License-Identifier: Apache-2.0
/// \file A figure along a swept key, as headlab along found it: curves, slopes, the lowest.
#include <cmath>

#include "tools/report/curves_figure.h"
#include "tools/report/figure.h"
#include "tools/report/sweep.h"

namespace headlab::tools {
namespace {

struct PlacedCurve {
  const Value* of;
  FigureCurve curve;
};

std::vector<PlacedCurve> curves_of(const Value& document) {
  std::vector<PlacedCurve> all;
  for (const Value& of : items_of(member(document, "curves"))) {
    FigureCurve curve{.name = text_of(member(of, "name"))};
    for (const Value& point : items_of(member(of, "points"))) {
      curve.x.push_back(number_of(member(point, "x")));
      curve.y.push_back(estimate_of(member(point, "figure")));
    }
    const Estimate slope = estimate_of(member(of, "slope"));
    if (std::isfinite(slope.value)) curve.note = slope_note(slope);
    if (!curve.x.empty()) all.push_back({&of, std::move(curve)});
  }
  return all;
}

/// Where each curve is lowest, and what crosses, of a few.
std::string finding_of(const Value& document, const std::vector<PlacedCurve>& shown) {
  constexpr std::size_t most = 3;
  std::string text;
  for (const std::size_t i : spread(shown.size(), most)) {
    const auto& [of, curve] = shown[i];
    text += (text.empty() ? "The lowest point" : "; ") +
            (curve.name.empty() ? "" : (text.empty() ? " of " : "of ") + curve.name) + " is at " +
            axis_number(number_of(member(*of, "lowest")));
  }
  text += shown.size() > most ? "; the table marks those of the others." : ".";
  const std::size_t crossings = items_of(member(document, "crossings")).size();
  if (crossings == 0) return text;
  const Value& first = items_of(member(document, "crossings")).front();
  return text + " " + text_of(member(first, "a")) + " and " + text_of(member(first, "b")) +
         " cross between " + axis_number(number_of(member(first, "low"))) + " and " +
         axis_number(number_of(member(first, "high"))) +
         (crossings == 1
              ? "."
              : ", and " + std::to_string(crossings - 1) + " other crossings are known.");
}

Table points_table(const Value& document, const std::vector<PlacedCurve>& all) {
  const std::string min_over = text_of(member(document, "min_over"));
  Table table{.caption = figure_words(text_of(member(document, "figure"))),
              .error = "MCSE",
              .headings = {"curve", text_of(member(document, "over"))}};
  if (!min_over.empty()) table.headings.push_back(min_over);
  table.headings.insert(table.headings.end(),
                        {figure_words(text_of(member(document, "figure"))), "may be the lowest"});
  for (const auto& [of, curve] : all) {
    const Value::Array& points = items_of(member(*of, "points"));
    for (std::size_t i = 0; i < points.size(); ++i) {
      std::vector<std::string> row = {curve.name.empty() ? "the only one" : curve.name,
                                      axis_number(curve.x[i])};
      if (!min_over.empty()) row.push_back(words_of(member(points[i], "chosen")));
      row.insert(row.end(), {estimate_text(curve.y[i]),
                             is_true(member(points[i], "may_be_lowest")) ? "yes" : "no"});
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

}  // namespace

std::vector<Picture> along_figures(const Source& source) {
  const Value& document = source.document;
  const std::vector<PlacedCurve> all = curves_of(document);
  if (all.empty()) return {};
  std::vector<PlacedCurve> shown;
  for (const std::size_t i : spread(all.size(), colors)) shown.push_back(all[i]);
  std::vector<double> x, y;
  CurvesPanel panel;
  for (const PlacedCurve& one : shown) {
    x.insert(x.end(), one.curve.x.begin(), one.curve.x.end());
    for (const Estimate& figure : one.curve.y) y.push_back(figure.value);
    panel.curves.push_back(one.curve);
  }
  const bool slopes = show_slopes({panel});
  const CurvesPicture picture{.x_title = axis_title(text_of(member(document, "over_key"))),
                              .y_title = figure_words(text_of(member(document, "figure"))),
                              .x_kind = slopes ? ScaleKind::logarithmic : kind_for_levels(x),
                              .y_kind = slopes ? ScaleKind::logarithmic : kind_for_figure(y),
                              .panels = {panel}};
  const std::string min_over = text_of(member(document, "min_over_key"));
  return {
      {.title = "Along " + picture.x_title + ": " + picture.y_title,
       .finding = finding_of(document, shown),
       .draw = [picture](double width) { return draw_curves(picture, width); },
       .table = points_table(document, all),
       .note = sentences(
           {"Bands are ± 2 MCSE.",
            min_over.empty() ? "" : "Each point is the least over " + axis_title(min_over) + ".",
            shows_text(shown.size(), all.size(), "curves, from the first to the last.")})}};
}

}  // namespace headlab::tools
