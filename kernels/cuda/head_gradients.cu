// SPDX-License-Identifier: Apache-2.0
// ConditionEstimates and gradients of heads that are learned. Weights are never stored: the
// estimates take one pass over the keys, the gradient a second one, which recomputes the weights
// from the normaliser of the first. With e_qi = s_q w_qi (Y_i - f_q) and sum_i e_qi = 0 the
// gradient splits into a sum over keys and one over queries, for the Gaussian kernel
//     sum_i X_i (sum_q e_qi (u_q - v_i))^T  and  sum_q x_q (sum_i e_qi (v_i - u_q))^T
// and for softmax the same with only u_q and only v_i in the brackets.
//
// Every kernel proceeds tile by tile, over tiles of coordinates too, so that registers and shared
// memory do not grow with d or k. Sums are float32 within a tile and, for a key, over the queries;
// beyond that they are float64. Each number is summed by one thread in a fixed order.
//
// Ladder (not timed on a GPU yet):
//   v1  this: sixteen exponents a thread; four products for two loads in the sums
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"
#include "kernels/math.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

constexpr int threads = 128;
/// Neighbouring keys or queries of one thread.
constexpr int together = 4;
constexpr int key_groups = fit_tile_keys / together;
constexpr int query_groups = fit_tile_queries / together;
static_assert(key_groups * query_groups == threads);
/// Floats from one row of 64 keys to the next: neighbouring rows begin in different banks.
constexpr int row_stride = fit_tile_keys + 4;

/// Exponent of zero weight.
constexpr float no_weight = -3e30f;
/// Maximum size of other exponents, and of coordinates.
constexpr float max_size = 1e30f;

HEADLAB_DEVICE int thread_number() {
  return static_cast<int>(thread_index());
}
HEADLAB_DEVICE int fewer(int a, int b) {
  return a < b ? a : b;
}

/// x between the limits; the lower one for NaN.
HEADLAB_DEVICE float limited(float x) {
  const float above = x > -max_size ? x : -max_size;
  return above < max_size ? above : max_size;
}

/// Copies rows of 4 `fours` floats from global to shared memory.
template <bool limits>
HEADLAB_DEVICE void copy_rows(float* to, int to_stride, const float* from, std::int64_t from_stride,
                              int rows, int fours) {
  for (int at = thread_number(); at < rows * fours; at += threads) {
    const int row = at / fours;
    const int column = at % fours * 4;
    Four four = *reinterpret_cast<const Four*>(from + row * from_stride + column);
    if constexpr (limits) {
      HEADLAB_UNROLL
      for (float& x : four.v) x = limited(x);
    }
    *reinterpret_cast<Four*>(to + row * to_stride + column) = four;
  }
}

/// A tile of coordinates of a tile of keys and of a tile of queries of one head, in shared memory.
class Stage {
 public:
  static constexpr int key_floats = fit_tile_coordinates * fit_tile_keys;
  static constexpr int query_floats = fit_tile_coordinates * fit_tile_queries;

  HEADLAB_DEVICE Stage(const FitArguments& a, std::int64_t head, float* shared)
      : a_(a), head_(head), keys_(shared), queries_(shared + key_floats) {}

  /// Loads the coordinates from `first` on unless they are there. Every thread of the thread block
  /// calls it.
  HEADLAB_DEVICE void load(std::int64_t key_tile, int query_tile, int first) {
    const bool new_keys = key_tile != key_tile_ || first != first_;
    const bool new_queries = query_tile != query_tile_ || first != first_;
    if (!new_keys && !new_queries) return;
    // The present tiles may still be read.
    synchronise_block();
    rows_ = fewer(fit_tile_coordinates, a_.k - first);
    const std::int64_t row = head_ * a_.k + first;
    if (new_keys) {
      copy_rows<true>(keys_, fit_tile_keys, a_.keys + row * a_.padded_n + key_tile * fit_tile_keys,
                      a_.padded_n, rows_, fit_tile_keys / 4);
    }
    if (new_queries) {
      copy_rows<true>(queries_, fit_tile_queries,
                      a_.projected + row * a_.padded_queries + query_tile * fit_tile_queries,
                      a_.padded_queries, rows_, fit_tile_queries / 4);
    }
    key_tile_ = key_tile;
    query_tile_ = query_tile;
    first_ = first;
    synchronise_block();
  }

