// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine/files/words.h"
#include "engine/scenario/law/subspaces/orthonormal.h"
#include "engine/scenario/law/subspaces/subspaces.h"
#include "kernels/counted.h"
#include "kernels/parameter.h"

namespace headlab {

/// The heads as given, matrices[h][i][j] = W_h(i, j).
struct ExplicitSubspaces {
  static constexpr const char* name = "explicit";
  static constexpr const char* summary = "the matrices as given, H x d x k";
  static constexpr const char* example =
      "matrices = [[[1, 0], [0, 1], [0, 0], [0, 0]], [[0, 0], [0, 0], [1, 0], [0, 1]]]";

  /// Largest element of |W^T W - I| that is taken for rounding.
  static constexpr double tolerance = 1e-10;

  std::vector<std::vector<std::vector<double>>> matrices = {};  ///< [H][d][k]
  bool orthonormalise = false;                                  ///< replace each by the Q of its QR
  /// [H][d][k] or empty: what projects the queries, for the softmax kernel; any numbers.
  std::vector<std::vector<std::vector<double>>> query_matrices = {};

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("matrices", matrices, within(-1e6, 1e6), "[H][d][k], orthonormal columns");
    visit.optional("orthonormalise", orthonormalise, "apply QR to each matrix");
    visit.optional("query_matrices", query_matrices, within(-1e6, 1e6),
                   "[H][d][k], projects the queries, softmax alone");
  }

  void check(const Sizes& sizes) const {
    check_shapes("matrices", matrices, sizes);
    if (!query_matrices.empty()) check_shapes("query_matrices", query_matrices, sizes);
    require_fits(sizes);
    for (std::size_t h = 0; h < matrices.size(); ++h) {
      orthonormalise ? check_rank(h) : check_orthonormal(h);
    }
  }

  /// H matrices d x k with orthonormal columns.
  Subspaces generate(const Sizes& sizes) const {
    Subspaces subspaces(sizes);
    subspaces.assign(numbers_of(matrices), numbers_of(query_matrices), true);
    if (orthonormalise) orthonormalise_each(subspaces);
    return subspaces;
  }

 private:
  static std::string of_head(std::size_t h) { return "matrix of head " + std::to_string(h); }

  using Matrices = std::vector<std::vector<std::vector<double>>>;

  static std::vector<double> numbers_of(const Matrices& all) {
    std::vector<double> numbers;
    for (const auto& rows : all) {
      for (const auto& row : rows) numbers.insert(numbers.end(), row.begin(), row.end());
    }
    return numbers;
  }

  static void check_shapes(const std::string& key, const Matrices& all, const Sizes& sizes) {
    if (all.size() != static_cast<std::size_t>(sizes.heads)) {
      throw ParameterError(key, "has " + counted(all.size(), "matrix", "matrices") + ", needs " +
                                    std::to_string(sizes.heads) + ", one for each head");
    }
    const std::string wanted = std::to_string(sizes.d) + " x " + std::to_string(sizes.k);
    for (std::size_t h = 0; h < all.size(); ++h) {
      const auto& rows = all[h];
      if (rows.size() != static_cast<std::size_t>(sizes.d)) {
        throw ParameterError(
            key, of_head(h) + " has " + counted(rows.size(), "row") + ", needs d x k = " + wanted);
      }
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows[i].size() != static_cast<std::size_t>(sizes.k)) {
          throw ParameterError(key, of_head(h) + " has " + counted(rows[i].size(), "element") +
                                        " in row " + std::to_string(i + 1) +
                                        ", needs d x k = " + wanted);
        }
      }
    }
  }

  void check_orthonormal(std::size_t h) const {
    const double deviation = off_orthonormal(matrices[h]);
    if (!(deviation <= tolerance)) {
      throw ParameterError("matrices", of_head(h) + " has columns that are off orthonormal by " +
                                           formatted("%.2g", deviation) +
                                           " (allowed: 1e-10) - set orthonormalise = true");
    }
  }

  void check_rank(std::size_t h) const {
    if (const auto column = dependent_column(matrices[h])) {
      throw ParameterError("matrices", of_head(h) + " has rank below k: column " +
                                           std::to_string(*column + 1) +
                                           " depends on those before it");
    }
  }
};

}  // namespace headlab
