// SPDX-License-Identifier: Apache-2.0
/// \file Forest plot of verdicts: effects in units of their margins, with the zone of equivalence.
#include <algorithm>
#include <cmath>

#include "kernels/counted.h"
#include "tools/report/figure.h"
#include "tools/report/labels.h"
#include "tools/report/sections.h"

namespace headlab::tools {
namespace {

constexpr std::size_t max_rows = 24;  ///< of one picture, so that it fits a page of A4
constexpr double row_step = 36;       ///< a line of words over one of marks
constexpr double mark_place = 25;     ///< of the marks in a row

struct OutcomeStyle {
  const char* name;
  std::size_t color;
  bool hollow;
};

constexpr OutcomeStyle outcome_styles[] = {{"supported", 3, false},
                                           {"refuted", 4, false},
                                           {"unresolved", 1, true},
                                           {"limited by theory", 2, true},
                                           {"identity", 0, false}};

const OutcomeStyle& style_of(const std::string& verdict) {
  for (const OutcomeStyle& style : outcome_styles) {
    if (verdict == style.name) return style;
  }
  return outcome_styles[2];
}

struct ForestRow {
  std::string label;
  const OutcomeStyle* style;
  bool one_sided;
  Estimate effect;  ///< in margins, or in its own unit where the margin is 0
  bool own_unit;
};

ForestRow forest_row(const Value& verdict, const std::string& name) {
  const Value& effect = member(verdict, "effect");
  Estimate estimate = estimate_of(effect);
  const double margin = margin_of(verdict);
  const bool own_unit = !(margin > 0);
  if (!own_unit) {
    estimate.value /= margin;
    estimate.mcse /= margin;
  }
  return {.label = name,
          .style = &style_of(text_of(member(verdict, "verdict"))),
          .one_sided = text_of(member(effect, "zone")) == "one-sided",
          .effect = estimate,
          .own_unit = own_unit};
}

/// How far from 0 the axis of some rows goes: what is far beyond the most of them is an arrow.
double reach_of(const std::vector<ForestRow>& rows) {
  constexpr double least = 1.5, usual = 8, beyond_median = 3;
  std::vector<double> reaches;
  for (const ForestRow& row : rows) {
    const double error = std::isfinite(row.effect.mcse) ? band_errors * row.effect.mcse : 0;
    const double reach = std::abs(row.effect.value) + error;
    if (std::isfinite(reach)) reaches.push_back(reach);
  }
  if (reaches.empty()) return least;
  std::ranges::sort(reaches);
  const double limit = std::max(usual, beyond_median * reaches[(reaches.size() - 1) / 2]);
  return std::max(least, 1.1 * std::min(reaches.back(), limit));
}

/// An arrow at the edge of the axis with the value of what lies beyond it.
void draw_beyond(Canvas& canvas, const Axes& axes, const ForestRow& row, double y) {
  const double side = row.effect.value < 0 ? -1 : 1;
  const double edge = side < 0 ? axes.box.left : axes.box.right;
  const std::string color = "c" + std::to_string(row.style->color);
  canvas.line({edge - 26 * side, y}, {edge - 9 * side, y}, "whisker " + color);
  canvas.polygon({{edge, y}, {edge - 10 * side, y - 5}, {edge - 10 * side, y + 5}},
                 "mark " + color);
  const std::string value =
      row.effect.mcse > 0 ? estimate_text(row.effect) : axis_number(row.effect.value);
  canvas.text({edge - 32 * side, y + 4}, value, side < 0 ? "start" : "end", "halo");
}

/// \param common  bytes that all labels begin with, which are left out
Canvas draw_forest(const std::vector<ForestRow>& rows, std::size_t common, double width) {
  const double left = 20, right = width - 20;
  std::vector<LegendEntry> legend;
  for (const OutcomeStyle& style : outcome_styles) {
    if (std::ranges::any_of(rows, [&](const ForestRow& row) { return row.style == &style; })) {
      legend.push_back({style.color, style.name, style.hollow});
    }
  }
  const double top = legend_height(width, legend) + 8;
  std::vector<std::string> labels;
  for (const ForestRow& row : rows) labels.push_back(row.label.substr(common));
  labels = labels_in_lines(labels, characters_in(right - left), 3);
  double more = 0;  // what second lines take
  for (const std::string& label : labels) {
    more = std::max(more, text_height(label) - text_height(""));
  }
  const double step = row_step + more;
  const double bottom = top + step * static_cast<double>(rows.size());
  Canvas canvas(width, bottom + 44);
  draw_legend(canvas, legend);
  const double reach = reach_of(rows);
  const Axes axes{
      {left, top, right, bottom}, Scale(ScaleKind::signed_log, -reach, reach, left, right), {}};
  for (const ForestRow& row : rows) {
    const double y = top + step * static_cast<double>(&row - rows.data());
    // The zone in which the claim holds.
    if (!row.own_unit) {
      const double zone_end = row.one_sided ? axes.box.right : axes.x(1);
      canvas.rectangle({axes.x(-1), y + 16 + more, zone_end, y + step - 2}, "zone");
    }
  }
  const std::vector<Tick> ticks = axes.x.ticks(8);
  for (const Tick& tick : ticks) {
    canvas.line({axes.x(tick.value), top}, {axes.x(tick.value), bottom},
                tick.value == 0 ? "axis" : "grid");
  }
  draw_x_axis(canvas, axes, {"effect in units of the margin; shaded: allowed", ticks});
  for (const ForestRow& row : rows) {
    const auto number = static_cast<std::size_t>(&row - rows.data());
    const double y = top + step * static_cast<double>(number) + mark_place + more;
    const double first_line = y - 12 - (text_height(labels[number]) - text_height(""));
    canvas.text({left, first_line}, labels[number], "start", "halo");
    if (!std::isfinite(row.effect.value)) {
      canvas.text({axes.x(0), y + 4}, "no effect", "middle", "halo");
      continue;
    }
    if (std::abs(row.effect.value) > reach) {
      draw_beyond(canvas, axes, row, y);
      continue;
    }
    const std::string color = "c" + std::to_string(row.style->color);
    if (std::isfinite(row.effect.mcse)) {
      const double error = band_errors * row.effect.mcse;
      canvas.line({axes.x(row.effect.value - error), y}, {axes.x(row.effect.value + error), y},
                  "whisker " + color);
    }
    canvas.mark(row.style->color, {axes.x(row.effect.value), y}, row.style->hollow);
  }
  return canvas;
}

std::string counts_text(const std::vector<ForestRow>& rows) {
  std::string text;
  for (const OutcomeStyle& style : outcome_styles) {
    const auto count = std::ranges::count(rows, &style, &ForestRow::style);
    if (count > 0) {
      text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + style.name;
    }
  }
  return text;
}

}  // namespace

std::vector<Picture> verdict_figures(const Source& source) {
  std::vector<ForestRow> rows;
  const Value::Array& verdicts = items_of(member(source.document, "claims"));
  const std::vector<std::string> scenarios = scenarios_that_tell_apart(verdicts, verdict_name);
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    rows.push_back(forest_row(verdicts[i], verdict_name(verdicts[i]) + in_scenario(scenarios[i])));
  }
  if (rows.empty()) return {};
  // Verdicts of one claim need not repeat its name.
  const std::string claim = text_of(member(verdicts.front(), "claim"));
  const bool of_one = verdicts.size() > 1 && std::ranges::all_of(verdicts, [&](const Value& one) {
                        return text_of(member(one, "claim")) == claim;
                      });
  const std::size_t common = of_one ? claim.size() + 2 : 0;  // "angles: "
  const std::size_t parts = (rows.size() + max_rows - 1) / max_rows;
  std::vector<Picture> figures;
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t begin = part * rows.size() / parts;
    const std::size_t end = (part + 1) * rows.size() / parts;
    const std::vector<ForestRow> shown(rows.begin() + static_cast<std::ptrdiff_t>(begin),
                                       rows.begin() + static_cast<std::ptrdiff_t>(end));
    Table table{.caption = "Effects that decided, or came nearest to deciding",
                .error = "MCSE",
                .headings = {"claim", "reading", "setting", "verdict", "effect", "allowed",
                             "comparisons", "replicates"}};
    for (std::size_t i = begin; i < end; ++i) {
      const Value& verdict = verdicts[i];
      table.rows.push_back({text_of(member(verdict, "claim")), reading_text(verdict),
                            setting_text(verdict) + in_scenario(scenarios[i]),
                            outcome_text(verdict), effect_text(verdict), allowed_text(verdict),
                            axis_number(number_of(member(verdict, "comparisons"))),
                            replicates_text(verdict)});
    }
    const double reach = reach_of(shown);
    const auto any = [&](auto wanted) { return std::ranges::any_of(shown, wanted); };
    const bool beyond =
        any([&](const ForestRow& row) { return std::abs(row.effect.value) > reach; });
    figures.push_back(
        {.title = parts == 1 ? "Effects and zones of equivalence"
                             : "Effects and zones of equivalence, part " +
                                   std::to_string(part + 1) + " of " + std::to_string(parts),
         .finding = "Of " + counted(shown.size(), "verdict") + ": " + counts_text(shown) + ".",
         .draw = [=](double width) { return draw_forest(shown, common, width); },
         .table = std::move(table),
         .note = sentences(
             {"The shaded zone is what the margin allows.",
              any(&ForestRow::one_sided)
                  ? "A claim of order (a less than b) allows everything to the right of its zone's "
                    "left end."
                  : "",
              std::string(any([](const ForestRow& row) { return row.effect.mcse > 0; })
                              ? "Whiskers are ± 2 MCSE; the"
                              : "The") +
                  " axis is logarithmic away from 0.",
              beyond ? "An arrow stands for an effect beyond the axis; beside it stands its value"
                       " ± MCSE."
                     : "",
              any(&ForestRow::own_unit)
                  ? "Effects with a margin of 0 are in their own unit, without a zone."
                  : ""})});
  }
  return figures;
}

}  // namespace headlab::tools
