// SPDX-License-Identifier: Apache-2.0
// Sums over pairs of many heads in one pass: a tile of kernel values [query][head][key] stays in
// shared memory, and a warp multiplies 16 by 16 heads for one query on the tensor cores: sum w_g
// w_l, and on the diagonal sum w and sum w value. Up to eight heads: register_pairs.cu.
//
// Accuracy. A value is the sum of two numbers in TF32, whose exponents are those of floats:
// w = high + low with an error below 2^-21 of w. low low, below 2^-20 of a product and 2^-22 on
// average, is left out. A tensor core truncates the terms of four keys and their sum, by 7 2^-24 of
// the largest at most (emulator.h): 384 times in 512 keys.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/weigh.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

constexpr int key_step = 16;  ///< keys of a fragment of values: four of each lane
constexpr std::uint32_t high_bits = 0xffffe000;

/// Unit `index` of a query: the sides (first, second) with first <= second, column by column.
struct SidePair {
  int first, second;
};
HEADLAB_DEVICE SidePair side_pair(int index) {
  int second = 0;
  while (index > second) index -= ++second;
  return {index, second};
}

/// Values of a lane at a key step, of the heads g and g + 8 of a side: the fragments of two
/// multiplications as [16][8]; [8][8] of the heads up to 7, and of those from 8 on, are their
/// halves.
struct ValueFragments {
  std::uint32_t high[2][4];
  std::uint32_t low[2][4];

  /// \param rows of head g at the lane's keys
  HEADLAB_DEVICE void load(const float* rows, const float* scales, bool scaled) {
    HEADLAB_UNROLL
    for (int half = 0; half < 2; ++half) {
      Four w = *reinterpret_cast<const Four*>(rows + half * 8 * weight_stride);
      if (scaled) {
        HEADLAB_UNROLL
        for (int c = 0; c < 4; ++c) w.v[c] *= scales[c];
      }
      HEADLAB_UNROLL
      for (int c = 0; c < 4; ++c) {
        const std::uint32_t upper = math::to_bits(w.v[c]) & high_bits;
        high[c / 2][c % 2 * 2 + half] = upper;
        low[c / 2][c % 2 * 2 + half] = math::to_bits(w.v[c] - math::from_bits(upper));
      }
    }
  }
};

/// Sums of one unit in the registers of a warp.
struct UnitSums {
  float products[2][4] = {};  ///< with the heads up to 7 of the second side, and from 8 on
  float values[4] = {};       ///< with the rows of pair_value_floats

  /// Of a side with itself: high high / 2 + low high, to which its transpose is added in the end.
  HEADLAB_DEVICE void add_square(const ValueFragments& x) {
    HEADLAB_UNROLL
    for (int m = 0; m < 2; ++m) {
      HEADLAB_UNROLL
      for (int half = 0; half < 2; ++half) {
        const std::uint32_t high[2] = {x.high[m][half], x.high[m][2 + half]};
        const std::uint32_t halves[2] = {math::to_bits(0.5f * math::from_bits(high[0])),
                                         math::to_bits(0.5f * math::from_bits(high[1]))};
        multiply_add_tf32(products[half], x.low[m], high);
        multiply_add_tf32(products[half], x.high[m], halves);
      }
    }
  }
  HEADLAB_DEVICE void add(const ValueFragments& x, const ValueFragments& y) {
    HEADLAB_UNROLL
    for (int m = 0; m < 2; ++m) {
      HEADLAB_UNROLL
      for (int half = 0; half < 2; ++half) {
        const std::uint32_t high[2] = {y.high[m][half], y.high[m][2 + half]};
        const std::uint32_t low[2] = {y.low[m][half], y.low[m][2 + half]};
        multiply_add_tf32(products[half], x.low[m], high);
        multiply_add_tf32(products[half], x.high[m], low);
        multiply_add_tf32(products[half], x.high[m], high);
      }
    }
  }
  HEADLAB_DEVICE void add_values(const ValueFragments& x, const Four& value) {
    HEADLAB_UNROLL
    for (int m = 0; m < 2; ++m) {
      const std::uint32_t y[2] = {math::to_bits(value.v[2 * m]), math::to_bits(value.v[2 * m + 1])};
      multiply_add_tf32(values, x.low[m], y);
      multiply_add_tf32(values, x.high[m], y);
    }
  }
};

