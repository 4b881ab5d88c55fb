// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/attention_arithmetic.h"
#include "kernels/parallel_for.h"

namespace headlab {
namespace {

using ByRows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Numbers of weights that a tile holds, as far as one query does not need more.
constexpr std::size_t weights_in_tile = std::size_t{1} << 22;
constexpr std::size_t max_tile_rows = 32;

Eigen::Index at(std::size_t i) {
  return static_cast<Eigen::Index>(i);
}

/// What weighs the keys of every head.
template <class T>
class QueryWeights {
 public:
  using Rows = std::span<const std::uint32_t>;

  QueryWeights(const AttentionRule& rule, const AttentionSequence<T>& sequence)
      : sequence_(sequence), shape_(sequence.shape) {
    groups_.reserve(shape_.groups);
    for (std::size_t g = 0; g < shape_.groups; ++g) {
      groups_.emplace_back(rule, shape_, rows_of(sequence.k, g, shape_.keys, shape_.k));
    }
  }

  KeyRange range(Rows rows) const { return groups_[0].range(rows); }
  std::size_t position(std::size_t t) const { return groups_[0].position(t); }

  /// Weights of the heads of a group [heads][rows][range], and the logarithms of their sums
  /// [heads][rows].
  void weigh(std::size_t g, Rows rows, KeyRange keys, T* weights, double* log_sums) const {
    std::vector<AttentionHead<T>> heads;
    const std::size_t first = g * shape_.heads_of_group();
    for (std::size_t h = first; h < first + shape_.heads_of_group(); ++h) {
      heads.push_back(head(h));
    }
    groups_[g].weigh(heads, first, rows, keys, weights, log_sums);
  }

  /// The same of one head.
  void weigh_head(std::size_t h, Rows rows, KeyRange keys, T* weights, double* log_sums) const {
    groups_[shape_.group(h)].weigh(head(h), h, rows, keys, weights, log_sums);
  }

 private:
  AttentionHead<T> head(std::size_t h) const {
    const std::size_t g = shape_.group(h);
    AttentionHead<T> head{.q = rows_of(sequence_.q, h, shape_.queries, shape_.k),
                          .k = rows_of(sequence_.k, g, shape_.keys, shape_.k),
                          .v = rows_of(sequence_.v, g, shape_.keys, shape_.e)};
    head.bias = of_queries(sequence_.bias, h);
    head.unseen = of_queries(sequence_.unseen, h);
    if (!sequence_.padding.empty()) head.padding = sequence_.padding.data();
    return head;
  }

  static LaneRows<const T> rows_of(const std::vector<T>& all, std::size_t item, std::size_t rows,
                                   std::size_t columns) {
    return {all.data() + item * rows * columns, rows, columns, columns};
  }

  /// Those of a head in an array [H][T][S] or [T][S].
  template <class Number>
  LaneRows<const Number> of_queries(const std::vector<Number>& array, std::size_t h) const {
    if (array.empty()) return {};
    const bool shared = array.size() == shape_.queries * shape_.keys;
    return {array.data() + (shared ? 0 : h) * shape_.queries * shape_.keys, shape_.queries,
            shape_.keys, shape_.keys};
  }

  const AttentionSequence<T>& sequence_;
  const AttentionShape& shape_;
  std::vector<HeadWeights<T>> groups_;
};

/// One tile: all heads over some queries.
template <class T>
class QueryTile {
 public:
  QueryTile(const QueryWeights<T>& tiles, const AttentionSequence<T>& sequence,
            std::span<const std::uint32_t> rows)
      : sequence_(sequence),
        shape_(sequence.shape),
        tiles_(tiles),
        rows_(rows),
        keys_(tiles.range(rows)),
        weights_(shape_.heads * rows.size() * keys_.size()),
        log_sums_(at(shape_.heads), at(rows.size())) {
    const std::size_t step = shape_.heads_of_group();
    for (std::size_t g = 0; g < shape_.groups; ++g) {
      tiles.weigh(g, rows, keys_, of_head(g * step), log_sums_.row(at(g * step)).data());
    }
    // A query that sees no key in one head is left out of all of them.
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (sees(r)) {
        ++seeing_;
        continue;
      }
      for (std::size_t h = 0; h < shape_.heads; ++h) {
        std::fill_n(of_head(h) + r * keys_.size(), keys_.size(), T(0));
      }
    }
  }

  std::size_t size() const { return rows_.size(); }

  /// Puts what belongs to these queries, of which `first` is the first, where it is in all.
  void values(std::size_t first, Attended<T>& out) const {
    const std::size_t count = rows_.size(), step = shape_.heads_of_group();
    for (std::size_t g = 0; g < shape_.groups; ++g) {
      const ByRows z = weighted(of_head(g * step), step * count, g);
      for (std::size_t i = 0; i < step; ++i) {
        out.z.block(at(first), at((g * step + i) * shape_.e), at(count), at(shape_.e)) =
            z.middleRows(at(i * count), at(count)).template cast<T>();
      }
    }
    out.log_sums.middleCols(at(first), at(count)) = log_sums_;
  }

