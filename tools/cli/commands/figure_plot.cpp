// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/words.h"
#include "tools/cli/commands/plot.h"
#include "tools/report/curves_figure.h"
#include "tools/report/figure.h"
#include "tools/report/heat_map.h"
#include "tools/report/read_sources.h"
#include "tools/report/sweep.h"
#include "tools/tables/along_curves.h"
#include "tools/tables/select_table.h"

namespace headlab::tools {
namespace {

constexpr std::size_t max_settings = 2000;  ///< of a nested-loop plot

const std::vector<double>* numbers_in(const TableColumn& column) {
  return std::get_if<std::vector<double>>(&column.cells);
}

/// A value as the scenario has it.
Value value_at_row(const TableColumn& column, std::size_t row) {
  if (const auto* numbers = numbers_in(column)) return {(*numbers)[row], Location()};
  return written_value(text_at(column, row));
}

/// A key of the table with its levels in the rows that are drawn.
struct PlotKey {
  std::string name;
  SweptKey swept;
  std::vector<std::size_t> places;  ///< [rows drawn], a level

  bool joined() const { return swept.numeric; }
  const Level& level(std::size_t i) const { return swept.levels[places[i]]; }
  /// Where row i stands along an axis.
  double place(std::size_t i) const {
    return swept.numeric ? level(i).number : static_cast<double>(places[i]);
  }
  std::vector<std::string> words() const {
    std::vector<std::string> all;
    for (const Level& one : swept.levels) all.push_back(one.text);
    return all;
  }
};

/// Columns of results that a run is given and does not find.
constexpr std::string_view settings_of_runs[] = {
    "d", "heads", "k", "n", "seed", "queries", "replicates_planned"};

/// The figure of a result over its keys, as it is asked for.
class FigurePlot {
 public:
  FigurePlot(const PlotArguments& arguments, const TableSource& table)
      : arguments_(arguments),
        table_(table),
        rows_(rows_where(table, parse_where(arguments.where))),
        figure_(table.figure(arguments.figure)) {
    if (numbers_in(figure_) == nullptr) {
      throw InvalidInput("--figure: " + arguments.figure + " is not a number");
    }
    read_computed();
  }

  Picture picture() const {
    if (!arguments_.nested.empty()) return nested();
    const PlotKey x = x_key();
    if (arguments_.y) return map(x);
    return curves_picture(x, by_group(x));
  }

  /// The least over a key, with slopes.
  Picture least() const {
    const StoredResults results(arguments_.result);
    require_nodes(results);
    const Curves curves({.command = "plot",
                         .option = "--x",
                         .over = *arguments_.x,
                         .min_over = arguments_.min_over,
                         .figure = arguments_.figure,
                         .rows = rows_},
                        results, table_);
    CurvesPanel panel;
    for (const NamedCurve& one : curves.all()) {
      FigureCurve curve{.name = one.name};
      for (const CurvePoint& point : one.points) {
        curve.x.push_back(point.x);
        curve.y.push_back(curves.figure_of(point));
        curve.computed.push_back(computed_[point.chosen()]);
      }
      const SlopeEstimate slope = log_log_slope(one.curve, curves.counts());
      if (std::isfinite(slope.slope.value)) {
        curve.note = slope_note(slope.slope);
      }
      panel.curves.push_back(std::move(curve));
    }
    require_colors(panel.curves.size());
    return curves_picture(x_key(), {panel});
  }

 private:
  /// Closed forms of the figure, which a summary has beside what was simulated.
  void read_computed() {
    computed_.assign(table_.rows, no_number);
    if (table_.conditions.size() != table_.rows) return;
    SourceReader reader;
    const std::vector<Source> sources = reader.read(arguments_.result);
    const Value::Array& conditions = sources.front().shown_conditions();
    if (conditions.size() != table_.rows) return;
    for (std::size_t row = 0; row < table_.rows; ++row) {
      const Value& theory = member(conditions[table_.conditions[row]], "theory");
      computed_[row] = number_of(member(member(theory, arguments_.figure.c_str()), "value"));
    }
  }

  PlotKey plot_key(const TableColumn& column) const {
    std::vector<Value> values;
    values.reserve(rows_.size());
    DifferingKey found{column.key.empty() ? column.name : column.key, {}};
    for (const std::size_t row : rows_) {
      values.push_back(value_at_row(column, row));
      found.values.push_back(&values.back());
    }
    PlotKey key{.name = column.name, .swept = {}, .places = {}};
    key.swept = swept_key(found, key.places);
    return key;
  }

