// SPDX-License-Identifier: Apache-2.0
/// \file Where the scaling law holds: a cell for every setting, rule and budget of a map.
#include <algorithm>
#include <map>
#include <set>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "tools/cli/figure_text.h"
#include "tools/report/figure.h"
#include "tools/report/labels.h"
#include "tools/report/sections.h"
#include "tools/report/sweep.h"

namespace headlab::tools {
namespace {

constexpr std::size_t max_settings = 36;
constexpr double cell_height = 20;
constexpr double min_column = 40;

struct RegimeStyle {
  std::string words;
  std::size_t color;
};

/// What is seen in all cells, in the order of the map's page of the documentation.
std::vector<RegimeStyle> regime_styles(const Value::Array& cells) {
  std::vector<std::string> words = {
      "rises",          "rises, log or power",  "rises, log",     "rises, power",
      "full dimension", "one dimension a head", "no growth seen", "falls"};
  std::set<std::string> seen;
  for (const Value& cell : cells) {
    const std::string word = text_of(member(cell, "words"));
    seen.insert(word);
    if (std::ranges::find(words, word) == words.end()) words.push_back(word);
  }
  std::vector<RegimeStyle> styles;
  for (const std::string& word : words) {
    if (seen.contains(word)) styles.push_back({word, styles.size() % colors});
  }
  return styles;
}

/// A value of a setting, which is TOML.
Value setting_value(const std::string& toml) {
  try {
    return parse_value(toml, "setting", {});
  } catch (const InvalidInput&) {
    return {toml, {}};
  }
}

/// Short texts of the values of every swept key that has several.
using SettingTexts = std::map<std::string, std::map<std::string, std::string>>;
SettingTexts setting_texts(const Value::Array& cells) {
  std::map<std::string, std::map<std::string, Value>> values;
  for (const Value& cell : cells) {
    for (const auto& [key, location, value] : members_of(member(cell, "setting"))) {
      values[key].emplace(text_of(value), setting_value(text_of(value)));
    }
  }
  SettingTexts texts;
  for (const auto& [key, of_key] : values) {
    if (of_key.size() < 2) continue;
    std::vector<const Value*> all;
    for (const auto& [toml, value] : of_key) all.push_back(&value);
    const std::vector<std::string> words = level_texts(all);
    std::size_t i = 0;
    for (const auto& [toml, value] : of_key) texts[key][toml] = words[i++];
  }
  return texts;
}

/// The setting without what all cells have in common.
std::string setting_label(const Value& setting, const SettingTexts& texts) {
  std::string text;
  for (const auto& [key, location, value] : members_of(setting)) {
    const auto of_key = texts.find(key);
    if (of_key == texts.end()) continue;
    const std::string& words = of_key->second.at(text_of(value));
    // A law says by itself what it is of; a number does not.
    text += (text.empty() ? "" : ", ") +
            (is_number_text(words) ? key.substr(key.rfind('.') + 1) + " " : std::string()) + words;
  }
  return text;
}

struct RegimeGrid {
  std::vector<std::string> rows, columns;
  std::map<std::pair<std::size_t, std::size_t>, const Value*> cells;
};

std::size_t number_in(std::vector<std::string>& names, const std::string& name) {
  const auto at = std::ranges::find(names, name);
  if (at != names.end()) return static_cast<std::size_t>(at - names.begin());
  names.push_back(name);
  return names.size() - 1;
}

RegimeGrid grid_of(const Value::Array& cells) {
  const SettingTexts texts = setting_texts(cells);
  RegimeGrid grid;
  for (const Value& cell : cells) {
    const std::size_t row = number_in(grid.rows, setting_label(member(cell, "setting"), texts));
    const std::size_t column =
        number_in(grid.columns, text_of(member(cell, "rule")) + ", D " +
                                    axis_number(number_of(member(cell, "budget"))));
    grid.cells[{row, column}] = &cell;
  }
  return grid;
}

Canvas draw_grid(const RegimeGrid& grid, const std::vector<RegimeStyle>& styles,
                 const std::vector<std::size_t>& rows, double picture_width) {
  double left = 60, heading = 0;
  std::vector<std::string> settings;
  for (const std::size_t row : rows) settings.push_back(grid.rows[row]);
  // What columns do not need.
  const double room = picture_width - 80 - min_column * static_cast<double>(grid.columns.size());
  settings =
      labels_in_lines(settings, characters_in(std::max(room, 0.5 * picture_width) / 0.92), 2);
  double height = cell_height;
  for (const std::string& text : settings) {
    left = std::max(left, 20 + 0.92 * text_width(text));
    height = std::max(height, text_height(text) + 4);
  }
  for (const std::string& column : grid.columns) heading = std::max(heading, text_width(column));
  std::vector<LegendEntry> legend;
  for (const RegimeStyle& style : styles) legend.push_back({style.color, style.words});
  const double top = legend_height(picture_width, legend) + 0.6 * heading + 22;
  const double width =
      std::min((picture_width - 60 - left) / static_cast<double>(grid.columns.size()), 90.0);
  Canvas canvas(picture_width, top + height * static_cast<double>(rows.size()) + 12);
  draw_legend(canvas, legend);
  for (std::size_t column = 0; column < grid.columns.size(); ++column) {
    const double x = left + width * (static_cast<double>(column) + 0.5);
    canvas.text({x - 4, top - 6}, grid.columns[column], "start", "small", -35);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double y = top + height * static_cast<double>(i);
    const double first_line = y + (height - text_height(settings[i])) / 2 + 11;
    canvas.text({left - 8, first_line}, settings[i], "end", "small label");
    for (std::size_t column = 0; column < grid.columns.size(); ++column) {
      const auto cell = grid.cells.find({rows[i], column});
      const double x = left + width * static_cast<double>(column);
      canvas.rectangle({x, y, x + width, y + height}, "frame");
      if (cell == grid.cells.end()) continue;
      const auto style =
          std::ranges::find(styles, text_of(member(*cell->second, "words")), &RegimeStyle::words);
      canvas.rectangle({x + 1, y + 1, x + width - 1, y + height - 1},
                       "band c" + std::to_string(style->color));
      canvas.mark(style->color, {x + width / 2, y + height / 2});
    }
  }
  return canvas;
}

std::string exponent_text(const Value& cell) {
  for (const Value& law : items_of(member(cell, "laws"))) {
    if (text_of(member(law, "law")) != "power") continue;
    const Value::Array& interval = items_of(member(law, "interval"));
    if (interval.size() != 2) return "–";
    const auto text = [](const Value& value) { return measured_number(number_of(value), 3); };
    return text(member(law, "slope")) + " (" + text(interval[0]) + " to " + text(interval[1]) + ")";
  }
  return "–";
}

}  // namespace

std::vector<std::pair<std::string, std::string>> varied_settings(const Value::Array& cells) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& [key, texts] : setting_texts(cells)) {
    std::string values;
    for (const auto& [toml, words] : texts) values += (values.empty() ? "" : ", ") + words;
    all.emplace_back(key, values);
  }
  return all;
}

