// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention_heads.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "kernels/parallel_for.h"

namespace headlab {
namespace {

/// Weights that a tile holds, as far as its rows do not need more; rows in multiples of those that
/// a product takes at a time.
constexpr std::size_t weights_in_tile = std::size_t{1} << 18;
constexpr std::size_t min_tile_rows = 12;
constexpr std::size_t max_tile_rows = 48;
/// Tiles of a task, which lays its keys out first.
constexpr std::size_t tiles_of_task = 16;

template <class T>
LaneRows<const T> part(LaneRows<const T> rows, KeyRange range) {
  return {rows.row(range.begin), range.size(), rows.columns, rows.stride};
}

template <class T>
PanelPart<T> columns_of(const Panels<T>& all, KeyRange range) {
  return {.of = all, .first_column = range.begin, .columns = range.size()};
}

template <class T>
LaneRows<T> dense(T* data, std::size_t rows, std::size_t columns) {
  return {data, rows, columns, columns};
}

std::size_t tile_rows(const AttentionShape& shape) {
  const std::size_t rows = weights_in_tile / std::max<std::size_t>(shape.keys, 1);
  return std::clamp(rows / min_tile_rows * min_tile_rows, min_tile_rows, max_tile_rows);
}

std::vector<std::uint32_t> all_queries(const AttentionShape& shape) {
  std::vector<std::uint32_t> rows(shape.queries);
  std::iota(rows.begin(), rows.end(), 0U);
  return rows;
}

bool stopped(const std::atomic<bool>* stop) {
  return stop != nullptr && *stop;
}

/// Gradients of the heads of one group of a sequence.
template <class T>
class GroupGradients {
 public:
  using Rows = std::span<const std::uint32_t>;

  GroupGradients(const AttentionBatch<T>& batch, std::size_t sequence, std::size_t first_head,
                 const AttentionGradients<T>& to)
      : batch_(batch), shape_(batch.shape), sequence_(sequence), to_(to) {
    const AttentionHead<T> head = batch.head(sequence, first_head);
    const std::size_t group = shape_.group(first_head);
    if (head.v.data != nullptr) lane_arithmetic<T>().lay_out_transposed(head.v, values_);
    const std::size_t keys = (sequence * shape_.groups + group) * shape_.keys;
    if (to.k != nullptr) k_ = dense(to.k + keys * shape_.k, shape_.keys, shape_.k);
    if (to.v != nullptr) v_ = dense(to.v + keys * shape_.e, shape_.keys, shape_.e);
    weights_of_.emplace(batch.rule, shape_, head.k, keys_, batch.distances);
  }

  void add(std::size_t h, const AttentionUpstream<T>& upstream, const std::atomic<bool>* stop) {
    const AttentionHead<T> head = batch_.head(sequence_, h);
    const std::size_t number = sequence_ * shape_.heads + h;
    const std::vector<std::uint32_t> rows = all_queries(shape_);
    const std::size_t size = tile_rows(shape_);
    Sums sums;
    for (std::size_t first = 0; first < rows.size() && !stopped(stop); first += size) {
      const std::size_t count = std::min(size, rows.size() - first);
      const std::size_t at = number * shape_.queries + first;
      add_tile(head, h, Rows(rows).subspan(first, count),
               {upstream.z + at * shape_.e, upstream.log_sums + at}, sums);
    }
    if (to_.sink != nullptr) to_.sink[number] = sums.sink;
    if (to_.alibi != nullptr) to_.alibi[number] = sums.alibi;
    if (to_.softcap != nullptr) to_.softcap[number] = sums.softcap;
  }

 private:
  struct Sums {
    double sink = 0, alibi = 0, softcap = 0;
  };

