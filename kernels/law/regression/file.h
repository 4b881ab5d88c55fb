// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/law/regression/regression.h"
#include "kernels/table.h"

namespace headlab {

/// m at a row of the design's data file is a column of that file; elsewhere it is not known, so
/// queries must be rows too.
struct FileRegression {
  static constexpr const char* name = "file";
  static constexpr const char* summary = "a column of the design's data file";
  static constexpr const char* equation = "m(x_i) = y_i, \"a column of the design's file\"";
  static constexpr const char* example = "column = 4";

  int column = 0;     ///< 0-based
  Table values = {};  ///< [N], read by the scenario reader

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("column", column, within(0, 1e6), "0-based column of the design's file");
  }
  void check(int) const {}

  /// The largest |m(x)|.
  double bound() const {
    double largest = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      largest = std::max(largest, std::abs(values.exact()[i]));
    }
    return largest;
  }

  struct Function {
    std::int64_t values = 0;
    bool operator==(const Function&) const = default;
    template <class Number, class T, class Row>
    HEADLAB_HD T operator()(const Number* table, const T*, std::ptrdiff_t, const Row& row) const {
      return math::of_row(table + values, row);
    }
  };

  Function function(Table& table, int) const { return {.values = table.add(values)}; }
};

}  // namespace headlab
