// SPDX-License-Identifier: Apache-2.0
/// \file The picture that `headlab plot` draws.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tools/cli/options.h"

namespace headlab::tools {

struct Picture;

struct PlotArguments {
  std::string result;
  std::string figure;
  std::optional<std::string> x, y, group, min_over, log;
  Texts nested;  ///< keys, the outermost first
  Texts where;
  double width = 170;  ///< mm
  std::string out = "-";

  void list(Options& options);
  /// The first of the options of swept keys that is given, "" where none is.
  std::string option_of_keys() const;
};

/// The picture as SVG. Throws InvalidInput for what the results cannot give.
/// \param notes  gets a line for everything that could not be used
std::string plot_svg(const PlotArguments& arguments, std::vector<std::string>& notes);

inline constexpr std::size_t max_plot_panels = 12;  ///< of a picture

/// A figure of results over their keys, as it is asked for. Throws InvalidInput.
/// \param pictures  names of the report's pictures, of which an unknown figure reminds
Picture figure_plot(const PlotArguments& arguments, const Texts& pictures);

/// A file that ends as those of --replicate-figures do.
bool is_replicate_file(const std::string& path);

/// Single replicates of such a file: histograms, or a zip plot. Throws InvalidInput.
Picture replicates_plot(const PlotArguments& arguments);

}  // namespace headlab::tools