  /// That of --x, or as in a report the longest key of three or more numbers, else the longest.
  PlotKey x_key() const {
    if (arguments_.x) return plot_key(key_of(table_, *arguments_.x, "--x"));
    std::vector<PlotKey> keys;
    for (const TableColumn& key : table_.keys) {
      keys.push_back(plot_key(key));
      if (keys.back().swept.levels.size() < 2) keys.pop_back();
    }
    if (keys.empty()) {
      throw InvalidInput("--figure: " + arguments_.figure +
                         " is one number here, nothing is swept - take a picture of the report, as "
                         "--figure components, or sweep a key");
    }
    const auto rank = [](const PlotKey& key) {
      const std::size_t levels = key.swept.levels.size();
      return std::pair(key.swept.numeric && levels > 2, levels);
    };
    return *std::ranges::max_element(keys, {}, rank);
  }

  void require_colors(std::size_t curves) const {
    if (curves <= colors) return;
    throw InvalidInput("--group: makes " + std::to_string(curves) +
                       " curves, of which one picture tells " + std::to_string(colors) +
                       " apart - name another key, or leave some values out with --where");
  }

  static std::string values_of(const std::vector<PlotKey>& keys, std::size_t i) {
    std::string text;
    for (const PlotKey& key : keys) {
      const std::string symbol = symbol_of_count(key.swept.key);
      text += (text.empty() ? "" : ", ") + (symbol.empty() ? key.name : symbol) + " " +
              key.level(i).text;
    }
    return text;
  }

  /// Keys that tell points of the same x apart.
  std::vector<PlotKey> keys_beside(const PlotKey& x) const {
    std::vector<PlotKey> keys;
    const TableColumn over = key_of(table_, x.name, "--x");
    for (const TableColumn* key : keys_apart(table_, rows_, over)) keys.push_back(plot_key(*key));
    return keys;
  }

  /// Takes the key of --group away from `free`.
  std::vector<PlotKey> group_among(std::vector<PlotKey>& free, const std::string& axis,
                                   const std::string& option) const {
    std::vector<PlotKey> group;
    if (!arguments_.group) return group;
    const TableColumn wanted = key_of(table_, *arguments_.group, "--group");
    const auto at = std::ranges::find(free, wanted.name, &PlotKey::name);
    if (at == free.end()) {
      throw InvalidInput("--group: " + wanted.name +
                         (wanted.name == axis ? " is that of " + option
                                              : " does not tell curves apart - name a key that "
                                                "has several values at each point"));
    }
    group.push_back(*at);
    free.erase(at);
    return group;
  }

  std::vector<CurvesPanel> by_group(const PlotKey& x) const {
    std::vector<PlotKey> free = keys_beside(x);
    std::vector<PlotKey> group = group_among(free, x.name, "--x");
    if (!arguments_.group) {
      const auto fits = std::ranges::find_if(
          free, [](const PlotKey& key) { return key.swept.levels.size() <= colors; });
      if (fits != free.end()) {
        group.push_back(*fits);
        free.erase(fits);
      }
    }
    return panels_of(x, group, free);
  }

  std::vector<CurvesPanel> panels_of(const PlotKey& x, const std::vector<PlotKey>& group,
                                     const std::vector<PlotKey>& free) const {
    std::vector<std::string> titles, names;
    std::map<std::pair<std::size_t, std::size_t>, std::vector<std::size_t>> places;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const std::size_t panel = number_in(titles, values_of(free, i));
      const std::size_t curve = number_in(names, values_of(group, i));
      places[{panel, curve}].push_back(i);
    }
    require_colors(names.size());
    if (titles.size() > max_plot_panels) {
      throw InvalidInput("--x: leaves " + std::to_string(titles.size()) +
                         " panels, of which a picture has " + std::to_string(max_plot_panels) +
                         " at most - name the key of most values by --x, leave some out with "
                         "--where, or take --nested");
    }
    std::vector<CurvesPanel> panels;
    for (const std::string& title : titles) panels.push_back({.title = title});
    for (auto& [where, all] : places) {
      std::ranges::stable_sort(all, {}, [&](std::size_t i) { return x.place(i); });
      FigureCurve curve{.name = names[where.second]};
      for (const std::size_t i : all) add_point(curve, x.place(i), i);
      panels[where.first].curves.push_back(std::move(curve));
    }
    return panels;
  }

  static std::size_t number_in(std::vector<std::string>& all, const std::string& one) {
    const auto at = std::ranges::find(all, one);
    if (at != all.end()) return static_cast<std::size_t>(at - all.begin());
    all.push_back(one);
    return all.size() - 1;
  }