std::vector<Picture> regime_figures(const Source& source) {
  const Value::Array& cells = items_of(member(source.document, "cells"));
  if (cells.empty()) return {};
  const std::vector<RegimeStyle> styles = regime_styles(cells);
  const RegimeGrid grid = grid_of(cells);
  Table table{.caption = "What each cell says; exponent of the power law with its 95 % interval",
              .headings = {"setting", "rule, budget", "growth", "exponent"}};
  std::map<std::string, std::size_t> counts;
  for (const auto& [place, cell] : grid.cells) {
    const std::string words = text_of(member(*cell, "words"));
    ++counts[words];
    table.rows.push_back({grid.rows[place.first].empty() ? "the only one" : grid.rows[place.first],
                          grid.columns[place.second], words, exponent_text(*cell)});
  }
  std::string finding;
  for (const RegimeStyle& style : styles) {
    finding += (finding.empty() ? "" : ", ") +
               ("\"" + style.words + "\" in " + std::to_string(counts[style.words]));
  }
  const std::vector<std::size_t> rows = spread(grid.rows.size(), max_settings);
  return {{.title = "Where the best dimension grows with n",
           .finding = "Of " + counted(grid.cells.size(), "cell") + ": " + finding + ".",
           .draw = [=](double width) { return draw_grid(grid, styles, rows, width); },
           .table = std::move(table),
           .note = sentences({"A row is a setting of the sweep, a column a bandwidth rule with a "
                              "budget D.",
                              shows_text(rows.size(), grid.rows.size(),
                                         "settings, from the first to the last.")}),
           .max_rows = 200}};
}

}  // namespace headlab::tools
