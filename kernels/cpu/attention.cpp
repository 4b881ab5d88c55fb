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
constexpr std::size_t weights_in_tile = std::size_t{1} << 21;
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

  /// Weights of one head [rows][range], and the logarithms of their sums [rows].
  void weigh(std::size_t h, Rows rows, KeyRange keys, T* weights, double* log_sums) const {
    const std::size_t g = shape_.group(h);
    AttentionHead<T> head{.q = rows_of(sequence_.q, h, shape_.queries, shape_.k),
                          .k = rows_of(sequence_.k, g, shape_.keys, shape_.k),
                          .v = rows_of(sequence_.v, g, shape_.keys, shape_.e)};
    head.bias = of_queries(sequence_.bias, h);
    head.unseen = of_queries(sequence_.unseen, h);
    if (!sequence_.padding.empty()) head.padding = sequence_.padding.data();
    groups_[g].weigh(head, h, rows, keys, weights, log_sums);
  }

 private:
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
    for (std::size_t h = 0; h < shape_.heads; ++h) {
      tiles.weigh(h, rows, keys_, of_head(h), log_sums_.row(at(h)).data());
    }
    // A query that sees no key in one head is left out of all of them.
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (log_sums_.col(at(r)).minCoeff() > -std::numeric_limits<double>::infinity()) {
        ++seeing_;
        continue;
      }
      for (std::size_t h = 0; h < shape_.heads; ++h) {
        std::fill_n(of_head(h) + r * keys_.size(), keys_.size(), T(0));
      }
    }
  }

  /// Puts what belongs to these queries where it is in all.
  void values(Attended& out) const {
    for (std::size_t h = 0; h < shape_.heads; ++h) {
      const ByRows z = weighted(of_head(h), rows_.size(), shape_.group(h));
      for (std::size_t r = 0; r < rows_.size(); ++r) {
        out.z.row(at(rows_[r])).segment(at(h * shape_.e), at(shape_.e)) = z.row(at(r));
        out.log_sums(at(h), at(rows_[r])) = log_sums_(at(h), at(r));
      }
    }
  }

  HeadPairSums pairs(const std::vector<Eigen::MatrixXd>& metrics) const {
    HeadPairSums sums(shape_.heads);
    sums.queries = static_cast<double>(seeing_);
    const std::size_t size = rows_.size() * keys_.size();
    const LaneRows<const T> heads{weights_.data(), shape_.heads, size, size};
    ByRows overlap(at(shape_.heads), at(shape_.heads));
    lane_product_transposed<T, double>(heads, heads,
                                       {overlap.data(), shape_.heads, shape_.heads, shape_.heads});
    sums.overlap = overlap;
    for (std::size_t h = 0; h < shape_.heads; ++h) {
      for (std::size_t l = 0; l < h; ++l) {
        sums.variation(at(h), at(l)) = sums.variation(at(l), at(h)) =
            absolute_difference(of_head(h), of_head(l), size) / 2;
      }
      for (std::size_t r = 0; r < rows_.size(); ++r) {
        const T* row = of_head(h) + r * keys_.size();
        sums.self(at(h)) += weight_at(row, tiles_.position(rows_[r]));
        sums.first(at(h)) += weight_at(row, 0);
      }
    }
    exchange(metrics, sums.exchange);
    return sums;
  }

 private:
  const T* of_head(std::size_t h) const {
    return weights_.data() + h * rows_.size() * keys_.size();
  }
  T* of_head(std::size_t h) { return weights_.data() + h * rows_.size() * keys_.size(); }

  double weight_at(const T* row, std::size_t key) const {
    const bool inside = key >= keys_.begin && key < keys_.end;
    return inside ? static_cast<double>(row[key - keys_.begin]) : 0;
  }

  /// Rows of weights times the values of a group [count][e].
  ByRows weighted(const T* weights, std::size_t count, std::size_t group) const {
    ByRows out(at(count), at(shape_.e));
    const T* values = sequence_.v.data() + (group * shape_.keys + keys_.begin) * shape_.e;
    lane_product<T, double>({weights, count, keys_.size(), keys_.size()},
                            {values, keys_.size(), shape_.e, shape_.e},
                            {out.data(), count, shape_.e, shape_.e});
    return out;
  }

  void exchange(const std::vector<Eigen::MatrixXd>& metrics, Eigen::MatrixXd& sums) const {
    const std::size_t count = rows_.size();
    for (std::size_t g = 0; g < shape_.groups; ++g) {
      // What every head makes of the values of this group.
      const ByRows all = weighted(weights_.data(), shape_.heads * count, g);
      for (std::size_t h = 0; h < shape_.heads; ++h) {
        if (shape_.group(h) != g) continue;
        ByRows change = all;
        const auto own = all.middleRows(at(h * count), at(count));
        for (std::size_t l = 0; l < shape_.heads; ++l) {
          change.middleRows(at(l * count), at(count)) -= own;
        }
        const Eigen::VectorXd squares = (change * metrics[h]).cwiseProduct(change).rowwise().sum();
        for (std::size_t l = 0; l < shape_.heads; ++l) {
          sums(at(h), at(l)) = squares.segment(at(l * count), at(count)).sum();
        }
      }
    }
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
      exchange(overlap),
      self(Eigen::VectorXd::Zero(at(heads))),
      first(self) {}

void HeadPairSums::add(const HeadPairSums& other, double sign) {
  queries += sign * other.queries;
  overlap += sign * other.overlap;
  variation += sign * other.variation;
  exchange += sign * other.exchange;
  self += sign * other.self;
  first += sign * other.first;
}

template <class T>
Attended attend(const AttentionRule& rule, const AttentionSequence<T>& sequence,
                std::span<const std::uint32_t> rows, const std::vector<Eigen::MatrixXd>* metrics,
                int threads) {
  const AttentionShape& shape = sequence.shape;
  Attended out;
  out.z = ByRows::Zero(at(shape.queries), at(shape.heads * shape.e));
  out.log_sums = ByRows::Constant(at(shape.heads), at(shape.queries),
                                  -std::numeric_limits<double>::infinity());
  out.pairs = HeadPairSums(shape.heads);
  const QueryWeights<T> tiles(rule, sequence);
  const std::size_t of_row = shape.heads * shape.keys;
  const std::size_t size = std::clamp(weights_in_tile / of_row, std::size_t{1}, max_tile_rows);
  const std::size_t count = (rows.size() + size - 1) / size;
  std::vector<HeadPairSums> sums(metrics == nullptr ? 0 : count);
  parallel_for(count, threads, [&](std::size_t i) {
    const QueryTile<T> tile(tiles, sequence,
                            rows.subspan(i * size, std::min(size, rows.size() - i * size)));
    tile.values(out);
    if (metrics != nullptr) sums[i] = tile.pairs(*metrics);
  });
  for (const HeadPairSums& one : sums) out.pairs.add(one);
  return out;
}

template <class T>
std::vector<T> attention_weights(const AttentionRule& rule, const AttentionSequence<T>& sequence,
                                 std::size_t head, std::span<const std::uint32_t> rows) {
  const QueryWeights<T> tiles(rule, sequence);
  const std::size_t keys = sequence.shape.keys;
  std::vector<T> weights(rows.size() * keys);
  std::vector<double> log_sums(rows.size());
  tiles.weigh(head, rows, {0, keys}, weights.data(), log_sums.data());
  return weights;
}

template Attended attend(const AttentionRule&, const AttentionSequence<float>&,
                         std::span<const std::uint32_t>, const std::vector<Eigen::MatrixXd>*, int);
template Attended attend(const AttentionRule&, const AttentionSequence<double>&,
                         std::span<const std::uint32_t>, const std::vector<Eigen::MatrixXd>*, int);
template std::vector<float> attention_weights(const AttentionRule&, const AttentionSequence<float>&,
                                              std::size_t, std::span<const std::uint32_t>);
template std::vector<double> attention_weights(const AttentionRule&,
                                               const AttentionSequence<double>&, std::size_t,
                                               std::span<const std::uint32_t>);

}  // namespace headlab
