// SPDX-License-Identifier: Apache-2.0
/// \file What `headlab plot` is asked, and the picture that it draws.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/cli/options.h"

namespace headlab::tools {

struct PlotArguments {
  std::string result;
  std::string figure;
  std::optional<std::string> x, y, group, min_over, log;
  double width = 170;  ///< mm
  std::string out = "-";

  void list(Options& options);
};

/// The picture as SVG. Throws InvalidInput for what the results cannot give.
/// \param notes  gets a line for everything that could not be used
std::string plot_svg(const PlotArguments& arguments, std::vector<std::string>& notes);

}  // namespace headlab::tools
