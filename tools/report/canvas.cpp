// SPDX-License-Identifier: Apache-2.0
#include "tools/report/canvas.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <sstream>

#include "engine/files/words.h"
#include "tools/report/formula_text.h"
#include "tools/report/labels.h"
#include "tools/report/markup.h"

namespace headlab::tools {
namespace {

constexpr std::size_t longest_label = 26;
constexpr double character_width = 0.6 * text_size;
constexpr double line_height = text_size + 2;

std::vector<Tick> with_short_labels(std::vector<Tick> ticks) {
  std::vector<std::string> labels;
  for (const Tick& tick : ticks) labels.push_back(tick.label);
  labels = distinct_labels(labels, longest_label);
  for (std::size_t i = 0; i < ticks.size(); ++i) ticks[i].label = labels[i];
  return ticks;
}

/// "b²" of "b^2".
std::string with_squares(std::string text) {
  for (std::size_t at = 1; at + 1 < text.size(); ++at) {
    const bool is_square =
        text.compare(at, 2, "^2") == 0 &&
        std::isalpha(static_cast<unsigned char>(text[at - 1])) != 0 &&
        (at + 2 == text.size() || std::isalnum(static_cast<unsigned char>(text[at + 2])) == 0);
    if (is_square) text.replace(at, 2, "²");
  }
  return text;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
  return text;
}

/// `picture_style` in the colours of a light page, a rule of a shape's colour written out for each
/// of them: programs that print SVG know no variables.
std::string plain_style() {
  std::string style;
  const std::string rules = picture_style;
  for (std::size_t at = rules.find_first_not_of('\n'); at < rules.size();) {
    const std::size_t open = rules.find('{', at), close = rules.find('}', at);
    const std::string selector = rules.substr(at, open - at);
    std::istringstream body(rules.substr(open + 1, close - open - 1));
    std::string plain, colored;
    for (std::string one; std::getline(body, one, ';');) {
      (one.find("var(--k)") == std::string::npos ? plain : colored) += one + ";";
    }
    at = rules.find_first_not_of('\n', close + 1);
    if (!plain.empty()) style += selector + "{" + plain + "}\n";
    for (std::size_t color = 0; color < colors && !colored.empty(); ++color) {
      const std::string name = "c" + std::to_string(color);
      style += replaced(selector, ",", "." + name + ",") + "." + name + "{" +
               replaced(colored, "var(--k)", "var(--" + name + ")") + "}\n";
    }
  }
  for (const StyleColor& one : style_colors()) {
    style = replaced(style, "var(--" + std::string(one.name) + ")", one.light);
  }
  return style;
}

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
  const double b = (color % colors == 4 ? 0.5 : 0.35) * r;  // a cross is thin in both directions
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

/// Of a digit and of a minus, about, in the widest of the fonts of a page, of the size of letters.
constexpr double digit_width = 0.64, minus_width = 0.84;

/// The width of digits that may have a minus in front of them.
double digits_width(const std::string& digits, double size) {
  const double minus = digits.starts_with("−") ? minus_width - digit_width : 0;
  return size * (digit_width * static_cast<double>(character_count(digits)) + minus);
}

/// "−5" of "2·10^−5"; empty for what does not end in a power of ten.
std::string power_at_the_end(const std::string& text) {
  const std::size_t at = text.rfind("10^");
  if (at == std::string::npos) return "";
  const std::string power = text.substr(at + 3);
  const std::size_t digits = power.starts_with("−") ? std::string("−").size() : 0;
  const bool is_number =
      digits < power.size() && power.find_first_not_of("0123456789", digits) == std::string::npos;
  return is_number ? power : "";
}

constexpr double small = 0.75 * text_size;    ///< of what is raised or lowered
constexpr double lowered = 0.25 * text_size;  ///< subscripts

}  // namespace

double text_width(const std::string& text) {
  constexpr double capital = 1.3;  // of the width of a small letter
  double longest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto capitals = static_cast<double>(
        std::ranges::count_if(line, [](unsigned char c) { return std::isupper(c) != 0; }));
    longest =
        std::max(longest, static_cast<double>(character_count(line)) + (capital - 1) * capitals);
  }
  return character_width * longest;
}

double text_height(const std::string& text) {
  return line_height * static_cast<double>(std::ranges::count(text, '\n') + 1);
}

std::size_t characters_in(double width) {
  return static_cast<std::size_t>(std::max(width, 0.0) / character_width);
}

