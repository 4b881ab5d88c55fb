// SPDX-License-Identifier: Apache-2.0
#include "tools/report/heat_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "engine/files/words.h"
#include "tools/report/figure.h"
#include "tools/report/labels.h"
#include "tools/report/markup.h"

namespace headlab::tools {
namespace {

constexpr double min_numbered_cell = 34;

/// A shade: 1 .. shades for what is above 0, -1 .. -shades for what is below, 0 for none.
class Shading {
 public:
  Shading(double low, double high) {
    diverging_ = low < 0;
    low_ = diverging_ ? 0 : low;
    high_ = diverging_ ? std::max(std::abs(low), std::abs(high)) : high;
    // Values that differ by rounding have one shade.
    if (!(high_ - low_ > 1e-9 * std::abs(high_))) low_ = std::min(low_, 0.0);
  }
  int operator()(double value) const {
    if (!std::isfinite(value)) return 0;
    const double size = diverging_ ? std::abs(value) : value;
    const double share = high_ > low_ ? (size - low_) / (high_ - low_) : 1;
    const int shade = 1 + std::clamp(static_cast<int>(share * shades), 0, shades - 1);
    return diverging_ && value < 0 ? -shade : shade;
  }
  double edge(int shade) const { return low_ + (high_ - low_) * shade / shades; }
  bool diverging() const { return diverging_; }
  /// The shade of a cell. Cells of the diagonal, which are not pairs of heads, are grey.
  int of_cell(const HeadMatrix& matrix, std::size_t h, std::size_t l) const {
    const int shade = (*this)(matrix.at(h, l));
    return h == l && shade != 0 ? diagonal : shade;
  }
  static constexpr int diagonal = shades + 1;

 private:
  bool diverging_;
  double low_, high_;
};

std::string classes_of(int shade) {
  return shade < 0 ? "cell c4" : "cell c1";
}

std::string opacity_of(int shade) {
  return formatted("stroke-opacity=\"%.2g\"", shade_opacity(shade));
}

/// A number with `digits` significant ones, zeros at its end too: "0.010", "12", "1.2e−05".
std::string cell_number(double value, int digits) {
  if (!std::isfinite(value)) return "–";
  if (value == 0) return "0";
  std::string text = formatted("%#.*g", digits, value);
  if (text.ends_with('.')) text.pop_back();
  return with_minus_sign(text);
}

/// Path data of the cells of every shade, as strokes along the rows.
std::array<std::string, 2 * shades + 2> paths_of(const HeadMatrix& matrix, const Shading& shading) {
  std::array<std::string, 2 * shades + 2> paths;
  for (std::size_t h = 0; h < matrix.heads; ++h) {
    for (std::size_t l = 0; l < matrix.heads;) {
      const int shade = shading.of_cell(matrix, h, l);
      std::size_t run = 1;
      while (l + run < matrix.heads && shading.of_cell(matrix, h, l + run) == shade) ++run;
      if (shade != 0) {
        std::string& path = paths[static_cast<std::size_t>(shade + shades)];
        path += "M" + std::to_string(l) + " " + std::to_string(h) + "h" + std::to_string(run);
      }
      l += run;
    }
  }
  return paths;
}

/// Every head's number where there is room, else some.
void draw_head_numbers(Canvas& canvas, const Box& box, std::size_t heads) {
  const double cell = box.width() / static_cast<double>(heads);
  const std::size_t step =
      static_cast<std::size_t>(std::ceil(text_width(std::to_string(heads)) * 1.4 / cell));
  for (std::size_t h = 0; h < heads; h += std::max<std::size_t>(step, 1)) {
    const double middle = (static_cast<double>(h) + 0.5) * cell;
    canvas.text({box.left + middle, box.bottom + 15}, std::to_string(h), "middle");
    canvas.text({box.left - 6, box.top + middle + 4}, std::to_string(h), "end");
  }
}

/// As many digits as tell the ends of a scale of shades apart: two to four.
int digits_apart(double low, double high) {
  int digits = 2;
  while (digits < 4 && cell_number(low, digits) == cell_number(high, digits)) ++digits;
  return digits;
}

/// The numbers of cells, those to either side of a power of ten with as many decimals: "1.00" and
/// "0.92".
std::vector<std::string> cell_numbers(const std::vector<double>& values, int digits) {
  std::vector<std::string> numbers;
  std::size_t least = std::string::npos, most = 0;  // decimals
  for (const double value : values) {
    numbers.push_back(cell_number(value, digits));
    if (!std::isfinite(value) || value == 0) continue;
    const std::size_t point = numbers.back().find('.');
    const std::size_t decimals = point == std::string::npos ? 0 : numbers.back().size() - point - 1;
    least = std::min(least, decimals);
    most = std::max(most, decimals);
  }
  const bool plain = std::ranges::none_of(
      numbers, [](const std::string& number) { return number.find('e') != std::string::npos; });
  if (!plain || most != least + 1) return numbers;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i]) || values[i] == 0) continue;
    numbers[i] = with_minus_sign(formatted("%.*f", static_cast<int>(most), values[i]));
  }
  return numbers;
}
/// Whether a cell of this size has room for each number.
bool have_room(const std::vector<std::string>& numbers, double cell) {
  constexpr double room_beside_number = 1;
  double widest = 0;
  for (const std::string& number : numbers) widest = std::max(widest, text_width(number));
  return std::max(widest + room_beside_number, min_numbered_cell) <= cell;
}

