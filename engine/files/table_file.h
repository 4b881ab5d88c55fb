// SPDX-License-Identifier: Apache-2.0
/// \file Strict readers of numeric tables: CSV and NPY.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headlab {

/// Numbers [rows][columns], at least one; every number is finite. What float32 holds stays float32.
struct DataTable {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<float> single;  ///< all numbers, where the type of an NPY file fits, else empty
  std::vector<double> exact;  ///< all numbers, else empty
  std::vector<std::string> column_names = {};  ///< from a CSV header, else empty
  bool csv = false;

  /// What was read: "20 rows of 4 columns a, b, c, y, header".
  std::string text() const;

  double at(std::size_t row, std::size_t column) const {
    const std::size_t i = row * columns + column;
    return single.empty() ? exact[i] : static_cast<double>(single[i]);
  }
};

/// Reads a file: NPY where it begins like one or is called *.npy, else CSV. An NPY file is read
/// piece by piece, so that it takes the memory of its numbers. Throws InvalidInput with one line
/// that begins with the file, and the line number for CSV. \param header  as parse_csv()
DataTable read_table(const std::string& path, std::optional<bool> header = {});

/// What read_table() found in a file, the last time that it read it.
struct TableRead {
  std::string text;         ///< DataTable::text()
  std::uint64_t bytes = 0;  ///< that reading took
};
std::optional<TableRead> table_read(const std::string& path);

/// Of those of `paths` that are tables: "data.csv: 20 rows of 4 columns a, b, c, y, header".
std::vector<std::string> tables_read(const std::vector<std::string>& paths);

/// CSV: commas, decimal points, LF or CRLF, at most one header line (of which no cell is a number).
/// Empty cells, text, nan, inf and rows of different lengths are refused.
/// \param header  whether the first line has names, whatever they look like; absent: where no cell
///        of it is a number. A line of numbers that may be names is then refused.
DataTable parse_csv(const std::string& text, const std::string& source,
                    std::optional<bool> header = {});

/// NPY 1.0 to 3.0: what parse_npy_array() reads, C or Fortran order,
/// one axis (a column) or two. Sizes are checked against the length of the file before anything is
/// allocated.
DataTable parse_npy(const std::string& bytes, const std::string& source);

}  // namespace headlab
