// SPDX-License-Identifier: Apache-2.0
// Weights are not stored: the estimates take one pass over the keys, the gradient another, which
// computes the weights again from the normaliser that the first one found. There a weight costs 2
// d_k more multiply-adds, because with e_qi = s_q w_qi (Y_i - f_q) and sum_i e_qi = 0 the gradient
// splits into a sum over keys and one over queries,
//     sum_i X_i (sum_q e_qi (u_q + norm_coefficient v_i))^T  and  sum_q x_q (sum_i e_qi v_i)^T,
// so that the d coordinates of X and x meet only sums over one of the two.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "kernels/cpu/aligned.h"
#include "kernels/cpu/backend.h"
#include "kernels/cpu/subnormals.h"
#include "kernels/cpu/targets.h"
#include "kernels/learning/units.h"
#include "kernels/parallel_for.h"
#include "kernels/tile.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/head_gradients.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/aligned_allocator.h>

#include "kernels/cpu/exp2-inl.h"
#include "kernels/cpu/lanes-inl.h"
#include "kernels/cpu/products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {
namespace {

using Buffer = hwy::AlignedFreeUniquePtr<float[]>;

Buffer zeros(std::size_t size) {
  Buffer buffer = allocate_aligned<float>(std::max<std::size_t>(size, 1));
  std::fill_n(buffer.get(), size, 0.0f);
  return buffer;
}

/// Keys of a panel, which a group of queries meets at once, and of a slab, which is one task.
constexpr std::size_t panel_tiles = 16;
constexpr std::size_t panel_keys = panel_tiles * tile_points;
constexpr std::size_t min_slab_panels = 4;
constexpr std::size_t max_slabs = 16;
/// Queries of a task that estimates.
constexpr std::size_t task_queries = 64;

/// An exponent that gives no weight, and the limit of those that do.
constexpr float no_weight = -3e30f;
constexpr float max_size = 1e30f;

class CpuGradients : public HeadGradients {
 public:
  CpuGradients(const KernelLaw& kernel, int threads) : threads_(threads), units_(kernel) {}

  void load(const FitPoints& points, std::size_t count) override {
    d_ = static_cast<std::size_t>(points.d);
    n_ = count;
    tiles_ = (n_ + tile_points - 1) / tile_points;
    const std::size_t panels = (tiles_ + panel_tiles - 1) / panel_tiles;
    slab_panels_ = std::max(min_slab_panels, (panels + max_slabs - 1) / max_slabs);
    slabs_ = (panels + slab_panels_ - 1) / slab_panels_;
    double sum = 0;
    for (std::size_t i = 0; i < n_; ++i) sum += points.y[i];
    centre_ = sum / static_cast<double>(n_);
    x_centre_ = centre_of(points, count);
    x_ = zeros(tiles_ * d_ * tile_points);
    y_ = zeros(tiles_ * tile_points);
    for (std::size_t i = 0; i < n_; ++i) {
      y_[i] = static_cast<float>(points.y[i] - centre_);
      float* tile = &x_[i / tile_points * d_ * tile_points];
      for (std::size_t c = 0; c < d_; ++c) {
        tile[c * tile_points + i % tile_points] = points.x[i * d_ + c] - x_centre_[c];
      }
    }
  }

  void estimate(const HeadParameters& heads, const FitQueries& queries,
                std::span<double> f) override {
    take(heads, queries);
    parallel_for(heads_ * slabs_, threads_,
                 [&](std::size_t task) { project_keys(task / slabs_, task % slabs_); });
    const std::size_t groups = (queries_ + task_queries - 1) / task_queries;
    parallel_for(heads_ * groups, threads_, [&](std::size_t task) {
      const std::size_t first = task % groups * task_queries;
      estimate_some(task / groups, first, std::min(task_queries, queries_ - first));
    });
    for (std::size_t h = 0; h < heads_; ++h) {
      for (std::size_t q = 0; q < queries_; ++q) {
        f[q * heads_ + h] = centre_ + estimates_[h * queries_ + q];
      }
    }
  }

