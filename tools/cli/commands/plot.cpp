// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/commands/plot.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tools/cli/commands/commands.h"
#include "tools/report/curves_figure.h"
#include "tools/report/figure.h"
#include "tools/report/heat_map.h"
#include "tools/report/read_sources.h"
#include "tools/report/sweep.h"
#include "tools/tables/along_curves.h"
#include "tools/tables/read_tables.h"
#include "tools/tables/select_table.h"

namespace headlab::tools {
namespace {

constexpr std::size_t max_panels = 12;
constexpr double text_points = 8;  ///< of the text on paper

/// The length of "84mm", "8.4cm" or "3.3in".
double millimetres(const std::string& text) {
  std::size_t end = 0;
  double length = 0;
  try {
    length = std::stod(text, &end);
  } catch (const std::exception&) {
    end = 0;
  }
  const std::string unit = text.substr(end);
  const double factor = unit == "mm" ? 1 : unit == "cm" ? 10 : unit == "in" ? 25.4 : 0;
  const double all = length * factor;
  constexpr double least = 60, most = 1000;
  if (end == 0 || !(all >= least && all <= most)) {
    throw InvalidInput("--width: is \"" + one_line(text) +
                       "\", needs a length from 60mm to 1000mm, as 84mm, 8.4cm or 3.3in");
  }
  return all;
}

const std::vector<double>* numbers_in(const TableColumn& column) {
  return std::get_if<std::vector<double>>(&column.cells);
}

std::set<std::string> values_of_key(const TableColumn& key, std::size_t rows) {
  std::set<std::string> values;
  for (std::size_t row = 0; row < rows; ++row) values.insert(text_at(key, row));
  return values;
}

/// The figure of a result over its keys, as it is asked for.
class FigurePlot {
 public:
  FigurePlot(const PlotArguments& arguments, const TableSource& table)
      : arguments_(arguments), table_(table) {
    x_ = arguments.x ? key_of(table, *arguments.x, "--x") : longest_key();
    if (numbers_in(x_) == nullptr) {
      throw InvalidInput("--x: " + x_.name + " has no numbers to go along");
    }
    x_title_ = axis_title(x_.key.empty() ? x_.name : x_.key);
  }

  Picture picture() const {
    if (arguments_.y) return map();
    return curves_picture(by_group());
  }

  /// The least over a key, with slopes.
  Picture picture_of(const Curves& curves) const {
    CurvesPanel panel;
    for (const NamedCurve& one : curves.all()) {
      FigureCurve curve{.name = one.name};
      for (const CurvePoint& point : one.points) {
        curve.x.push_back(point.x);
        curve.y.push_back(curves.figure_of(point));
      }
      const SlopeEstimate slope = log_log_slope(one.curve, curves.counts());
      if (std::isfinite(slope.slope.value)) {
        curve.note = slope_note(slope.slope);
      }
      panel.curves.push_back(std::move(curve));
    }
    require_colors(panel.curves.size());
    return curves_picture({panel});
  }

 private:
  TableColumn longest_key() const {
    const TableColumn* longest = nullptr;
    std::size_t most = 1;
    for (const TableColumn& key : table_.keys) {
      const std::size_t values = values_of_key(key, table_.rows).size();
      if (key.is_text() || values <= most) continue;
      most = values;
      longest = &key;
    }
    if (longest == nullptr) {
      throw InvalidInput("plot: no key with numbers is swept - leave out --figure " +
                         arguments_.figure);
    }
    return *longest;
  }

  void require_colors(std::size_t curves) const {
    if (curves <= colors) return;
    throw InvalidInput("--group: makes " + std::to_string(curves) +
                       " curves, of which one picture tells " + std::to_string(colors) +
                       " apart - name another key");
  }

  TableColumn figure() const {
    TableColumn found = table_.figure(arguments_.figure);
    if (numbers_in(found) == nullptr) {
      throw InvalidInput("--figure: " + arguments_.figure + " is no number");
    }
    return found;
  }

  std::string values_of(const std::vector<const TableColumn*>& keys, std::size_t row) const {
    std::string text;
    for (const TableColumn* key : keys) {
      text += (text.empty() ? "" : ", ") + key->name + " " + text_at(*key, row);
    }
    return text;
  }

  std::vector<CurvesPanel> by_group() const {
    const TableColumn figure = this->figure();
    std::vector<const TableColumn*> free;
    for (const TableColumn& key : table_.keys) {
      if (key.name != x_.name && values_of_key(key, table_.rows).size() > 1) free.push_back(&key);
    }
    std::vector<const TableColumn*> group;
    if (arguments_.group) {
      const TableColumn wanted = key_of(table_, *arguments_.group, "--group");
      std::erase_if(free, [&](const TableColumn* key) {
        if (key->name == wanted.name) group.push_back(key);
        return key->name == wanted.name;
      });
      if (group.empty()) {
        throw InvalidInput("--group: " + wanted.name +
                           (wanted.name == x_.name ? " is that of --x" : " has one value alone"));
      }
    } else {
      const auto fits = std::ranges::find_if(free, [&](const TableColumn* key) {
        return values_of_key(*key, table_.rows).size() <= colors;
      });
      if (fits != free.end()) {
        group.push_back(*fits);
        free.erase(fits);
      }
    }
    return panels_of(figure, group, free);
  }

