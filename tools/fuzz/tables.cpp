// SPDX-License-Identifier: Apache-2.0
// Results become a table: JSON of headlab, or edits of a results.nc (stored_runs.h).
#include "engine/files/error.h"
#include "engine/files/netcdf/file.h"
#include "tools/fuzz/stored_runs.h"
#include "tools/fuzz/target.h"
#include "tools/tables/write_table.h"

namespace headlab::fuzz {
namespace {

std::shared_ptr<const tools::TableSource> table_of_bytes(const std::string& bytes,
                                                         tools::TableOf of) {
  if (bytes.starts_with('{')) {
    std::shared_ptr<const tools::TableSource> table = tools::table_of_text(bytes, of);
    if (!table) throw InvalidInput("is of no kind that has a table");
    return table;
  }
  const std::string path = edited_run(bytes).second;
  return tools::table_of_results(std::make_shared<const NetcdfInput>(path), "fuzz", of);
}

void read_table(const std::string& bytes) {
  std::string refusal;
  for (const tools::TableOf of : {tools::TableOf::conditions, tools::TableOf::pairs}) {
    try {
      for (const bool one_figure_a_row : {false, true}) {
        const tools::ShownTable table = tools::select_table(
            table_of_bytes(bytes, of),
            {.figures = {tools::all_figures}, .one_figure_a_row = one_figure_a_row});
        std::size_t lines = 0;
        write_csv(table, [&](std::string_view part) { lines += part.ends_with("\r\n") ? 1 : 0; });
        require(lines == table.rows + 1, "a line a row");
        write_latex(table, {}, [](std::string_view) {});
      }
    } catch (const NetcdfError& damaged) {
      refusal = damaged.what();
    } catch (const InvalidInput& refused) {
      // Most have no pairs.
      if (of == tools::TableOf::conditions) refusal = refused.what();
    }
  }
  if (!refusal.empty()) throw InvalidInput(refusal);
}

}  // namespace

const Target reader::tables = {"tables", read_table, words_of_runs};

}  // namespace headlab::fuzz
