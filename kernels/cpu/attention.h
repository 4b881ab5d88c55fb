// SPDX-License-Identifier: Apache-2.0
/// \file Attention with vector values, and how heads of a layer attend to one another's keys:
/// streamed by tiles of queries, of which the weights of all heads are in memory at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <Eigen/Core>

#include "kernels/cpu/attention_heads.h"

namespace headlab {

/// One sequence. T is float or double: the type of the lanes.
template <class T>
struct AttentionSequence {
  AttentionShape shape;
  std::vector<T> q, k, v;  ///< [H][T][k], [G][S][k], [G][S][e]
  std::vector<T> bias;     ///< [H][T][S], [T][S] for all heads, or empty
  /// Not 0: not seen. [H][T][S], [T][S] for all heads, or empty.
  std::vector<unsigned char> unseen;
  std::vector<unsigned char> padding;  ///< [S], not 0: a key that no query sees; or empty
};

/// Sums over the queries of some tiles.
struct HeadPairSums {
  double queries = 0;
  Eigen::MatrixXd overlap;    ///< [H][H] sum_s w_h w_l
  Eigen::MatrixXd variation;  ///< [H][H] sum_s |w_h - w_l| / 2
  /// [h][l] squared size of what the output changes by if head h attends as l does.
  Eigen::MatrixXd exchange;
  Eigen::VectorXd self, first;  ///< [H] weight on the query's own key, on key 0

  HeadPairSums() = default;
  explicit HeadPairSums(std::size_t heads);
  void add(const HeadPairSums& other, double sign = 1);
};

/// What attention makes of a sequence.
struct Attended {
  /// [T][H e] weighted values side by side; 0 where a query sees no key in some head.
  Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> z;
  /// [H][T] log of the sum of exponentials, -infinity where no key is seen.
  Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> log_sums;
  HeadPairSums pairs;
};

/// Attention over the queries `rows` of a sequence, ascending. The bits do not depend on `threads`.
/// \param metrics [H] of e x e matrices W W^T, W the output map of a head: pairs are summed where
///                they are given
template <class T>
Attended attend(const AttentionRule& rule, const AttentionSequence<T>& sequence,
                std::span<const std::uint32_t> rows, const std::vector<Eigen::MatrixXd>* metrics,
                int threads);

/// Weights of one head over all keys [rows][S].
template <class T>
std::vector<T> attention_weights(const AttentionRule& rule, const AttentionSequence<T>& sequence,
                                 std::size_t head, std::span<const std::uint32_t> rows);

}  // namespace headlab