template <class Micro>
HEADLAB_KERNEL void HEADLAB_LAUNCH_BOUNDS(pair_threads, 1)
    pair_sums_kernel(const WeighArguments a) {
  constexpr int warp = static_cast<int>(warp_threads);
  auto* shared = reinterpret_cast<float*>(shared_memory());
  const Tiling& tiling = a.tiling;
  const Assignment of = assignment_of(tiling, 1);
  const Place place = Micro::place(tiling, static_cast<int>(thread_index()));
  const int thread = static_cast<int>(thread_index());
  const int heads = a.totals.heads;
  const int head_rows = pair_sides(heads) * pair_side;
  const WeightTile weights = weight_tile<Micro>(a, shared, head_rows);
  float* values = weights.weights + tiling.block_queries * weights.query_stride;
  // Heads of a side beyond those of the ensemble have zero weight.
  const int missing = (head_rows - heads) * weight_tile_keys;
  for (int at = thread; at < tiling.block_queries * missing; at += pair_threads) {
    weights.weights[weight_query(at / missing, weights.query_stride, Micro::halves) +
                    (heads + at % missing / weight_tile_keys) * weight_stride +
                    at % weight_tile_keys] = 0;
  }
  if (thread < weight_tile_keys) {
    values[weight_stride + thread] = 1;
    values[3 * weight_stride + thread] = 0;
  }

  // Second role of a warp: some units, each a query and two sides, and every splits-th key step.
  const int of_query = side_pairs(heads);
  const int units = tiling.block_queries * of_query;
  const int splits = pair_splits(units);
  const int sharers = pair_threads / warp / splits;
  const int split = thread / warp / sharers;
  const int first_unit = thread / warp % sharers;
  const int g = thread % warp / 4;
  const int c = thread % 4;
  const float* value_row = values + smaller(g, 3) * weight_stride + 4 * c;
  // A lane's first values of each unit: of the first side, and of the second.
  int of_first[pair_units];
  int of_second[pair_units];
  HEADLAB_UNROLL
  for (int u = 0; u < pair_units; ++u) {
    const int unit = smaller(first_unit + u * sharers, units - 1);
    const SidePair sides = side_pair(unit / tiling.block_queries);
    const int query = weight_place(g, 4 * c) + weight_query(unit % tiling.block_queries,
                                                            weights.query_stride, Micro::halves);
    of_first[u] = query + sides.first * pair_side * weight_stride;
    of_second[u] = query + sides.second * pair_side * weight_stride;
  }

  Micro micro;
  int loaded = -1;
  UnitSums sums[pair_units];
  for_each_stage<Micro, weight_tile_keys, pair_threads, 1>(
      a, shared, of, 0, tiling.head_groups,
      [&](const Stage<Micro, weight_tile_keys>& stage, int group) {
        store_weights<Micro, true>(a, micro, loaded, place, stage, group,
                                   group * tiling.group_heads, of.first_query, weights);
        if (group + 1 < tiling.head_groups) return;
        if (thread < weight_tile_keys) {
          const float value = stage.values()[thread];
          const float upper = math::from_bits(math::to_bits(value) & high_bits);
          values[thread] = upper;
          values[2 * weight_stride + thread] = value - upper;
        }
        synchronise_block();
        HEADLAB_NO_UNROLL
        for (int key = key_step * split; key < weight_tile_keys; key += key_step * splits) {
          const Four value = *reinterpret_cast<const Four*>(value_row + key);
          const float* scales = stage.scales() + key + 4 * c;
          HEADLAB_UNROLL
          for (int u = 0; u < pair_units; ++u) {
            if (first_unit + u * sharers >= units) break;
            ValueFragments x;
            x.load(weights.weights + of_first[u] + key, scales, a.scaled);
            if (of_first[u] == of_second[u]) {
              sums[u].add_square(x);
              sums[u].add_values(x, value);
            } else {
              ValueFragments y;
              y.load(weights.weights + of_second[u] + key, scales, a.scaled);
              sums[u].add(x, y);
            }
          }
        }
      });

  // The splits are added in shared memory, in order: [splits][units][pair_sums_of_unit].
  HEADLAB_UNROLL
  for (int u = 0; u < pair_units; ++u) {
    const int unit = first_unit + u * sharers;
    if (unit >= units) break;
    float* out = shared + (split * units + unit) * pair_sums_of_unit;
    HEADLAB_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int row = g + i / 2 * 8;
      const int column = 2 * c + i % 2;
      HEADLAB_UNROLL
      for (int half = 0; half < 2; ++half) {
        out[row * pair_side + 8 * half + column] = sums[u].products[half][i];
      }
      if (column < 3) out[pair_side * (pair_side + column) + row] = sums[u].values[i];
    }
  }
  synchronise_block();
  const auto sum_of = [&](int unit, int index) {
    double sum = 0;
    for (int s = 0; s < splits; ++s) {
      sum += static_cast<double>(shared[(s * units + unit) * pair_sums_of_unit + index]);
    }
    return sum;
  };
  constexpr int results = pair_side * (pair_side + 2);
  for (int at = thread; at < units * results; at += pair_threads) {
    const int unit = at / results;
    const int query = of.first_query + unit % tiling.block_queries;
    if (query >= a.queries.count) continue;
    const SidePair sides = side_pair(unit / tiling.block_queries);
    const int index = at % results;
    const int row = index / pair_side;
    const int column = index % pair_side;
    double* out = a.partials + partial_row(a, of, query) * a.totals.row();
    if (row < pair_side) {
      const int head = sides.first * pair_side + row;
      const int other = sides.second * pair_side + column;
      if (head > other || other >= heads) continue;
      const double transposed =
          sides.first == sides.second ? sum_of(unit, column * pair_side + row) : 0.0;
      out[a.totals.square(head, other)] = sum_of(unit, index) + transposed;
    } else if (sides.first == sides.second) {
      const int head = sides.first * pair_side + column;
      if (head >= heads) continue;
      if (row == pair_side) {
        out[a.totals.value(head)] =
            sum_of(unit, index) + sum_of(unit, pair_side * (pair_side + 2) + column);
      } else {
        out[a.totals.weight(head)] = sum_of(unit, index);
      }
    }
  }
}

}  // namespace

void sum_pairs(Stream& stream, Microkernel microkernel, const WeighArguments& a,
               std::int64_t replicates) {
  with_microkernel<weight_queries, 4, pair_fragment_queries / 2>(
      microkernel, a.exponent == Exponent::law, [&]<class M>() {
        launch(stream, "sum_pairs", launch_of(a, replicates, 1), pair_sums_kernel<M>, a);
      });
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