  void add_point(FigureCurve& curve, double x, std::size_t i) const {
    Estimate one{.value = (*numbers_in(figure_))[rows_[i]]};
    if (figure_.error == "mcse") one.mcse = figure_.errors[rows_[i]];
    curve.x.push_back(x);
    curve.y.push_back(one);
    curve.computed.push_back(computed_[rows_[i]]);
  }

  ScaleKind kind_of(char axis, ScaleKind usual) const {
    if (!arguments_.log) return usual;
    return *arguments_.log != "none" && arguments_.log->find(axis) != std::string::npos
               ? ScaleKind::logarithmic
               : ScaleKind::linear;
  }

  /// The kind of the axis of the figure, whose numbers these are. Throws where it holds none.
  ScaleKind kind_of_figure(const std::vector<double>& y, ScaleKind usual) const {
    const ScaleKind kind = kind_of('y', usual);
    require_place(kind, y);
    return kind;
  }

  void require_place(ScaleKind kind, const std::vector<double>& values) const {
    if (std::ranges::any_of(values, [&](double one) { return has_place(kind, one); })) return;
    throw InvalidInput("--figure: " + arguments_.figure +
                       " has no number that these axes can show - leave out --log, or take "
                       "another figure");
  }

  Picture curves_picture(const PlotKey& along, const std::vector<CurvesPanel>& panels) const {
    std::vector<double> x, y;
    for (const CurvesPanel& panel : panels) {
      for (const FigureCurve& curve : panel.curves) {
        x.insert(x.end(), curve.x.begin(), curve.x.end());
        for (const Estimate& one : curve.y) y.push_back(one.value);
      }
    }
    const bool slopes = show_slopes(panels);
    CurvesPicture picture{
        .x_title = along.swept.words(),
        .y_title = figure_words(arguments_.figure),
        .y_kind = kind_of_figure(y, slopes ? ScaleKind::logarithmic : kind_for_figure(y)),
        .panels = panels};
    if (along.joined()) {
      picture.x_kind = kind_of('x', slopes ? ScaleKind::logarithmic : kind_for_levels(x));
      require_place(picture.x_kind, x);
    } else if (arguments_.log && arguments_.log->find('x') != std::string::npos) {
      throw InvalidInput("--log: " + along.name + " has no numbers - write --log y");
    } else {
      picture.x_words = along.words();
    }
    return {.title = picture.y_title + " over " + picture.x_title,
            .finding = "Bands are ± 2 MCSE.",
            .draw = [picture](double width) { return draw_curves(picture, width); },
            .table = {}};
  }

  /// The keys of --nested, and whatever else is swept inside of them.
  std::vector<PlotKey> nested_keys() const {
    std::vector<PlotKey> keys, free;
    for (const std::string& name : arguments_.nested) {
      const TableColumn column = key_of(table_, name, "--nested");
      if (std::ranges::find(keys, column.name, &PlotKey::name) != keys.end()) {
        throw InvalidInput("--nested: names " + column.name + " twice");
      }
      keys.push_back(plot_key(column));
    }
    const TableColumn first = key_of(table_, keys.front().name, "--nested");
    for (const TableColumn* key : keys_apart(table_, rows_, first)) {
      const bool named =
          std::ranges::find(keys, key->name, &PlotKey::name) != keys.end() ||
          (arguments_.group && key->name == key_of(table_, *arguments_.group, "--group").name);
      if (!named) keys.push_back(plot_key(*key));
    }
    return keys;
  }