  void add_tile(const AttentionHead<T>& head, std::size_t h, Rows rows,
                const AttentionUpstream<T>& upstream, Sums& sums) {
    const KeyRange keys = weights_of_->range(rows);
    const std::size_t count = rows.size(), wide = keys.size();
    weights_.resize(count * wide);
    slopes_.resize(count * wide);
    log_sums_.resize(count);
    weights_of_->weigh(head, h, rows, keys, weights_.data(), log_sums_.data());
    const auto weights = dense<const T>(weights_.data(), count, wide);
    const auto slopes = dense<const T>(slopes_.data(), count, wide);
    const auto g = dense<const T>(upstream.z, count, shape_.e);
    if (v_.data != nullptr) {
      lane_arithmetic<T>().add_product_of_columns(weights, g, rows_of(v_, keys));
    }
    if (head.v.data != nullptr) {
      lane_arithmetic<T>().product(g, columns_of(values_, keys),
                                   dense(slopes_.data(), count, wide));
    }
    for (std::size_t r = 0; r < count; ++r) {
      T* row = slopes_.data() + r * wide;
      if (head.v.data == nullptr) std::copy_n(g.row(r) + keys.begin, wide, row);
      const double mean = lane_arithmetic<T>().softmax_slopes(weights_.data() + r * wide, row, wide,
                                                              upstream.log_sums[r]);
      if (to_.sink != nullptr && std::isfinite(log_sums_[r])) {
        sums.sink -= std::exp(batch_.rule.sink[h] - log_sums_[r]) * mean;
      }
      if (to_.alibi != nullptr) sums.alibi += along_positions(row, keys, rows[r]);
      if (to_.bias != nullptr) {
        const std::size_t at = (sequence_ * shape_.heads + h) * shape_.queries + rows[r];
        std::copy_n(row, wide, to_.bias + at * shape_.keys + keys.begin);
      }
    }
    if (batch_.rule.softcap > 0) {
      weights_of_->products(head, rows, keys, weights_.data());
      sums.softcap += lane_arithmetic<T>().cap_slopes(
          batch_.rule.scale, batch_.rule.softcap, weights_.data(), slopes_.data(), slopes_.size());
    }
    if (to_.q != nullptr || to_.k != nullptr) add_of_logits(head, h, rows, keys, slopes);
  }

  /// sum_s slope_s (s - p).
  double along_positions(const T* row, KeyRange keys, std::size_t t) const {
    const auto p = static_cast<double>(weights_of_->position(t));
    double sum = 0;
    for (std::size_t s = keys.begin; s < keys.end; ++s) {
      sum += static_cast<double>(row[s - keys.begin]) * (static_cast<double>(s) - p);
    }
    return sum;
  }

  /// From derivatives by the scaled products or distances to those by queries and keys.
  void add_of_logits(const AttentionHead<T>& head, std::size_t h, Rows rows, KeyRange keys,
                     LaneRows<const T> slopes) {
    const double scale = batch_.rule.scale;
    const std::size_t count = rows.size(), wide = keys.size(), k = shape_.k;
    // Of a squared distance: q - k, twice, in the place of the other factor.
    const T factor = static_cast<T>(batch_.distances ? -2 * scale : scale);
    for (T& slope : slopes_) slope *= factor;
    const LaneRows<const T> own{head.q.row(rows[0]), count, k, head.q.stride};
    if (to_.q != nullptr) {
      const std::size_t at = (sequence_ * shape_.heads + h) * shape_.queries + rows[0];
      T* out = to_.q + at * k;
      lane_arithmetic<T>().product(slopes, part(head.k, keys), dense(out, count, k));
      for (std::size_t r = 0; batch_.distances && r < count; ++r) {
        double sum = 0;
        for (std::size_t s = 0; s < wide; ++s) sum += static_cast<double>(slopes.row(r)[s]);
        for (std::size_t i = 0; i < k; ++i) out[r * k + i] -= static_cast<T>(sum) * own.row(r)[i];
      }
    }
    if (to_.k == nullptr) return;
    lane_arithmetic<T>().add_product_of_columns(slopes, own, rows_of(k_, keys));
    if (!batch_.distances) return;
    columns_.assign(wide, T(0));
    for (std::size_t r = 0; r < count; ++r) {
      for (std::size_t s = 0; s < wide; ++s) columns_[s] += slopes.row(r)[s];
    }
    for (std::size_t s = 0; s < wide; ++s) {
      const T* key = head.k.row(keys.begin + s);
      T* out = k_.row(keys.begin + s);
      for (std::size_t i = 0; i < k; ++i) out[i] -= columns_[s] * key[i];
    }
  }

  static LaneRows<T> rows_of(LaneRows<T> all, KeyRange keys) {
    return {all.row(keys.begin), keys.size(), all.columns, all.stride};
  }