  void gradient(std::span<const double> s, HeadParameters& out) override {
    const std::size_t size = d_ * k_;
    std::vector<double> of_keys(heads_ * slabs_ * size);
    std::vector<double> of_queries(heads_ * slabs_ * queries_ * k_);
    parallel_for(heads_ * slabs_, threads_, [&](std::size_t task) {
      std::vector<float> scales(queries_);
      for (std::size_t q = 0; q < queries_; ++q) {
        scales[q] = static_cast<float>(s[q * heads_ + task / slabs_]);
      }
      add_slab(task / slabs_, task % slabs_, scales, &of_keys[task * size],
               &of_queries[task * queries_ * k_]);
    });
    out.heads = static_cast<int>(heads_);
    out.d = static_cast<int>(d_);
    out.k = static_cast<int>(k_);
    out.keys.assign(heads_ * size, 0.0);
    out.queries.assign(separate_ ? heads_ * size : 0, 0.0);
    out.weights.assign(heads_, 0.0);
    parallel_for(heads_, threads_, [&](std::size_t h) {
      double* keys = &out.keys[h * size];
      double* queries = separate_ ? &out.queries[h * size] : keys;
      std::vector<double> sum(queries_ * k_);  // sum_i e_qi v_i
      for (std::size_t slab = 0; slab < slabs_; ++slab) {
        const double* of_slab = &of_keys[(h * slabs_ + slab) * size];
        for (std::size_t i = 0; i < size; ++i) keys[i] += units_.key_factor * of_slab[i];
        const double* products = &of_queries[(h * slabs_ + slab) * queries_ * k_];
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += products[i];
      }
      for (std::size_t q = 0; q < queries_; ++q) {
        for (std::size_t c = 0; c < d_; ++c) {
          const double x = units_.query_factor * static_cast<double>(query_points_[q * d_ + c]);
          for (std::size_t j = 0; j < k_; ++j) queries[c * k_ + j] += x * sum[q * k_ + j];
        }
      }
    });
  }

 private:
  /// W [d][k] as rows [k][d] in units.
  void add_rows(const double* w, double unit, std::vector<float>& rows) const {
    for (std::size_t j = 0; j < k_; ++j) {
      for (std::size_t c = 0; c < d_; ++c) rows.push_back(static_cast<float>(w[c * k_ + j] * unit));
    }
  }

  void take(const HeadParameters& heads, const FitQueries& queries) {
    heads_ = static_cast<std::size_t>(heads.heads);
    k_ = static_cast<std::size_t>(heads.k);
    separate_ = !heads.queries.empty();
    queries_ = queries.size();
    query_points_.assign(queries.x.begin(), queries.x.end());
    if (units_.norm_coefficient != 0) {
      for (std::size_t i = 0; i < query_points_.size(); ++i) query_points_[i] -= x_centre_[i % d_];
    }
    own_.assign(queries.own.begin(), queries.own.end());
    key_rows_.clear();
    std::vector<float> query_rows;
    for (std::size_t h = 0; h < heads_; ++h) {
      const double* w = &heads.keys[h * d_ * k_];
      add_rows(w, units_.key_unit, key_rows_);
      add_rows(separate_ ? &heads.queries[h * d_ * k_] : w, units_.query_unit, query_rows);
    }
    projected_.assign(heads_ * queries_ * k_, 0.0f);
    for (std::size_t h = 0; h < heads_; ++h) {
      for (std::size_t q = 0; q < queries_; ++q) {
        for (std::size_t j = 0; j < k_; ++j) {
          const float* row = &query_rows[(h * k_ + j) * d_];
          double sum = 0;
          for (std::size_t c = 0; c < d_; ++c) {
            sum += static_cast<double>(row[c]) * static_cast<double>(query_points_[q * d_ + c]);
          }
          projected_[(h * queries_ + q) * k_ + j] = static_cast<float>(sum);
        }
      }
    }
    if (keys_size_ != heads_ * tiles_ * k_ * tile_points) {
      keys_size_ = heads_ * tiles_ * k_ * tile_points;
      keys_ = zeros(keys_size_);
    }
    estimates_.resize(heads_ * queries_);
    normalisers_.resize(heads_ * queries_);
  }

  std::size_t first_tile(std::size_t slab) const { return slab * slab_panels_ * panel_tiles; }
  std::size_t end_tile(std::size_t slab) const { return std::min(tiles_, first_tile(slab + 1)); }
  /// Keys of a tile and of those after it in head h [k][tile_points].
  float* keys(std::size_t h, std::size_t tile) {
    return &keys_[(h * tiles_ + tile) * k_ * tile_points];
  }
  const float* query(std::size_t h, std::size_t q) const {
    return &projected_[(h * queries_ + q) * k_];
  }

