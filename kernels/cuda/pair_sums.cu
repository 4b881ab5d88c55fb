// SPDX-License-Identifier: Apache-2.0
// Sums over pairs of heads in one pass: a tile of kernel values [query][head][key] stays in shared
// memory, and each thread adds the products of a tile of heads by heads for one query: sum w_g w_l,
// and on the diagonal sum w and sum w value.
//
// Ladder: v1 every pair from global memory: fallback.cu. v2 tiles of heads in registers: each
// loaded kernel value takes part in up to eight products. (H + 1) / 2 + 2 slots per kernel value
// for H up to
// 8. The rank-n update stays on the CUDA cores: one TF32 product has a relative error of 2^-11 in a
// weight, three of them cost as much as the float32 products at H = 8. Not timed on a GPU yet.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/weigh.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

/// Sums of one thread: for a pair tile of 2, 4, 8 a triangle of products and two sums per head; for
/// 16 a tile of 8 by 8 heads, or on the diagonal the sums of a tile of 8.
template <int PairTile>
struct PairSums {
  static constexpr int side = PairTile == 16 ? 8 : PairTile;
  static constexpr int triangle = side * (side + 1) / 2;
  static constexpr int count = PairTile == 16 ? side * side : triangle + 2 * side;
  float sum[count];

  /// a, b: rows of `side` heads at four keys.
  HEADLAB_DEVICE void add_square(const float* a, const float* b, const float* scales, bool scaled) {
    Four x[side];
    load(a, scales, scaled, x);
    HEADLAB_UNROLL
    for (int v = 0; v < side; ++v) {
      Four y = *reinterpret_cast<const Four*>(b + v * weight_stride);
      if (scaled) scale(y, scales);
      HEADLAB_UNROLL
      for (int u = 0; u < side; ++u) {
        HEADLAB_UNROLL
        for (int c = 0; c < 4; ++c) {
          sum[u * side + v] = math::fused(x[u].v[c], y.v[c], sum[u * side + v]);
        }
      }
    }
  }
  HEADLAB_DEVICE void add_triangle(const float* a, const float* values, const float* scales,
                                   bool scaled) {
    Four x[side];
    load(a, scales, scaled, x);
    const Four y = *reinterpret_cast<const Four*>(values);
    int at = 0;
    HEADLAB_UNROLL
    for (int u = 0; u < side; ++u) {
      HEADLAB_UNROLL
      for (int v = u; v < side; ++v, ++at) {
        HEADLAB_UNROLL
        for (int c = 0; c < 4; ++c) sum[at] = math::fused(x[u].v[c], x[v].v[c], sum[at]);
      }
    }
    HEADLAB_UNROLL
    for (int u = 0; u < side; ++u) {
      HEADLAB_UNROLL
      for (int c = 0; c < 4; ++c) {
        sum[triangle + u] += x[u].v[c];
        sum[triangle + side + u] = math::fused(x[u].v[c], y.v[c], sum[triangle + side + u]);
      }
    }
  }

 private:
  HEADLAB_DEVICE static void scale(Four& x, const float* scales) {
    HEADLAB_UNROLL
    for (int c = 0; c < 4; ++c) x.v[c] *= scales[c];
  }
  HEADLAB_DEVICE static void load(const float* rows, const float* scales, bool scaled,
                                  Four (&x)[side]) {
    HEADLAB_UNROLL
    for (int u = 0; u < side; ++u) {
      x[u] = *reinterpret_cast<const Four*>(rows + u * weight_stride);
      if (scaled) scale(x[u], scales);
    }
  }
};

/// Tile `index` of the triangle of tiles: (first, second) with first <= second, column by column.
struct TilePair {
  int first, second;
};
HEADLAB_DEVICE TilePair tile_pair(int index) {
  int second = 0;
  while (index > second) index -= ++second;
  return {index, second};
}

/// Thread blocks on a multiprocessor: as many as leave each thread the registers it needs.
template <class Micro, int PairTile>
inline constexpr int blocks_side_by_side = PairTile == 16                      ? 1
                                           : PairTile == 8 || Micro::keys == 2 ? 2
                                                                               : 3;

