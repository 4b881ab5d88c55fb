// SPDX-License-Identifier: Apache-2.0
#include "tools/tables/along.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "engine/files/json_fields.h"
#include "engine/files/json_reader.h"
#include "engine/files/json_writer.h"
#include "engine/files/made_by.h"
#include "engine/files/words.h"
#include "engine/moments/estimates.h"
#include "engine/results/results_id.h"
#include "tools/cli/columns.h"
#include "tools/cli/figure_text.h"
#include "tools/cli/options.h"
#include "tools/tables/along_curves.h"
#include "tools/tables/select_table.h"
#include "validation/curves/curves.h"

namespace headlab::tools {
namespace {

/// "0.4 (or 0.2, 0.8)": the least, and what may be it too.
std::string choice_text(const Screening& choice, const Texts& values) {
  Texts others;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (choice.kept[i] && i != choice.least) others.push_back(values[i]);
  }
  return values[choice.least] + (others.empty() ? "" : " (or " + listed(others) + ")");
}

Texts values_of(const TableColumn& key, const std::vector<std::size_t>& rows) {
  return cells_of(rows, [&](std::size_t row) { return one_line(text_at(key, row), 40); });
}

std::string curve_text(const Curves& curves, const NamedCurve& one, const AlongRequest& run) {
  Columns columns;
  columns.add_key(
      curves.over().name,
      cells_of(one.points, [](const CurvePoint& point) { return number_text(point.x); }), true);
  if (curves.min_over()) {
    columns.add(curves.min_over()->name, cells_of(one.points, [&](const CurvePoint& point) {
                  return choice_text(point.choice, values_of(*curves.min_over(), point.conditions));
                }));
  }
  columns.add_figures(run.figure, cells_of(one.points, [&](const CurvePoint& point) {
                        return curves.figure_of(point);
                      }));
  std::string text = (one.name.empty() ? "" : one.name + "\n") + columns.text("  ");
  text += "  lowest at " + curves.over().name + " = " +
          choice_text(
              one.lowest,
              cells_of(one.points, [](const CurvePoint& point) { return number_text(point.x); })) +
          "\n";
  if (!run.slope) return text;
  const SlopeEstimate slope = log_log_slope(one.curve, curves.counts());
  if (std::isnan(slope.slope.value)) {
    return text + "  no slope: a value is not positive, or there is one\n";
  }
  const auto end = [&](double of) {
    const std::string both = figure_text({of, slope.slope.mcse});
    return both.substr(0, both.find(' '));
  };
  return text + "  slope of log " + run.figure + " on log " + curves.over().name + ": " +
         figure_text(slope.slope) + ", 95 % from " + end(slope.interval.low) + " to " +
         end(slope.interval.high) + "\n";
}

struct CrossingRecord {
  const std::string& a;
  const std::string& b;
  Crossing crossing;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("a", a, "one curve");
    visit("b", b, "the other");
    visit("at", crossing.at, "where lines between their points cross");
    visit("low", crossing.low, "point of the sweep before the crossing");
    visit("high", crossing.high, "point after it");
  }
};

std::vector<CrossingRecord> crossings_of(const Curves& curves) {
  std::vector<CrossingRecord> all;
  for (std::size_t i = 0; i < curves.all().size(); ++i) {
    for (std::size_t j = i + 1; j < curves.all().size(); ++j) {
      const NamedCurve &a = curves.all()[i], &b = curves.all()[j];
      if (a.curve.x != b.curve.x) continue;
      for (const Crossing& one : crossings(a.curve, b.curve, curves.counts())) {
        all.push_back({a.name, b.name, one});
      }
    }
  }
  return all;
}

std::string along_text(const Curves& curves, const AlongRequest& run) {
  std::string text;
  for (const NamedCurve& one : curves.all()) text += curve_text(curves, one, run) + "\n";
  for (const CrossingRecord& one : crossings_of(curves)) {
    const Crossing& crossing = one.crossing;
    text += one.a + " and " + one.b + " cross between " + curves.over().name + " = " +
            number_text(crossing.low) + " and " + number_text(crossing.high) + ", at about " +
            short_number(crossing.at) + "\n";
  }
  const bool rare = std::ranges::any_of(curves.all(), [&](const NamedCurve& one) {
    return std::ranges::any_of(one.points, [&](const CurvePoint& point) {
      return curves.figure_of(point).carriers < enough_carriers;
    });
  });
  if (rare) {
    text +=
        "warning: fewer than 20 replicates carry a figure, and errors may be larger than these\n";
  }
  text += "in parentheses: what may be the lowest as well, with probability 95 % at least\n";
  if (curves.min_over()) {
    text += "standard errors are those of the " + curves.min_over()->name +
            " chosen, and do not cover the choice\n";
  }
  return text + "± is one Monte Carlo standard error, by the jackknife over common training sets\n";
}

const std::string& full_key(const TableColumn& key) {
  return key.key.empty() ? key.name : key.key;
}