/// \param digits  of the numbers in its cells, 0: none
void draw_matrix(Canvas& canvas, const Box& box, const HeadMatrix& matrix, const Shading& shading,
                 int digits) {
  const double cell = box.width() / static_cast<double>(matrix.heads);
  canvas.open_group(formatted("transform=\"translate(%.1f %.2f) scale(%.4f)\"", box.left,
                              box.top + cell / 2, cell));
  const auto paths = paths_of(matrix, shading);
  for (int shade = -shades; shade <= shades; ++shade) {
    const std::string& path = paths[static_cast<std::size_t>(shade + shades)];
    if (!path.empty()) canvas.path(path, classes_of(shade), opacity_of(shade));
  }
  const std::string& diagonal = paths[static_cast<std::size_t>(Shading::diagonal + shades)];
  if (!diagonal.empty()) canvas.path(diagonal, "cell diagonal");
  canvas.close_group();
  canvas.rectangle(box, "frame");
  canvas.text({box.left - 6, box.bottom + 15}, "head", "end", "soft");
  draw_head_numbers(canvas, box, matrix.heads);
  if (digits == 0) return;
  const std::vector<std::string> numbers = cell_numbers(matrix.values, digits);
  for (std::size_t h = 0; h < matrix.heads; ++h) {
    for (std::size_t l = 0; l < matrix.heads; ++l) {
      canvas.text({box.left + (static_cast<double>(l) + 0.5) * cell,
                   box.top + (static_cast<double>(h) + 0.5) * cell + 4},
                  numbers[h * matrix.heads + l], "middle",
                  number_class(shading.of_cell(matrix, h, l)));
    }
  }
}

constexpr double key_left = 78, key_shade = 26;  ///< where shades begin, and one of them at most

/// Where the diagonal has its key: behind the shades, or below them.
Point place_of_diagonal(double width, const Shading& shading, const std::string& words) {
  const double behind = key_left + key_shade * (shading.diverging() ? 2 * shades : shades) + 24;
  const bool has_room = behind + key_shade + 8 + text_width(words) <= width;
  return has_room ? Point{behind, 0} : Point{key_left, 34};
}

/// \param diagonal  what its grey cells are; empty where there are none
void draw_key(Canvas& canvas, double top, const Shading& shading, const std::string& diagonal) {
  const double count = shading.diverging() ? 2 * shades : shades;
  const double width = std::min(key_shade, (canvas.width() - key_left - 20) / count);
  canvas.text({20, top + 12}, "shades:");
  double x = key_left;
  for (int shade = shading.diverging() ? -shades : 1; shade <= shades; ++shade) {
    if (shade == 0) continue;
    canvas.path(formatted("M%.1f %.1fh%.1f", x, top + 8, width), classes_of(shade) + " key",
                opacity_of(shade));
    x += width;
  }
  const double left = key_left;
  canvas.rectangle({left, top + 2, x, top + 14}, "frame");
  if (shading.diverging()) {
    canvas.text({left, top + 29}, cell_number(-shading.edge(shades), 3));
    canvas.text({(left + x) / 2, top + 29}, "0", "middle");
  } else {
    canvas.text({left, top + 29}, cell_number(shading.edge(0), 3));
  }
  canvas.text({x, top + 29}, cell_number(shading.edge(shades), 3), "end");
  if (diagonal.empty()) return;
  const Point place = place_of_diagonal(canvas.width(), shading, diagonal);
  const double y = top + place.y;
  canvas.path(formatted("M%.1f %.1fh%.1f", place.x, y + 8, key_shade), "cell diagonal key");
  canvas.text({place.x + key_shade + 8, y + 12}, diagonal);
}

