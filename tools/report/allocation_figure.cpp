// SPDX-License-Identifier: Apache-2.0
/// \file Error of every division of a budget among heads.
#include <algorithm>
#include <cmath>

#include "tools/cli/figure_text.h"
#include "tools/report/figures.h"

namespace headlab::tools {
namespace {

constexpr std::size_t max_studies = 6;
constexpr double whisker_errors = 2;

struct Candidate {
  double heads, dim;
  Estimate mse;
  bool in_set, advised;
};

struct AllocationPanel {
  std::string title;
  const Value* study;
  std::vector<Candidate> candidates = {};
};

AllocationPanel panel_of(const Value& study) {
  AllocationPanel panel{"D " + axis_number(number_of(member(study, "budget"))) + ", n " +
                            axis_number(number_of(member(study, "n"))),
                        &study};
  const Value& advice = member(study, "advice");
  for (const Value& one : items_of(member(study, "allocations"))) {
    Candidate candidate{number_of(member(one, "heads")), number_of(member(one, "dim")),
                        estimate_of(member(one, "mse")), false, false};
    candidate.in_set = is_true(member(one, "in_best_set"));
    candidate.advised = candidate.dim == number_of(member(advice, "dim")) &&
                        candidate.heads == number_of(member(advice, "heads"));
    if (std::isfinite(candidate.mse.value) && std::isfinite(candidate.dim)) {
      panel.candidates.push_back(candidate);
    }
  }
  std::ranges::stable_sort(panel.candidates, {}, &Candidate::dim);
  return panel;
}

Canvas draw_panels(const std::vector<AllocationPanel>& panels) {
  const bool single = panels.size() == 1;
  const double height = single ? 240 : 170;
  const double top = 30, cell = height + 84;
  const std::size_t rows = single ? 1 : (panels.size() + 1) / 2;
  Canvas canvas(figure_width, top + cell * static_cast<double>(rows));
  std::vector<LegendEntry> legend = {{0, "allocation", true}};
  const auto any = [&](auto&& wanted) {
    return std::ranges::any_of(panels, [&](const AllocationPanel& panel) {
      return std::ranges::any_of(panel.candidates, wanted);
    });
  };
  if (any([](const Candidate& one) { return one.in_set && !one.advised; })) {
    legend.push_back({1, "may be best"});
  }
  if (any(&Candidate::advised)) legend.push_back({3, "advised"});
  draw_legend(canvas, {20, 14}, figure_width - 10, legend);
  const std::vector<Box> cells = panel_cells(panels.size(), top, cell);
  for (std::size_t p = 0; p < panels.size(); ++p) {
    std::vector<double> dims, errors;
    for (const Candidate& one : panels[p].candidates) {
      dims.push_back(one.dim);
      const double error = std::isfinite(one.mse.mcse) ? whisker_errors * one.mse.mcse : 0;
      errors.insert(errors.end(), {one.mse.value - error, one.mse.value + error});
    }
    const ScaleKind kind = kind_for_levels(dims);
    const Box box{cells[p].left + 62, cells[p].top + 42, cells[p].right - 16,
                  cells[p].top + 42 + height};
    const Range x = range_of(kind, dims, 0.04), y = range_of(ScaleKind::linear, errors, 0.08);
    const Axes axes{box, Scale(kind, x.low, x.high, box.left, box.right),
                    Scale(ScaleKind::linear, y.low, y.high, box.bottom, box.top)};
    canvas.text({cells[p].left + 18, cells[p].top + 16}, panels[p].title, "start", "strong");
    std::vector<Tick> ticks;
    for (const double dim : dims) ticks.push_back({dim, axis_number(dim)});
    draw_y_axis(canvas, axes, {"MSE", axes.y.ticks(5)});
    draw_x_axis(canvas, axes, {"dimension of a head d_k", ticks});
    std::vector<Point> line;
    for (const Candidate& one : panels[p].candidates)
      line.push_back(axes.at(one.dim, one.mse.value));
    canvas.polyline(line, "theory c0");
    for (const Candidate& one : panels[p].candidates) {
      const std::size_t color = one.advised ? 3 : one.in_set ? 1 : 0;
      if (std::isfinite(one.mse.mcse)) {
        const double error = whisker_errors * one.mse.mcse;
        canvas.line(axes.at(one.dim, one.mse.value - error),
                    axes.at(one.dim, one.mse.value + error), "whisker c" + std::to_string(color));
      }
      canvas.mark(color, axes.at(one.dim, one.mse.value), color == 0, color == 3 ? 5 : 4);
    }
  }
  return canvas;
}

}  // namespace

std::vector<Picture> allocation_figures(const Source& source) {
  std::vector<AllocationPanel> all;
  const Value& studies = member(source.document, "studies");
  if (studies.is<Value::Array>()) {
    for (const Value& study : items_of(studies)) all.push_back(panel_of(study));
  } else {
    all.push_back(panel_of(source.document));
  }
  std::erase_if(all, [](const AllocationPanel& panel) { return panel.candidates.empty(); });
  if (all.empty()) return {};
  std::vector<AllocationPanel> shown;
  for (const std::size_t i : spread(all.size(), max_studies)) shown.push_back(all[i]);
  Table table{.caption = "Error of each allocation: value ± MCSE",
              .headings = {"setting", "H", "d_k", "MSE", "may be best"},
              .rows = {}};
  std::string finding;
  for (const AllocationPanel& panel : all) {
    for (const Candidate& one : panel.candidates) {
      table.rows.push_back({panel.title, axis_number(one.heads), axis_number(one.dim),
                            estimate_text(one.mse),
                            one.advised  ? "yes, advised"
                            : one.in_set ? "yes"
                                         : "no"});
    }
    if (&panel != &all.front() && &panel != &all.back()) continue;
    const auto advised = std::ranges::find(panel.candidates, true, &Candidate::advised);
    const std::string text = text_of(member(member(*panel.study, "advice"), "text"));
    std::string sentence = text;
    if (text.empty() && advised != panel.candidates.end()) {
      sentence = axis_number(advised->heads) + " heads of dimension " + axis_number(advised->dim) +
                 " have the smallest error, " + estimate_text(advised->mse) + ".";
    }
    if (sentence.empty()) continue;
    finding += (finding.empty() ? "" : " ") + panel.title + ": " + sentence;
  }
  if (finding.empty()) finding = "No allocation is advised yet.";
  const std::string thinned = thin_rows(table, 150);
  const std::string limits = text_of(member(member(*all.front().study, "advice"), "limits"));
  return {
      {.title = "Error of the allocations",
       .finding = finding,
       .canvas = draw_panels(shown),
       .table = std::move(table),
       .note = sentences(
           {"Whiskers are ± 2 MCSE.",
            limits.empty() || all.size() == 1 ? limits : "Of " + all.front().title + ": " + limits,
            shown.size() < all.size() ? "Shows " + std::to_string(shown.size()) + " of " +
                                            std::to_string(all.size()) + " selections."
                                      : "",
            thinned}),
       .command = text_of(member(*all.front().study, "replay"))}};
}

}  // namespace headlab::tools