std::optional<std::uint64_t> seed_of(const Value& parameters) {
  return count_of(member(member(parameters, "run"), "seed"));
}

/// A value of the key that is searched, as JSON.
JsonText searched_value(const TableColumn& key, std::size_t row) {
  const std::string text = text_at(key, row);
  return {key.is_text() ? to_json(Value(text, Location())) : text};
}

/// Every value that some point was searched over, once; numbers ascending.
JsonText searched_values(const Curves& curves) {
  const TableColumn& key = *curves.min_over();
  Texts values;
  for (const NamedCurve& one : curves.all()) {
    for (const CurvePoint& point : one.points) {
      for (const std::size_t row : point.conditions) {
        const std::string value = searched_value(key, row).text;
        if (std::ranges::find(values, value) == values.end()) values.push_back(value);
      }
    }
  }
  if (!key.is_text()) {
    std::ranges::sort(values, {}, [](const std::string& text) { return std::stod(text); });
  }
  std::string list;
  for (const std::string& value : values) list += (list.empty() ? "" : ",") + value;
  return {"[" + list + "]"};
}

struct PointRecord {
  double x;
  std::optional<JsonText> chosen;
  Estimate figure;
  bool may_be_lowest;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("x", x, "value of the key");
    if (chosen) visit("chosen", *chosen, "value of the other key that has the least");
    visit("figure", figure, "figure");
    visit("may_be_lowest", may_be_lowest, "no other point is shown to be lower");
  }
};

struct CurveRecord {
  const StoredResults& results;
  const Curves& curves;
  const NamedCurve& of;
  bool has_slope;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("name", of.name, "values of the other keys");
    visit("parameters", JsonText{results.parameters(of.points.front().chosen())},
          "of the condition of its first point");
    std::vector<PointRecord> points;
    for (std::size_t i = 0; i < of.points.size(); ++i) {
      const CurvePoint& point = of.points[i];
      std::optional<JsonText> chosen;
      if (curves.min_over()) chosen = searched_value(*curves.min_over(), point.chosen());
      points.push_back({point.x, chosen, curves.figure_of(point), bool(of.lowest.kept[i])});
    }
    visit("points", points, "ascending", {.item = "point"});
    visit("lowest", of.points[of.lowest.least].x, "where the figure is lowest");
    if (!has_slope) return;
    const SlopeEstimate slope = log_log_slope(of.curve, curves.counts());
    visit("slope", slope.slope, "of the logarithm on that of the key");
    visit("slope_low", slope.interval.low, "end of its 95 % interval");
    visit("slope_high", slope.interval.high, "the other end");
  }
};

/// The command that gives the document again, and a report of it.
std::string replay_of(const Curves& curves, const AlongRequest& run) {
  std::string command = "headlab along DIR --over " + shell_word(curves.over().name) +
                        " --figure " + shell_word(run.figure);
  if (curves.min_over()) command += " --min-over " + shell_word(curves.min_over()->name);
  return command + (run.slope ? " --slope" : "") + " --json FILE && headlab report FILE";
}

struct AlongRecord {
  const StoredResults& results;
  const Curves& curves;
  const AlongRequest& run;

  template <class Visitor>
  void operator()(Visitor& visit) const {
    visit("results_id", results_id_of_netcdf(results.path()), "of the results");
    visit("complete", results.complete(), "the results are of a complete run");
    visit("replay", replay_of(curves, run), "command that gives the same, from the results in DIR");
    visit("parameters", JsonText{results.parameters(0)}, "of the first condition");
    visit("over", curves.over().name, "key");
    visit("over_key", full_key(curves.over()), "the same in full");
    if (curves.min_over()) {
      visit("min_over", curves.min_over()->name, "second key");
      visit("min_over_key", full_key(*curves.min_over()), "the same in full");
      visit("min_over_values", searched_values(curves), "its values, numbers ascending");
    }
    visit("figure", run.figure, "its name in the summary");
    std::vector<CurveRecord> all;
    for (const NamedCurve& one : curves.all()) all.push_back({results, curves, one, run.slope});
    visit("curves", all, "one for each setting of the other keys", {.item = "curve"});
    visit("crossings", crossings_of(curves), "of each two curves", {.item = "crossing"});
  }
};

}  // namespace

Along along(const StoredResults& results, const AlongRequest& request) {
  require_nodes(results);
  const std::unique_ptr<TableSource> table = read_tables({results.path()}, TableOf::conditions);
  const Curves curves({.command = "along",
                       .option = "--over",
                       .over = request.over,
                       .min_over = request.min_over,
                       .figure = request.figure},
                      results, *table);
  const Value first = parse_json(results.parameters(0)).value_or(Value());
  const auto json = json_text(
      MadeDocument{MadeBy{provenance(), {}, seed_of(first)}, AlongRecord{results, curves, request}},
      2);
  return {.json = json, .text = along_text(curves, request)};
}

}  // namespace headlab::tools