const std::vector<StyleColor>& style_colors() {
  static const std::vector<StyleColor> all = {
      {"bg", "#fff", "#16181c"},      {"fg", "#1b1b1b", "#ececec"},
      {"soft", "#595959", "#b4b4b4"}, {"rule", "#8a8a8a", "#8d8d8d"},
      {"grid", "#e4e4e4", "#33363c"}, {"zone", "#d9ecf9", "#22384a"},
      {"c0", "#000", "#fff"},         {"c1", "#0072b2", "#56b4e9"},
      {"c2", "#e69f00", "#e69f00"},   {"c3", "#009e73", "#009e73"},
      {"c4", "#d55e00", "#ff7a2e"},   {"c5", "#cc79a7", "#cc79a7"},
      {"c6", "#56b4e9", "#f0e442"}};
  return all;
}

const char* const picture_style = R"(
text{fill:var(--fg)}.soft{fill:var(--soft)}.strong{font-weight:600}.small{font-size:11px}
.ink{fill:#000}.plain{fill:var(--c0)}.ground{fill:var(--bg)}.halo{paint-order:stroke;stroke:var(--bg);stroke-width:3px;stroke-linejoin:round}
.line,.theory,.target,.whisker{fill:none;stroke:var(--k);stroke-width:1.8}
.line.c1{stroke-dasharray:9 3}.line.c2{stroke-dasharray:3 3}.line.c3{stroke-dasharray:9 6 3 6}.line.c4{stroke-dasharray:14 4}
.theory{stroke-width:1.3;stroke-dasharray:1 3;stroke-linecap:round}.target{stroke-width:1.2;stroke-dasharray:6 4}
.whisker{stroke-width:2}.thin{stroke-width:1;stroke-opacity:.6}.band{fill:var(--k);fill-opacity:.22}.area{fill:var(--k);stroke:var(--bg);stroke-width:.6}
.mark{fill:var(--k);stroke:var(--bg);stroke-width:.8}.hollow{fill:var(--bg);stroke:var(--k);stroke-width:1.6}
.hatch{fill:none;stroke:var(--bg);stroke-width:1;stroke-opacity:.75}.zone{fill:var(--zone)}
.axis,.frame{fill:none;stroke:var(--rule)}.frame{stroke-width:.6}.grid{stroke:var(--grid)}
.cell{fill:none;stroke:var(--k);stroke-width:1;shape-rendering:crispEdges}.diagonal{stroke:var(--rule)}.key{stroke-width:12}
)";

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

void Canvas::text(Point at, const std::string& written, const char* anchor,
                  const std::string& classes, double turn) {
  const std::string text = with_squares(with_signs(written));
  const bool starts = std::string_view(anchor) == "start", ends = std::string_view(anchor) == "end";
  std::string content;
  if (text.find('\n') == std::string::npos) {
    content = starts && turn == 0
                  ? with_subscripts(text, number(lowered), number(-lowered), number(small))
                  : escaped(text);
  } else {
    std::istringstream lines(text);
    double y = at.y;
    for (std::string line; std::getline(lines, line); y += line_height) {
      content +=
          element("tspan", {{"x", number(at.x)}, {"y", number(y)}},
                  starts ? with_subscripts(line, number(lowered), number(-lowered), number(small))
                         : escaped(line));
    }
  }
  std::string moved = turn == 0 ? power_at_the_end(text) : "";  // what is lowered or raised
  double down = -0.35 * text_size, behind = 0;
  if (turn == 0 && ends && ends_in_symbol(text)) {
    moved = text.substr(text.size() - 1);
    down = lowered;
  }
  if (!moved.empty()) {
    const std::string base = text.substr(0, text.size() - moved.size() - 1);
    const double width = digits_width(moved, small);
    content = escaped(base);
    if (starts) {
      content += element("tspan", {{"dy", number(down)}, {"font-size", number(small)}}, moved);
    } else if (ends) {
      at.x -= width;
    } else {
      at.x -= width / 2;
      behind = digits_width(base, text_size) / 2;
    }
  }
  Attributes attributes = {{"x", number(at.x)}, {"y", number(at.y)}};
  if (!starts) attributes.emplace_back("text-anchor", anchor);
  if (!classes.empty()) attributes.emplace_back("class", classes);
  if (turn != 0) {
    attributes.emplace_back("transform", "rotate(" + number(turn) + " " + pair_of(at) + ")");
  }
  body_ += element("text", attributes, content) + "\n";
  // Not every program places the parts of a text that does not start at a point.
  if (!starts && !moved.empty()) {
    body_ += element("text",
                     {{"x", number(at.x + behind)},
                      {"y", number(at.y + down)},
                      {"font-size", number(small)},
                      {"class", classes}},
                     moved) +
             "\n";
  }
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
                 element("title", {{"id", id + "-title"}}, escaped(with_powers(title))) +
                     element("desc", {{"id", id + "-desc"}}, escaped(with_powers(description))) +
                     "\n" + body_) +
         "\n";
}

