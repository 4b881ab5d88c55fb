// SPDX-License-Identifier: Apache-2.0
// Sums over pairs of many heads in one pass: a tile of kernel values [query][head][key] stays in
// shared memory, and each thread adds the products of 8 by 8 heads for one query: sum w_g w_l, and
// on the diagonal sum w and sum w value. Up to eight heads: register_pairs.cu.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/weigh.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

constexpr int pair_threads = 256;

/// Sums of one thread: of a tile of 8 by 8 heads, or on the diagonal a triangle of products and two
/// sums per head.
struct PairSums {
  static constexpr int side = 8;
  static constexpr int triangle = side * (side + 1) / 2;
  static constexpr int count = side * side;
  float sum[count] = {};

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

template <class Micro>
HEADLAB_KERNEL void HEADLAB_LAUNCH_BOUNDS(pair_threads, 1)
    pair_sums_kernel(const WeighArguments a) {
  constexpr int side = PairSums::side;
  auto* shared = reinterpret_cast<float*>(shared_memory());
  const Tiling& tiling = a.tiling;
  const Assignment of = assignment_of(tiling, 1);
  const Place place = Micro::place(tiling, static_cast<int>(thread_index()));
  const int thread = static_cast<int>(thread_index());
  const int heads = a.totals.heads;

  const int tiles = (heads + side - 1) / side;
  const int tile_pairs = tiles * (tiles + 1) / 2;
  const WeightTile weights = {
      shared + 2 * stage_floats(tiling.group_heads, padded_k_of<Micro>(a), weight_tile_keys),
      weight_query_stride(tiles * side)};
  // Heads of a tile beyond those of the ensemble have zero weight.
  const int missing = (tiles * side - heads) * weight_tile_keys;
  for (int at = thread; at < tiling.block_queries * missing; at += pair_threads) {
    weights.weights[at / missing * weights.query_stride +
                    weight_row(heads + at % missing / weight_tile_keys) + at % weight_tile_keys] =
        0;
  }

  // Second role of a thread: a query and a tile of pairs, and every splits-th group of four keys.
  const int items = tiling.block_queries * tile_pairs;
  int splits = weight_tile_keys / 4;
  while (splits > 1 && splits * items > pair_threads) splits /= 2;
  const int item = thread % items;
  const int split = thread / items;
  const TilePair pair = tile_pair(item / tiling.block_queries);
  const bool on_diagonal = pair.first == pair.second;
  const float* rows = weights.weights + item % tiling.block_queries * weights.query_stride;

  Micro micro;
  int loaded = -1;
  PairSums sums;
  for_each_stage<Micro, weight_tile_keys, pair_threads, 1>(
      a, shared, of, 0, tiling.head_groups,
      [&](const Stage<Micro, weight_tile_keys>& stage, int group) {
        store_weights(a, micro, loaded, place, stage, group, group * tiling.group_heads,
                      of.first_query, weights);
        if (group + 1 < tiling.head_groups) return;
        synchronise_block();
        if (split >= splits) return;
        for (int key = 4 * split; key < weight_tile_keys; key += 4 * splits) {
          const float* first = rows + weight_row(pair.first * side) + key;
          if (on_diagonal) {
            sums.add_triangle(first, stage.values() + key, stage.scales() + key, a.scaled);
          } else {
            sums.add_square(first, rows + weight_row(pair.second * side) + key,
                            stage.scales() + key, a.scaled);
          }
        }
      });

  // The splits are added in shared memory, in order: [splits][items][count].
  if (split < splits) {
    float* out = shared + (split * items + item) * PairSums::count;
    HEADLAB_UNROLL
    for (int i = 0; i < PairSums::count; ++i) out[i] = sums.sum[i];
  }
  synchronise_block();
  for (int at = thread; at < items * PairSums::count; at += pair_threads) {
    const int of_item = at / PairSums::count;
    const int query = of.first_query + of_item % tiling.block_queries;
    if (query >= a.queries.count) continue;
    const TilePair of_pair = tile_pair(of_item / tiling.block_queries);
    const bool diagonal = of_pair.first == of_pair.second;
    const int index = at % PairSums::count;
    int place_in_row = -1;
    if (!diagonal) {
      const int g = of_pair.first * side + index / side;
      const int l = of_pair.second * side + index % side;
      if (g < heads && l < heads) place_in_row = a.totals.square(g, l);
    } else if (index < PairSums::triangle) {
      int u = 0;
      int rest = index;
      while (rest >= side - u) rest -= side - u++;
      const int g = of_pair.first * side + u;
      const int l = g + rest;
      if (l < heads) place_in_row = a.totals.square(g, l);
    } else if (index < PairSums::triangle + 2 * side) {
      const int h = of_pair.first * side + (index - PairSums::triangle) % side;
      if (h < heads) {
        place_in_row = index < PairSums::triangle + side ? a.totals.weight(h) : a.totals.value(h);
      }
    }
    if (place_in_row < 0) continue;
    double sum = 0;
    for (int s = 0; s < splits; ++s) {
      sum += static_cast<double>(shared[s * items * PairSums::count + at]);
    }
    a.partials[partial_row(a, of, query) * a.totals.row() + place_in_row] = sum;
  }
}

}  // namespace

void sum_pairs(Stream& stream, Microkernel microkernel, const WeighArguments& a,
               std::int64_t replicates) {
  with_microkernel<weight_queries, 4>(microkernel, a.exponent == Exponent::law, [&]<class M>() {
    launch(stream, "sum_pairs", launch_of(a, replicates, 1), pair_sums_kernel<M>, a);
  });
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
