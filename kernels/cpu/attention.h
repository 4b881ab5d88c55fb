// SPDX-License-Identifier: Apache-2.0
/// \file Attention with vector values, and how heads of a layer attend to one another's keys:
/// streamed by tiles of queries, of which the weights of all heads are in memory at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <Eigen/Core>

namespace headlab {

/// From products to weights. Query t stands at the position p = t + S - T of the keys. In this
/// order: times the scale, soft cap, bias, unseen keys left out, softmax with the sink.
struct AttentionRule {
  double scale = 1;
  double softcap = 0;          ///< c of c tanh(u / c); 0: none
  bool causal = true;          ///< keys up to p alone
  std::size_t window = 0;      ///< the last so many keys, up to and with p; 0: none
  bool leave_own_out = false;  ///< without the key at p
  std::vector<double> alibi;   ///< [H] slopes of (s - p), or empty
  std::vector<double> sink;    ///< [H] further logits that take weight, or empty
};

struct AttentionShape {
  std::size_t heads = 1, groups = 1;  ///< H of queries, G of keys and values
  std::size_t queries = 0, keys = 0;  ///< T and S >= T
  std::size_t k = 0, e = 0;           ///< dimensions of keys and of values

  /// The keys of query head h: neighbours share them.
  std::size_t group(std::size_t h) const { return h * groups / heads; }
};

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
