// SPDX-License-Identifier: Apache-2.0
#include "tools/report/canvas.h"

#include <algorithm>
#include <cmath>

#include "engine/files/words.h"
#include "tools/report/markup.h"

namespace headlab::tools {
namespace {

constexpr std::size_t longest_label = 26;

std::string number(double value) {
  std::string out = formatted("%.1f", std::isfinite(value) ? value : 0.0);
  if (out.ends_with(".0")) out.resize(out.size() - 2);
  return out == "-0" ? "0" : out;
}

std::string pair_of(Point point) {
  return number(point.x) + " " + number(point.y);
}

std::string path_of(const std::vector<Point>& points) {
  std::string data;
  for (std::size_t i = 0; i < points.size(); ++i) {
    data += (i == 0 ? "M" : "L") + pair_of(points[i]);
  }
  return data;
}

/// The outline of the mark of a colour around a point.
std::string mark_path(std::size_t color, Point at, double r) {
  const auto closed = [&](std::vector<Point> corners) {
    for (Point& corner : corners) corner = {at.x + corner.x, at.y + corner.y};
    return path_of(corners) + "z";
  };
  const double b = 0.35 * r;
  switch (color % colors) {
    case 0: {
      const std::string radius = number(r) + " " + number(r);
      return "M" + pair_of({at.x - r, at.y}) + "a" + radius + " 0 1 0 " + number(2 * r) + " 0a" +
             radius + " 0 1 0 " + number(-2 * r) + " 0z";
    }
    case 1:
      return closed({{-r, -r}, {r, -r}, {r, r}, {-r, r}});
    case 2:
      return closed({{0, -1.2 * r}, {1.1 * r, 0.9 * r}, {-1.1 * r, 0.9 * r}});
    case 3:
      return closed({{0, -1.3 * r}, {1.3 * r, 0}, {0, 1.3 * r}, {-1.3 * r, 0}});
    case 4:
      return closed({{-r, -r + b},
                     {-r + b, -r},
                     {0, -b},
                     {r - b, -r},
                     {r, -r + b},
                     {b, 0},
                     {r, r - b},
                     {r - b, r},
                     {0, b},
                     {-r + b, r},
                     {-r, r - b},
                     {-b, 0}});
    case 5:
      return closed({{0, 1.2 * r}, {1.1 * r, -0.9 * r}, {-1.1 * r, -0.9 * r}});
    default:
      return closed({{-b, -r},
                     {b, -r},
                     {b, -b},
                     {r, -b},
                     {r, b},
                     {b, b},
                     {b, r},
                     {-b, r},
                     {-b, b},
                     {-r, b},
                     {-r, -b},
                     {-b, -b}});
  }
}

}  // namespace

double text_width(const std::string& text) {
  return 0.6 * text_size * static_cast<double>(character_count(text));
}

void Canvas::line(Point from, Point to, const std::string& classes) {
  path("M" + pair_of(from) + "L" + pair_of(to), classes);
}

void Canvas::polyline(const std::vector<Point>& points, const std::string& classes) {
  if (points.size() > 1) path(path_of(points), classes);
}

void Canvas::polygon(const std::vector<Point>& points, const std::string& classes) {
  if (points.size() > 2) path(path_of(points) + "z", classes);
}

void Canvas::band(std::vector<Point> upper, const std::vector<Point>& lower,
                  const std::string& classes) {
  upper.insert(upper.end(), lower.rbegin(), lower.rend());
  polygon(upper, classes);
}

void Canvas::rectangle(const Box& box, const std::string& classes) {
  path("M" + pair_of({box.left, box.top}) + "H" + number(box.right) + "V" + number(box.bottom) +
           "H" + number(box.left) + "z",
       classes);
}

void Canvas::path(const std::string& data, const std::string& classes, const std::string& more) {
  body_ += "<path class=\"" + classes + "\" " + more + (more.empty() ? "" : " ") + "d=\"" + data +
           "\"/>\n";
}

void Canvas::mark(std::size_t color, Point at, bool hollow, double radius) {
  path(mark_path(color, at, radius),
       (hollow ? "hollow c" : "mark c") + std::to_string(color % colors));
}

void Canvas::text(Point at, const std::string& text, const char* anchor, const std::string& classes,
                  double turn) {
  Attributes attributes = {{"x", number(at.x)}, {"y", number(at.y)}};
  if (std::string_view(anchor) != "start") attributes.emplace_back("text-anchor", anchor);
  if (!classes.empty()) attributes.emplace_back("class", classes);
  if (turn != 0) {
    attributes.emplace_back("transform", "rotate(" + number(turn) + " " + pair_of(at) + ")");
  }
  body_ += element("text", attributes, escaped(text)) + "\n";
}

std::string Canvas::svg(const std::string& id, const std::string& title,
                        const std::string& description) const {
  const std::string size = number(width_) + " " + number(height_);
  return element("svg",
                 {{"xmlns", "http://www.w3.org/2000/svg"},
                  {"viewBox", "0 0 " + size},
                  {"role", "img"},
                  {"aria-labelledby", id + "-title"},
                  {"aria-describedby", id + "-desc"}},
                 element("title", {{"id", id + "-title"}}, escaped(title)) +
                     element("desc", {{"id", id + "-desc"}}, escaped(description)) + "\n" + body_) +
         "\n";
}

LabelRoom room_for_labels(const Scale& x, const std::vector<Tick>& ticks) {
  double widest = 0, nearest = HUGE_VAL, before = -HUGE_VAL;
  for (const Tick& tick : ticks) {
    widest = std::max(widest, text_width(shortened(tick.label, longest_label)));
    nearest = std::min(nearest, x(tick.value) - before);
    before = x(tick.value);
  }
  const bool words = std::ranges::any_of(ticks, [](const Tick& tick) {
    return tick.label.find_first_not_of("0123456789.e−- ") != std::string::npos;
  });
  // Numbers that do not fit lose some of them; words are turned.
  if (!words || widest + 8 <= nearest) return {};
  return {.turned = true, .height = 0.5 * widest + 16};
}

void draw_y_axis(Canvas& canvas, const Axes& axes, const AxisText& text) {
  const Box& box = axes.box;
  std::vector<Tick> ticks = text.ticks;
  std::ranges::sort(ticks, std::ranges::greater(), &Tick::value);  // from the top
  std::vector<double> places;
  for (const Tick& tick : ticks) places.push_back(axes.y(tick.value));
  const std::vector<double> heights(ticks.size(), text_size);
  drop_overlapping(ticks, places, heights, 1);
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    canvas.line({box.left, places[i]}, {box.right, places[i]}, "grid");
    if (!ticks[i].label.empty()) canvas.text({box.left - 6, places[i] + 4}, ticks[i].label, "end");
  }
  canvas.line({box.left, box.top}, {box.left, box.bottom}, "axis");
  if (!text.title.empty()) canvas.text({box.left - 44, box.top - 9}, text.title, "start", "soft");
}

