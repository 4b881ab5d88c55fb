// SPDX-License-Identifier: Apache-2.0
#include "tools/tables/select_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/key_names.h"
#include "engine/files/words.h"
#include "engine/scenario/value_names.h"
#include "validation/statistics/intervals.h"

namespace headlab::tools {
namespace {

constexpr double interval_level = 0.95;

using Rows = std::vector<std::size_t>;

Cell cell_at(const TableColumn& column, std::size_t row) {
  if (const auto* texts = std::get_if<std::vector<std::string>>(&column.cells))
    return (*texts)[row];
  const double error = column.error.empty() ? no_number : column.errors[row];
  return Estimate{std::get<std::vector<double>>(column.cells)[row], error};
}

std::string underscored(std::string key) {
  std::ranges::replace(key, '.', '_');
  return key;
}

/// Whether each of the rows holds the value that was written.
std::vector<bool> with_value(const std::string& option, const TableColumn& column, std::size_t rows,
                             const std::string& text) {
  std::vector<bool> has(rows);
  if (!column.is_text()) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool is_number = error == std::errc() && end == text.data() + text.size();
    const auto& numbers = std::get<std::vector<double>>(column.cells);
    for (std::size_t row = 0; row < rows; ++row) has[row] = is_number && numbers[row] == number;
    return has;
  }
  const auto& texts = std::get<std::vector<std::string>>(column.cells);
  const std::set<std::string> different(texts.begin(), texts.end());
  const std::vector<std::string> values(different.begin(), different.end());
  const std::optional<std::size_t> value = value_named(option, text, values);
  if (!value) return has;
  for (std::size_t row = 0; row < rows; ++row) has[row] = same_value(texts[row], values[*value]);
  return has;
}

/// "50, 100, 200": the values of a key, the first few of many.
std::string values_text(const TableColumn& key, std::size_t rows) {
  constexpr std::size_t most = 8;
  std::vector<std::string> values;
  for (std::size_t row = 0; row < rows && values.size() <= most; ++row) {
    const std::string text = one_line(text_at(key, row), 40);
    if (std::ranges::count(values, text) == 0) values.push_back(text);
  }
  if (values.size() > most) values.back() = "...";
  return listed(values);
}

std::vector<TableColumn> chosen_figures(const TableSource& source, const TableRequest& request) {
  std::vector<std::string> names;
  for (const std::string& name : request.figures) {
    if (name == all_figures) {
      names.insert(names.end(), source.figures.begin(), source.figures.end());
      continue;
    }
    // What names the row stands there anyway.
    if (std::ranges::count(source.keys, name, &TableColumn::name) > 0) continue;
    if (!source.has(name)) {
      throw InvalidInput("--figures: unknown figure \"" + one_line(name) + "\"" +
                         suggestion(name, source.figures));
    }
    names.push_back(name);
  }
  if (request.figures.empty()) names = source.shown;
  std::vector<TableColumn> figures;
  for (const std::string& name : names) {
    if (std::ranges::count(figures, name, &TableColumn::name) == 0) {
      figures.push_back(source.figure(name));
    }
  }
  return figures;
}

/// What the cells of a table are made of.
struct Chosen {
  std::vector<TableColumn> keys;
  std::vector<TableColumn> figures;
  Rows rows;
  Rows conditions = {};  ///< of all rows of the source, or none
  bool any_error(const char* name) const {
    return std::ranges::any_of(figures, [&](const TableColumn& one) { return one.error == name; });
  }
};
using Shared = std::shared_ptr<const Chosen>;

/// A part of what is shared.
template <class Whole>
std::shared_ptr<const TableColumn> shared(const Whole& whole, const TableColumn& part) {
  return {whole, &part};
}

/// The columns of the keys, where row(i) is the row of the source that row i shows.
template <class RowOf>
void add_keys(const Shared& chosen, const RowOf& row_of, ShownTable& table) {
  for (const TableColumn& key : chosen->keys) {
    table.columns.push_back({.name = key.name,
                             .text = key.is_text(),
                             .whole = key.whole,
                             .key = true,
                             .cell = [one = shared(chosen, key), row_of](std::size_t i) {
                               return cell_at(*one, row_of(i));
                             }});
  }
}

ShownTable wide_table(const Shared& chosen) {
  ShownTable table{.columns = {}, .rows = chosen->rows.size()};
  const auto row_of = [chosen](std::size_t i) { return chosen->rows[i]; };
  add_keys(chosen, row_of, table);
  for (const TableColumn& figure : chosen->figures) {
    table.columns.push_back({.name = figure.name,
                             .error = figure.error,
                             .text = figure.is_text(),
                             .whole = figure.whole,
                             .cell = [one = shared(chosen, figure), row_of](std::size_t i) {
                               return cell_at(*one, row_of(i));
                             }});
  }
  return table;
}

/// Half the interval around a figure: t quantiles of a standard error, all of a remainder.
double half_width(const TableColumn& figure, std::size_t row, std::map<double, double>& quantiles) {
  if (figure.error == "remainder") return std::abs(figure.errors[row]);
  if (figure.error.empty() || !figure.degrees_of_freedom) return no_number;
  const double freedom = (*figure.degrees_of_freedom)[row];
  if (!(freedom > 0)) return no_number;
  const auto [at, is_new] = quantiles.try_emplace(freedom);
  if (is_new) at->second = student_quantile((1 + interval_level) / 2, freedom);
  return at->second * figure.errors[row];
}

ShownTable long_table(const Shared& chosen) {
  const std::size_t figures = chosen->figures.size();
  ShownTable table{.columns = {}, .rows = chosen->rows.size() * figures};
  const auto row_of = [chosen, figures](std::size_t i) { return chosen->rows[i / figures]; };
  const auto figure_of = [chosen, figures](std::size_t i) -> const TableColumn& {
    return chosen->figures[i % figures];
  };
  const auto add = [&](const char* name, std::function<Cell(std::size_t)> cell, bool text = false) {
    table.columns.push_back({.name = name, .text = text, .cell = std::move(cell)});
  };
  if (!chosen->conditions.empty()) {
    add("condition", [=](std::size_t i) {
      return Estimate{static_cast<double>(chosen->conditions[row_of(i)]), no_number};
    });
    table.columns.back().key = table.columns.back().whole = true;
  }
  add_keys(chosen, row_of, table);
  add(
      "figure", [=](std::size_t i) { return figure_of(i).name; }, true);
  table.columns.back().key = true;
  const bool text = std::ranges::any_of(chosen->figures, &TableColumn::is_text);
  add(
      "value",
      [=](std::size_t i) -> Cell {
        Cell cell = cell_at(figure_of(i), row_of(i));
        if (auto* number = std::get_if<Estimate>(&cell)) number->mcse = no_number;
        return cell;
      },
      text);
  const auto estimate = [=](std::size_t i) {
    const Cell cell = cell_at(figure_of(i), row_of(i));
    const auto* number = std::get_if<Estimate>(&cell);
    return number == nullptr ? Estimate{no_number, no_number} : *number;
  };
  for (const char* error : {"mcse", "remainder"}) {
    if (error == std::string("remainder") && !chosen->any_error(error)) continue;
    add(error, [=](std::size_t i) {
      const bool own = figure_of(i).error == error;
      return Estimate{own ? estimate(i).mcse : no_number, no_number};
    });
  }
  const auto quantiles = std::make_shared<std::map<double, double>>();
  for (const int side : {-1, 1}) {
    add(side < 0 ? "lower" : "upper", [=](std::size_t i) {
      const Estimate of = estimate(i);
      const double half = half_width(figure_of(i), row_of(i), *quantiles);
      return Estimate{of.value + side * half, no_number};
    });
  }
  return table;
}

/// Numbers the different values of keys, in the order of the rows.
class Levels {
 public:
  explicit Levels(std::vector<TableColumn> keys) : keys_(std::move(keys)) {}
  std::size_t level(std::size_t row) {
    std::string place;
    for (const TableColumn& key : keys_) {
      const std::string text = text_at(key, row);
      place += std::to_string(text.size()) + ":" + text;
    }
    const auto [at, is_new] = numbers_.try_emplace(place, rows_.size());
    if (is_new) rows_.push_back(row);
    return at->second;
  }
  /// The first row of each level.
  const Rows& rows() const { return rows_; }
  const std::vector<TableColumn>& keys() const { return keys_; }