  Picture nested() const {
    for (const auto& [name, given] :
         {std::pair("--x", arguments_.x.has_value()), std::pair("--y", arguments_.y.has_value())}) {
      if (given) throw InvalidInput(std::string(name) + ": does not go with --nested");
    }
    if (arguments_.log && arguments_.log->find('x') != std::string::npos) {
      throw InvalidInput("--log: a nested-loop plot has settings along x - write --log y");
    }
    const std::vector<PlotKey> keys = nested_keys();
    std::vector<PlotKey> beside = keys_beside(keys.front());
    const std::vector<PlotKey> group = group_among(beside, keys.front().name, "--nested");
    if (!group.empty() && std::ranges::find(keys, group[0].name, &PlotKey::name) != keys.end()) {
      throw InvalidInput("--group: " + group[0].name + " is named by --nested too");
    }
    std::map<std::vector<std::size_t>, std::size_t> settings;
    std::vector<std::vector<std::size_t>> of_rows;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      std::vector<std::size_t>& one = of_rows.emplace_back();
      for (const PlotKey& key : keys) one.push_back(key.places[i]);
      settings.emplace(one, 0);
    }
    if (settings.size() > max_settings) {
      throw InvalidInput("--nested: there are " + std::to_string(settings.size()) +
                         " settings, of which a picture has " + std::to_string(max_settings) +
                         " at most - leave some out with --where");
    }
    NestedPicture picture{.y_title = figure_words(arguments_.figure), .keys = {}, .curves = {}};
    for (const PlotKey& key : keys) {
      picture.keys.push_back({axis_title(key.swept.key), key.words(), {}});
    }
    std::size_t number = 0;
    for (auto& [levels, place] : settings) {
      place = number++;
      for (std::size_t k = 0; k < keys.size(); ++k) picture.keys[k].places.push_back(levels[k]);
    }
    std::vector<std::string> names;
    std::map<std::size_t, std::map<std::size_t, std::size_t>> rows;  // [curve][setting]
    std::vector<double> y;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const std::size_t curve = number_in(names, values_of(group, i));
      rows[curve].emplace(settings.at(of_rows[i]), i);
      y.push_back((*numbers_in(figure_))[rows_[i]]);
    }
    require_colors(names.size());
    for (const auto& [curve, of_curve] : rows) {
      FigureCurve& one = picture.curves.emplace_back(FigureCurve{.name = names[curve]});
      for (const auto& [place, i] : of_curve) add_point(one, static_cast<double>(place), i);
    }
    picture.y_kind = kind_of_figure(y, kind_for_figure(y));
    return {.title = picture.y_title + " over nested settings",
            .finding = "Bands are ± 2 MCSE.",
            .draw = [picture](double width) { return draw_nested(picture, width); },
            .table = {}};
  }

  Picture map(const PlotKey& x) const {
    const PlotKey y = plot_key(key_of(table_, *arguments_.y, "--y"));
    if (y.name == x.name) throw InvalidInput("--y: is " + y.name + ", as --x - name another key");
    FigureMap map{.title = figure_words(arguments_.figure),
                  .x_title = x.swept.words(),
                  .y_title = y.swept.words(),
                  .x = x.words(),
                  .y = y.words()};
    map.values.assign(map.x.size() * map.y.size(), no_number);
    std::set<std::size_t> taken;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const std::size_t cell = y.places[i] * map.x.size() + x.places[i];
      if (!taken.insert(cell).second) {
        throw InvalidInput("--y: several conditions have the same " + x.name + " and " + y.name +
                           " - choose among them with --where KEY=VALUE");
      }
      map.values[cell] = (*numbers_in(figure_))[rows_[i]];
    }
    return {.title = map.title + " over " + map.x_title + " and " + map.y_title,
            .finding = "Values by their shades.",
            .draw = [map](double width) { return draw_map(map, width); },
            .table = {}};
  }

  const PlotArguments& arguments_;
  const TableSource& table_;
  std::vector<std::size_t> rows_;  ///< that are drawn
  TableColumn figure_;
  std::vector<double> computed_;  ///< [rows of the table], NaN where there is no closed form
};

}  // namespace

Picture figure_plot(const PlotArguments& arguments, const Texts& pictures) {
  const std::unique_ptr<TableSource> table = read_tables({arguments.result}, TableOf::conditions);
  if (!table->has(arguments.figure)) {
    const std::string option = arguments.option_of_keys();
    if (!option.empty() && is_picture_name(arguments.figure)) {
      throw InvalidInput("--figure: " + arguments.figure +
                         " is a picture of the report, with which " + option +
                         " does not go - leave that out, or name a figure as mse");
    }
    Texts known = pictures;
    known.insert(known.end(), table->figures.begin(), table->figures.end());
    throw InvalidInput("--figure: " + one_line(arguments.figure) + " is unknown" +
                       suggestion(arguments.figure, known));
  }
  if (std::ranges::count(settings_of_runs, arguments.figure) > 0) {
    throw InvalidInput("--figure: " + arguments.figure +
                       " is a setting and no figure - name one as mse, and keys with --x");
  }
  const FigurePlot figure(arguments, *table);
  if (!arguments.min_over) return figure.picture();
  if (arguments.y || arguments.group || !arguments.nested.empty()) {
    throw InvalidInput("--min-over: goes with --x alone - leave out --y, --group and --nested");
  }
  if (!arguments.x) throw InvalidInput("--min-over: needs the key of the axis - write --x data.n");
  return figure.least();
}

}  // namespace headlab::tools