  HEADLAB_DEVICE int rows() const { return rows_; }
  /// Coordinate `row` of the keys of a group, and of the queries of one.
  HEADLAB_DEVICE Four keys(int row, int group) const {
    return *reinterpret_cast<const Four*>(keys_ + row * fit_tile_keys + group * together);
  }
  HEADLAB_DEVICE Four queries(int row, int group) const {
    return *reinterpret_cast<const Four*>(queries_ + row * fit_tile_queries + group * together);
  }
  HEADLAB_DEVICE float query(int row, int q) const { return queries_[row * fit_tile_queries + q]; }

 private:
  const FitArguments& a_;
  std::int64_t head_;
  float* keys_;     ///< [coordinate][key]
  float* queries_;  ///< [coordinate][query]
  std::int64_t key_tile_ = -1;
  int query_tile_ = -1;
  int first_ = -1;
  int rows_ = 0;
};

/// log2 K of the thread's four queries and four keys; no_weight for points left out and for
/// padding.
template <bool Distances>
HEADLAB_DEVICE void exponents(const FitArguments& a, Stage& stage, std::int64_t key_tile,
                              int query_tile, float (&t)[together][together]) {
  const int key_group = thread_number() % key_groups;
  const int query_group = thread_number() / key_groups;
  HEADLAB_UNROLL
  for (auto& row : t) {
    HEADLAB_UNROLL
    for (float& sum : row) sum = 0;
  }
  for (int first = 0; first < a.k; first += fit_tile_coordinates) {
    stage.load(key_tile, query_tile, first);
    for (int j = 0; j < stage.rows(); ++j) {
      const Four v = stage.keys(j, key_group);
      const Four u = stage.queries(j, query_group);
      HEADLAB_UNROLL
      for (int i = 0; i < together; ++i) {
        HEADLAB_UNROLL
        for (int c = 0; c < together; ++c) {
          if constexpr (Distances) {
            const float difference = u.v[i] - v.v[c];
            t[i][c] = math::fused(-difference, difference, t[i][c]);
          } else {
            t[i][c] = math::fused(u.v[i], v.v[c], t[i][c]);
          }
        }
      }
    }
  }
  const std::int64_t key = key_tile * fit_tile_keys + key_group * together;
  HEADLAB_UNROLL
  for (int i = 0; i < together; ++i) {
    const std::int64_t own = a.own[query_tile * fit_tile_queries + query_group * together + i];
    HEADLAB_UNROLL
    for (int c = 0; c < together; ++c) {
      const bool weighs = key + c < a.n && key + c != own;
      t[i][c] = weighs ? limited(t[i][c]) : no_weight;
    }
  }
}

/// Stores the thread's numbers in a tile [query][row_stride].
HEADLAB_DEVICE void store(const float (&t)[together][together], float* tile) {
  const int key = thread_number() % key_groups * together;
  const int query = thread_number() / key_groups * together;
  HEADLAB_UNROLL
  for (int i = 0; i < together; ++i) {
    *reinterpret_cast<Four*>(tile + (query + i) * row_stride + key) = {t[i][0], t[i][1], t[i][2],
                                                                       t[i][3]};
  }
}