 private:
  std::vector<TableColumn> keys_;
  std::map<std::string, std::size_t> numbers_;
  Rows rows_;
};

[[noreturn]] void reject_cell(const TableSource& source, const Levels& down, const Levels& across,
                              std::size_t first, std::size_t second) {
  const TableColumn& column = across.keys().front();
  const std::string place = "--rows and --columns: " + column.name + " = " +
                            one_line(text_at(column, first), 40) +
                            " would hold several conditions in one cell";
  for (const TableColumn& key : source.keys) {
    const auto same = [&](const TableColumn& one) { return one.name == key.name; };
    if (std::ranges::any_of(down.keys(), same) || same(column)) continue;
    if (text_at(key, first) == text_at(key, second)) continue;
    throw InvalidInput(place + ", which differ in " + key.name + " - write --where '" + key.name +
                       "=" + one_line(text_at(key, first), 80) + "'");
  }
  throw InvalidInput(place + ", which differ in no key - leave out --rows and --columns");
}

ShownTable two_way_table(const TableSource& source, const TableRequest& request,
                         const Shared& chosen) {
  if (request.rows.empty() || !request.columns) {
    throw InvalidInput(request.columns ? "--columns: needs --rows KEY, the key that goes down"
                                       : "--rows: needs --columns KEY, the key that goes across");
  }
  if (request.one_figure_a_row) {
    throw InvalidInput("--long: is another form than --rows and --columns - leave one out");
  }
  if (chosen->figures.size() != 1) {
    std::vector<std::string> names;
    for (const TableColumn& one : chosen->figures) names.push_back(one.name);
    throw InvalidInput(
        "--columns: a two-way table is of one figure - write --figures with one of " +
        listed(names));
  }
  std::vector<TableColumn> keys;
  for (const std::string& name : request.rows) keys.push_back(key_of(source, name, "--rows"));
  for (const TableColumn& key : keys) {
    if (&key != &*std::ranges::find(keys, key.name, &TableColumn::name)) {
      throw InvalidInput("--rows: has " + key.name + " twice");
    }
  }
  Levels across({key_of(source, *request.columns, "--columns")});
  if (std::ranges::count(keys, across.keys().front().name, &TableColumn::name) > 0) {
    throw InvalidInput("--columns: is " + across.keys().front().name +
                       ", as --rows - name another key");
  }
  Levels down(std::move(keys));
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> cells;
  for (const std::size_t row : chosen->rows) {
    const std::pair place(down.level(row), across.level(row));
    const auto [at, is_new] = cells.try_emplace(place, row);
    if (!is_new) reject_cell(source, down, across, at->second, row);
  }
  ShownTable table{.columns = {}, .rows = down.rows().size()};
  const auto levels = std::make_shared<const Levels>(down);
  for (const TableColumn& key : levels->keys()) {
    table.columns.push_back({.name = key.name,
                             .text = key.is_text(),
                             .whole = key.whole,
                             .key = true,
                             .cell = [levels, one = shared(levels, key)](std::size_t i) {
                               return cell_at(*one, levels->rows()[i]);
                             }});
  }
  const auto all = std::make_shared<const decltype(cells)>(std::move(cells));
  const TableColumn& figure = chosen->figures.front();
  const TableColumn& column = across.keys().front();
  for (std::size_t j = 0; j < across.rows().size(); ++j) {
    table.columns.push_back({.name = column.name + "=" + text_at(column, across.rows()[j]),
                             .error = figure.error,
                             .text = figure.is_text(),
                             .whole = figure.whole,
                             .cell = [all, one = shared(chosen, figure), j](std::size_t i) -> Cell {
                               const auto at = all->find({i, j});
                               if (at != all->end()) return cell_at(*one, at->second);
                               if (one->is_text()) return std::string();
                               return Estimate{no_number, no_number};
                             }});
  }
  return table;
}

}  // namespace

