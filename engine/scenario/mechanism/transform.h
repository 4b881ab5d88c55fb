// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/scenario/law/subspaces/subspaces.h"
#include "engine/scenario/mechanism/stage.h"

namespace headlab {

/// W_h -> W_h T for every head, keys and queries, or W_h -> W_h + mix sum_{l != h} W_l. A shared
/// transformation of the projected features is one part of knocking heads (Zhou et al.,
/// arXiv:2510.23052); `mix` is headlab's own. T = c O with O orthogonal is the bandwidth b/c, or
/// the temperature t/c^2.
struct TransformStage {
  static constexpr const char* name = "transform";
  static constexpr const char* summary =
      "projections W_h T, or W_h + mix times the sum of the others";
  static constexpr const char* shorthand = "";

  std::vector<std::vector<double>> matrix = {};  ///< T [k][k]
  std::optional<double> mix = {};

  bool operator==(const TransformStage&) const = default;

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.optional("matrix", matrix, within(-1e6, 1e6), "T [k][k], instead of mix");
    visit.optional("mix", mix, within(-1e3, 1e3), "share of the other heads, instead of matrix");
  }

  void check(const StageSetting& setting) const {
    if (matrix.empty() == !mix) {
      throw ParameterError("", "needs matrix or mix, one of the two");
    }
    const auto k = static_cast<std::size_t>(setting.sizes.k);
    if (!matrix.empty() && (matrix.size() != k || matrix[0].size() != k)) {
      throw ParameterError("matrix", "is " + std::to_string(matrix.size()) + " x " +
                                         std::to_string(matrix[0].size()) + ", heads.dim is " +
                                         std::to_string(k));
    }
    const bool zero = !matrix.empty() && std::ranges::all_of(matrix, [](const auto& row) {
      return std::ranges::all_of(row, [](double number) { return number == 0; });
    });
    if (zero) throw ParameterError("matrix", "is zero, so that a head sees nothing of its keys");
  }

  /// True where all heads of dimension k keep their projections.
  bool off(int heads, int) const {
    if (mix) return *mix == 0 || heads == 1;
    for (std::size_t i = 0; i < matrix.size(); ++i) {
      for (std::size_t j = 0; j < matrix[i].size(); ++j) {
        if (matrix[i][j] != (i == j ? 1 : 0)) return false;
      }
    }
    return true;
  }

  /// Replaces what projects keys, and queries where they are projected apart.
  void apply(Subspaces& subspaces) const {
    if (mix == 0.0) return;
    std::vector<double> queries = subspaces.queries();
    if (!queries.empty()) queries = transformed(subspaces, queries);
    subspaces.assign(transformed(subspaces, subspaces.numbers()), std::move(queries), false);
  }

 private:
  /// Of W [H][d][k].
  std::vector<double> transformed(const Subspaces& sizes, const std::vector<double>& w) const {
    const auto k = static_cast<std::size_t>(sizes.k());
    const auto heads = static_cast<std::size_t>(sizes.heads());
    const std::size_t size = w.size() / heads;
    std::vector<double> result(w.size());
    for (std::size_t at = 0; mix && at < w.size(); ++at) {
      double sum = 0;
      for (std::size_t h = 0; h < heads; ++h) sum += w[h * size + at % size];
      result[at] = w[at] + *mix * (sum - w[at]);
    }
    for (std::size_t at = 0; !mix && at < w.size(); ++at) {
      const std::size_t row = at / k * k;
      for (std::size_t i = 0; i < k; ++i) result[at] += w[row + i] * matrix[i][at % k];
    }
    return result;
  }
};

}  // namespace headlab