void draw_x_axis(Canvas& canvas, const Axes& axes, const AxisText& text, bool labels) {
  const Box& box = axes.box;
  std::vector<Tick> ticks = text.ticks;
  std::ranges::sort(ticks, {}, &Tick::value);
  canvas.line({box.left, box.bottom}, {box.right, box.bottom}, "axis");
  const LabelRoom room = room_for_labels(axes.x, ticks);
  std::vector<double> places, widths;
  for (Tick& tick : ticks) {
    tick.label = shortened(tick.label, longest_label);
    places.push_back(axes.x(tick.value));
    widths.push_back(room.turned ? text_size : text_width(tick.label));
    canvas.line({places.back(), box.bottom}, {places.back(), box.bottom + 4}, "axis");
  }
  if (!labels) return;
  drop_overlapping(ticks, places, widths, 6);
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    if (ticks[i].label.empty()) continue;
    if (room.turned) {
      canvas.text({places[i] + 4, box.bottom + 15}, ticks[i].label, "end", "", -35);
    } else {
      canvas.text({places[i], box.bottom + 17}, ticks[i].label, "middle");
    }
  }
  if (!text.title.empty()) {
    canvas.text({box.right, box.bottom + room.height + text_size + 4}, text.title, "end", "soft");
  }
}

double draw_legend(Canvas& canvas, const std::vector<LegendEntry>& entries) {
  const Point at = {20, 14};
  const double right = canvas.width() - 10;
  Point place = at;
  for (const LegendEntry& entry : entries) {
    const double key = entry.line ? 34 : 16;
    const double width = key + text_width(entry.text) + 14;
    if (place.x > at.x && place.x + width > right) place = {at.x, place.y + text_size + 6};
    const std::string color = "c" + std::to_string(entry.color % colors);
    if (entry.line) {
      canvas.line({place.x, place.y}, {place.x + 26, place.y}, "line " + color);
      canvas.mark(entry.color, {place.x + 13, place.y}, entry.hollow);
    } else {
      canvas.mark(entry.color, {place.x + 5, place.y}, entry.hollow);
    }
    canvas.text({place.x + key, place.y + 4}, entry.text);
    place.x += width;
  }
  return place.y + text_size;
}

}  // namespace headlab::tools
