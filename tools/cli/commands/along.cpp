// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "engine/files/json_fields.h"
#include "tools/cli/commands/along_curves.h"
#include "tools/cli/commands/commands.h"
#include "tools/tables/read_tables.h"
#include "tools/tables/select_table.h"

namespace headlab::tools {
namespace {

struct AlongArguments : CommonArguments {
  std::string result;
  std::optional<std::string> over, min_over;
  std::string figure = "mse";
  bool slope = false;

  void list(Options& options) {
    options.text("DIR", "", "A folder of headlab run --out, with results.nc", result);
    options.text("--over", "KEY", "The swept key along which the figure is seen", over);
    options.text("--figure", "NAME", "A figure averaged over queries; the default is mse", figure);
    options.text("--min-over", "KEY", "At each value the least over this key, as a bandwidth",
                 min_over);
    options.flag("--slope", "Fit the slope of the logarithm of the figure on that of the key",
                 slope);
    take(options, {{"--json", "Write this to a file, or - for standard output"}});
  }
};

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

std::string curve_text(const Curves& curves, const NamedCurve& one, const AlongArguments& run) {
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
    visit("high", crossing.high, "point behind it");
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

std::string along_text(const Curves& curves, const AlongArguments& run) {
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
  const Curves& curves;
  const NamedCurve& of;
  bool has_slope;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("name", of.name, "values of the other keys");
    std::vector<PointRecord> points;
    for (std::size_t i = 0; i < of.points.size(); ++i) {
      const CurvePoint& point = of.points[i];
      std::optional<JsonText> chosen;
      if (curves.min_over()) {
        const std::string text = text_at(*curves.min_over(), point.chosen());
        chosen = JsonText{curves.min_over()->is_text() ? to_json(Value(text, Location())) : text};
      }
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

struct AlongRecord {
  const Curves& curves;
  const AlongArguments& run;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("over", curves.over().name, "key");
    visit("figure", run.figure, "its name in the summary");
    std::vector<CurveRecord> all;
    for (const NamedCurve& one : curves.all()) all.push_back({curves, one, run.slope});
    visit("curves", all, "one for each setting of the other keys", {.item = "curve"});
    visit("crossings", crossings_of(curves), "of each two curves", {.item = "crossing"});
  }
};

ExitCode along(const AlongArguments& arguments) {
  if (arguments.result.empty() || !arguments.over) {
    throw InvalidInput("along: needs results and a key - write headlab along DIR --over data.n");
  }
  const StoredResults results(arguments.result);
  require_documents(arguments, {results.path()});
  require_nodes(results);
  const std::unique_ptr<TableSource> table = read_tables({results.path()}, TableOf::conditions);
  const Curves curves({.command = "along",
                       .option = "--over",
                       .over = *arguments.over,
                       .min_over = arguments.min_over,
                       .figure = arguments.figure},
                      results, *table);
  const std::string json = arguments.json ? json_text(AlongRecord{curves, arguments}, 2) : "";
  write_documents(arguments, json);
  print_document(arguments, json, [&] { return along_text(curves, arguments); });
  return ExitCode::done;
}

}  // namespace

Command along_command() {
  return make_command("along", "See a figure along a swept key: slope, lowest point, crossings",
                      along);
}

}  // namespace headlab::tools
