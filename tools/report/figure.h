// SPDX-License-Identifier: Apache-2.0
/// \file The figures of a report: picture, finding, table. Each is made by a file of its own and
/// listed in figure.cpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/moments/jackknife.h"
#include "tools/report/canvas.h"
#include "tools/report/markup.h"
#include "tools/report/source.h"

namespace headlab::tools {

inline constexpr std::size_t all_rows = static_cast<std::size_t>(-1);

/// A picture may be drawn as long as its source is there.
struct Picture {
  std::string title;
  std::string finding;  ///< one sentence or two, also read out where the picture is not seen
  std::function<Canvas(double width)> draw;
  Table table;
  std::string note = {};       ///< what the picture leaves out, and how to read it
  std::size_t max_rows = 100;  ///< of the table that are shown, evenly spread
  std::string name = {};       ///< by which `headlab plot --figure` knows it: "components"
};

/// The figure as HTML, called "Figure NUMBER".
std::string figure_html(const Picture& figure, std::size_t number);

/// A name of pictures of some source.
bool is_picture_name(const std::string& name);

/// All figures of a source, in their order and with their names.
std::vector<Picture> figures_of(const Source& source);

/// Of a picture in a page, and of the same one in a window that has no room for it.
inline constexpr double page_width = 720, narrow_width = 368;

/// Titles of the parts of a picture: in two lines where they have no room in one.
class PartTitles {
 public:
  PartTitles(const std::vector<std::string>& titles, double room);
  /// What the second line takes.
  double more_height() const;
  /// \param last_line  where the last line of the title of a part begins
  void draw(Canvas& canvas, std::size_t part, Point last_line) const;

 private:
  std::vector<std::string> titles_;
};

/// Cells for `count` panels of `height` from `top`, one or two to a row.
std::vector<Box> panel_cells(std::size_t count, double width, double top, double height);

/// The lowest y of a legend in a picture of this width.
double legend_height(double width, const std::vector<LegendEntry>& legend);

/// A picture of `count` such panels, the first at `top`, below the lines of a legend.
Canvas canvas_of_panels(std::size_t count, double width, double top, double height,
                        const std::vector<LegendEntry>& legend);

/// Round numbers along an axis; whole ones where all of `values` are.
std::vector<Tick> ticks_for(const Scale& scale, const std::vector<double>& values, int about = 5);

/// A part of a picture with its title: the numbers that its axes have to hold, and what draws into
/// it.
struct AxesPanel {
  std::string title;
  ScaleKind x_kind;
  std::vector<double> x, y;
  std::function<void(Canvas&, const Axes&)> draw;
};
struct PanelAxes {
  std::string x_title;
  std::string y_title;
  double height;         ///< of a panel without titles and labels
  double margin = 0.08;  ///< of the range along y, as in range_of()
  ScaleKind y_kind = ScaleKind::linear;
  std::vector<std::string> x_words = {};  ///< of the places 0, 1, ... along x; none: numbers
};
Canvas draw_panels(double width, std::vector<AxesPanel> panels, const PanelAxes& all,
                   const std::vector<LegendEntry>& legend);

/// Standard errors to either side of a value that bands and whiskers show.
inline constexpr double band_errors = 2;

/// "0.0124 ± 0.0003", or without MCSE the number alone.
std::string estimate_text(const Estimate& estimate);

/// "0.52 %" of a share of 1, "–" for what is undefined.
std::string percent_text(double share);

/// What bands show, and where they can be read that are too narrow to be seen.
/// \param widest  band of the picture in pixels
std::string bands_text(double widest, const std::string& see);

/// Sentences joined by a space, the empty ones left out.
std::string sentences(const std::vector<std::string>& all);

/// A component of the error, as a summary calls it, with its label and its colour.
struct Component {
  std::string key;
  std::string name;
  std::size_t color;
};
/// Some condition has several heads, which have covariances.
bool have_covariance(const Value::Array& conditions);
/// The MSE and the terms that add up to it, without a covariance that nothing has.
std::vector<Component> components_of(const Value::Array& conditions);

/// "Shows 4 of 9 layers" with an end, "." or ", evenly spaced."; empty where all are shown.
std::string shows_text(std::size_t shown, std::size_t all, const std::string& what_and_end);

// Of a run or of closed forms.
std::vector<Picture> layers_figures(const Source& source);
std::vector<Picture> components_figures(const Source& source);
std::vector<Picture> measures_figures(const Source& source);
std::vector<Picture> difference_figures(const Source& source);
std::vector<Picture> decomposition_figures(const Source& source);
std::vector<Picture> head_covariance_figures(const Source& source);
std::vector<Picture> precision_figures(const Source& source);
// Of verdicts.
std::vector<Picture> verdict_figures(const Source& source);
// Of allocations and maps.
std::vector<Picture> allocation_figures(const Source& source);
std::vector<Picture> growth_figures(const Source& source);
std::vector<Picture> regime_figures(const Source& source);
// Of the heads of a model.
std::vector<Picture> diversity_figures(const Source& source);
std::vector<Picture> alike_figures(const Source& source);
std::vector<Picture> measured_heads_figures(const Source& source);
// Of a figure along a key.
std::vector<Picture> along_figures(const Source& source);

}  // namespace headlab::tools