std::string text_at(const TableColumn& column, std::size_t row) {
  const Cell cell = cell_at(column, row);
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  return number_text(std::get<Estimate>(cell).value);
}

TableColumn key_of(const TableSource& source, const std::string& name, const std::string& option) {
  for (const TableColumn& key : source.keys) {
    if (name == key.name || (!key.key.empty() && name == underscored(key.key))) return key;
  }
  std::vector<std::string> whole;
  for (const TableColumn& key : source.keys) whole.push_back(key.key);
  if (const auto found = key_named(option, name, whole)) return source.keys[*found];
  if (name == "condition" && !source.conditions.empty()) {
    return {.name = name,
            .cells = std::vector<double>(source.conditions.begin(), source.conditions.end()),
            .whole = true};
  }
  std::vector<std::string> known;
  for (const TableColumn& key : source.keys) known.push_back(key.name);
  if (source.has(name)) {
    TableColumn figure = source.figure(name);
    if (figure.error.empty()) return figure;
    throw InvalidInput(option + ": " + name +
                       " is a figure with a standard error (allowed: " + listed(known) + ")");
  }
  throw InvalidInput(option + ": unknown key \"" + one_line(name) + "\"" +
                     (known.empty() ? " - nothing is swept here" : suggestion(name, known)));
}