  std::vector<CurvesPanel> panels_of(const TableColumn& figure,
                                     const std::vector<const TableColumn*>& group,
                                     const std::vector<const TableColumn*>& free) const {
    struct Place {
      double x;
      std::size_t row;
    };
    std::vector<std::string> titles, names;
    std::map<std::pair<std::size_t, std::size_t>, std::vector<Place>> places;
    const auto number = [](std::vector<std::string>& all, const std::string& one) {
      const auto at = std::ranges::find(all, one);
      if (at != all.end()) return static_cast<std::size_t>(at - all.begin());
      all.push_back(one);
      return all.size() - 1;
    };
    for (std::size_t row = 0; row < table_.rows; ++row) {
      const std::size_t panel = number(titles, values_of(free, row));
      const std::size_t curve = number(names, values_of(group, row));
      places[{panel, curve}].push_back({(*numbers_in(x_))[row], row});
    }
    require_colors(names.size());
    if (titles.size() > max_panels) {
      throw InvalidInput("--x: leaves " + std::to_string(titles.size()) +
                         " panels, of which a picture has " + std::to_string(max_panels) +
                         " at most - name the key of most values by --x, or take headlab table");
    }
    std::vector<CurvesPanel> panels;
    for (const std::string& title : titles) panels.push_back({.title = title});
    for (auto& [where, all] : places) {
      std::ranges::stable_sort(all, {}, &Place::x);
      FigureCurve curve{.name = names[where.second]};
      for (const Place& place : all) {
        curve.x.push_back(place.x);
        curve.y.push_back(estimate_at(figure, place.row));
      }
      panels[where.first].curves.push_back(std::move(curve));
    }
    return panels;
  }

  static Estimate estimate_at(const TableColumn& figure, std::size_t row) {
    Estimate one{.value = (*numbers_in(figure))[row]};
    if (figure.error == "mcse") one.mcse = figure.errors[row];
    return one;
  }

  ScaleKind kind_of(char axis, ScaleKind usual) const {
    if (!arguments_.log) return usual;
    return *arguments_.log != "none" && arguments_.log->find(axis) != std::string::npos
               ? ScaleKind::logarithmic
               : ScaleKind::linear;
  }

  Picture curves_picture(const std::vector<CurvesPanel>& panels) const {
    std::vector<double> x, y;
    for (const CurvesPanel& panel : panels) {
      for (const FigureCurve& curve : panel.curves) {
        x.insert(x.end(), curve.x.begin(), curve.x.end());
        for (const Estimate& one : curve.y) y.push_back(one.value);
      }
    }
    const CurvesPicture picture{.x_title = x_title_,
                                .y_title = figure_words(arguments_.figure),
                                .x_kind = kind_of('x', kind_for_levels(x)),
                                .y_kind = kind_of('y', kind_for_figure(y)),
                                .panels = panels};
    const auto has_place_on = [](ScaleKind kind, const std::vector<double>& values) {
      return std::ranges::any_of(values, [&](double one) { return has_place(kind, one); });
    };
    if (!has_place_on(picture.x_kind, x) || !has_place_on(picture.y_kind, y)) {
      throw InvalidInput("--figure: " + arguments_.figure +
                         " has no number that these axes can show - leave out --log, or take "
                         "another figure");
    }
    return {.title = picture.y_title + " over " + x_title_,
            .finding = "Bands are ± 2 MCSE.",
            .draw = [picture](double width) { return draw_curves(picture, width); },
            .table = {}};
  }

  Picture map() const {
    const TableColumn figure = this->figure();
    const TableColumn y = key_of(table_, *arguments_.y, "--y");
    if (y.name == x_.name) throw InvalidInput("--y: is " + y.name + ", as --x - name another key");
    if (numbers_in(y) == nullptr) {
      throw InvalidInput("--y: " + y.name + " has no numbers to go along");
    }
    std::map<double, std::size_t> columns, lines;
    for (const double one : *numbers_in(x_)) columns.emplace(one, 0);
    for (const double one : *numbers_in(y)) lines.emplace(one, 0);
    FigureMap map{.title = figure_words(arguments_.figure),
                  .x_title = x_title_,
                  .y_title = axis_title(y.key.empty() ? y.name : y.key)};
    for (auto& [number, place] : columns)
      place = map.x.size(), map.x.push_back(axis_number(number));
    for (auto& [number, place] : lines) place = map.y.size(), map.y.push_back(axis_number(number));
    map.values.assign(map.x.size() * map.y.size(), std::nan(""));
    std::set<std::size_t> taken;
    for (std::size_t row = 0; row < table_.rows; ++row) {
      const std::size_t cell =
          lines[(*numbers_in(y))[row]] * map.x.size() + columns[(*numbers_in(x_))[row]];
      if (!taken.insert(cell).second) {
        throw InvalidInput("--y: several conditions have the same " + x_.name + " and " + y.name +
                           " - a map is of two swept keys");
      }
      map.values[cell] = (*numbers_in(figure))[row];
    }
    return {.title = map.title + " over " + map.x_title + " and " + map.y_title,
            .finding = "Values by their shades.",
            .draw = [map](double width) { return draw_map(map, width); },
            .table = {}};
  }

