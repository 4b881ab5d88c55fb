// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "engine/files/error.h"
#include "engine/files/words.h"
#include "tools/cli/options.h"
#include "tools/python/src/studies.h"
#include "tools/python/src/values.h"
#include "tools/tables/along.h"
#include "tools/tables/table_source.h"
#include "tools/tables/write_table.h"

namespace headlab::python {

namespace nb = nanobind;

namespace {

using Texts = std::vector<std::string>;

/// What a table is of: a run in memory, a document or a file.
struct TableGiven {
  std::shared_ptr<RunOutcome> outcome;
  std::optional<std::string> document;
  std::string path;
};

tools::TableOf table_of(const std::string& word) {
  if (word.empty()) return tools::TableOf::conditions;
  Texts words;
  for (const tools::TableOf of : {tools::TableOf::heads, tools::TableOf::queries,
                                  tools::TableOf::pairs, tools::TableOf::growth}) {
    if (word == tools::name_of(of)) return of;
    words.emplace_back(tools::name_of(of));
  }
  throw InvalidInput("of: \"" + one_line(word) + "\" is unknown" + suggestion(word, words));
}

std::unique_ptr<tools::TableSource> source_of(const TableGiven& given, tools::TableOf of) {
  if (given.outcome) {
    return tools::table_of_run(*given.outcome->scenario, given.outcome->result,
                               given.outcome->report.indices, of);
  }
  if (!given.document) return tools::read_tables({given.path}, of);
  return tools::table_of_text(*given.document, of);
}

/// A table with all of its cells.
struct MadeTable {
  using Cells = std::variant<std::vector<double>, std::vector<std::int64_t>, Texts>;
  std::vector<std::pair<std::string, Cells>> columns;
  std::vector<Texts> cells;  ///< as a person reads them, the names first
  std::string text;
};

void add_column(const tools::ShownTable& table, const tools::ShownColumn& column, MadeTable& made) {
  std::vector<std::string> texts;
  std::vector<double> numbers, errors;
  for (std::size_t i = 0; i < table.rows; ++i) {
    const tools::Cell cell = column.cell(i);
    if (const auto* text = std::get_if<std::string>(&cell)) {
      texts.push_back(*text);
    } else {
      numbers.push_back(std::get<Estimate>(cell).value);
      errors.push_back(std::get<Estimate>(cell).mcse);
    }
  }
  // Of figures of several kinds, in one column, some are texts.
  if (!texts.empty() && !numbers.empty()) {
    texts.clear();
    for (std::size_t i = 0; i < table.rows; ++i) {
      texts.push_back(tools::cell_text(column, column.cell(i), 2));
    }
    numbers.clear();
  }
  if (!texts.empty() || (column.text && table.rows == 0)) {
    made.columns.emplace_back(column.name, std::move(texts));
    return;
  }
  const bool whole =
      column.whole && std::ranges::none_of(numbers, [](double one) { return std::isnan(one); });
  if (whole) {
    made.columns.emplace_back(column.name,
                              std::vector<std::int64_t>(numbers.begin(), numbers.end()));
  } else {
    made.columns.emplace_back(column.name, std::move(numbers));
  }
  if (!column.error.empty()) {
    made.columns.emplace_back(column.name + "_" + column.error, std::move(errors));
  }
}

/// \param format  "csv", "latex", "markdown"; "columns" and "cells" for those
nb::object make_table(const TableGiven& given, const std::string& of, tools::TableRequest request,
                      const std::string& format, int digits, bool plus_minus) {
  const tools::TableOf rows = table_of(of);
  const Texts words = {"csv", "latex", "markdown"};
  if (format != "columns" && format != "cells") tools::known_word("format", format, words);
  MadeTable made;
  {
    const nb::gil_scoped_release released;
    const auto lock = use_netcdf();
    const tools::ShownTable table = tools::select_table(source_of(given, rows), request);
    if (format == "columns") {
      for (const tools::ShownColumn& column : table.columns) add_column(table, column, made);
    } else if (format == "cells") {
      Texts& names = made.cells.emplace_back();
      for (const tools::ShownColumn& column : table.columns) names.push_back(column.name);
      for (std::size_t i = 0; i < table.rows; ++i) {
        Texts& line = made.cells.emplace_back();
        for (const tools::ShownColumn& column : table.columns) {
          line.push_back(tools::cell_text(column, column.cell(i), digits));
        }
      }
    } else {
      const tools::TableFormat as = format == "csv"     ? tools::TableFormat::csv
                                    : format == "latex" ? tools::TableFormat::latex
                                                        : tools::TableFormat::markdown;
      tools::write_table(table, as, {.digits = digits, .plus_minus = plus_minus},
                         [&](std::string_view part) { made.text += part; });
    }
  }
  if (format == "cells") return nb::cast(made.cells);
  if (format != "columns") return nb::cast(made.text);
  nb::dict columns;
  for (auto& [name, cells] : made.columns) {
    columns[name.c_str()] = std::visit(
        [](auto& all) -> nb::object {
          if constexpr (std::is_same_v<std::decay_t<decltype(all)>, Texts>) {
            return nb::cast(all);
          } else {
            const std::size_t size = all.size();
            return array_object(std::move(all), {size});
          }
        },
        cells);
  }
  return columns;
}

}  // namespace

void bind_tables(nb::module_& module) {
  module.def(
      "along",
      [](const std::string& path, const std::string& over, std::optional<std::string> min_over,
         const std::string& figure, bool slope) {
        const nb::gil_scoped_release released;
        const auto lock = use_netcdf();
        const tools::Along seen = tools::along(
            StoredResults(path),
            {.over = over, .min_over = std::move(min_over), .figure = figure, .slope = slope});
        return std::pair(seen.json, seen.text);
      },
      nb::arg("path"), nb::arg("over"), nb::arg("min_over").none(), nb::arg("figure"),
      nb::arg("slope"));
  module.def(
      "table",
      [](std::shared_ptr<RunOutcome> outcome, std::optional<std::string> document,
         std::optional<std::string> path, const std::string& of, Texts figures, bool one_a_row,
         Texts rows, std::optional<std::string> columns,
         std::vector<std::pair<std::string, std::string>> where, const std::string& format,
         int digits, bool plus_minus) {
        return make_table({std::move(outcome), std::move(document), path.value_or("")}, of,
                          {.figures = std::move(figures),
                           .one_figure_a_row = one_a_row,
                           .rows = std::move(rows),
                           .columns = std::move(columns),
                           .where = std::move(where)},
                          format, digits, plus_minus);
      },
      nb::arg("outcome").none(), nb::arg("document").none(), nb::arg("path").none(), nb::arg("of"),
      nb::arg("figures"), nb::arg("long"), nb::arg("rows"), nb::arg("columns").none(),
      nb::arg("where"), nb::arg("format"), nb::arg("digits"), nb::arg("pm"),
      nb::sig(
          "def table(outcome: RunOutcome | None, document: str | None, path: str | None, of: str, "
          "figures: list[str], long: bool, rows: list[str], columns: str | None, where: "
          "list[tuple[str, str]], format: str, digits: int, pm: bool) -> typing.Any"));
}

}  // namespace headlab::python