std::string Canvas::svg_file(const std::string& title, const std::string& description,
                             double points) const {
  const double millimetres = 25.4 / 72 * points / text_size;  // of a unit
  // Not every program draws the edge of a letter below its body: it is a text of its own.
  std::string body;
  for (std::size_t at = 0; at < body_.size();) {
    const std::size_t end = std::min(body_.find('\n', at), body_.size() - 1) + 1;
    const std::string line = body_.substr(at, end - at);
    if (line.starts_with("<text") && line.find("class=\"halo") != std::string::npos) {
      body += line + replaced(line, "class=\"halo", "class=\"");
    } else {
      body += line;
    }
    at = end;
  }
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" +
         element("svg",
                 {{"xmlns", "http://www.w3.org/2000/svg"},
                  {"width", formatted("%.2fmm", width_ * millimetres)},
                  {"height", formatted("%.2fmm", height_ * millimetres)},
                  {"viewBox", "0 0 " + number(width_) + " " + number(height_)},
                  {"font-family", "Liberation Sans, Arial, Helvetica, sans-serif"},
                  {"font-size", number(text_size)}},
                 element("title", escaped(title)) + element("desc", escaped(description)) + "\n" +
                     element("style", plain_style()) + "\n" +
                     empty_element("rect", {{"width", number(width_)},
                                            {"height", number(height_)},
                                            {"fill", "#fff"}}) +
                     "\n" + body) +
         "\n";
}

LabelRoom room_for_labels(const Scale& x, const std::vector<Tick>& all) {
  double widest = 0, nearest = HUGE_VAL, before = -HUGE_VAL;
  const std::vector<Tick> ticks = with_short_labels(all);
  for (const Tick& tick : ticks) {
    widest = std::max(widest, text_width(tick.label));
    nearest = std::min(nearest, x(tick.value) - before);
    before = x(tick.value);
  }
  const bool words =
      std::ranges::any_of(ticks, [](const Tick& tick) { return !is_number_text(tick.label); });
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
  drop_overlapping(ticks, places, heights, 1, axes.y.kind());
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    // A line without its number would be a riddle.
    if (ticks[i].label.empty()) continue;
    canvas.line({box.left, places[i]}, {box.right, places[i]}, "grid");
    canvas.text({box.left - 8, places[i] + 4}, ticks[i].label, "end");
  }
  canvas.line({box.left, box.top}, {box.left, box.bottom}, "axis");
  if (!text.title.empty()) canvas.text({box.left - 44, box.top - 9}, text.title, "start", "soft");
}

void draw_x_axis(Canvas& canvas, const Axes& axes, const AxisText& text, bool labels) {
  const Box& box = axes.box;
  std::vector<Tick> ticks = with_short_labels(text.ticks);
  std::ranges::sort(ticks, {}, &Tick::value);
  canvas.line({box.left, box.bottom}, {box.right, box.bottom}, "axis");
  const LabelRoom room = room_for_labels(axes.x, ticks);
  std::vector<double> places, widths;
  for (const Tick& tick : ticks) {
    places.push_back(axes.x(tick.value));
    widths.push_back(room.turned ? text_size : text_width(tick.label));
    // With a sign and without it a number is as wide, so that both sides of 0 have the same ones.
    if (axes.x.kind() == ScaleKind::signed_log && tick.value > 0) {
      widths.back() += text_width("−");
    }
    canvas.line({places.back(), box.bottom}, {places.back(), box.bottom + 4}, "axis");
  }
  if (!labels) return;
  drop_overlapping(ticks, places, widths, 6, axes.x.kind());
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
  std::vector<std::string> texts;
  for (const LegendEntry& entry : entries) texts.push_back(entry.text);
  texts = labels_in_lines(texts, characters_in(right - at.x - 34), 2);
  double more = 0;  // what second lines of a row take
  for (const LegendEntry& entry : entries) {
    const std::string& text = texts[static_cast<std::size_t>(&entry - entries.data())];
    const double key = entry.line || entry.style != nullptr ? 34 : 16;
    const double width = key + text_width(text) + 14;
    if (place.x > at.x && place.x + width > right) {
      place = {at.x, place.y + more + text_size + 6};
      more = 0;
    }
    more = std::max(more, text_height(text) - line_height);
    const std::string color = "c" + std::to_string(entry.color % colors);
    if (entry.style != nullptr) {
      canvas.line({place.x, place.y}, {place.x + 26, place.y}, entry.style + (" " + color));
    } else if (entry.line) {
      canvas.line({place.x, place.y}, {place.x + 26, place.y}, "line " + color);
      canvas.mark(entry.color, {place.x + 13, place.y}, entry.hollow);
    } else {
      canvas.mark(entry.color, {place.x + 5, place.y}, entry.hollow);
    }
    canvas.text({place.x + key, place.y + 4}, text, "start", "label");
    place.x += width;
  }
  return place.y + more + text_size;
}

}  // namespace headlab::tools