  const PlotArguments& arguments_;
  const TableSource& table_;
  TableColumn x_;
  std::string x_title_;
};

std::string svg_of(const PlotArguments& arguments, const Picture& picture) {
  const double unit = 25.4 / 72 * text_points / text_size;  // mm
  return picture.draw(arguments.width / unit).svg_file(picture.title, picture.finding, text_points);
}

ExitCode plot(const PlotArguments& arguments) {
  if (arguments.result.empty()) {
    throw InvalidInput("plot: no results given - write headlab plot DIR --out FILE.svg");
  }
  const bool to_file = arguments.out != "-";
  if (to_file) {
    if (!arguments.out.ends_with(".svg")) {
      throw InvalidInput("--out: " + one_line(arguments.out) +
                         ": needs the ending .svg - for PDF and PNG take headlab.plot.draw of "
                         "Python");
    }
    require_no_input("--out", arguments.out, {arguments.result});
    require_writable("--out", arguments.out);
  }
  Texts notes;
  const std::string svg = plot_svg(arguments, notes);
  for (const std::string& note : notes) std::cerr << "headlab: " << note << "\n";
  if (!to_file) {
    print(svg);
    return ExitCode::done;
  }
  write_atomically(arguments.out, svg);
  std::cerr << "headlab: wrote " << arguments.out << "\n";
  return ExitCode::done;
}

}  // namespace

void PlotArguments::list(Options& options) {
  options.text(
      "RESULT", "",
      "A folder of --out, or a file of --json: of run, theory, validate, allocate, hdi, heads, "
      "along",
      result);
  options.text("--figure", "NAME",
               "A picture of the report, as components or precision, or a figure of the table, as "
               "mse, over --x; the default is the report's first picture",
               figure);
  options.text("--x", "KEY", "The swept key along the axis; the default has the most numbers", x);
  options.text("--y", "KEY", "A second one: cells in shades in place of curves", y);
  options.text("--group", "KEY", "The swept key that tells curves apart; others make panels",
               group);
  options.text("--min-over", "KEY",
               "At each x the least over this key, with the slope of the logarithms; needs "
               "results.nc",
               min_over);
  options.word("--log", "AXES", "x, y, xy or none: the logarithmic axes", log,
               {"x", "y", "xy", "none"});
  options.value("--width", "LENGTH",
                "Width on paper, as 84mm, 8.4cm or 3.3in; the default is 170mm",
                [this](const std::string& text) { width = millimetres(text); });
  options.text("--out", "FILE|-", "The SVG file; the default is standard output", out);
}

std::string plot_svg(const PlotArguments& arguments, std::vector<std::string>& notes) {
  Texts known;  // pictures of the report
  const bool of_keys =
      arguments.x || arguments.y || arguments.group || arguments.min_over || arguments.log;
  if (!of_keys) {
    SourceReader reader;
    const std::vector<Source> sources = reader.read(arguments.result);
    // The picture of precision alone needs more than the document.
    if (arguments.figure == "precision") notes = reader.notes();
    for (const Picture& picture : figures_of(sources.front())) {
      if (arguments.figure.empty() || picture.name == arguments.figure) {
        return svg_of(arguments, picture);
      }
      known.push_back(picture.name);
    }
    if (arguments.figure.empty()) {
      throw InvalidInput(one_line(arguments.result) + ": holds nothing to draw yet");
    }
  }
  if (arguments.figure.empty()) {
    throw InvalidInput("plot: needs a figure - write --figure mse");
  }
  const std::unique_ptr<TableSource> table = read_tables({arguments.result}, TableOf::conditions);
  if (!table->has(arguments.figure)) {
    known.insert(known.end(), table->figures.begin(), table->figures.end());
    throw InvalidInput("--figure: " + one_line(arguments.figure) + " is unknown" +
                       suggestion(arguments.figure, known));
  }
  const FigurePlot figure(arguments, *table);
  if (!arguments.min_over) return svg_of(arguments, figure.picture());
  if (arguments.y || arguments.group) {
    throw InvalidInput("--min-over: goes with --x alone - leave out --y and --group");
  }
  if (!arguments.x) throw InvalidInput("--min-over: needs the key of the axis - write --x data.n");
  const StoredResults results(arguments.result);
  require_nodes(results);
  return svg_of(arguments, figure.picture_of(Curves({.command = "plot",
                                                     .option = "--x",
                                                     .over = *arguments.x,
                                                     .min_over = arguments.min_over,
                                                     .figure = arguments.figure},
                                                    results, *table)));
}

Command plot_command() {
  return make_command("plot", "Draw a picture of the report, or a figure over swept keys, as SVG",
                      plot);
}

}  // namespace headlab::tools
