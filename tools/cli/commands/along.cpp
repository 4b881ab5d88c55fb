// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <map>

#include "engine/files/json_fields.h"
#include "engine/files/netcdf_file.h"
#include "engine/moments/estimates.h"
#include "tools/cli/commands/commands.h"
#include "tools/tables/read_tables.h"
#include "tools/tables/select_table.h"
#include "validation/allocation/selection.h"
#include "validation/curves/curves.h"

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

/// A condition with the figure, its value left out node by node.
struct ConditionFigure {
  Jackknifed figure;
  std::vector<double> counts;  ///< replicates of the nodes
};

/// The figure of each condition. Throws InvalidInput where conditions have other draws, or a figure
/// is not there.
std::vector<ConditionFigure> condition_figures(const StoredResults& results,
                                               const std::string& figure) {
  std::vector<ConditionFigure> all;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const StoredCondition stored = results.nodes(i);
    if (stored.layout.mode == MomentMode::separate) {
      throw InvalidInput("along: is of errors of ensembles, and " + one_line(results.path()) +
                         " has layers");
    }
    const JackknifedEstimates averages = jackknifed_averages(
        MomentTree(stored.layout, stored.nodes), stored.head_weights, stored.truth, stored.use());
    NumberList<const Jackknifed> terms, indices;
    averages.fields(terms);
    averages.index_fields(indices);
    Texts names;
    const Jackknifed* found = nullptr;
    const auto look = [&](const std::string& name, const Jackknifed* number) {
      names.push_back(name);
      if (name == figure) found = number;
    };
    for (const auto& one : terms.all) look(one.name, one.number);
    for (const auto& one : indices.all) look("index_" + std::string(one.name), one.number);
    known_word("--figure", figure, names);
    if (std::isnan(found->value) || found->leave_one_out.empty()) {
      throw InvalidInput("--figure: " + figure + " has no standard error in " +
                         numbered_condition(i) + " - take more replicates, or another figure");
    }
    all.push_back({*found, averages.node_counts});
    if (all.back().counts != all.front().counts) {
      throw InvalidInput("along: " + numbered_condition(i) +
                         " has other replicates than the first - run them all with --replicates");
    }
  }
  return all;
}

/// A point of a curve: a condition, or the least of several.
struct Point {
  double x = 0;
  std::vector<std::size_t> conditions;  ///< to choose from
  Screening choice = {};                ///< of these
  std::size_t chosen() const { return conditions[choice.least]; }
};

struct NamedCurve {
  std::string name;  ///< the values of the other keys: "count = 4"
  std::vector<Point> points;
  Screening lowest = {};  ///< of the points
  Curve curve = {};
};

/// What may be the least, of one look at so many candidates.
Screening lowest_of(const std::vector<Jackknifed>& figures, const std::vector<double>& counts) {
  const SelectionGuarantee guarantee;
  return screen(figures, counts, comparison_level(guarantee.alpha, figures.size(), 1), 0);
}

class Curves {
 public:
  Curves(const AlongArguments& arguments, const TableSource& table,
         std::vector<ConditionFigure> figures)
      : over_(key_of(table, *arguments.over, "--over")), figures_(std::move(figures)) {
    if (arguments.min_over) min_over_ = key_of(table, *arguments.min_over, "--min-over");
    require_numbers(over_, "--over");
    if (min_over_ && min_over_->name == over_.name) {
      throw InvalidInput("--min-over: is " + over_.name + ", as --over - name another key");
    }
    require_one_seed(table);
    find_keys(table);
    for (std::size_t i = 0; i < figures_.size(); ++i) add(i);
    if (std::ranges::all_of(all_, [](const NamedCurve& one) { return one.points.size() == 1; })) {
      throw InvalidInput("--over: " + over_.name + " has one value alone");
    }
    for (NamedCurve& one : all_) finish(one);
  }

  const std::vector<NamedCurve>& all() const { return all_; }
  const TableColumn& over() const { return over_; }
  const std::optional<TableColumn>& min_over() const { return min_over_; }
  const std::vector<double>& counts() const { return figures_.front().counts; }
  Estimate figure_of(const Point& point) const {
    return figures_[point.chosen()].figure.figure(counts());
  }

 private:
  static void require_numbers(const TableColumn& key, const std::string& option) {
    if (!key.is_text()) return;
    throw InvalidInput(option + ": " + key.name + " has no numbers to go along");
  }
  static void require_one_seed(const TableSource& table) {
    const TableColumn seed = key_of(table, "seed", "--over");
    const auto& seeds = std::get<std::vector<double>>(seed.cells);
    if (std::ranges::any_of(seeds, [&](double one) { return one != seeds.front(); })) {
      throw InvalidInput("along: conditions have several seeds, and share no draws");
    }
  }

