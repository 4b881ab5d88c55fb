// SPDX-License-Identifier: Apache-2.0
/// \file Growth of the best dimension of a head with n, and the laws fitted to it.
#include <algorithm>
#include <cmath>

#include "tools/report/figure.h"

namespace headlab::tools {
namespace {

constexpr std::size_t max_growths = 6;

struct GrowthPlace {
  double x;
  Estimate best;
  double interpolation;  ///< error of the place between whole dimensions; NaN where it is unknown
  bool at_end;
  /// Half the length of a whisker.
  double error() const {
    const auto known = [](double number) { return std::isfinite(number) ? number : 0; };
    return band_errors * std::hypot(known(best.mcse), known(interpolation));
  }
};

/// One panel: places over n, or over the budget.
struct GrowthPanel {
  std::string title;
  const Value* growth;
  std::vector<GrowthPlace> places = {};
  double middle() const {  ///< geometric mean of what was interpolated
    double sum = 0, count = 0;
    for (const GrowthPlace& place : places) {
      if (place.at_end) continue;
      sum += std::log(place.x);
      ++count;
    }
    return std::exp(sum / count);
  }
};

GrowthPanel growth_panel(const Value& growth, const Value& studies) {
  GrowthPanel panel{"D " + axis_number(number_of(member(growth, "budget"))), &growth};
  for (const Value& point : items_of(member(growth, "points"))) {
    panel.places.push_back({number_of(member(point, "n")), estimate_of(member(point, "best_dim")),
                            number_of(member(point, "interpolation")), false});
  }
  // Allocations by theory have the best dimension in their studies.
  const bool by_theory = panel.places.empty();
  for (const Value& study : items_of(studies)) {
    const Value& best = member(study, "best_dim");
    if (!by_theory || !best.is<Value::Members>()) continue;
    if (member(study, "budget") != member(growth, "budget")) continue;
    panel.places.push_back(
        {number_of(member(study, "n")), Estimate{.value = number_of(member(best, "value"))},
         number_of(member(best, "interpolation")), is_true(member(best, "at_the_end"))});
  }
  const Value::Array& left_out = items_of(member(growth, "at_the_end"));
  const Value::Array& ends = items_of(member(growth, "ends"));
  for (std::size_t i = 0; i < std::min(left_out.size(), ends.size()); ++i) {
    panel.places.push_back({number_of(left_out[i]), {.value = number_of(ends[i])}, HUGE_VAL, true});
  }
  std::erase_if(panel.places,
                [](const GrowthPlace& place) { return !(place.x > 0) || !(place.best.value > 0); });
  std::ranges::stable_sort(panel.places, {}, &GrowthPlace::x);
  return panel;
}

/// The best dimension by a law at x.
double law_at(const Value& law, double middle, double x) {
  const std::string name = text_of(member(law, "law"));
  const double level = number_of(member(law, "level")), slope = number_of(member(law, "slope"));
  if (name == "log") return level + slope * std::log10(x / middle);
  if (name == "power") return level * std::pow(x / middle, slope);
  return level;
}

bool has_law(const std::vector<GrowthPanel>& panels, const std::string& name) {
  return std::ranges::any_of(panels, [&](const GrowthPanel& panel) {
    return std::ranges::any_of(items_of(member(*panel.growth, "laws")), [&](const Value& law) {
      return text_of(member(law, "law")) == name;
    });
  });
}

Canvas draw_growths(const std::vector<GrowthPanel>& panels, double width) {
  std::vector<LegendEntry> legend;
  const auto any_place = [&](bool at_end) {
    return std::ranges::any_of(panels, [&](const GrowthPanel& panel) {
      return std::ranges::any_of(panel.places,
                                 [&](const GrowthPlace& place) { return place.at_end == at_end; });
    });
  };
  if (any_place(false)) legend.push_back({1, "best d_k"});
  if (any_place(true)) legend.push_back({1, "an end of the range is best", true});
  if (has_law(panels, "log")) legend.push_back({3, "log law", false, false, "line"});
  if (has_law(panels, "power")) legend.push_back({2, "power law", false, false, "line"});
  std::vector<AxesPanel> all;
  for (const GrowthPanel& panel : panels) {
    std::vector<double> sizes, dims = {1};
    for (const GrowthPlace& place : panel.places) {
      sizes.push_back(place.x);
      dims.insert(dims.end(), {place.best.value - place.error(), place.best.value + place.error()});
    }
    const auto draw = [&panel](Canvas& canvas, const Axes& axes) {
      for (const Value& law : items_of(member(*panel.growth, "laws"))) {
        const std::string name = text_of(member(law, "law"));
        if (name != "log" && name != "power") continue;
        std::vector<Point> line;
        constexpr int steps = 40;
        for (int i = 0; i <= steps; ++i) {
          const double n =
              axes.x.low() * std::pow(axes.x.high() / axes.x.low(), i / static_cast<double>(steps));
          const double value = law_at(law, panel.middle(), n);
          if (axes.y.holds(value)) line.push_back(axes.at(n, value));
        }
        canvas.polyline(line, name == "log" ? "line c3" : "line c2");
      }
      for (const GrowthPlace& place : panel.places) {
        if (place.error() > 0) {
          canvas.line(axes.at(place.x, place.best.value - place.error()),
                      axes.at(place.x, place.best.value + place.error()), "whisker c1");
        }
        canvas.mark(1, axes.at(place.x, place.best.value), place.at_end);
      }
    };
    all.push_back({panel.title, ScaleKind::logarithmic, sizes, dims, draw});
  }
  return draw_panels(
      width, all,
      {"training points n", "best dimension of a head", all.size() == 1 ? 220.0 : 160.0}, legend);
}

/// Which law of growth is left.
std::string law_words(const std::string& verdict) {
  if (verdict.empty()) return "";
  if (verdict == "constant") return "; a constant is not rejected";
  if (verdict == "not distinguishable") return "; a log and a power of n cannot be told apart";
  if (verdict == "too few n") return "; the n inside the range are too few to fit a law";
  if (verdict == "at an end of the range") return "; no n inside the range, to fit a law";
  return "; law of growth: " + verdict;
}

}  // namespace

std::vector<Picture> growth_figures(const Source& source) {
  std::vector<GrowthPanel> all;
  for (const Value& growth : items_of(member(source.document, "growth"))) {
    all.push_back(growth_panel(growth, member(source.document, "studies")));
  }
  std::erase_if(all, [](const GrowthPanel& panel) { return panel.places.empty(); });
  if (all.empty()) return {};
  std::vector<GrowthPanel> shown;
  for (const std::size_t i : spread(all.size(), max_growths)) shown.push_back(all[i]);
  const std::string from = text_of(member(source.document, "source"));  // empty: simulated
  Table table{.caption = "Best dimension of a head",
              .error = "MCSE",
              .headings = {"setting", "n", "best d_k"}};
  std::string finding;
  for (const GrowthPanel& panel : all) {
    for (const GrowthPlace& place : panel.places) {
      table.rows.push_back({panel.title, axis_number(place.x),
                            place.at_end ? shown_number(place.best.value) + " (end of the range)"
                                         : estimate_text(place.best)});
    }
    const std::string trend = text_of(member(*panel.growth, "trend"));
    const std::string verdict = text_of(member(*panel.growth, "verdict"));
    finding += (finding.empty() ? "" : " ") + panel.title + ": ";
    const double first = panel.places.front().best.value;
    if (std::ranges::all_of(panel.places, [&](const GrowthPlace& place) {
          return place.at_end && place.best.value == first;
        })) {
      finding += "dimension " + shown_number(first) +
                 ", an end of the range, is best at every n, so that no law can be fitted.";
      continue;
    }
    finding += "the best dimension goes from " + estimate_text(panel.places.front().best) +
               " at n " + axis_number(panel.places.front().x) + " to " +
               estimate_text(panel.places.back().best) + " at n " +
               axis_number(panel.places.back().x) +
               (trend.empty() ? "" : " (growth: " + trend + ")") + law_words(verdict) + ".";
  }
  const bool has_whiskers = std::ranges::any_of(shown, [](const GrowthPanel& panel) {
    return std::ranges::any_of(panel.places,
                               [](const GrowthPlace& place) { return place.error() > 0; });
  });
  std::vector<std::string> notes;
  if (has_whiskers) {
    notes.emplace_back(
        from.empty() ? "Whiskers are ± 2 standard errors, of the simulation and of the place "
                       "between whole dimensions; numbers have that of the simulation alone."
                     : "Whiskers are ± twice the error of the place between whole dimensions.");
  }
  // Why another dimension may be the best one in the picture of the errors.
  notes.emplace_back(from == "theory" ? "The number of heads is D/d_k without rounding."
                                      : "Only dimensions that divide D are compared, because "
                                        "others leave a part of it unused.");
  return {{.title = "Growth of the best dimension of a head",
           .finding = finding,
           .draw = [=](double width) { return draw_growths(shown, width); },
           .table = std::move(table),
           .note = sentences(notes),
           .max_rows = all_rows}};
}

}  // namespace headlab::tools
