// SPDX-License-Identifier: Apache-2.0
// A table of CSV has as many finite numbers as its rows and columns say.
#include <cmath>

#include "engine/files/table_file.h"
#include "tools/fuzz/target.h"

namespace headlab::fuzz {

const Target reader::csv = {
    "csv", [](const std::string& bytes) {
      const DataTable table = parse_csv(bytes, "fuzz");
      require(table.rows > 0 && table.columns > 0, "an empty table");
      require(
          table.exact.size() == table.rows * table.columns && table.exact.size() <= bytes.size(),
          "numbers that do not fit rows and columns");
      require(table.column_names.empty() || table.column_names.size() == table.columns,
              "names that do not fit columns");
      for (const double value : table.exact) {
        require(std::isfinite(value), "a number that is not finite");
      }
    }};

}  // namespace headlab::fuzz
