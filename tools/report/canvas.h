// SPDX-License-Identifier: Apache-2.0
/// \file A picture as SVG: shapes in the classes of the page's style, marks, axes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/report/scale.h"

namespace headlab::tools {

struct Point {
  double x = 0, y = 0;
};

struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;
  double width() const { return right - left; }
  double height() const { return bottom - top; }
};

/// Height of the text of figures, and an upper estimate of the width of one; a text may have
/// several lines.
inline constexpr double text_size = 12;
double text_width(const std::string& text);
double text_height(const std::string& text);
/// How many characters surely have room.
std::size_t characters_in(double width);

/// The number of colours c0, c1, ... of the style; each goes with a mark and a dash of its own.
inline constexpr std::size_t colors = 7;

/// A colour of pictures by its name in the style: of a light page, and of a dark one. Colours c0 ..
/// c6 are those of Okabe and Ito (2008, Color Universal Design), black and white changing places;
/// yellow takes the place of blue, which is too dark there, on a dark page.
struct StyleColor {
  const char *name, *light, *dark;
};
const std::vector<StyleColor>& style_colors();

/// The shapes of pictures in a page's style, which has the colours as variables: "--c0".
extern const char* const picture_style;

/// Shapes with places rounded to a tenth.
class Canvas {
 public:
  Canvas(double width, double height) : width_(width), height_(height) {}
  double width() const { return width_; }
  double height() const { return height_; }

  void line(Point from, Point to, const std::string& classes);
  void polyline(const std::vector<Point>& points, const std::string& classes);
  void polygon(const std::vector<Point>& points, const std::string& classes);
  /// What lies between two lines.
  void band(std::vector<Point> upper, const std::vector<Point>& lower, const std::string& classes);
  void rectangle(const Box& box, const std::string& classes);
  /// Path data as they are, with more attributes.
  void path(const std::string& data, const std::string& classes, const std::string& more = "");
  /// The mark of a colour: circle, square, triangle, diamond, cross, lower triangle, plus.
  void mark(std::size_t color, Point at, bool hollow = false, double radius = 4);
  /// The first line of a text is at `at`, others below it.
  /// \param anchor  start, middle or end
  /// \param turn    degrees
  void text(Point at, const std::string& text, const char* anchor = "start",
            const std::string& classes = "", double turn = 0);
  /// Opens a group with these attributes, and closes it.
  void open_group(const std::string& attributes) { body_ += "<g " + attributes + ">"; }
  void close_group() { body_ += "</g>\n"; }

  /// The whole picture: an image called `title`, described by `description`.
  /// \param id  of the figure; the texts get ids of their own from it
  std::string svg(const std::string& id, const std::string& title,
                  const std::string& description) const;
  /// The picture as a file of its own: on white, with a style that needs no variables, and text of
  /// `points` (1/72 inch) on paper.
  std::string svg_file(const std::string& title, const std::string& description,
                       double points) const;

 private:
  double width_, height_;
  std::string body_;
};

/// A place to draw in, with its scales.
struct Axes {
  Box box;
  Scale x, y;
  Point at(double a, double b) const { return {x(a), y(b)}; }
};

/// What stands along an axis.
struct AxisText {
  std::string title;
  std::vector<Tick> ticks;
};

/// Room that labels below an axis take: one line, or more where long ones have to be turned.
struct LabelRoom {
  bool turned = false;
  double height = text_size + 6;
};
LabelRoom room_for_labels(const Scale& x, const std::vector<Tick>& all);

/// Draws frame, grid lines, ticks, and labels that do not overlap.
void draw_y_axis(Canvas& canvas, const Axes& axes, const AxisText& text);
void draw_x_axis(Canvas& canvas, const Axes& axes, const AxisText& text, bool labels = true);

/// Draws marks with their names in lines along the top; returns the lowest y.
struct LegendEntry {
  std::size_t color;
  std::string text;
  bool hollow = false;
  bool line = false;
  const char* style = nullptr;  ///< of a line without marks: "theory"
};
double draw_legend(Canvas& canvas, const std::vector<LegendEntry>& entries);

}  // namespace headlab::tools
