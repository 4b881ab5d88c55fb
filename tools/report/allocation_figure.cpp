// SPDX-License-Identifier: Apache-2.0
/// \file Error of every division of a budget among heads.
#include <algorithm>
#include <cmath>

#include "kernels/counted.h"
#include "tools/report/figure.h"

namespace headlab::tools {
namespace {

constexpr std::size_t max_studies = 6;

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

/// A sentence behind a colon.
std::string continued(std::string sentence) {
  // No word of two capitals stands at the beginning of one.
  if (!sentence.empty() && sentence[0] >= 'A' && sentence[0] <= 'Z') sentence[0] += 'a' - 'A';
  return sentence;
}

Canvas draw_allocations(const std::vector<AllocationPanel>& panels, double width) {
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
  std::vector<AxesPanel> all;
  for (const AllocationPanel& panel : panels) {
    std::vector<double> dims, errors;
    for (const Candidate& one : panel.candidates) {
      dims.push_back(one.dim);
      const double error = std::isfinite(one.mse.mcse) ? band_errors * one.mse.mcse : 0;
      errors.insert(errors.end(), {one.mse.value - error, one.mse.value + error});
    }
    const auto draw = [&panel](Canvas& canvas, const Axes& axes) {
      std::vector<Point> line;
      for (const Candidate& one : panel.candidates) {
        line.push_back(axes.at(one.dim, one.mse.value));
      }
      canvas.polyline(line, "theory c0");
      for (const Candidate& one : panel.candidates) {
        const std::size_t color = one.advised ? 3 : one.in_set ? 1 : 0;
        if (std::isfinite(one.mse.mcse)) {
          const double error = band_errors * one.mse.mcse;
          canvas.line(axes.at(one.dim, one.mse.value - error),
                      axes.at(one.dim, one.mse.value + error), "whisker c" + std::to_string(color));
        }
        canvas.mark(color, axes.at(one.dim, one.mse.value), color == 0, color == 3 ? 5 : 4);
      }
    };
    all.push_back({panel.title, kind_for_levels(dims), dims, errors, draw});
  }
  return draw_panels(
      width, all,
      {"dimension of a head d_k", "mean squared error", all.size() == 1 ? 240.0 : 170.0}, legend);
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
  const auto has_error = [](const AllocationPanel& panel) {
    return std::ranges::any_of(panel.candidates,
                               [](const Candidate& one) { return one.mse.mcse > 0; });
  };
  Table table{.caption = "Error of each allocation",
              .error = "MCSE",
              .headings = {"setting", "H", "d_k", "MSE", "may be best"}};
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
      const auto heads = static_cast<std::uint64_t>(advised->heads);
      sentence = counted(heads, "head") + " of dimension " + axis_number(advised->dim) +
                 (heads == 1 ? " has" : " have") + " the smallest error, " +
                 estimate_text(advised->mse) + ".";
    }
    if (sentence.empty()) continue;
    finding += (finding.empty() ? "" : " ") +
               (all.size() == 1 ? sentence : panel.title + ": " + continued(sentence));
  }
  if (finding.empty()) finding = "No allocation is advised yet.";
  const std::string limits = text_of(member(member(*all.front().study, "advice"), "limits"));
  return {{.title = "Error of the allocations",
           .finding = finding,
           .draw = [=](double width) { return draw_allocations(shown, width); },
           .table = std::move(table),
           .note = sentences({std::ranges::any_of(shown, has_error) ? "Whiskers are ± 2 MCSE." : "",
                              limits.empty() || all.size() == 1
                                  ? limits
                                  : "Of " + all.front().title + ": " + continued(limits),
                              shows_text(shown.size(), all.size(), "selections.")}),
           .max_rows = 150}};
}

}  // namespace headlab::tools