  HeadPairSums pairs() const {
    HeadPairSums sums(shape_.heads);
    sums.queries = static_cast<double>(seeing_);
    const std::size_t size = rows_.size() * keys_.size();
    const LaneRows<const T> heads{weights_.data(), shape_.heads, size, size};
    ByRows of_pairs(at(shape_.heads), at(shape_.heads));
    lane_arithmetic<T>().product_transposed(
        heads, heads, {of_pairs.data(), shape_.heads, shape_.heads, shape_.heads});
    sums.overlap = of_pairs;
    lane_arithmetic<T>().absolute_differences(heads, of_pairs.data());
    sums.variation = (of_pairs + of_pairs.transpose()) / 2;
    for (std::size_t h = 0; h < shape_.heads; ++h) {
      for (std::size_t r = 0; r < rows_.size(); ++r) {
        const T* row = of_head(h) + r * keys_.size();
        sums.self(at(h)) += weight_at(row, tiles_.position(rows_[r]));
        sums.first(at(h)) += weight_at(row, 0);
      }
    }
    return sums;
  }

  /// \param weights [rows]
  ExchangeSums exchange(std::span<const double> weights,
                        const std::vector<Eigen::MatrixXd>& metrics) const {
    ExchangeSums sums(shape_.heads);
    const std::size_t count = rows_.size(), e = shape_.e, all_rows = shape_.heads * count;
    const Eigen::Map<const Eigen::VectorXd> of_rows(weights.data(), at(count));
    for (std::size_t r = 0; r < count; ++r) sums.queries += sees(r) ? weights[r] : 0;
    ByRows all, changed(at(all_rows), at(e));
    for (std::size_t h = 0; h < shape_.heads; ++h) {
      // What every head makes of the values of this group.
      if (h % shape_.heads_of_group() == 0) {
        all = weighted(weights_.data(), all_rows, shape_.group(h));
      }
      ByRows change = all;
      for (std::size_t l = 0; l < shape_.heads; ++l) {
        change.middleRows(at(l * count), at(count)) -= all.middleRows(at(h * count), at(count));
      }
      // A metric is its own transpose.
      lane_arithmetic<double>().product_in_double({change.data(), all_rows, e, e},
                                                  {metrics[h].data(), e, e, e},
                                                  {changed.data(), all_rows, e, e});
      for (std::size_t l = 0; l < shape_.heads; ++l) {
        const auto own = change.middleRows(at(l * count), at(count));
        const auto other = changed.middleRows(at(l * count), at(count));
        sums.squares(at(h), at(l)) = own.cwiseProduct(other).rowwise().sum().dot(of_rows);
      }
    }
    return sums;
  }

 private:
  const T* of_head(std::size_t h) const {
    return weights_.data() + h * rows_.size() * keys_.size();
  }
  T* of_head(std::size_t h) { return weights_.data() + h * rows_.size() * keys_.size(); }

  bool sees(std::size_t r) const {
    return log_sums_.col(at(r)).minCoeff() > -std::numeric_limits<double>::infinity();
  }

  double weight_at(const T* row, std::size_t key) const {
    const bool inside = key >= keys_.begin && key < keys_.end;
    return inside ? static_cast<double>(row[key - keys_.begin]) : 0;
  }

  /// Rows of weights times the values of a group [count][e].
  ByRows weighted(const T* weights, std::size_t count, std::size_t group) const {
    ByRows out(at(count), at(shape_.e));
    const T* values = sequence_.v.data() + (group * shape_.keys + keys_.begin) * shape_.e;
    lane_arithmetic<T>().product_in_double({weights, count, keys_.size(), keys_.size()},
                                           {values, keys_.size(), shape_.e, shape_.e},
                                           {out.data(), count, shape_.e, shape_.e});
    return out;
  }

  const AttentionSequence<T>& sequence_;
  const AttentionShape& shape_;
  const QueryWeights<T>& tiles_;
  std::span<const std::uint32_t> rows_;
  KeyRange keys_;
  std::vector<T> weights_;  ///< [H][rows][keys]
  ByRows log_sums_;         ///< [H][rows]
  std::size_t seeing_ = 0;  ///< queries that see a key in every head
};

}  // namespace

HeadPairSums::HeadPairSums(std::size_t heads)
    : overlap(Eigen::MatrixXd::Zero(at(heads), at(heads))),
      variation(overlap),
      self(Eigen::VectorXd::Zero(at(heads))),
      first(self) {}

void HeadPairSums::add(const HeadPairSums& other, double sign) {
  queries += sign * other.queries;
  overlap += sign * other.overlap;
  variation += sign * other.variation;
  self += sign * other.self;
  first += sign * other.first;
}

