// SPDX-License-Identifier: Apache-2.0
/// \file Strict readers of numeric tables: CSV and NPY.
#pragma once

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

  double at(std::size_t row, std::size_t column) const {
    const std::size_t i = row * columns + column;
    return single.empty() ? exact[i] : static_cast<double>(single[i]);
  }
};

/// Reads a file: NPY where it begins like one or is called *.npy, else CSV. An NPY file is read
/// piece by piece, so that it takes the memory of its numbers. Throws InvalidInput with one line
/// that begins with the file, and the line number for CSV.
DataTable read_table(const std::string& path);

/// CSV: commas, decimal points, LF or CRLF, at most one header line (of which no cell is a number).
/// Empty cells, text, nan, inf and rows of different lengths are refused.
DataTable parse_csv(const std::string& text, const std::string& source);

/// NPY 1.0 to 3.0: what parse_npy_array() reads, C or Fortran order,
/// one axis (a column) or two. Sizes are checked against the length of the file before anything is
/// allocated.
DataTable parse_npy(const std::string& bytes, const std::string& source);

}  // namespace headlab