  const AttentionBatch<T>& batch_;
  const AttentionShape& shape_;
  std::size_t sequence_ = 0;
  const AttentionGradients<T>& to_;
  std::optional<HeadWeights<T>> weights_of_;
  Panels<T> keys_, values_;  ///< [k][S] and [e][S]
  LaneRows<T> k_, v_;
  std::vector<T> weights_, slopes_, columns_;
  std::vector<double> log_sums_;
};

}  // namespace

template <class T>
HeadWeights<T>::HeadWeights(const AttentionRule& rule, const AttentionShape& shape,
                            LaneRows<const T> keys, Panels<T>& laid_out, bool distances)
    : rule_(rule), shape_(shape), distances_(distances), keys_(laid_out) {
  lane_arithmetic<T>().lay_out_transposed(keys, laid_out);
}

template <class T>
KeyRange HeadWeights<T>::own_range(std::size_t t) const {
  const std::size_t p = position(t);
  return {.begin = rule_.window > 0 && p + 1 > rule_.window ? p + 1 - rule_.window : 0,
          .end = rule_.causal ? p + 1 : shape_.keys};
}

template <class T>
KeyRange HeadWeights<T>::range(Rows rows) const {
  KeyRange all = own_range(rows[0]);
  for (const std::uint32_t t : rows) {
    const KeyRange own = own_range(t);
    all = {std::min(all.begin, own.begin), std::max(all.end, own.end)};
  }
  return all;
}

template <class T>
void HeadWeights<T>::products(const AttentionHead<T>& head, Rows rows, KeyRange keys,
                              T* out) const {
  products(std::span(&head, 1), rows, keys, out);
}

template <class T>
void HeadWeights<T>::products(std::span<const AttentionHead<T>> heads, Rows rows, KeyRange keys,
                              T* out) const {
  std::vector<T> queries;
  queries.reserve(heads.size() * rows.size() * shape_.k);
  for (const AttentionHead<T>& head : heads) {
    for (const std::uint32_t t : rows) {
      queries.insert(queries.end(), head.query(t), head.query(t) + shape_.k);
    }
  }
  const std::size_t all = heads.size() * rows.size();
  const auto left = dense<const T>(queries.data(), all, shape_.k);
  const PanelPart<T> right = columns_of(keys_, keys);
  if (distances_) {
    lane_arithmetic<T>().distances(left, right, dense(out, all, keys.size()));
  } else {
    lane_arithmetic<T>().product(left, right, dense(out, all, keys.size()));
  }
}

template <class T>
void HeadWeights<T>::weigh(const AttentionHead<T>& head, std::size_t number, Rows rows,
                           KeyRange keys, T* weights, double* log_sums) const {
  weigh(std::span(&head, 1), number, rows, keys, weights, log_sums);
}

template <class T>
void HeadWeights<T>::weigh(std::span<const AttentionHead<T>> heads, std::size_t first, Rows rows,
                           KeyRange keys, T* weights, double* log_sums) const {
  products(heads, rows, keys, weights);
  std::vector<unsigned char> unseen(keys.size());
  for (std::size_t i = 0; i < heads.size() * rows.size(); ++i) {
    const std::size_t head = i / rows.size();
    const std::uint32_t t = rows[i % rows.size()];
    const KeyRange own = own_range(t);
    T* row = weights + i * keys.size();
    std::fill(row, row + (own.begin - keys.begin), T(0));
    std::fill(row + (own.end - keys.begin), row + keys.size(), T(0));
    log_sums[i] = soften(heads[head], first + head, t, own, row + (own.begin - keys.begin), unseen);
  }
}

template <class T>
double HeadWeights<T>::soften(const AttentionHead<T>& head, std::size_t number, std::size_t t,
                              KeyRange keys, T* row, std::vector<unsigned char>& unseen) const {
  SoftmaxRow<T> softmax{.scale = rule_.scale, .softcap = rule_.softcap};
  // No mask is hidden in distances, however long they are.
  if (distances_) softmax.lowest = -std::numeric_limits<double>::max();
  if (!rule_.alibi.empty()) {
    softmax.slope = rule_.alibi[number];
    softmax.first = static_cast<double>(keys.begin) - static_cast<double>(position(t));
  }
  if (head.bias.data != nullptr) softmax.bias = head.bias.row(t) + keys.begin;
  if (head.unseen.data != nullptr || head.padding != nullptr || rule_.leave_own_out) {
    const unsigned char* mask = head.unseen.data != nullptr ? head.unseen.row(t) : nullptr;
    for (std::size_t s = keys.begin; s < keys.end; ++s) {
      const bool hidden = (mask != nullptr && mask[s] != 0) ||
                          (head.padding != nullptr && head.padding[s] != 0) ||
                          (rule_.leave_own_out && s == position(t));
      unseen[s - keys.begin] = hidden ? 1 : 0;
    }
    softmax.unseen = unseen.data();
  }
  if (!rule_.sink.empty()) {
    softmax.has_sink = true;
    softmax.sink = rule_.sink[number];
  }
  return lane_arithmetic<T>().softmax(softmax, row, keys.size());
}

template <class T>
void attend_heads(const AttentionBatch<T>& batch, int threads, const std::atomic<bool>* stop, T* z,
                  double* log_sums) {
  const AttentionShape& shape = batch.shape;
  const std::size_t size = tile_rows(shape);
  const std::size_t of_task = size * tiles_of_task;
  const std::size_t parts = (shape.queries + of_task - 1) / of_task;
  const std::vector<std::uint32_t> rows = all_queries(shape);
  parallel_for(batch.sequences * shape.groups * parts, threads, [&](std::size_t task) {
    const std::size_t b = task / parts / shape.groups, g = task / parts % shape.groups;
    const std::size_t begin = task % parts * of_task;
    const std::size_t end = std::min(begin + of_task, shape.queries);
    const std::size_t heads = shape.heads / shape.groups;
    Panels<T> keys_of_group;
    const HeadWeights<T> weigher(batch.rule, shape, batch.head(b, g * heads).k, keys_of_group,
                                 batch.distances);
    std::vector<T> weights;
    std::vector<double> sums;
    for (std::size_t h = g * heads; h < (g + 1) * heads; ++h) {
      const AttentionHead<T> head = batch.head(b, h);
      for (std::size_t first = begin; first < end && !stopped(stop); first += size) {
        const std::size_t count = std::min(size, end - first);
        const auto own = std::span(rows).subspan(first, count);
        const KeyRange keys = weigher.range(own);
        const std::size_t at = (b * shape.heads + h) * shape.queries + first;
        weights.resize(count * keys.size());
        weigher.weigh(head, h, own, keys, weights.data(), log_sums + at);
        if (head.v.data == nullptr) {
          for (std::size_t r = 0; r < count; ++r) {
            T* row = std::fill_n(z + (at + r) * shape.e, keys.begin, T(0));
            row = std::copy_n(weights.data() + r * keys.size(), keys.size(), row);
            std::fill_n(row, shape.keys - keys.end, T(0));
          }
          continue;
        }
        sums.resize(count * shape.e);
        lane_arithmetic<T>().product_in_double(dense<const T>(weights.data(), count, keys.size()),
                                               part(head.v, keys),
                                               dense(sums.data(), count, shape.e));
        std::ranges::transform(sums, z + at * shape.e, [](double x) { return static_cast<T>(x); });
      }
    }
  });
}

template <class T>
void attend_heads_backward(const AttentionBatch<T>& batch, const AttentionUpstream<T>& upstream,
                           int threads, const std::atomic<bool>* stop,
                           const AttentionGradients<T>& gradients) {
  const AttentionShape& shape = batch.shape;
  const std::size_t heads = shape.heads / shape.groups;
  parallel_for(batch.sequences * shape.groups, threads, [&](std::size_t task) {
    const std::size_t b = task / shape.groups, first = task % shape.groups * heads;
    GroupGradients<T> group(batch, b, first, gradients);
    for (std::size_t h = first; h < first + heads; ++h) group.add(h, upstream, stop);
  });
}

template class HeadWeights<float>;
template class HeadWeights<double>;
template void attend_heads(const AttentionBatch<float>&, int, const std::atomic<bool>*, float*,
                           double*);
template void attend_heads(const AttentionBatch<double>&, int, const std::atomic<bool>*, double*,
                           double*);
template void attend_heads_backward(const AttentionBatch<float>&, const AttentionUpstream<float>&,
                                    int, const std::atomic<bool>*,
                                    const AttentionGradients<float>&);
template void attend_heads_backward(const AttentionBatch<double>&, const AttentionUpstream<double>&,
                                    int, const std::atomic<bool>*,
                                    const AttentionGradients<double>&);

}  // namespace headlab