  HWY_ATTR void project_keys(std::size_t h, std::size_t slab) {
    const auto in_range = [](Float key) HWY_ATTR {
      const Float limit = hn::Set(float_tag, max_size);
      return hn::Min(hn::Max(key, hn::Neg(limit)), limit);
    };
    for (std::size_t tile = first_tile(slab); tile < end_tile(slab); ++tile) {
      for_row_tiles(k_, [&]<std::size_t Rows>(std::size_t first) HWY_ATTR {
        const float* rows[Rows];
        float* out[Rows];
        for (std::size_t r = 0; r < Rows; ++r) {
          rows[r] = &key_rows_[(h * k_ + first + r) * d_];
          out[r] = keys(h, tile) + (first + r) * tile_points;
        }
        multiply_tiles<Rows, false>(&x_[tile * d_ * tile_points], 1, d_, ScatteredRows{rows},
                                    nullptr, 0, out, in_range);
      });
    }
  }

  /// log2 K of Rows queries from `first` on and the keys of a panel [Rows][panel_keys]; none of the
  /// points left out and of those past the last one.
  template <std::size_t Rows>
  HWY_ATTR void exponents(std::size_t h, std::size_t first, std::size_t tile, std::size_t tiles,
                          float* buffer) {
    const float* rows[Rows];
    float* out[Rows];
    for (std::size_t r = 0; r < Rows; ++r) {
      rows[r] = query(h, first + r);
      out[r] = buffer + r * panel_keys;
    }
    const float* panel = keys(h, tile);
    if (units_.norm_coefficient != 0) {
      multiply_tiles<Rows, true>(
          panel, tiles, k_, ScatteredRows{rows}, nullptr, 0, out,
          [](Float r2) HWY_ATTR { return hn::Max(hn::Neg(r2), hn::Set(float_tag, -max_size)); });
    } else {
      multiply_tiles<Rows, false>(panel, tiles, k_, ScatteredRows{rows}, nullptr, 0, out,
                                  [](Float dot) HWY_ATTR {
                                    const Float limit = hn::Set(float_tag, max_size);
                                    return hn::Min(hn::Max(dot, hn::Neg(limit)), limit);
                                  });
    }
    const std::size_t begin = tile * tile_points;
    const std::size_t end = begin + tiles * tile_points;
    for (std::size_t r = 0; r < Rows; ++r) {
      if (end > n_) std::fill(out[r] + (n_ - begin), out[r] + (end - begin), no_weight);
      const std::int64_t own = own_[first + r];
      if (own >= static_cast<std::int64_t>(begin) && own < static_cast<std::int64_t>(end)) {
        out[r][static_cast<std::size_t>(own) - begin] = no_weight;
      }
    }
  }

  /// Sums of a query over the panels so far: weights relative to 2^largest.
  struct Window {
    float largest = no_weight;
    double weight = 0;
    double value = 0;
  };

  /// Adds a row of exponents and its values.
  HWY_ATTR static void add_row(const float* HWY_RESTRICT row, const float* HWY_RESTRICT values,
                               std::size_t keys, Window& window) {
    Float max = hn::Set(float_tag, no_weight);
    for (std::size_t i = 0; i < keys; i += lane_count) {
      max = hn::Max(max, hn::Load(float_tag, row + i));
    }
    const float largest = hn::GetLane(hn::MaxOfLanes(float_tag, max));
    if (largest > window.largest) {
      const double change =
          std::exp2(static_cast<double>(window.largest) - static_cast<double>(largest));
      window.weight *= change;
      window.value *= change;
      window.largest = largest;
    }
    const Exp2<true> exp2(0);
    const Float shift = hn::Set(float_tag, window.largest);
    Float weight = hn::Zero(float_tag);
    Float value = hn::Zero(float_tag);
    for (std::size_t i = 0; i < keys; i += 2 * lane_count) {
      Float w[2] = {hn::Sub(hn::Load(float_tag, row + i), shift),
                    hn::Sub(hn::Load(float_tag, row + i + lane_count), shift)};
      exp2(w);
      weight = hn::Add(weight, hn::Add(w[0], w[1]));
      value = hn::MulAdd(w[0], hn::Load(float_tag, values + i), value);
      value = hn::MulAdd(w[1], hn::Load(float_tag, values + i + lane_count), value);
    }
    window.weight += total(weight);
    window.value += total(value);
  }

  /// ConditionEstimates, and normalisers log2 sum_i K, of some queries.
  HWY_ATTR void estimate_some(std::size_t h, std::size_t begin, std::size_t count) {
    const WithoutSubnormals without_subnormals;
    const Buffer buffer = zeros(max_rows * panel_keys);
    for_row_tiles(count, [&]<std::size_t Rows>(std::size_t row) HWY_ATTR {
      Window windows[Rows];
      for (std::size_t tile = 0; tile < tiles_; tile += panel_tiles) {
        const std::size_t tiles = std::min(panel_tiles, tiles_ - tile);
        exponents<Rows>(h, begin + row, tile, tiles, buffer.get());
        for (std::size_t r = 0; r < Rows; ++r) {
          add_row(&buffer[r * panel_keys], &y_[tile * tile_points], tiles * tile_points,
                  windows[r]);
        }
      }
      for (std::size_t r = 0; r < Rows; ++r) {
        const std::size_t at = h * queries_ + begin + row + r;
        estimates_[at] = windows[r].value / windows[r].weight;
        normalisers_[at] = {windows[r].largest, static_cast<float>(std::log2(windows[r].weight))};
      }
    });
  }

