// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "kernels/cpu/attention_arithmetic.h"
#include "kernels/cpu/tile_memory.h"
#include "kernels/parallel_for.h"

namespace headlab {
namespace {

template <class T>
using RowsOf = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ByRows = RowsOf<double>;

/// Numbers of weights that a tile holds, as far as one query does not need more.
constexpr std::size_t weights_in_tile = std::size_t{1} << 22;
constexpr std::size_t max_tile_rows = 32;

Eigen::Index at(std::size_t i) {
  return static_cast<Eigen::Index>(i);
}

}  // namespace

template <class T>
struct AttentionMemory<T>::Parts {
  std::vector<Panels<T>> keys, values;  ///< [G] of [k][S] and [S][e]
  TileMemory<T> tiles;
};

template <class T>
AttentionMemory<T>::AttentionMemory() : parts_(std::make_unique<Parts>()) {}
template <class T>
AttentionMemory<T>::~AttentionMemory() = default;

namespace {

/// What weighs the keys of every head.
template <class T>
class QueryWeights {
 public:
  using Rows = std::span<const std::uint32_t>;

  /// \param keys memory for them
  QueryWeights(const AttentionRule& rule, const AttentionSequence<T>& sequence,
               std::vector<Panels<T>>& keys)
      : sequence_(sequence), shape_(sequence.shape) {
    keys.resize(shape_.groups);
    groups_.reserve(shape_.groups);
    for (std::size_t g = 0; g < shape_.groups; ++g) {
      groups_.emplace_back(rule, shape_, rows_of(sequence.k, g, shape_.keys, shape_.k), keys[g]);
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
    const std::size_t queries = sequence_.held.empty() ? shape_.queries : sequence_.held.size();
    AttentionHead<T> head{.q = rows_of(sequence_.q, h, queries, shape_.k),
                          .k = rows_of(sequence_.k, g, shape_.keys, shape_.k),
                          .v = rows_of(sequence_.v, g, shape_.keys, shape_.e)};
    head.held = sequence_.held;
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

/// Columns of a triangular form that are multiplied with at a time.
constexpr std::size_t columns_of_form = 32;

/// x^T U x = x^T M x with zeros below the diagonal of U: half of the products.
template <class T>
std::vector<Panels<T>> triangular_forms(std::span<const Eigen::MatrixXd> metrics) {
  std::vector<Panels<T>> forms;
  for (const Eigen::MatrixXd& metric : metrics) {
    Eigen::MatrixXd form = 2 * metric;
    form.diagonal() = metric.diagonal();
    form.template triangularView<Eigen::StrictlyLower>().setZero();
    const RowsOf<T> in_lanes = form.cast<T>();
    const auto size = static_cast<std::size_t>(form.rows());
    lane_arithmetic<T>().lay_out({in_lanes.data(), size, size, size}, forms.emplace_back());
  }
  return forms;
}

/// One tile: all heads over some queries.
template <class T>
class QueryTile {
 public:
  /// \param values of each group
  /// \param weights memory for [H][rows][S]
  QueryTile(const QueryWeights<T>& tiles, const AttentionShape& shape,
            const std::vector<Panels<T>>& values, std::span<const std::uint32_t> rows, T* weights)
      : shape_(shape),
        values_(values),
        tiles_(tiles),
        rows_(rows),
        keys_(tiles.range(rows)),
        weights_(weights),
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

  /// Puts what belongs to these queries, of which `first` is the first, where it is in all.
  void values(std::size_t first, Attended<T>& out) const {
    const std::size_t count = rows_.size(), step = shape_.heads_of_group();
    for (std::size_t g = 0; g < shape_.groups; ++g) {
      const ByRows z = weighted(of_head(g * step), step * count, keys_, g);
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
    const LaneRows<const T> heads{weights_, shape_.heads, size, size};
    ByRows products(at(shape_.heads), at(shape_.heads)), differences = products;
    lane_arithmetic<T>().compare_rows(heads, products.data(), differences.data());
    sums.overlap = products.template selfadjointView<Eigen::Lower>();
    sums.variation = differences.template selfadjointView<Eigen::Lower>();
    sums.variation /= 2;
    for (std::size_t h = 0; h < shape_.heads; ++h) {
      for (std::size_t r = 0; r < rows_.size(); ++r) {
        const T* row = of_head(h) + r * keys_.size();
        sums.self(at(h)) += weight_at(row, tiles_.position(rows_[r]));
        sums.first(at(h)) += weight_at(row, 0);
      }
    }
    return sums;
  }

  /// At those of the queries that are in this tile.
  /// \param forms of the metrics
  ExchangeSums exchange(const ExchangedQueries& asked, const std::vector<Panels<T>>& forms) const {
    ExchangeSums sums(shape_.heads);
    std::vector<std::uint32_t> own;
    std::vector<std::size_t> places;
    std::vector<double> times;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      const auto found = std::ranges::lower_bound(asked.rows, rows_[r]);
      if (found == asked.rows.end() || *found != rows_[r]) continue;
      own.push_back(rows_[r]);
      places.push_back(r);
      times.push_back(asked.weights[static_cast<std::size_t>(found - asked.rows.begin())]);
      sums.queries += sees(r) ? times.back() : 0;
    }
    if (own.empty()) return sums;
    const KeyRange keys = tiles_.range(own);
    const std::size_t count = own.size(), e = shape_.e, all_rows = shape_.heads * count;
    std::vector<T> weights;
    weights.reserve(all_rows * keys.size());
    for (std::size_t h = 0; h < shape_.heads; ++h) {
      for (const std::size_t r : places) {
        const T* row = of_head(h) + r * keys_.size() + (keys.begin - keys_.begin);
        weights.insert(weights.end(), row, row + keys.size());
      }
    }
    const Eigen::Map<const Eigen::VectorXd> of_rows(times.data(), at(count));
    ByRows all, product(at(all_rows), at(e));
    for (std::size_t h = 0; h < shape_.heads; ++h) {
      // What every head makes of the values of this group.
      if (h % shape_.heads_of_group() == 0) {
        all = weighted(weights.data(), all_rows, keys, shape_.group(h));
      }
      ByRows change = all;
      for (std::size_t l = 0; l < shape_.heads; ++l) {
        change.middleRows(at(l * count), at(count)) -= all.middleRows(at(h * count), at(count));
      }
      const RowsOf<T> in_lanes = change.template cast<T>();
      for (std::size_t j = 0; j < e; j += columns_of_form) {
        const std::size_t some = std::min(columns_of_form, e - j);
        lane_arithmetic<T>().product_in_double({in_lanes.data(), all_rows, j + some, e},
                                               {forms[h], 0, j + some, j, some},
                                               {product.data() + j, all_rows, some, e});
      }
      for (std::size_t l = 0; l < shape_.heads; ++l) {
        const auto left = change.middleRows(at(l * count), at(count));
        const auto right = product.middleRows(at(l * count), at(count));
        sums.squares(at(h), at(l)) = left.cwiseProduct(right).rowwise().sum().dot(of_rows);
      }
    }
    return sums;
  }

 private:
  const T* of_head(std::size_t h) const { return weights_ + h * rows_.size() * keys_.size(); }
  T* of_head(std::size_t h) { return weights_ + h * rows_.size() * keys_.size(); }

  bool sees(std::size_t r) const {
    return log_sums_.col(at(r)).minCoeff() > -std::numeric_limits<double>::infinity();
  }

  double weight_at(const T* row, std::size_t key) const {
    const bool inside = key >= keys_.begin && key < keys_.end;
    return inside ? static_cast<double>(row[key - keys_.begin]) : 0;
  }

  /// Rows of weights times the values of a group [count][e].
  ByRows weighted(const T* weights, std::size_t count, KeyRange keys, std::size_t group) const {
    ByRows out(at(count), at(shape_.e));
    lane_arithmetic<T>().product_in_double(
        {weights, count, keys.size(), keys.size()},
        PanelPart<T>{.of = values_[group], .first_row = keys.begin, .rows = keys.size()},
        {out.data(), count, shape_.e, shape_.e});
    return out;
  }

  const AttentionShape& shape_;
  const std::vector<Panels<T>>& values_;
  const QueryWeights<T>& tiles_;
  std::span<const std::uint32_t> rows_;
  KeyRange keys_;
  T* weights_;              ///< [H][rows][keys]
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

template <class T>
Attended<T> attend(const AttentionRule& rule, const AttentionSequence<T>& sequence,
                   std::span<const std::uint32_t> rows, bool pairs, int threads,
                   const ExchangedQueries& exchanged, AttentionMemory<T>& memory) {
  const AttentionShape& shape = sequence.shape;
  Attended<T> out;
  out.z.resize(at(rows.size()), at(shape.heads * shape.e));
  out.log_sums.resize(at(shape.heads), at(rows.size()));
  out.pairs = HeadPairSums(pairs ? shape.heads : 0);
  out.exchange = ExchangeSums(shape.heads);
  auto& [keys, values, of_tiles] = memory.parts();
  const QueryWeights<T> tiles(rule, sequence, keys);
  values.resize(shape.groups);
  for (std::size_t g = 0; g < shape.groups; ++g) {
    const T* const own = sequence.v.data() + g * shape.keys * shape.e;
    lane_arithmetic<T>().lay_out({own, shape.keys, shape.e, shape.e}, values[g]);
  }
  const std::size_t of_row = shape.heads * shape.keys;
  const std::size_t size = std::clamp(weights_in_tile / of_row, std::size_t{1}, max_tile_rows);
  std::vector<HeadPairSums> of_pairs((rows.size() + size - 1) / size);
  std::vector<ExchangeSums> exchanges(of_pairs.size());
  const std::vector<Panels<T>> forms = triangular_forms<T>(exchanged.metrics);
  parallel_for(of_pairs.size(), threads, [&](std::size_t i) {
    const std::size_t first = i * size, count = std::min(size, rows.size() - first);
    const auto lent = of_tiles.lend(size * of_row);
    const QueryTile<T> tile(tiles, shape, values, rows.subspan(first, count), lent.get());
    tile.values(first, out);
    of_pairs[i] = pairs ? tile.pairs() : HeadPairSums(0);
    exchanges[i] = tile.exchange(exchanged, forms);
  });
  for (const HeadPairSums& one : of_pairs) out.pairs.add(one);
  for (const ExchangeSums& one : exchanges) out.exchange.add(one);
  return out;
}

template <class T>
Attended<T> attend(const AttentionRule& rule, const AttentionSequence<T>& sequence,
                   std::span<const std::uint32_t> rows, bool pairs, int threads,
                   const ExchangedQueries& exchanged) {
  AttentionMemory<T> memory;
  return attend(rule, sequence, rows, pairs, threads, exchanged, memory);
}

template <class T>
std::vector<T> attention_weights(const AttentionRule& rule, const AttentionSequence<T>& sequence,
                                 std::size_t head, std::span<const std::uint32_t> rows) {
  std::vector<Panels<T>> of_keys;
  const QueryWeights<T> tiles(rule, sequence, of_keys);
  const std::size_t keys = sequence.shape.keys;
  std::vector<T> weights(rows.size() * keys);
  std::vector<double> log_sums(rows.size());
  tiles.weigh_head(head, rows, {0, keys}, weights.data(), log_sums.data());
  return weights;
}

template struct Attended<float>;
template struct Attended<double>;
template class AttentionMemory<float>;
template class AttentionMemory<double>;
template Attended<float> attend(const AttentionRule&, const AttentionSequence<float>&,
                                std::span<const std::uint32_t>, bool, int, const ExchangedQueries&,
                                AttentionMemory<float>&);
template Attended<double> attend(const AttentionRule&, const AttentionSequence<double>&,
                                 std::span<const std::uint32_t>, bool, int, const ExchangedQueries&,
                                 AttentionMemory<double>&);
template Attended<float> attend(const AttentionRule&, const AttentionSequence<float>&,
                                std::span<const std::uint32_t>, bool, int, const ExchangedQueries&);
template Attended<double> attend(const AttentionRule&, const AttentionSequence<double>&,
                                 std::span<const std::uint32_t>, bool, int,
                                 const ExchangedQueries&);
template std::vector<float> attention_weights(const AttentionRule&, const AttentionSequence<float>&,
                                              std::size_t, std::span<const std::uint32_t>);
template std::vector<double> attention_weights(const AttentionRule&,
                                               const AttentionSequence<double>&, std::size_t,
                                               std::span<const std::uint32_t>);

}  // namespace headlab