ExchangeSums::ExchangeSums(std::size_t heads)
    : squares(Eigen::MatrixXd::Zero(at(heads), at(heads))) {}

void ExchangeSums::add(const ExchangeSums& other, double sign) {
  queries += sign * other.queries;
  squares += sign * other.squares;
}

template <class T>
void Attended<T>::leave_out_blind(std::vector<std::uint32_t>& rows) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (log_sums.col(at(i)).minCoeff() == -std::numeric_limits<double>::infinity()) continue;
    if (kept < i) {
      rows[kept] = rows[i];
      z.row(at(kept)) = z.row(at(i));
      log_sums.col(at(kept)) = log_sums.col(at(i));
    }
    ++kept;
  }
  if (kept == rows.size()) return;
  rows.resize(kept);
  z.conservativeResize(at(kept), Eigen::NoChange);
  log_sums.conservativeResize(Eigen::NoChange, at(kept));
}

namespace {

/// Adds up work(first, tile) of the tiles of the rows, in their order.
template <class T, class Sums, class Work>
void over_tiles(const AttentionRule& rule, const AttentionSequence<T>& sequence,
                std::span<const std::uint32_t> rows, int threads, Sums& total, const Work& work) {
  const QueryWeights<T> tiles(rule, sequence);
  const std::size_t of_row = sequence.shape.heads * sequence.shape.keys;
  const std::size_t size = std::clamp(weights_in_tile / of_row, std::size_t{1}, max_tile_rows);
  std::vector<Sums> sums((rows.size() + size - 1) / size);
  parallel_for(sums.size(), threads, [&](std::size_t i) {
    const std::size_t first = i * size;
    const auto own = rows.subspan(first, std::min(size, rows.size() - first));
    sums[i] = work(first, QueryTile<T>(tiles, sequence, own));
  });
  for (const Sums& one : sums) total.add(one);
}

}  // namespace

template <class T>
Attended<T> attend(const AttentionRule& rule, const AttentionSequence<T>& sequence,
                   std::span<const std::uint32_t> rows, bool pairs, int threads) {
  const AttentionShape& shape = sequence.shape;
  Attended<T> out;
  out.z.resize(at(rows.size()), at(shape.heads * shape.e));
  out.log_sums.resize(at(shape.heads), at(rows.size()));
  out.pairs = HeadPairSums(pairs ? shape.heads : 0);
  over_tiles(rule, sequence, rows, threads, out.pairs,
             [&](std::size_t first, const QueryTile<T>& tile) {
               tile.values(first, out);
               return pairs ? tile.pairs() : HeadPairSums(0);
             });
  return out;
}

template <class T>
ExchangeSums exchanged(const AttentionRule& rule, const AttentionSequence<T>& sequence,
                       std::span<const std::uint32_t> rows, std::span<const double> weights,
                       const std::vector<Eigen::MatrixXd>& metrics, int threads) {
  ExchangeSums out(sequence.shape.heads);
  over_tiles(rule, sequence, rows, threads, out, [&](std::size_t first, const QueryTile<T>& tile) {
    return tile.exchange(weights.subspan(first, tile.size()), metrics);
  });
  return out;
}

template <class T>
std::vector<T> attention_weights(const AttentionRule& rule, const AttentionSequence<T>& sequence,
                                 std::size_t head, std::span<const std::uint32_t> rows) {
  const QueryWeights<T> tiles(rule, sequence);
  const std::size_t keys = sequence.shape.keys;
  std::vector<T> weights(rows.size() * keys);
  std::vector<double> log_sums(rows.size());
  tiles.weigh_head(head, rows, {0, keys}, weights.data(), log_sums.data());
  return weights;
}

template struct Attended<float>;
template struct Attended<double>;
template Attended<float> attend(const AttentionRule&, const AttentionSequence<float>&,
                                std::span<const std::uint32_t>, bool, int);
template Attended<double> attend(const AttentionRule&, const AttentionSequence<double>&,
                                 std::span<const std::uint32_t>, bool, int);
template ExchangeSums exchanged(const AttentionRule&, const AttentionSequence<float>&,
                                std::span<const std::uint32_t>, std::span<const double>,
                                const std::vector<Eigen::MatrixXd>&, int);
template ExchangeSums exchanged(const AttentionRule&, const AttentionSequence<double>&,
                                std::span<const std::uint32_t>, std::span<const double>,
                                const std::vector<Eigen::MatrixXd>&, int);
template std::vector<float> attention_weights(const AttentionRule&, const AttentionSequence<float>&,
                                              std::size_t, std::span<const std::uint32_t>);
template std::vector<double> attention_weights(const AttentionRule&,
                                               const AttentionSequence<double>&, std::size_t,
                                               std::span<const std::uint32_t>);

}  // namespace headlab
