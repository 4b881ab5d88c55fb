// SPDX-License-Identifier: Apache-2.0
/// \file Attention of one head after another, whose numbers lie where the caller has them, and its
/// gradients: weights of a tile of queries are in memory at a time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kernels/cpu/attention_arithmetic.h"

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
  std::size_t heads_of_group() const { return heads / groups; }
};

/// One head of one sequence.
template <class T>
struct AttentionHead {
  LaneRows<const T> q, k;                     ///< [T][k], [S][k]
  LaneRows<const T> v = {};                   ///< [S][e]; empty: e = S, and z are the weights
  LaneRows<const T> bias = {};                ///< [T][S], of stride 0 where all queries share it
  LaneRows<const unsigned char> unseen = {};  ///< likewise; not 0: not seen
  const unsigned char* padding = nullptr;     ///< [S], not 0: a key that no query sees
  std::span<const std::uint32_t> held = {};   ///< queries that q has, ascending; empty: all

  const T* query(std::size_t t) const {
    if (held.empty()) return q.row(t);
    const auto found = std::lower_bound(held.begin(), held.end(), t);
    return q.row(static_cast<std::size_t>(found - held.begin()));
  }
};

/// Keys [begin, end).
struct KeyRange {
  std::size_t begin = 0, end = 0;

  std::size_t size() const { return end - begin; }
};

/// What gives weights to the keys of one group.
template <class T>
class HeadWeights {
 public:
  using Rows = std::span<const std::uint32_t>;

  /// \param keys [S][k]
  /// \param laid_out memory for them
  /// \param distances logits are squared distances and not products, times the scale
  HeadWeights(const AttentionRule& rule, const AttentionShape& shape, LaneRows<const T> keys,
              Panels<T>& laid_out, bool distances = false);

  /// All keys that some query of the rows may see by mask and window.
  KeyRange range(Rows rows) const;

  /// What products or distances of the rows and keys are [rows][range].
  void products(const AttentionHead<T>& head, Rows rows, KeyRange keys, T* out) const;

  /// Weights of query head `number` [rows][range], and the logarithms of their sums [rows].
  void weigh(const AttentionHead<T>& head, std::size_t number, Rows rows, KeyRange keys, T* weights,
             double* log_sums) const;
  /// The same of several heads from `first` on, one after another [heads][rows][range].
  void weigh(std::span<const AttentionHead<T>> heads, std::size_t first, Rows rows, KeyRange keys,
             T* weights, double* log_sums) const;

  std::size_t position(std::size_t t) const { return t + shape_.keys - shape_.queries; }

 private:
  KeyRange own_range(std::size_t t) const;
  void products(std::span<const AttentionHead<T>> heads, Rows rows, KeyRange keys, T* out) const;
  double soften(const AttentionHead<T>& head, std::size_t number, std::size_t t, KeyRange keys,
                T* row, std::vector<unsigned char>& unseen) const;

  const AttentionRule& rule_;
  const AttentionShape& shape_;
  bool distances_ = false;
  const Panels<T>& keys_;  ///< [k][S]
};

/// Sequences of one shape.
template <class T>
struct AttentionBatch {
  AttentionRule rule = {};
  AttentionShape shape = {};
  std::size_t sequences = 1;
  bool distances = false;  ///< as in HeadWeights
  /// Head h of sequence b.
  std::function<AttentionHead<T>(std::size_t b, std::size_t h)> head = {};
};

/// Derivatives of some number by what attend_heads gives.
template <class T>
struct AttentionUpstream {
  const T* z = nullptr;              ///< [B][H][T][e]
  const double* log_sums = nullptr;  ///< [B][H][T]
};

/// What gradients are put in; null: not wanted.
template <class T>
struct AttentionGradients {
  T* q = nullptr;             ///< [B][H][T][k]
  T* k = nullptr;             ///< [B][G][S][k], 0 before
  T* v = nullptr;             ///< [B][G][S][e], 0 before
  T* bias = nullptr;          ///< [B][H][T][S], 0 before
  double* sink = nullptr;     ///< [B][H]
  double* alibi = nullptr;    ///< [B][H]
  double* softcap = nullptr;  ///< [B][H]
};

/// The weighted values [B][H][T][e], 0 where a query sees no key, and log sums [B][H][T] as in
/// Attended. Stops early where `stop` says so. The bits do not depend on `threads`.
template <class T>
void attend_heads(const AttentionBatch<T>& batch, int threads, const std::atomic<bool>* stop, T* z,
                  double* log_sums);

/// From those derivatives to those by what attend_heads takes. The weights are computed again.
template <class T>
void attend_heads_backward(const AttentionBatch<T>& batch, const AttentionUpstream<T>& upstream,
                           int threads, const std::atomic<bool>* stop,
                           const AttentionGradients<T>& gradients);

}  // namespace headlab