template <class Micro, int PairTile>
HEADLAB_KERNEL void HEADLAB_LAUNCH_BOUNDS(PairTile == 16 ? 256 : 128,
                                          (blocks_side_by_side<Micro, PairTile>))
    pair_sums_kernel(const WeighArguments a) {
  using Sums = PairSums<PairTile>;
  constexpr int side = Sums::side;
  auto* shared = reinterpret_cast<float*>(shared_memory());
  const Tiling& tiling = a.tiling;
  const Assignment of = assignment_of(tiling, 1);
  const Place place = Micro::place(tiling);
  const int thread = static_cast<int>(thread_index());
  const int threads = static_cast<int>(block_threads());
  const int heads = a.totals.heads;

  const int tiles = (heads + side - 1) / side;
  const int tile_pairs = tiles * (tiles + 1) / 2;
  const WeightTile weights = {shared + 2 * stage_floats(tiling.group_heads, a.padded_k),
                              weight_query_stride(tiles * side)};
  // Heads of a tile beyond those of the ensemble have zero weight.
  const int missing = (tiles * side - heads) * tile_keys;
  for (int at = thread; at < tiling.block_queries * missing; at += threads) {
    weights.weights[at / missing * weights.query_stride +
                    weight_row(heads + at % missing / tile_keys) + at % tile_keys] = 0;
  }

  // Second role of a thread: a query and a tile of pairs, and every splits-th group of four keys.
  const int items = tiling.block_queries * tile_pairs;
  int splits = tile_keys / 4;
  while (splits > 1 && splits * items > threads) splits /= 2;
  const int item = thread % items;
  const int split = thread / items;
  const TilePair pair = tile_pair(item / tiling.block_queries);
  const bool on_diagonal = PairTile != 16 || pair.first == pair.second;
  const float* rows = weights.weights + item % tiling.block_queries * weights.query_stride;

  Micro micro;
  int loaded = -1;
  Sums sums;
  HEADLAB_UNROLL
  for (float& sum : sums.sum) sum = 0;
  for_each_stage<Micro>(a, shared, of, 0, tiling.head_groups, [&](const Stage& stage, int group) {
    store_weights(a, micro, loaded, place, stage, group, group * tiling.group_heads, of.first_query,
                  weights);
    if (group + 1 < tiling.head_groups) return;
    synchronise_block();
    if (split >= splits) return;
    for (int key = 4 * split; key < tile_keys; key += 4 * splits) {
      const float* first = rows + weight_row(pair.first * side) + key;
      if (on_diagonal) {
        sums.add_triangle(first, stage.values + key, stage.scales + key, a.scaled);
      } else if constexpr (PairTile == 16) {
        sums.add_square(first, rows + weight_row(pair.second * side) + key, stage.scales + key,
                        a.scaled);
      }
    }
  });

  // The splits are added in shared memory, in order: [splits][items][count].
  if (split < splits) {
    float* out = shared + (split * items + item) * Sums::count;
    HEADLAB_UNROLL
    for (int i = 0; i < Sums::count; ++i) out[i] = sums.sum[i];
  }
  synchronise_block();
  for (int at = thread; at < items * Sums::count; at += threads) {
    const int of_item = at / Sums::count;
    const int query = of.first_query + of_item % tiling.block_queries;
    if (query >= a.queries.count) continue;
    const TilePair of_pair = tile_pair(of_item / tiling.block_queries);
    const bool diagonal = of_pair.first == of_pair.second;
    const int index = at % Sums::count;
    int place_in_row = -1;
    if (!diagonal) {
      const int g = of_pair.first * side + index / side;
      const int l = of_pair.second * side + index % side;
      if (g < heads && l < heads) place_in_row = a.totals.square(g, l);
    } else if (index < Sums::triangle) {
      int u = 0;
      int rest = index;
      while (rest >= side - u) rest -= side - u++;
      const int g = of_pair.first * side + u;
      const int l = g + rest;
      if (l < heads) place_in_row = a.totals.square(g, l);
    } else if (index < Sums::triangle + 2 * side) {
      const int h = of_pair.first * side + (index - Sums::triangle) % side;
      if (h < heads) {
        place_in_row = index < Sums::triangle + side ? a.totals.weight(h) : a.totals.value(h);
      }
    }
    if (place_in_row < 0) continue;
    double sum = 0;
    for (int s = 0; s < splits; ++s) {
      sum += static_cast<double>(shared[s * items * Sums::count + at]);
    }
    const std::int64_t row = (of.replicate * tiling.panels + of.panel) * a.queries.count + query;
    a.partials[row * a.totals.row() + place_in_row] = sum;
  }
}

}  // namespace

void sum_pairs(Stream& stream, Microkernel microkernel, int pair_tile, const WeighArguments& a,
               std::int64_t replicates) {
  with_microkernel(microkernel, [&]<class M>() {
    const Launch grid = launch_of(a, replicates, 1);
    switch (pair_tile) {
      case 2:
        return launch(stream, "sum_pairs", grid, pair_sums_kernel<M, 2>, a);
      case 4:
        return launch(stream, "sum_pairs", grid, pair_sums_kernel<M, 4>, a);
      case 8:
        return launch(stream, "sum_pairs", grid, pair_sums_kernel<M, 8>, a);
      default:
        return launch(stream, "sum_pairs", grid, pair_sums_kernel<M, 16>, a);
    }
  });
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
