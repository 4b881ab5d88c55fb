// SPDX-License-Identifier: Apache-2.0
/// \file Components of the error and measures against a swept key, with their relative standard
/// errors, and their differences between conditions.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "kernels/counted.h"
#include "tools/cli/figure_text.h"
#include "tools/report/figure.h"
#include "tools/report/labels.h"
#include "tools/report/sweep.h"

namespace headlab::tools {
namespace {

constexpr std::size_t max_panels = 6;
constexpr std::size_t max_points = 60;
constexpr double half_bar = 30;  ///< half the width of a bar
constexpr const char* closed_forms_note =
    "Dotted lines are closed forms, hidden where the simulation agrees with them; their numbers "
    "stand under \"Simulation and closed forms\".";

struct Drawn {
  const Component* component;
  std::size_t condition;
  double place;
  Estimate estimate;
  double computed;  ///< by a closed form, NaN where there is none
  double relative() const { return estimate.mcse / std::abs(estimate.value); }
  bool has_relative() const { return std::isfinite(relative()) && relative() > 0; }
};

/// What is drawn of a condition.
enum class Shown { components, differences };

/// All that is drawn, and how.
struct ComponentsPicture {
  const Value::Array& conditions;
  Shown shown;
  Sweep sweep;
  Layout layout;
  std::vector<Component> components;
  bool of_measures;
  std::vector<std::vector<Drawn>> drawn = {};  ///< [panels]
  std::vector<double> all_places = {};         ///< of every condition shown, drawn or not
  ScaleKind y_kind = ScaleKind::linear;
  bool compared = false;
  bool has_relative = false;
  std::size_t without_place = 0;
  double widest_band = 0;  ///< in pixels

  /// \param measures  empty: components of the error
  ComponentsPicture(const Value::Array& all, Shown what, std::vector<Component> measures)
      : conditions(all),
        shown(what),
        sweep(sweep_of(all)),
        layout(layout_of(sweep, max_panels, max_points)),
        components(measures.empty() ? components_of(all) : std::move(measures)),
        of_measures(!components.empty() && components.front().key != "mse") {
    std::vector<double> errors;
    for (const Panel& panel : layout.panels) {
      std::vector<Drawn>& of_panel = drawn.emplace_back();
      for (std::size_t k = 0; k < components.size(); ++k) {
        for (const std::size_t c : panel.conditions) {
          const Value& condition = conditions[c];
          const Component& component = components[k];
          // A single condition has its components side by side.
          const double place = layout.along ? layout.place(sweep, c) : static_cast<double>(k);
          all_places.push_back(place);
          if (shown == Shown::differences) {
            const Value& difference = member(condition, "difference");
            // A condition that others are subtracted from has none of its own.
            if (!member(difference, "against").number()) continue;
            of_panel.push_back({&component, c, place,
                                estimate_of(member(difference, component.key)),
                                std::numeric_limits<double>::quiet_NaN()});
            continue;
          }
          of_panel.push_back(
              {&component, c, place, estimate_of(member(condition, component.key)),
               number_of(member(member(member(condition, "theory"), component.key), "value"))});
          const Drawn& one = of_panel.back();
          compared = compared || !std::isnan(one.computed);
          has_relative = has_relative || one.has_relative();
          if (k == 0) errors.push_back(one.estimate.value);
        }
      }
    }
    y_kind = kind_for_figure(errors);
    // A panel of what others are subtracted from has nothing to show.
    for (std::size_t p = drawn.size(); p-- > 0;) {
      if (!drawn[p].empty()) continue;
      drawn.erase(drawn.begin() + static_cast<std::ptrdiff_t>(p));
      layout.panels.erase(layout.panels.begin() + static_cast<std::ptrdiff_t>(p));
    }
  }

  /// What a difference or a finding is of.
  const Component& first() const { return components.front(); }
  std::string first_in_words() const { return of_measures ? first().name : "mean squared error"; }
  std::string y_title() const {
    if (shown == Shown::differences)
      return "difference of " + first_in_words() + (of_measures ? "" : "s");
    if (!of_measures) return "mean squared error and its terms";
    return components.size() == 1 ? first().name : "measures";
  }

