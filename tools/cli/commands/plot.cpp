// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/commands/plot.h"

#include "tools/cli/commands/commands.h"
#include "tools/cli/results_folder.h"
#include "tools/report/figure.h"
#include "tools/report/read_sources.h"
#include "tools/tables/select_table.h"

namespace headlab::tools {
namespace {

constexpr double text_points = 8;  ///< of the text on paper

std::string svg_of(const PlotArguments& arguments, const Picture& picture) {
  const double unit = 25.4 / 72 * text_points / text_size;  // mm
  return picture.draw(arguments.width / unit).svg_file(picture.title, picture.finding, text_points);
}

/// Leaves the conditions of a source that --where asks for.
void choose_conditions(Source& source, const PlotArguments& arguments) {
  const std::unique_ptr<TableSource> table = read_tables({arguments.result}, TableOf::conditions);
  const std::size_t shown = source.shown_conditions().size();
  if (shown == 0 || shown != table->rows || table->conditions.size() != shown) {
    throw InvalidInput(
        "--where: chooses conditions of one run or theory - name a figure as well, "
        "as --figure mse");
  }
  keep_conditions(source, rows_where(*table, parse_where(arguments.where)));
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

std::string plot_svg(const PlotArguments& arguments, std::vector<std::string>& notes) {
  require_merged(arguments.result);
  if (is_replicate_file(arguments.result)) return svg_of(arguments, replicates_plot(arguments));
  if (arguments.figure == "zip" || arguments.figure == "estimate" ||
      arguments.figure == "squared_error") {
    throw InvalidInput("--figure: " + arguments.figure +
                       " is of single replicates - give the file of headlab run "
                       "--replicate-figures FILE.csv");
  }
  Texts known;  // pictures of the report
  const bool of_keys = !arguments.option_of_keys().empty();
  if (!of_keys) {
    SourceReader reader;
    std::vector<Source> sources = reader.read(arguments.result);
    if (!arguments.where.empty()) choose_conditions(sources.front(), arguments);
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
    throw InvalidInput("plot: " + arguments.option_of_keys() +
                       " needs a figure - write --figure mse");
  }
  return svg_of(arguments, figure_plot(arguments, known));
}

Command plot_command() {
  return make_command("plot", "Draw a picture of the report, or a figure over swept keys, as SVG",
                      plot);
}

}  // namespace headlab::tools
