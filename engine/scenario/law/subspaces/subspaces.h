// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/parameter.h"

namespace headlab {

/// W_h, h = 1..H, in plain numbers: H matrices d x k, which start as zero. Columns are orthonormal
/// unless `orthonormal()` says otherwise.
class Subspaces {
 public:
  explicit Subspaces(const Sizes& sizes)
      : heads_(sizes.heads), d_(sizes.d), k_(sizes.k), numbers_(at(heads_, 0, 0)) {}

  int heads() const { return heads_; }
  int d() const { return d_; }
  int k() const { return k_; }

  /// W_h(i, j), each from 0.
  double& operator()(int h, int i, int j) { return numbers_[at(h, i, j)]; }
  double operator()(int h, int i, int j) const { return numbers_[at(h, i, j)]; }

  const std::vector<double>& numbers() const { return numbers_; }  ///< [H][d][k]

  /// [H][d][k], what projects the queries; empty where W_h does.
  const std::vector<double>& queries() const { return queries_; }
  void set_queries(std::vector<double> queries) { queries_ = std::move(queries); }

  bool orthonormal() const { return orthonormal_; }
  /// Takes all numbers at once.
  void assign(std::vector<double> numbers, std::vector<double> queries, bool orthonormal) {
    numbers_ = std::move(numbers);
    queries_ = std::move(queries);
    orthonormal_ = orthonormal;
  }

 private:
  std::size_t at(int h, int i, int j) const {
    return (static_cast<std::size_t>(h) * static_cast<std::size_t>(d_) +
            static_cast<std::size_t>(i)) *
               static_cast<std::size_t>(k_) +
           static_cast<std::size_t>(j);
  }

  int heads_;
  int d_;
  int k_;
  std::vector<double> numbers_;
  std::vector<double> queries_;
  bool orthonormal_ = true;
};

/// Throws ParameterError unless a head fits into the space.
inline void require_fits(const Sizes& sizes) {
  if (sizes.k <= sizes.d) return;
  throw ParameterError(
      "", "needs k <= d, here " + std::to_string(sizes.k) + " > " + std::to_string(sizes.d));
}

/// Throws ParameterError unless all heads fit side by side.
inline void require_side_by_side(const Sizes& sizes) {
  if (static_cast<std::int64_t>(sizes.heads) * sizes.k <= sizes.d) return;
  throw ParameterError("", "needs H k <= d, here " + std::to_string(sizes.heads) + " x " +
                               std::to_string(sizes.k) + " > " + std::to_string(sizes.d));
}

}  // namespace headlab
