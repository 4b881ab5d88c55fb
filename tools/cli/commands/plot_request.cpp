// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <utility>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "tools/cli/commands/plot.h"
#include "tools/tables/select_table.h"

namespace headlab::tools {
namespace {

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

}  // namespace

void PlotArguments::list(Options& options) {
  options.text("RESULT", "",
               "A folder of --out, a file of --json of run, theory, validate, allocate, hdi, heads "
               "or along, "
               "or a file of --replicate-figures",
               result);
  options.text(
      "--figure", "NAME",
      "A picture of the report, as components or precision, or a figure of the table, as "
      "mse, over --x; of single replicates estimate, squared_error (histograms) or zip; the "
      "default is the report's first picture",
      figure);
  options.text("--x", "KEY", "The swept key along the axis; the default has the most numbers", x);
  options.text("--y", "KEY", "A second one: cells in shades in place of curves", y);
  options.text("--group", "KEY", "The swept key that tells curves apart; others make panels",
               group);
  options.text("--min-over", "KEY",
               "At each x the least over this key, with the slope of the logarithms; needs "
               "results.nc",
               min_over);
  options.value("--nested", "KEY,...",
                "All settings in a row, the first of these keys changing least, above steps that "
                "say where each key stands: a nested-loop plot",
                [this](const std::string& text) { nested = parse_names("--nested", text); });
  options.texts("--where", "KEY=VALUE",
                "Conditions where a key has this value alone; may be repeated", where);
  options.word("--log", "AXES", "x, y, xy or none: the logarithmic axes", log,
               {"x", "y", "xy", "none"});
  options.value("--width", "LENGTH",
                "Width on paper, as 84mm, 8.4cm or 3.3in; the default is 170mm",
                [this](const std::string& text) { width = millimetres(text); });
  options.text("--out", "FILE|-", "The SVG file; the default is standard output", out);
}

std::string PlotArguments::option_of_keys() const {
  for (const auto& [name, given] :
       {std::pair("--x", x.has_value()), std::pair("--y", y.has_value()),
        std::pair("--group", group.has_value()), std::pair("--min-over", min_over.has_value()),
        std::pair("--nested", !nested.empty()), std::pair("--log", log.has_value())}) {
    if (given) return name;
  }
  return "";
}

}  // namespace headlab::tools