/// Sums over a panel of keys for a tile of queries. Thread blocks are (head, tile of queries,
/// panel).
template <bool Distances>
HEADLAB_KERNEL void HEADLAB_LAUNCH_BOUNDS(threads, 4) estimate_kernel(const FitArguments a) {
  constexpr int lanes = threads / fit_tile_queries;  // of a query
  constexpr int lane_groups = key_groups / lanes;
  auto* shared = reinterpret_cast<float*>(shared_memory());
  float* tile = shared + Stage::key_floats + Stage::query_floats;
  const int query_tiles = a.padded_queries / fit_tile_queries;
  const std::int64_t block = block_index_x();
  const std::int64_t panel = block % a.of_estimate.count;
  const auto query_tile = static_cast<int>(block / a.of_estimate.count % query_tiles);
  const std::int64_t head = block / a.of_estimate.count / query_tiles;
  const int lane = thread_number() % lanes;
  const int query = thread_number() / lanes;
  Stage stage(a, head, shared);

  FitWindow window = {0, 0, no_weight};
  const std::int64_t first = panel * a.of_estimate.tiles;
  for (std::int64_t i = 0; i < a.of_estimate.tiles; ++i) {
    const std::int64_t key_tile = first + i;
    if (key_tile * fit_tile_keys >= a.padded_n) break;
    float t[together][together];
    // A new tile of keys: the thread block synchronises before any thread continues.
    exponents<Distances>(a, stage, key_tile, query_tile, t);
    store(t, tile);
    synchronise_block();

    Four row[lane_groups];
    float largest = no_weight;
    HEADLAB_UNROLL
    for (int g = 0; g < lane_groups; ++g) {
      const int key = (g * lanes + lane) * together;
      row[g] = *reinterpret_cast<const Four*>(tile + query * row_stride + key);
      HEADLAB_UNROLL
      for (const float x : row[g].v) largest = math::max(largest, x);
    }
    HEADLAB_UNROLL
    for (int mask = 1; mask < lanes; mask *= 2) {
      largest = math::max(largest, shuffle_xor(largest, mask));
    }
    if (largest > window.largest) {
      const double change =
          exp2(static_cast<double>(window.largest) - static_cast<double>(largest));
      window.weight *= change;
      window.value *= change;
      window.largest = largest;
    }
    float weight = 0;
    float value = 0;
    HEADLAB_UNROLL
    for (int g = 0; g < lane_groups; ++g) {
      const std::int64_t key = key_tile * fit_tile_keys + (g * lanes + lane) * together;
      const Four y = *reinterpret_cast<const Four*>(a.values + key);
      HEADLAB_UNROLL
      for (int c = 0; c < together; ++c) {
        const float w = exp2_unit(row[g].v[c] - window.largest);
        weight += w;
        value = math::fused(w, y.v[c], value);
      }
    }
    window.weight += static_cast<double>(weight);
    window.value += static_cast<double>(value);
  }
  HEADLAB_UNROLL
  for (int mask = 1; mask < lanes; mask *= 2) {
    window.weight += shuffle_xor(window.weight, mask);
    window.value += shuffle_xor(window.value, mask);
  }
  if (lane == 0) {
    a.windows[(head * a.of_estimate.count + panel) * a.padded_queries +
              query_tile * fit_tile_queries + query] = window;
  }
}

HEADLAB_DEVICE std::int64_t number_of_thread() {
  return static_cast<std::int64_t>(block_index_x()) * threads + thread_number();
}

/// Estimate of a query from its panels.
HEADLAB_KERNEL void normalise_kernel(const FitArguments a) {
  const std::int64_t at = number_of_thread();
  if (at >= static_cast<std::int64_t>(a.heads) * a.padded_queries) return;
  const std::int64_t head = at / a.padded_queries;
  const FitWindow* windows =
      a.windows + head * a.of_estimate.count * a.padded_queries + at % a.padded_queries;
  float largest = no_weight;
  for (std::int64_t panel = 0; panel < a.of_estimate.count; ++panel) {
    largest = math::max(largest, windows[panel * a.padded_queries].largest);
  }
  double weight = 0;
  double value = 0;
  for (std::int64_t panel = 0; panel < a.of_estimate.count; ++panel) {
    const FitWindow& window = windows[panel * a.padded_queries];
    const double share = exp2(static_cast<double>(window.largest) - static_cast<double>(largest));
    weight += share * window.weight;
    value += share * window.value;
  }
  a.estimates[at] = value / weight;
  a.normalisers[at] = {largest, static_cast<float>(log2(weight)),
                       static_cast<float>(value / weight)};
}