std::vector<std::string> parse_names(const std::string& option, const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    const std::size_t begin = std::min(text.find_first_not_of(' ', from), comma);
    const std::size_t end = begin == comma ? comma : text.find_last_not_of(' ', comma - 1) + 1;
    parts.push_back(text.substr(begin, end - begin));
    if (parts.back().empty()) {
      throw InvalidInput(option + ": \"" + one_line(text) +
                         "\" has an empty part - write names with commas between");
    }
    if (std::count(parts.begin(), parts.end(), parts.back()) > 1) {
      throw InvalidInput(option + ": names " + one_line(parts.back()) + " twice");
    }
    from = comma + 1;
  }
  return parts;
}

WhereList parse_where(const std::vector<std::string>& texts) {
  WhereList where;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) {
      throw InvalidInput("--where: \"" + one_line(text) + "\" is not KEY=VALUE");
    }
    where.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return where;
}

std::vector<std::size_t> rows_where(const TableSource& source, const WhereList& where) {
  Rows rows;
  for (std::size_t row = 0; row < source.rows; ++row) rows.push_back(row);
  for (const auto& [name, text] : where) {
    const TableColumn key = key_of(source, name, "--where");
    const std::string option = "--where " + one_line(name) + "=" + one_line(text);
    const std::vector<bool> has = with_value(option, key, source.rows, text);
    std::erase_if(rows, [&](std::size_t row) { return !has[row]; });
    if (rows.empty()) {
      throw InvalidInput(option + ": no row is left (" + one_line(name) + " is " +
                         values_text(key, source.rows) + ")");
    }
  }
  return rows;
}

ShownTable select_table(std::shared_ptr<const TableSource> source, const TableRequest& request) {
  const auto chosen = std::make_shared<Chosen>(Chosen{.keys = source->keys,
                                                      .figures = chosen_figures(*source, request),
                                                      .rows = rows_where(*source, request.where)});
  if (!request.rows.empty() || request.columns) return two_way_table(*source, request, chosen);
  if (!request.one_figure_a_row) return wide_table(chosen);
  chosen->conditions = source->conditions;
  return long_table(chosen);
}

}  // namespace headlab::tools
