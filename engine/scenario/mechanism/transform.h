// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
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
  static constexpr const char* example = "mix = 0.5";
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

  /// Replaces what projects keys, and queries where they are projected apart. Throws ParameterError
  /// where nothing is left of what a head projected.
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
    require_projections(w, result, size);
    return result;
  }

  /// Each head, of `size` numbers, was 0 before or is more than the rounding of its sums now.
  void require_projections(const std::vector<double>& before, const std::vector<double>& after,
                           std::size_t size) const {
    const auto largest = [&](const std::vector<double>& w, std::size_t begin, std::size_t end) {
      double found = 0;
      for (std::size_t at = begin; at < end; ++at) found = std::max(found, std::abs(w[at]));
      return found;
    };
    const auto terms = static_cast<double>(before.size() / size + matrix.size());
    double factor = 1 + std::abs(mix.value_or(0));
    for (const auto& row : matrix) {
      for (const double number : row) factor = std::max(factor, std::abs(number));
    }
    const double rounding = terms * terms * std::numeric_limits<double>::epsilon() * factor *
                            largest(before, 0, before.size());
    for (std::size_t begin = 0; begin < before.size(); begin += size) {
      if (largest(before, begin, begin + size) == 0) continue;
      if (largest(after, begin, begin + size) > rounding) continue;
      throw ParameterError(std::string("transform.") + (mix ? "mix" : "matrix"),
                           "leaves nothing of what head " + std::to_string(begin / size) +
                               " projects, so that it sees nothing of its keys - give another " +
                               (mix ? "number" : "matrix"));
    }
  }
};

}  // namespace headlab
