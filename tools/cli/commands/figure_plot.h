// SPDX-License-Identifier: Apache-2.0
/// \file Pictures that headlab plot makes beside those of reports.
#pragma once

#include "tools/cli/commands/plot_request.h"
#include "tools/report/figure.h"

namespace headlab::tools {

inline constexpr std::size_t max_plot_panels = 12;  ///< of a picture

/// A figure of results over their keys, as it is asked for. Throws InvalidInput.
/// \param pictures  names of the report's pictures, of which an unknown figure reminds
Picture figure_plot(const PlotArguments& arguments, const Texts& pictures);

/// A file that ends as those of --replicate-figures do.
bool is_replicate_file(const std::string& path);

/// Single replicates of such a file: histograms, or a zip plot. Throws InvalidInput.
Picture replicates_plot(const PlotArguments& arguments);

}  // namespace headlab::tools