  /// e_i = s w_i (Y_i - f) in the place of a row of exponents.
  HWY_ATTR void weigh_row(float* HWY_RESTRICT row, std::size_t tile, std::size_t keys,
                          std::size_t at, float s) const {
    const Exp2<true> exp2(0);
    // Largest exponent and sum apart: their sum would round what is left of large exponents.
    const Float largest = hn::Set(float_tag, normalisers_[at].first);
    const Float log_sum = hn::Set(float_tag, normalisers_[at].second);
    const Float f = hn::Set(float_tag, static_cast<float>(estimates_[at]));
    const Float scale = hn::Set(float_tag, s);
    const float* values = &y_[tile * tile_points];
    for (std::size_t i = 0; i < keys; i += 2 * lane_count) {
      Float w[2];
      for (std::size_t v = 0; v < 2; ++v) {
        w[v] = hn::Sub(hn::Sub(hn::Load(float_tag, row + i + v * lane_count), largest), log_sum);
      }
      exp2(w);
      for (std::size_t v = 0; v < 2; ++v) {
        const Float off = hn::Sub(hn::Load(float_tag, values + i + v * lane_count), f);
        hn::Store(hn::Mul(hn::Mul(w[v], scale), off), float_tag, row + i + v * lane_count);
      }
    }
  }

  /// Adds sum_q e_q u_qj to products[j] [k][panel_keys] and sum_q e_q to sums, over a group of rows
  /// e [Rows][panel_keys]; and sum_i e_qi v_ij to of_queries [Rows][k].
  template <std::size_t Rows>
  HWY_ATTR void add_group(std::size_t h, std::size_t first, std::size_t tile, std::size_t tiles,
                          const float* HWY_RESTRICT e, float* HWY_RESTRICT products,
                          float* HWY_RESTRICT sums, double* of_queries) {
    const float* u = query(h, first);
    for (std::size_t i = 0; i < tiles * tile_points; i += lane_count) {
      Float row[Rows];
      Float sum = hn::Load(float_tag, sums + i);
      for (std::size_t r = 0; r < Rows; ++r) {
        row[r] = hn::Load(float_tag, e + r * panel_keys + i);
        sum = hn::Add(sum, row[r]);
      }
      hn::Store(sum, float_tag, sums + i);
      for (std::size_t j = 0; j < k_; ++j) {
        float* at = products + j * panel_keys + i;
        Float product = hn::Load(float_tag, at);
        for (std::size_t r = 0; r < Rows; ++r) {
          product = hn::MulAdd(row[r], hn::Set(float_tag, u[r * k_ + j]), product);
        }
        hn::Store(product, float_tag, at);
      }
    }
    const float* v = keys(h, tile);
    for (std::size_t j = 0; j < k_; ++j) {
      Float sum[Rows];
      for (Float& one : sum) one = hn::Zero(float_tag);
      for (std::size_t t = 0; t < tiles; ++t) {
        const float* coordinate = v + (t * k_ + j) * tile_points;
        for (std::size_t i = 0; i < tile_points; i += lane_count) {
          const Float key = hn::Load(float_tag, coordinate + i);
          for (std::size_t r = 0; r < Rows; ++r) {
            sum[r] = hn::MulAdd(hn::Load(float_tag, e + r * panel_keys + t * tile_points + i), key,
                                sum[r]);
          }
        }
      }
      for (std::size_t r = 0; r < Rows; ++r) of_queries[r * k_ + j] += total(sum[r]);
    }
  }