  double x_of(std::size_t i) const { return std::get<std::vector<double>>(over_.cells)[i]; }

  /// The values of some keys, but for one of them.
  static std::string values_of(const std::vector<const TableColumn*>& keys, std::size_t i,
                               const TableColumn* without = nullptr) {
    std::string text;
    for (const TableColumn* key : keys) {
      if (key == without) continue;
      text += (text.empty() ? "" : ", ") + key->name + " = " + one_line(text_at(*key, i), 40);
    }
    return text;
  }

  /// Whether a key changes along `over` and follows from that and the others, as a bandwidth by a
  /// formula of n does: it belongs to the points of a curve.
  bool follows(const std::vector<const TableColumn*>& keys, const TableColumn* key) const {
    std::map<std::string, std::map<double, std::string>> found;
    bool varies = false;
    for (std::size_t i = 0; i < figures_.size(); ++i) {
      auto& along = found[values_of(keys, i, key)];
      const std::string value = text_at(*key, i);
      if (along.try_emplace(x_of(i), value).first->second != value) return false;
      varies = varies || along.begin()->second != value;
    }
    return varies;
  }

  void find_keys(const TableSource& table) {
    for (const TableColumn& key : table.keys) {
      if (key.name != over_.name) keys_.push_back(&key);
    }
    const auto is_min_over = [&](const TableColumn* key) {
      return min_over_ && key->name == min_over_->name;
    };
    const std::vector<const TableColumn*> all = keys_;
    for (const TableColumn* key : all) {
      if (!is_min_over(key) && follows(keys_, key)) std::erase(keys_, key);
    }
    std::erase_if(keys_, is_min_over);
    // What varies with a key that is named needs no name itself.
    std::vector<const TableColumn*> named;
    for (const TableColumn* key : keys_) {
      std::map<std::string, std::string> found;
      bool is_free = false;
      for (std::size_t i = 0; i < figures_.size(); ++i) {
        const std::string value = text_at(*key, i);
        is_free = is_free || found.try_emplace(values_of(named, i), value).first->second != value;
      }
      if (is_free) named.push_back(key);
    }
    keys_ = std::move(named);
  }

  void add(std::size_t i) {
    const std::string name = values_of(keys_, i);
    auto curve = std::ranges::find(all_, name, &NamedCurve::name);
    if (curve == all_.end()) {
      all_.push_back({.name = name, .points = {}});
      curve = all_.end() - 1;
    }
    const double x = x_of(i);
    auto point = std::ranges::find(curve->points, x, &Point::x);
    if (point == curve->points.end()) {
      curve->points.push_back({.x = x, .conditions = {}});
      point = curve->points.end() - 1;
    } else if (!min_over_) {
      throw InvalidInput("along: " + over_.name + " = " + number_text(x) +
                         " stands twice in the sweep");
    }
    point->conditions.push_back(i);
  }

  void finish(NamedCurve& one) const {
    std::ranges::sort(one.points, {}, &Point::x);
    for (Point& point : one.points) {
      std::vector<Jackknifed> figures;
      for (const std::size_t c : point.conditions) figures.push_back(figures_[c].figure);
      point.choice = lowest_of(figures, counts());
      one.curve.x.push_back(point.x);
      one.curve.y.push_back(figures[point.choice.least]);
    }
    one.lowest = lowest_of(one.curve.y, counts());
  }

  TableColumn over_;
  std::optional<TableColumn> min_over_;
  std::vector<ConditionFigure> figures_;
  std::vector<const TableColumn*> keys_;  ///< those that tell curves apart
  std::vector<NamedCurve> all_;
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
  columns.add_key(curves.over().name,
                  cells_of(one.points, [](const Point& point) { return number_text(point.x); }),
                  true);
  if (curves.min_over()) {
    columns.add(curves.min_over()->name, cells_of(one.points, [&](const Point& point) {
                  return choice_text(point.choice, values_of(*curves.min_over(), point.conditions));
                }));
  }
  columns.add_figures(run.figure, cells_of(one.points, [&](const Point& point) {
                        return curves.figure_of(point);
                      }));
  std::string text = (one.name.empty() ? "" : one.name + "\n") + columns.text("  ");
  text +=
      "  lowest at " + curves.over().name + " = " +
      choice_text(one.lowest,
                  cells_of(one.points, [](const Point& point) { return number_text(point.x); })) +
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
    return std::ranges::any_of(one.points, [&](const Point& point) {
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
      const Point& point = of.points[i];
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
  if (!results.has_nodes()) {
    throw InvalidInput(one_line(results.path()) +
                       ": has no nodes, from which standard errors come - run without --nodes none "
                       "and give the folder");
  }
  const std::unique_ptr<TableSource> table = read_tables({results.path()}, TableOf::conditions);
  const Curves curves(arguments, *table, condition_figures(results, arguments.figure));
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