constexpr int max_lines = 3;  ///< of the name of a row or a column

/// Where the first line of a text stands whose lines are to be around a middle.
double first_baseline(double middle, const std::string& text) {
  return middle + 4 - (text_height(text) - text_height("")) / 2;
}

/// The names below the columns of a map: in lines where their words have room, else upright.
class ColumnNames {
 public:
  ColumnNames(const std::vector<std::string>& names, double cell) : names_(names), cell_(cell) {
    const std::size_t length = characters_in(cell - beside);
    double widest = 0;
    for (const std::string& name : names) widest = std::max(widest, text_width(name));
    if (widest + beside <= cell) return;
    if (std::ranges::all_of(names, [&](const auto& name) { return has_room(name, length); })) {
      for (std::string& name : names_) name = in_lines(name, length);
      return;
    }
    upright_ = true;
    constexpr std::size_t upright_length = 20;
    const double lines = std::clamp(cell / text_height(""), 1.0, double{max_lines});
    names_ = labels_in_lines(names, upright_length, static_cast<std::size_t>(lines));
    // Of very many columns some are named.
    step_ = std::ceil(text_height("") / std::max(cell, 1.0));
  }

  double height() const {
    double all = 0;
    for (const std::string& name : names_) {
      all = std::max(all, upright_ ? text_width(name) + 4 : text_height(name));
    }
    return all + 6;
  }

  void draw(Canvas& canvas, const Box& box) const {
    for (std::size_t i = 0; i < names_.size(); i += static_cast<std::size_t>(step_)) {
      const double middle = box.left + (static_cast<double>(i) + 0.5) * cell_;
      if (upright_) {
        canvas.text({first_baseline(middle, names_[i]), box.bottom + 6}, names_[i], "end", "label",
                    -90);
      } else {
        canvas.text({middle, box.bottom + 16}, names_[i], "middle", "label");
      }
    }
  }

 private:
  static constexpr double beside = 6;

  static bool has_room(const std::string& name, std::size_t length) {
    std::istringstream words(name);
    for (std::string word; words >> word;) {
      if (character_count(word) > length) return false;
    }
    return std::ranges::count(in_lines(name, length), '\n') < max_lines;
  }

  std::vector<std::string> names_;
  double cell_;
  bool upright_ = false;
  double step_ = 1;
};

}  // namespace

double shade_opacity(int shade) {
  return 0.06 + 0.88 * (std::abs(shade) - 0.5) / (shades - 0.5);
}

const char* number_class(int shade) {
  if (shade == shades) return "ground";
  return std::abs(shade) >= 6 ? "ink" : "plain";
}

HeadMatrix head_matrix(const std::string& title, const Value& rows) {
  HeadMatrix matrix{.title = title, .heads = items_of(rows).size(), .values = {}};
  for (const Value& row : items_of(rows)) {
    if (items_of(row).size() != matrix.heads) return {};
    for (const Value& value : items_of(row)) matrix.values.push_back(number_of(value));
  }
  return matrix;
}

PairExtremes extremes_of(const HeadMatrix& matrix) {
  PairExtremes found;
  for (std::size_t h = 0; h < matrix.heads; ++h) {
    for (std::size_t l = h + 1; l < matrix.heads; ++l) {
      const double value = matrix.at(h, l);
      if (!std::isfinite(value)) continue;
      if (!found.found || value < found.lowest) {
        found.lowest = value;
        found.low[0] = h, found.low[1] = l;
      }
      if (!found.found || value > found.highest) {
        found.highest = value;
        found.high[0] = h, found.high[1] = l;
      }
      found.found = true;
    }
  }
  return found;
}