  /// Adds sum_i X_i (sum_q e_qi (u_q + norm_coefficient v_i))^T over the keys of a panel to of_keys
  /// [d][k]. `products` [k][panel_keys] is overwritten.
  HWY_ATTR void add_keys(std::size_t h, std::size_t tile, std::size_t tiles, float* products,
                         const float* sums, double* of_keys) {
    const Float coefficient = hn::Set(float_tag, static_cast<float>(units_.norm_coefficient));
    for (std::size_t j = 0; j < k_; ++j) {
      float* product = products + j * panel_keys;
      for (std::size_t t = 0; t < tiles; ++t) {
        const float* key = keys(h, tile + t) + j * tile_points;
        for (std::size_t i = 0; i < tile_points; i += lane_count) {
          const std::size_t at = t * tile_points + i;
          const Float scaled = hn::Mul(coefficient, hn::Load(float_tag, key + i));
          hn::Store(
              hn::MulAdd(hn::Load(float_tag, sums + at), scaled, hn::Load(float_tag, product + at)),
              float_tag, product + at);
        }
      }
    }
    for_row_tiles(k_, [&]<std::size_t Rows>(std::size_t first) HWY_ATTR {
      for (std::size_t c = 0; c < d_; ++c) {
        Float sum[Rows];
        for (Float& one : sum) one = hn::Zero(float_tag);
        for (std::size_t t = 0; t < tiles; ++t) {
          const float* x = &x_[((tile + t) * d_ + c) * tile_points];
          for (std::size_t i = 0; i < tile_points; i += lane_count) {
            const Float coordinate = hn::Load(float_tag, x + i);
            for (std::size_t r = 0; r < Rows; ++r) {
              const float* product = products + (first + r) * panel_keys + t * tile_points + i;
              sum[r] = hn::MulAdd(hn::Load(float_tag, product), coordinate, sum[r]);
            }
          }
        }
        for (std::size_t r = 0; r < Rows; ++r) of_keys[c * k_ + first + r] += total(sum[r]);
      }
    });
  }

  /// What a slab of keys adds: sum_i X_i (sum_q e_qi (u_q + norm_coefficient v_i))^T to of_keys
  /// [d][k], and sum_i e_qi v_i to of_queries [Q][k].
  HWY_ATTR void add_slab(std::size_t h, std::size_t slab, const std::vector<float>& scales,
                         double* of_keys, double* of_queries) {
    const WithoutSubnormals without_subnormals;
    const Buffer buffer = zeros(max_rows * panel_keys);
    const Buffer products = zeros(k_ * panel_keys);
    const Buffer sums = zeros(panel_keys);
    for (std::size_t tile = first_tile(slab); tile < end_tile(slab); tile += panel_tiles) {
      const std::size_t tiles = std::min(panel_tiles, end_tile(slab) - tile);
      std::fill_n(products.get(), k_ * panel_keys, 0.0f);
      std::fill_n(sums.get(), panel_keys, 0.0f);
      for_row_tiles(queries_, [&]<std::size_t Rows>(std::size_t first) HWY_ATTR {
        exponents<Rows>(h, first, tile, tiles, buffer.get());
        for (std::size_t r = 0; r < Rows; ++r) {
          weigh_row(&buffer[r * panel_keys], tile, tiles * tile_points, h * queries_ + first + r,
                    scales[first + r]);
        }
        add_group<Rows>(h, first, tile, tiles, buffer.get(), products.get(), sums.get(),
                        of_queries + first * k_);
      });
      add_keys(h, tile, tiles, products.get(), sums.get(), of_keys);
    }
  }

  int threads_;
  FitUnits units_;

  // The training set
  std::size_t d_ = 1, n_ = 0, tiles_ = 0;
  std::size_t slab_panels_ = 1, slabs_ = 0;
  double centre_ = 0;            ///< subtracted from the values
  std::vector<float> x_centre_;  ///< [d], subtracted from the points
  Buffer x_;                     ///< [tile][d][tile_points]
  Buffer y_;                     ///< [n, padded]

  // The heads and queries of the last estimate
  std::size_t heads_ = 0, k_ = 0, queries_ = 0;
  bool separate_ = false;
  std::vector<float> query_points_;  ///< [Q][d], less the centre too where that changes nothing
  std::vector<std::int64_t> own_;    ///< [Q]
  std::vector<float> key_rows_;      ///< [H][k][d]
  std::vector<float> projected_;     ///< [H][Q][k]
  std::size_t keys_size_ = 0;
  Buffer keys_;                                       ///< [H][tile][k][tile_points]
  std::vector<double> estimates_;                     ///< [H][Q], less the centre
  std::vector<std::pair<float, float>> normalisers_;  ///< [H][Q], log2 of largest and of the sum
};

std::unique_ptr<HeadGradients> make_gradients(const KernelLaw& kernel, int threads) {
  return std::make_unique<CpuGradients>(kernel, threads);
}

}  // namespace
}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlab {
namespace {

HWY_EXPORT(make_gradients);

}  // namespace

std::unique_ptr<HeadGradients> make_cpu_gradients(const KernelLaw& kernel, int threads) {
  return HWY_DYNAMIC_DISPATCH(make_gradients)(kernel, threads);
}

}  // namespace headlab
#endif  // HWY_ONCE
