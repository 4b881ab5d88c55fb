// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/counted.h"
#include "kernels/law/regression/regression.h"

namespace headlab {

/// m(x) = sum_j heights_j exp(-|x - centres_j|^2 / (2 widths_j^2))
struct BumpsRegression {
  static constexpr const char* name = "bumps";
  static constexpr const char* summary =
      "m(x) = sum_j heights_j exp(-|x - centres_j|^2 / (2 widths_j^2))";
  static constexpr const char* equation =
      "m(x) = sum_j heights_j exp(- frac{|x - centres_j|^2}{2 widths_j^2})";
  static constexpr const char* example = "heights = [1], centres = [[0, 0, 0, 0]], widths = [1]";

  std::vector<double> heights = {};               ///< [bumps]
  std::vector<std::vector<double>> centres = {};  ///< [bumps][d]
  std::vector<double> widths = {};                ///< [bumps]

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("heights", heights, within(-1e6, 1e6), "[bumps]");
    visit.required("centres", centres, within(-1e6, 1e6), "[bumps][d]");
    visit.required("widths", widths, within(1e-6, 1e6), "[bumps], standard deviations");
  }

  void check(int d) const {
    if (heights.empty()) throw ParameterError("heights", "is empty");
    if (centres.size() != heights.size()) {
      throw ParameterError("centres", "has " + counted(centres.size(), "row") + ", heights has " +
                                          counted(heights.size(), "element"));
    }
    for (const auto& centre : centres) require_dimension("centres", centre.size(), d);
    if (widths.size() != heights.size()) {
      throw ParameterError("widths", "has " + counted(widths.size(), "element") + ", heights has " +
                                         std::to_string(heights.size()));
    }
  }

  /// The largest |m(x)|.
  double bound() const { return sum_of_sizes(heights); }

  struct Function {
    int bumps = 0;
    int d = 0;
    std::int64_t heights = 0;
    std::int64_t centres = 0;
    std::int64_t rates = 0;  ///< 1/(2 width^2)
    bool operator==(const Function&) const = default;
    template <class Number, class T, class Row>
    HEADLAB_HD T operator()(const Number* table, const T* x, std::ptrdiff_t stride,
                            const Row&) const {
      T sum(0);
      for (int j = 0; j < bumps; ++j) {
        const Number* centre = table + centres + j * d;
        T r2(0);
        for (int i = 0; i < d; ++i) {
          const T difference = x[i * stride] - T(centre[i]);
          r2 = math::fused(difference, difference, r2);
        }
        sum = math::fused(table[heights + j], math::exp(r2 * T(-table[rates + j])), sum);
      }
      return sum;
    }
  };

  Function function(Table& table, int d) const {
    Function f{.bumps = static_cast<int>(heights.size()), .d = d};
    f.heights = table.add(heights);
    f.centres = table.add(centres);
    auto rates = widths;
    for (auto& width : rates) width = 1 / (2 * width * width);
    f.rates = table.add(rates);
    return f;
  }
};

}  // namespace headlab