/// Both sums over e for a panel of keys and all queries. Thread blocks are (head, panel).
template <bool Distances>
HEADLAB_KERNEL void HEADLAB_LAUNCH_BOUNDS(threads, 4) gradient_kernel(const FitArguments a) {
  auto* shared = reinterpret_cast<float*>(shared_memory());
  float* tile = shared + Stage::key_floats + Stage::query_floats;  // e
  const int query_tiles = a.padded_queries / fit_tile_queries;
  const std::int64_t block = block_index_x();
  const std::int64_t head = block / a.of_gradient.count;
  const std::int64_t first_tile = block % a.of_gradient.count * a.of_gradient.tiles;
  Stage stage(a, head, shared);
  const int key_group = thread_number() % key_groups;
  const int query_group = thread_number() / key_groups;

  for (std::int64_t i = 0; i < a.of_gradient.tiles; ++i) {
    const std::int64_t key_tile = first_tile + i;
    if (key_tile * fit_tile_keys >= a.padded_n) break;
    const Four y =
        *reinterpret_cast<const Four*>(a.values + key_tile * fit_tile_keys + key_group * together);
    for (int query_tile = 0; query_tile < query_tiles; ++query_tile) {
      float e[together][together];
      // A new tile of keys or queries: the thread block synchronises before any thread continues.
      exponents<Distances>(a, stage, key_tile, query_tile, e);
      HEADLAB_UNROLL
      for (int q = 0; q < together; ++q) {
        const std::int64_t at =
            head * a.padded_queries + query_tile * fit_tile_queries + query_group * together + q;
        const FitNormaliser of_query = a.normalisers[at];
        const float s = a.scales[at];
        HEADLAB_UNROLL
        for (int c = 0; c < together; ++c) {
          const float w = exp2_unit(e[q][c] - of_query.largest - of_query.log_sum);
          e[q][c] = w * s * (y.v[c] - of_query.estimate);
        }
      }
      store(e, tile);
      synchronise_block();

      for (int first = 0; first < a.k; first += fit_tile_coordinates) {
        stage.load(key_tile, query_tile, first);
        // pulls[j][i] = sum_q e_qi (u_qj - v_ij), a coordinate of four keys per thread.
        for (int at = thread_number(); at < stage.rows() * key_groups; at += threads) {
          const int j = at / key_groups;
          const int group = at % key_groups;
          const Four v = stage.keys(j, group);
          float* to = a.pulls + (head * a.k + first + j) * a.padded_n + key_tile * fit_tile_keys +
                      group * together;
          Four sum = {};
          for (int q = 0; q < fit_tile_queries; ++q) {
            const Four of_query =
                *reinterpret_cast<const Four*>(tile + q * row_stride + group * together);
            const float u = stage.query(j, q);
            HEADLAB_UNROLL
            for (int c = 0; c < together; ++c) {
              sum.v[c] = math::fused(of_query.v[c], Distances ? u - v.v[c] : u, sum.v[c]);
            }
          }
          if (query_tile > 0) {
            const Four before = *reinterpret_cast<const Four*>(to);
            HEADLAB_UNROLL
            for (int c = 0; c < together; ++c) sum.v[c] += before.v[c];
          }
          *reinterpret_cast<Four*>(to) = sum;
        }
        // query_partials[j][q] = sum_i e_qi (v_ij - u_qj), a coordinate of a query per thread.
        for (int at = thread_number(); at < stage.rows() * fit_tile_queries; at += threads) {
          const int j = at / fit_tile_queries;
          const int q = at % fit_tile_queries;
          const float u = stage.query(j, q);
          Four sum = {};
          for (int group = 0; group < key_groups; ++group) {
            const Four of_query =
                *reinterpret_cast<const Four*>(tile + q * row_stride + group * together);
            const Four v = stage.keys(j, group);
            HEADLAB_UNROLL
            for (int c = 0; c < together; ++c) {
              sum.v[c] = math::fused(of_query.v[c], Distances ? v.v[c] - u : v.v[c], sum.v[c]);
            }
          }
          const auto total = static_cast<double>((sum.v[0] + sum.v[1]) + (sum.v[2] + sum.v[3]));
          double& to = a.query_partials[(block * a.k + first + j) * a.padded_queries +
                                        query_tile * fit_tile_queries + q];
          to = i == 0 ? total : to + total;
        }
      }
    }
  }
}

