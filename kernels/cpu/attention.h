// SPDX-License-Identifier: Apache-2.0
/// \file Attention with vector values, and how heads of a layer attend to one another's keys:
/// streamed by tiles of queries, of which the weights of all heads are in memory at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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
  /// Where q has some of the queries alone, [H][held][k]: which, ascending. Empty: it has all.
  std::vector<std::uint32_t> held;
  std::vector<T> bias;  ///< [H][T][S], [T][S] for all heads, or empty
  /// Not 0: not seen. [H][T][S], [T][S] for all heads, or empty.
  std::vector<unsigned char> unseen;
  std::vector<unsigned char> padding;  ///< [S], not 0: a key that no query sees; or empty
};

/// Sums over the queries of some tiles.
struct HeadPairSums {
  double queries = 0;
  Eigen::MatrixXd overlap;      ///< [H][H] sum_s w_h w_l
  Eigen::MatrixXd variation;    ///< [H][H] sum_s |w_h - w_l| / 2
  Eigen::VectorXd self, first;  ///< [H] weight on the query's own key, on key 0

  HeadPairSums() = default;
  explicit HeadPairSums(std::size_t heads);
  void add(const HeadPairSums& other, double sign = 1);
};

/// Squared sizes of what the output changes by where a head attends as another does, summed over
/// some queries: they cost as many products as there are groups of values.
struct ExchangeSums {
  double queries = 0;       ///< weights of those that see a key
  Eigen::MatrixXd squares;  ///< [h][l] of head h, attending as l

  ExchangeSums() = default;
  explicit ExchangeSums(std::size_t heads);
  void add(const ExchangeSums& other, double sign = 1);
};

/// Queries at which heads are exchanged.
struct ExchangedQueries {
  std::span<const std::uint32_t> rows = {};       ///< some of those attended over, ascending
  std::span<const double> weights = {};           ///< how many queries each one stands for
  std::span<const Eigen::MatrixXd> metrics = {};  ///< [H] of W W^T [e][e], W a head's output map
};

/// What attention makes of some queries of a sequence.
template <class T>
struct Attended {
  /// [queries][H e] weighted values side by side; 0 where a query sees no key in some head.
  Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> z;
  /// [H][queries] log of the sum of exponentials, -infinity where no key is seen.
  Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> log_sums;
  HeadPairSums pairs;
  ExchangeSums exchange;

  /// Takes those out that see no key in some head, from `rows` too.
  void leave_out_blind(std::vector<std::uint32_t>& rows);
};

/// Keys and values of a sequence, laid out for products, and room for tiles of weights. It is kept
/// from sequence to sequence: pages of memory that are new cost as much as some of the products.
template <class T>
class AttentionMemory {
 public:
  AttentionMemory();
  ~AttentionMemory();
  AttentionMemory(const AttentionMemory&) = delete;
  AttentionMemory& operator=(const AttentionMemory&) = delete;

  struct Parts;
  Parts& parts() { return *parts_; }

 private:
  std::unique_ptr<Parts> parts_;
};

/// Attention over the queries `rows` of a sequence, ascending. The bits do not depend on `threads`.
/// \param pairs whether pairs of heads are compared
template <class T>
Attended<T> attend(const AttentionRule& rule, const AttentionSequence<T>& sequence,
                   std::span<const std::uint32_t> rows, bool pairs, int threads,
                   const ExchangedQueries& exchanged, AttentionMemory<T>& memory);
/// The same of one sequence alone.
template <class T>
Attended<T> attend(const AttentionRule& rule, const AttentionSequence<T>& sequence,
                   std::span<const std::uint32_t> rows, bool pairs, int threads,
                   const ExchangedQueries& exchanged = {});

/// Weights of one head over all keys [rows][S].
template <class T>
std::vector<T> attention_weights(const AttentionRule& rule, const AttentionSequence<T>& sequence,
                                 std::size_t head, std::span<const std::uint32_t> rows);

}  // namespace headlab
