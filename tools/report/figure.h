// SPDX-License-Identifier: Apache-2.0
/// \file A figure of a report: picture, finding, table.
#pragma once

#include <string>
#include <vector>

#include "engine/moments/jackknife.h"
#include "tools/report/canvas.h"
#include "tools/report/markup.h"
#include "tools/report/source.h"

namespace headlab::tools {

struct Picture {
  std::string title;
  std::string finding;  ///< one sentence or two, also read out where the picture is not seen
  Canvas canvas;
  Table table;
  std::string note = {};     ///< what the picture leaves out, and how to read it
  std::string command = {};  ///< that makes it again, where it is another than the source's
};

/// The figure as HTML, called "Figure NUMBER".
std::string figure_html(const Picture& figure, std::size_t number);

/// All figures of a source, in their order. To add one, write its file and list it in figures.cpp.
std::vector<Picture> figures_of(const Source& source);

inline constexpr double figure_width = 720;

/// Cells for `count` panels of `height` from `top`, one or two to a row.
std::vector<Box> panel_cells(std::size_t count, double top, double height);

/// "0.0124 ± 0.0003", or without MCSE the number alone.
std::string estimate_text(const Estimate& estimate);

/// "0.52 %" of a share of 1, "–" for what is undefined.
std::string percent_text(double share);

/// Sentences joined by a space, the empty ones left out.
std::string sentences(const std::vector<std::string>& all);

/// The components of the error, as a summary calls them, with their colours.
struct Component {
  const char* key;
  const char* name;
  std::size_t color;
};
inline constexpr Component mse_component = {"mse", "MSE", 0};
inline constexpr Component terms_of_error[] = {{"bias_squared", "bias²", 1},
                                               {"variance_term", "variance", 2},
                                               {"covariance_term", "covariance", 3}};

/// Evenly spread rows of a long table, and a sentence that says so.
std::string thin_rows(Table& table, std::size_t most = 100);

}  // namespace headlab::tools