/// X pulls^T for a panel of keys and a tile of coordinates of both. Thread blocks are (head, panel,
/// tile of the d coordinates, tile of the k).
HEADLAB_KERNEL void HEADLAB_LAUNCH_BOUNDS(threads, 4) product_kernel(const FitArguments a) {
  constexpr int side = fit_tile_coordinates;
  constexpr int of_thread = side * side / threads;
  auto* x = reinterpret_cast<float*>(shared_memory());  // [side][row_stride]
  float* pulls = x + side * row_stride;                 // the same
  const int d_tiles = (a.d + side - 1) / side;
  const int k_tiles = (a.k + side - 1) / side;
  const std::int64_t block = block_index_x();
  const int first_j = static_cast<int>(block % k_tiles) * side;
  const int first_c = static_cast<int>(block / k_tiles % d_tiles) * side;
  const std::int64_t panel = block / k_tiles / d_tiles;  // of all heads
  const std::int64_t head = panel / a.of_product.count;
  const std::int64_t first_tile = panel % a.of_product.count * a.of_product.tiles;
  const int d_rows = fewer(side, a.d - first_c);
  const int k_rows = fewer(side, a.k - first_j);

  double sums[of_thread] = {};
  for (std::int64_t i = 0; i < a.of_product.tiles; ++i) {
    const std::int64_t key = (first_tile + i) * fit_tile_keys;
    if (key >= a.padded_n) break;
    synchronise_block();
    copy_rows<false>(x, row_stride, a.x + first_c * a.padded_n + key, a.padded_n, d_rows,
                     fit_tile_keys / 4);
    copy_rows<false>(pulls, row_stride, a.pulls + (head * a.k + first_j) * a.padded_n + key,
                     a.padded_n, k_rows, fit_tile_keys / 4);
    synchronise_block();
    HEADLAB_UNROLL
    for (int r = 0; r < of_thread; ++r) {
      const int c = (thread_number() + r * threads) % side;
      const int j = (thread_number() + r * threads) / side;
      if (c >= d_rows || j >= k_rows) continue;
      Four sum = {};
      for (int at = 0; at < fit_tile_keys; at += 4) {
        const Four p = *reinterpret_cast<const Four*>(x + c * row_stride + at);
        const Four q = *reinterpret_cast<const Four*>(pulls + j * row_stride + at);
        HEADLAB_UNROLL
        for (int b = 0; b < 4; ++b) sum.v[b] = math::fused(p.v[b], q.v[b], sum.v[b]);
      }
      sums[r] += static_cast<double>((sum.v[0] + sum.v[1]) + (sum.v[2] + sum.v[3]));
    }
  }
  HEADLAB_UNROLL
  for (int r = 0; r < of_thread; ++r) {
    const int c = (thread_number() + r * threads) % side;
    const int j = (thread_number() + r * threads) / side;
    if (c < d_rows && j < k_rows) {
      a.key_partials[(panel * a.d + first_c + c) * a.k + first_j + j] = sums[r];
    }
  }
}

