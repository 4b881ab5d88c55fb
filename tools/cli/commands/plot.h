// SPDX-License-Identifier: Apache-2.0
/// \file The picture that `headlab plot` draws.
#pragma once

#include <string>
#include <vector>

#include "tools/cli/commands/plot_request.h"

namespace headlab::tools {

/// The picture as SVG. Throws InvalidInput for what the results cannot give.
/// \param notes  gets a line for everything that could not be used
std::string plot_svg(const PlotArguments& arguments, std::vector<std::string>& notes);

}  // namespace headlab::tools
