// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "kernels/file_rows.h"
#include "kernels/law/design/design.h"

namespace headlab {

/// Rows of a data file, drawn with replacement: the file is the population.
struct FileDesign {
  static constexpr const char* name = "file";
  static constexpr const char* summary = "rows of a CSV or NPY file, drawn with replacement";
  static constexpr const char* equation = "X ~ U(\"rows of\" path)";
  static constexpr const char* example = "path = \"rows.csv\"";

  std::string path = {};             ///< relative to the scenario file
  std::vector<double> columns = {};  ///< 0-based, empty: all but the regression's
  bool standardise = false;          ///< to mean 0 and variance 1, constant columns to 0
  FileRows rows = {};                ///< [N][d], read by the scenario reader

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("path", path, "CSV or NPY, relative to the scenario file");
    visit.optional("columns", columns, within(0, 1e6), "0-based, default all");
    visit.optional("standardise", standardise, "columns to mean 0 and variance 1");
  }

  int dimension() const { return rows.empty() ? 0 : static_cast<int>(rows.columns()); }
  void check() const {
    if (rows.empty()) throw ParameterError("path", "file has no rows");
  }

  struct Sampler {
    static constexpr BaseDraw base = BaseDraw::none;
    static constexpr bool chooses = true;
    int d = 0;
    std::uint32_t count = 0;
    std::uint32_t successive = 0;  ///< points of a sequence of successive rows; 0: rows are drawn
    bool operator==(const Sampler&) const = default;

    /// \param rows [N][d], Table::design()
    /// \param point number of the point in the sequence, where there is one
    HEADLAB_HD std::uint32_t operator()(const float* rows, std::uint32_t word, float* x,
                                        std::ptrdiff_t stride, std::uint64_t point = 0) const {
      // The word of a sequence draws its first row.
      const std::uint32_t row = successive == 0 ? choose(word, count)
                                                : choose(word, count - successive + 1) +
                                                      static_cast<std::uint32_t>(point);
      const float* from = rows + static_cast<std::int64_t>(row) * d;
      for (int j = 0; j < d; ++j) x[j * stride] = from[j];
      return row;
    }
  };

  Sampler sampler(Table& table) const {
    table.set_rows(rows);
    return {.d = dimension(), .count = static_cast<std::uint32_t>(rows.size())};
  }
};

}  // namespace headlab