/// Adds the panels of a coordinate of a query in order.
HEADLAB_KERNEL void collect_queries_kernel(const FitArguments a) {
  const std::int64_t of_head = static_cast<std::int64_t>(a.k) * a.padded_queries;
  const std::int64_t at = number_of_thread();
  if (at >= a.heads * of_head) return;
  const double* partials =
      a.query_partials + at / of_head * a.of_gradient.count * of_head + at % of_head;
  double sum = 0;
  for (std::int64_t panel = 0; panel < a.of_gradient.count; ++panel)
    sum += partials[panel * of_head];
  a.query_sums[at] = sum;
}

/// One number of the gradient: the panels in order, then the queries.
HEADLAB_KERNEL void finish_kernel(const FitArguments a) {
  const std::int64_t of_head = static_cast<std::int64_t>(a.d) * a.k;
  const std::int64_t at = number_of_thread();
  if (at >= a.heads * of_head) return;
  const std::int64_t head = at / of_head;
  const std::int64_t c = at % of_head / a.k;
  const std::int64_t j = at % a.k;
  const double* partials = a.key_partials + head * a.of_product.count * of_head + at % of_head;
  double of_keys = 0;
  for (std::int64_t panel = 0; panel < a.of_product.count; ++panel) {
    of_keys += partials[panel * of_head];
  }
  const float* x = a.query_points + c * a.padded_queries;
  const double* sums = a.query_sums + (head * a.k + j) * a.padded_queries;
  double of_queries = 0;
  for (int q = 0; q < a.queries; ++q) of_queries += static_cast<double>(x[q]) * sums[q];
  of_keys *= a.key_factor;
  of_queries *= a.query_factor;
  a.of_keys[at] = a.separate ? of_keys : of_keys + of_queries;
  if (a.separate) a.of_queries[at] = of_queries;
}

Launch launch_over(std::int64_t numbers) {
  return {.blocks_x = (numbers + threads - 1) / threads, .threads = threads};
}

/// Shared memory of a stage and a tile [query][row_stride].
constexpr std::uint64_t tile_bytes =
    sizeof(float) * (Stage::key_floats + Stage::query_floats + fit_tile_queries * row_stride);

}  // namespace

void estimate_heads(Stream& stream, const FitArguments& a) {
  const std::int64_t blocks = a.heads * (a.padded_queries / fit_tile_queries) * a.of_estimate.count;
  const Launch grid = {.blocks_x = blocks, .threads = threads, .shared_bytes = tile_bytes};
  launch(stream, "estimate", grid, a.distances ? estimate_kernel<true> : estimate_kernel<false>, a);
  launch(stream, "normalise", launch_over(static_cast<std::int64_t>(a.heads) * a.padded_queries),
         normalise_kernel, a);
}

void gradient_of_heads(Stream& stream, const FitArguments& a) {
  constexpr int side = fit_tile_coordinates;
  const std::int64_t of_heads = static_cast<std::int64_t>(a.heads) * a.k;
  launch(
      stream, "gradient",
      {.blocks_x = a.heads * a.of_gradient.count, .threads = threads, .shared_bytes = tile_bytes},
      a.distances ? gradient_kernel<true> : gradient_kernel<false>, a);
  const std::int64_t tiles =
      static_cast<std::int64_t>((a.d + side - 1) / side) * ((a.k + side - 1) / side);
  launch(stream, "product",
         {.blocks_x = a.heads * a.of_product.count * tiles,
          .threads = threads,
          .shared_bytes = 2 * side * row_stride * sizeof(float)},
         product_kernel, a);
  launch(stream, "collect queries", launch_over(of_heads * a.padded_queries),
         collect_queries_kernel, a);
  launch(stream, "finish", launch_over(of_heads * a.d), finish_kernel, a);
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