  /// The numbers that the error axis has to hold.
  std::vector<double> values() const {
    std::vector<double> all;
    for (const auto& panel : drawn) {
      for (const Drawn& one : panel) {
        if (!has_place(y_kind, one.estimate.value)) continue;
        const double room = std::isfinite(one.estimate.mcse) ? band_errors * one.estimate.mcse : 0;
        all.insert(all.end(), {one.estimate.value, one.estimate.value + room, one.computed});
        // A band that reaches to 0 would take a logarithmic axis with it.
        if (y_kind == ScaleKind::linear) all.push_back(one.estimate.value - room);
      }
    }
    // A measure may lie anywhere; bars begin at 0.
    if (y_kind == ScaleKind::linear && !(of_measures && layout.along)) all.push_back(0);
    return all;
  }
  std::vector<double> relative_values() const {
    std::vector<double> all;
    for (const auto& panel : drawn) {
      for (const Drawn& one : panel) all.push_back(100 * one.relative());
    }
    return all;
  }
  std::vector<Tick> ticks(const Scale& x) const {
    if (layout.along) return layout.ticks(x);
    std::vector<Tick> names;
    for (std::size_t k = 0; k < components.size(); ++k) {
      names.push_back({static_cast<double>(k), components[k].name});
    }
    return names;
  }
};

/// Values of one component with their bands or whiskers.
void draw_series(Canvas& canvas, const Axes& axes, const std::vector<Drawn>& series,
                 ComponentsPicture& picture, double shift) {
  const std::string color = "c" + std::to_string(series.front().component->color);
  const bool joined = picture.layout.numeric();
  std::vector<Point> line, upper, lower, computed;
  const auto y_of = [&](double value) {
    return axes.y(has_place(axes.y.kind(), value) ? value : axes.y.low());
  };
  for (const Drawn& one : series) {
    const double x = axes.x(one.place) + shift;
    if (has_place(axes.y.kind(), one.computed)) computed.push_back({x, axes.y(one.computed)});
    if (!has_place(axes.y.kind(), one.estimate.value)) {
      ++picture.without_place;
      continue;
    }
    line.push_back({x, axes.y(one.estimate.value)});
    if (!std::isfinite(one.estimate.mcse)) continue;
    upper.push_back({x, y_of(one.estimate.value + band_errors * one.estimate.mcse)});
    lower.push_back({x, y_of(one.estimate.value - band_errors * one.estimate.mcse)});
    picture.widest_band = std::max(picture.widest_band, lower.back().y - upper.back().y);
  }
  if (joined) {
    canvas.band(upper, lower, "band " + color);
    canvas.polyline(line, "line " + color);
    canvas.polyline(computed, "theory " + color);
  }
  // A single condition has bars.
  for (const Point& at : line) {
    if (picture.layout.along) break;
    const Box bar{at.x - half_bar, std::min(at.y, y_of(0)), at.x + half_bar,
                  std::max(at.y, y_of(0))};
    canvas.rectangle(bar, "band " + color);
    canvas.rectangle(bar, "frame");
  }
  for (std::size_t i = 0; i < upper.size() && (!joined || upper.size() == 1); ++i) {
    canvas.line(upper[i], lower[i], "whisker " + color);
  }
  if (!joined) {
    for (const Point& at : computed) {
      canvas.line({at.x - 7, at.y}, {at.x + 7, at.y}, "theory " + color);
    }
  }
  if (!picture.layout.along) return;
  const double radius = line.size() > 25 ? 2.5 : 4;
  for (const Point& at : line) canvas.mark(series.front().component->color, at, false, radius);
}

void draw_relative(Canvas& canvas, const Axes& axes, const std::vector<Drawn>& series, bool joined,
                   double shift) {
  std::vector<Point> line;
  for (const Drawn& one : series) {
    const double percent = 100 * one.relative();
    if (!has_place(axes.y.kind(), percent)) continue;
    line.push_back({axes.x(one.place) + shift, axes.y(percent)});
  }
  if (joined) {
    canvas.polyline(line, "line c" + std::to_string(series.front().component->color));
  }
  for (const Point& at : line) canvas.mark(series.front().component->color, at, false, 2.5);
}

/// The series of a panel, one a component.
std::vector<std::vector<Drawn>> series_of(const std::vector<Drawn>& drawn) {
  std::vector<std::vector<Drawn>> all;
  for (const Drawn& one : drawn) {
    if (all.empty() || all.back().front().component != one.component) all.emplace_back();
    all.back().push_back(one);
  }
  return all;
}

Canvas draw_components(ComponentsPicture& picture, double picture_width) {
  picture.widest_band = 0;
  picture.without_place = 0;
  const std::size_t panels = picture.layout.panels.size();
  const bool single = panels == 1;
  const bool along = picture.layout.along != nullptr;
  const double main = single ? 220 : 160, relative = picture.has_relative && along ? 62 : 0;
  const ScaleKind x_kind = picture.layout.scale();
  const bool words = !picture.layout.numeric();
  const std::size_t names = along ? picture.layout.along->levels.size() : picture.components.size();
  const Range x_range = words ? Range{-0.5, static_cast<double>(names) - 0.5}
                              : range_of(x_kind, picture.all_places, 0.03);
  const double width = panel_cells(panels, picture_width, 0, 1).front().width() - 78;
  const Scale widths(x_kind, x_range.low, x_range.high, 0, width);
  const std::vector<Tick> ticks = picture.ticks(widths);
  const std::string x_title = along ? picture.layout.along->words() : "";
  const double below = room_for_labels(widths, ticks).height + 28;
  std::vector<std::string> names_of_panels;
  for (const Panel& panel : picture.layout.panels) names_of_panels.push_back(panel.title);
  const PartTitles titles(names_of_panels,
                          panel_cells(panels, picture_width, 0, 1).front().width() - 30);
  const double above = single ? 24 : 42 + titles.more_height();
  const double cell = above + main + (relative > 0 ? relative + 28 : 0) + below;

  std::vector<LegendEntry> legend;
  for (const Component& one : picture.components) {
    legend.push_back({one.color, one.name, false, picture.layout.numeric()});
  }
  if (!picture.layout.along) legend.clear();
  if (picture.compared) legend.push_back({0, "closed form", false, false, "theory"});
  const double top = legend.empty() ? 12 : legend_height(picture_width, legend) + 4;
  Canvas canvas = canvas_of_panels(panels, picture_width, top, cell, legend);

  const Range y_range = range_of(picture.y_kind, picture.values());
  const Range relative_range = range_of(ScaleKind::logarithmic, picture.relative_values(), 0.1);
  const std::vector<Box> cells = panel_cells(panels, picture_width, top, cell);
  for (std::size_t p = 0; p < panels; ++p) {
    const double y = cells[p].top + above;
    Box box{cells[p].left + 62, y, cells[p].right - 16, y + main};
    Axes axes{box, Scale(x_kind, x_range.low, x_range.high, box.left, box.right),
              Scale(picture.y_kind, y_range.low, y_range.high, box.bottom, box.top)};
    if (!single) titles.draw(canvas, p, {cells[p].left + 18, box.top - 26});
    draw_y_axis(canvas, axes, {picture.y_title(), axes.y.ticks(5)});
    // Where nothing has a relative error the panel has no lower part.
    const bool has_lower =
        relative > 0 && std::ranges::any_of(picture.drawn[p], &Drawn::has_relative);
    draw_x_axis(canvas, axes, {x_title, ticks}, !has_lower);
    if (y_range.low < 0 && axes.y.holds(0)) {
      canvas.line({box.left, axes.y(0)}, {box.right, axes.y(0)}, "axis");
    }
    const auto all = series_of(picture.drawn[p]);
    const bool dodge = words && along;
    const double middle = (static_cast<double>(picture.components.size()) - 1) / 2;
    const auto shift_of = [&](std::size_t k) {
      const double step = std::min(9.0, width / static_cast<double>(ticks.size()) / 5);
      return dodge ? step * (static_cast<double>(k) - middle) : 0.0;
    };
    for (std::size_t k = 0; k < all.size(); ++k) {
      draw_series(canvas, axes, all[k], picture, shift_of(k));
    }
    if (!has_lower) continue;
    box.top = box.bottom + 28;
    box.bottom = box.top + relative;
    axes.box = box;
    axes.y =
        Scale(ScaleKind::logarithmic, relative_range.low, relative_range.high, box.bottom, box.top);
    draw_y_axis(canvas, axes, {"relative MCSE, %", axes.y.ticks(2)});
    draw_x_axis(canvas, axes, {x_title, ticks});
    for (std::size_t k = 0; k < all.size(); ++k) {
      draw_relative(canvas, axes, all[k], picture.layout.numeric(), shift_of(k));
    }
  }
  return canvas;
}

/// Smallest and largest MSE or measure, and the component behind the difference.
std::string components_finding(const ComponentsPicture& picture) {
  std::size_t low = 0, high = 0;
  bool any = false;
  const Component& first = picture.first();
  const auto mse = [&](std::size_t c) {
    return estimate_of(member(picture.conditions[c], first.key));
  };
  for (std::size_t c = 0; c < picture.conditions.size(); ++c) {
    if (!std::isfinite(mse(c).value)) continue;
    if (!any || mse(c).value < mse(low).value) low = c;
    if (!any || mse(c).value > mse(high).value) high = c;
    any = true;
  }
  if (!any) return "No condition has a " + picture.first_in_words() + " yet.";
  const std::string name = first.name;
  if (picture.conditions.size() == 1) {
    std::string text = "The " + name + " is " + estimate_text(mse(0));
    for (const Component& one : std::span(picture.components).subspan(1)) {
      if (!picture.of_measures) break;
      text += ", the " + one.name + " " +
              estimate_text(estimate_of(member(picture.conditions[0], one.key)));
    }
    return text + ".";
  }
  if (low == high) return "The " + name + " is " + estimate_text(mse(low)) + " in every condition.";
  const Component* most = nullptr;
  double difference = 0;
  for (const Component& term : std::span(picture.components).subspan(1)) {
    const double here = estimate_of(member(picture.conditions[high], term.key)).value -
                        estimate_of(member(picture.conditions[low], term.key)).value;
    if (std::abs(here) > std::abs(difference)) {
      difference = here;
      most = &term;
    }
  }
  return "The smallest " + name + " is " + estimate_text(mse(low)) + " at " +
         picture.sweep.condition_text(low) + ", the largest " + estimate_text(mse(high)) + " at " +
         picture.sweep.condition_text(high) +
         (most ? "; the " + most->name + " differs most, by about " + measured_number(difference, 2)
               : "") +
         ".";
}

Table components_table(const ComponentsPicture& picture) {
  const std::string name = picture.first().name;
  const std::string what = picture.of_measures ? picture.y_title() : "Error and its components";
  Table table{.caption = what, .error = "MCSE", .headings = {"condition"}};
  for (const Component& one : picture.components) table.headings.emplace_back(one.name);
  const bool simulated = std::ranges::any_of(picture.conditions, [](const Value& condition) {
    return !std::isnan(number_of(member(condition, "replicates")));
  });
  if (picture.has_relative) table.headings.push_back("relative MCSE of the " + name);
  if (simulated) table.headings.emplace_back("replicates");
  for (std::size_t c = 0; c < picture.conditions.size(); ++c) {
    const Value& condition = picture.conditions[c];
    std::vector<std::string> row = {picture.sweep.condition_text(c)};
    if (row[0].empty()) row[0] = "the only condition";
    for (const Component& one : picture.components) {
      const Estimate figure = estimate_of(member(condition, one.key));
      const double remainder = number_of(member(member(condition, one.key), "remainder"));
      row.push_back(estimate_text(figure) +
                    (remainder > 0 ? " (< " + measured_number(remainder, 2) + ")" : ""));
    }
    const std::string& key = picture.first().key;
    const Estimate mse = estimate_of(member(condition, key));
    if (picture.has_relative) row.push_back(percent_text(mse.mcse / std::abs(mse.value)));
    if (simulated) row.push_back(count_text(number_of(member(condition, "replicates"))));
    table.rows.push_back(row);
  }
  return table;
}

/// What bands or whiskers show, and where they are too small to be seen.
std::string ranges_text(const ComponentsPicture& picture) {
  constexpr double mark_height = 8;  // in pixels
  if (picture.widest_band == 0) return "";
  const std::string see = picture.has_relative ? "the lower panel" : "the table";
  if (picture.layout.numeric()) return bands_text(picture.widest_band, see);
  if (!picture.layout.along || picture.widest_band >= mark_height) return "Whiskers are ± 2 MCSE.";
  return "Whiskers of ± 2 MCSE are shorter than the marks: see " + see + ".";
}

/// How many differences of the MSE or measure are told from 0, and the largest of them.
std::string differences_finding(const ComponentsPicture& picture) {
  std::size_t known = 0, beyond = 0, largest = 0;
  Estimate most;
  for (std::size_t c = 0; c < picture.conditions.size(); ++c) {
    const Estimate one =
        estimate_of(member(member(picture.conditions[c], "difference"), picture.first().key));
    if (!std::isfinite(one.value)) continue;
    ++known;
    if (std::abs(one.value) > band_errors * one.mcse) ++beyond;
    if (known == 1 || std::abs(one.value) > std::abs(most.value)) most = one, largest = c;
  }
  const std::string name = picture.first().name;
  if (known == 0) return "No condition has a difference of the " + name + ".";
  return "The " + name + " differs most at " + picture.sweep.condition_text(largest) + ", by " +
         estimate_text(most) + "; it differs by more than 2 MCSE in " + std::to_string(beyond) +
         " of " + counted(static_cast<std::uint64_t>(known), "condition") + ".";
}

/// \param complete  the document has every condition of the results
Table differences_table(const ComponentsPicture& picture, bool complete) {
  Table table{
      .caption = "Differences", .error = "MCSE", .headings = {"condition", "subtracted condition"}};
  for (const Component& one : picture.components) table.headings.emplace_back(one.name);
  for (std::size_t c = 0; c < picture.conditions.size(); ++c) {
    const Value& difference = member(picture.conditions[c], "difference");
    const double against = number_of(member(difference, "against"));
    if (!(against >= 0)) continue;
    const auto subtracted = static_cast<std::size_t>(against);
    // A report of many conditions may lack the one that was subtracted.
    std::vector<std::string> row = {picture.sweep.condition_text(c),
                                    complete && subtracted < picture.conditions.size()
                                        ? picture.sweep.condition_text(subtracted)
                                        : "#" + axis_number(against)};
    for (const Component& one : picture.components) {
      row.push_back(estimate_text(estimate_of(member(difference, one.key))));
    }
    table.rows.push_back(row);
  }
  return table;
}

/// A picture that was drawn once if it has panels, which finds what has no place and how wide bands
/// are.
std::shared_ptr<ComponentsPicture> drawn_picture(const Value::Array& conditions, Shown shown,
                                                 std::vector<Component> measures = {}) {
  auto picture = std::make_shared<ComponentsPicture>(conditions, shown, std::move(measures));
  if (!picture->layout.panels.empty()) draw_components(*picture, page_width);
  return picture;
}

std::function<Canvas(double)> drawing(const std::shared_ptr<ComponentsPicture>& picture) {
  return [picture](double width) { return draw_components(*picture, width); };
}

/// What was subtracted, in words: "n 100" of "data.n = 100", and of "condition #0" what that is.
std::string subtracted_words(const ComponentsPicture& picture, const std::string& subtracted,
                             bool complete) {
  std::set<std::size_t> others;
  for (const Value& condition : picture.conditions) {
    const double against = number_of(member(member(condition, "difference"), "against"));
    if (against >= 0) others.insert(static_cast<std::size_t>(against));
  }
  if (complete && others.size() == 1 && *others.begin() < picture.conditions.size()) {
    return picture.sweep.condition_text(*others.begin());
  }
  const std::size_t equals = subtracted.find(" = ");
  if (equals == std::string::npos) return subtracted;
  const std::size_t dot = subtracted.substr(0, equals).rfind('.');
  const std::size_t name = dot == std::string::npos ? 0 : dot + 1;
  const std::string value = subtracted.substr(equals + 3);
  return in_words(subtracted.substr(name, equals - name)) + (is_number_text(value) ? " " : " = ") +
         in_words(value);
}

/// Nothing where no condition has a difference.
std::vector<Picture> differences(const Source& source, const std::vector<Component>& measures) {
  const std::string subtracted = text_of(member(source.document, "difference_to"));
  const Value::Array& conditions = source.shown_conditions();
  if (subtracted.empty() || conditions.empty()) return {};
  const auto shared = drawn_picture(conditions, Shown::differences, measures);
  Table table = differences_table(*shared, conditions.size() == source.conditions);
  if (!shared->layout.along || table.rows.empty()) return {};
  return {{.title = (shared->of_measures ? "Differences of " + shared->first().name + " from "
                                         : "Differences from ") +
                    subtracted_words(*shared, subtracted, conditions.size() == source.conditions),
           .finding = differences_finding(*shared),
           .draw = drawing(shared),
           .table = std::move(table),
           .note = sentences(
               {ranges_text(*shared),
                "Conditions with one seed have the same training sets, and the MCSE is that of the "
                "difference replicate by replicate.",
                shared->layout.left_out})}};
}

/// The measures of the scenario, a colour each.
std::vector<Component> measures_of(const Value::Array& conditions) {
  std::vector<Component> all;
  if (conditions.empty()) return all;
  for (const auto& [name, location, formula] :
       members_of(member(member(conditions.front(), "parameters"), "measures"))) {
    all.push_back({name, name, all.size() % colors});
  }
  return all;
}

/// Where a jackknife says little of measures.
std::string doubtful_text(const ComponentsPicture& picture) {
  std::size_t count = 0;
  for (const Value& condition : picture.conditions) {
    const auto is_doubtful = [&](const Component& one) {
      return std::ranges::any_of(items_of(member(condition, "doubtful_measures")),
                                 [&](const Value& name) { return text_of(name) == one.key; });
    };
    count += std::ranges::any_of(picture.components, is_doubtful) ? 1 : 0;
  }
  if (count == 0) return "";
  const std::string where = picture.conditions.size() == 1
                                ? ""
                                : " in " + std::to_string(count) + " of " +
                                      std::to_string(picture.conditions.size()) + " conditions";
  return "What it divides by is less than 6 standard errors from 0" + where +
         ", where its MCSE says little.";
}

/// Why some marks are missing from the lower panel.
std::string without_error_text(const ComponentsPicture& picture) {
  if (!picture.has_relative || !picture.layout.along) return "";
  const bool any = std::ranges::any_of(picture.drawn, [](const std::vector<Drawn>& panel) {
    return std::ranges::any_of(panel, [](const Drawn& one) { return one.estimate.mcse == 0; });
  });
  return any ? "An MCSE of 0 has no mark in the lower panel." : "";
}

std::string without_place_text(const ComponentsPicture& picture) {
  if (picture.without_place == 0) return "";
  return std::to_string(picture.without_place) +
         " values that are undefined or not positive are in the table alone.";
}

/// A picture of components with the title `name`, and what they are drawn against.
Picture picture_of(const std::shared_ptr<ComponentsPicture>& shared, const std::string& name) {
  const ComponentsPicture& picture = *shared;
  return {.title = name + (picture.layout.along ? " against " + picture.layout.along->words() : ""),
          .finding = components_finding(picture),
          .draw = drawing(shared),
          .table = components_table(picture),
          .note = sentences({ranges_text(picture), doubtful_text(picture),
                             without_error_text(picture), picture.compared ? closed_forms_note : "",
                             without_place_text(picture), picture.layout.left_out})};
}

}  // namespace

std::vector<Picture> difference_figures(const Source& source) {
  std::vector<Picture> all = differences(source, {});
  for (const Component& measure : measures_of(source.shown_conditions())) {
    std::ranges::move(differences(source, {measure}), std::back_inserter(all));
  }
  return all;
}

std::vector<Picture> measures_figures(const Source& source) {
  const Value::Array& conditions = source.shown_conditions();
  const std::vector<Component> measures = measures_of(conditions);
  std::vector<std::vector<Component>> parts;
  for (const Component& one : measures) {
    // A single condition has them side by side.
    if (conditions.size() > 1 || parts.empty()) parts.emplace_back();
    parts.back().push_back(one);
  }
  std::vector<Picture> all;
  for (const std::vector<Component>& part : parts) {
    const auto shared = drawn_picture(conditions, Shown::components, part);
    all.push_back(picture_of(shared, part.size() == 1 ? part.front().name : "Measures"));
  }
  return all;
}

std::vector<Picture> components_figures(const Source& source) {
  if (source.shown_conditions().empty()) return {};
  return {picture_of(drawn_picture(source.shown_conditions(), Shown::components),
                     "Components of the error")};
}

}  // namespace headlab::tools