Canvas draw_heat_maps(const HeatMapWords& words, const std::vector<HeadMatrix>& matrices,
                      double width) {
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (const HeadMatrix& matrix : matrices) {
    const PairExtremes extremes = extremes_of(matrix);
    if (!extremes.found) continue;
    low = std::min(low, extremes.lowest);
    high = std::max(high, extremes.highest);
  }
  if (low > high) low = 0, high = 1;
  const Shading shading(low, high);
  constexpr double two_columns = 560;
  const std::size_t columns = matrices.size() > 1 && width >= two_columns ? 2 : 1;
  std::size_t heads = 1;
  for (const HeadMatrix& matrix : matrices) heads = std::max(heads, matrix.heads);
  const double step = width / static_cast<double>(columns);
  const double side = std::clamp(66.0 * static_cast<double>(heads), 132.0,
                                 std::min(step - 60, columns == 1 ? 330.0 : 290.0));
  std::vector<std::string> names;
  for (const HeadMatrix& matrix : matrices) names.push_back(matrix.title);
  const PartTitles titles(names, step - 26);
  const double above = 26 + titles.more_height();
  const double row = above + side + 36;
  const std::size_t rows = (matrices.size() + columns - 1) / columns;
  const double below_key = 40 + place_of_diagonal(width, shading, words.diagonal).y;
  const double key = below_key + 24;  // and the title
  Canvas canvas(width, key + row * static_cast<double>(rows));
  draw_key(canvas, 0, shading, words.diagonal);
  canvas.text({20, below_key + 16}, words.title, "start", "strong");
  const int digits = digits_apart(shading.edge(0), shading.edge(shades));
  // Numbers stand in all cells of matrices of one size, or in none.
  const auto numbered = [&](const HeadMatrix& matrix) {
    return std::ranges::all_of(matrices, [&](const HeadMatrix& one) {
      return one.heads != matrix.heads ||
             have_room(cell_numbers(one.values, digits), side / static_cast<double>(one.heads));
    });
  };
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const double left = step * static_cast<double>(i % columns) + 40;
    const double top = key + row * static_cast<double>(i / columns) + above;
    titles.draw(canvas, i, {left - 22, top - 9});
    draw_matrix(canvas, {left, top, left + side, top + side}, matrices[i], shading,
                numbered(matrices[i]) ? digits : 0);
  }
  return canvas;
}

Canvas draw_map(const FigureMap& map, double width) {
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (const double value : map.values) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (low > high) low = 0, high = 1;
  const Shading shading(low, high);
  constexpr std::size_t of_row = 20;  // characters of a line
  const std::vector<std::string> rows = labels_in_lines(map.y, of_row, max_lines);
  double widest = 0, height = 26;
  for (const std::string& name : rows) {
    widest = std::max(widest, text_width(name));
    height = std::max(height, text_height(name) + 4);
  }
  const double left = 28 + widest, top = 84;
  const auto columns = static_cast<double>(map.x.size());
  const double cell = std::min((width - left - 20) / columns, 90.0);
  const Box box{left, top, left + cell * columns, top + height * static_cast<double>(map.y.size())};
  const ColumnNames names(map.x, cell);
  Canvas canvas(width, box.bottom + names.height() + 24);
  draw_key(canvas, 0, shading, "");
  canvas.text({20, 56}, map.title, "start", "strong");
  canvas.text({20, top - 9}, map.y_title, "start", "soft");
  canvas.open_group(formatted("transform=\"translate(%.1f %.2f) scale(%.4f %.4f)\"", box.left,
                              box.top + height / 2, cell, height));
  const std::vector<std::string> numbers = cell_numbers(map.values, 3);
  double widest_number = 0;
  for (std::size_t i = 0; i < map.values.size(); ++i) {
    const int shade = shading(map.values[i]);
    widest_number = std::max(widest_number, text_width(numbers[i]));
    if (shade == 0) continue;
    canvas.path(
        "M" + std::to_string(i % map.x.size()) + " " + std::to_string(i / map.x.size()) + "h1",
        classes_of(shade), opacity_of(shade));
  }
  canvas.close_group();
  canvas.rectangle(box, "frame");
  for (std::size_t i = 0; i < numbers.size() && widest_number + 4 <= cell; ++i) {
    canvas.text({left + (static_cast<double>(i % map.x.size()) + 0.5) * cell,
                 top + (static_cast<double>(i / map.x.size()) + 0.5) * height + 4},
                numbers[i], "middle", number_class(shading(map.values[i])));
  }
  for (std::size_t j = 0; j < rows.size(); ++j) {
    const double middle = top + (static_cast<double>(j) + 0.5) * height;
    canvas.text({left - 6, first_baseline(middle, rows[j])}, rows[j], "end", "label");
  }
  names.draw(canvas, box);
  canvas.text({box.right, box.bottom + names.height() + 14}, map.x_title, "end", "soft");
  return canvas;
}

std::string pair_text(const std::size_t (&pair)[2]) {
  return std::to_string(pair[0]) + " and " + std::to_string(pair[1]);
}

}  // namespace headlab::tools
