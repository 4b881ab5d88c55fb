// SPDX-License-Identifier: Apache-2.0
/// \file Common part of the kernels that weigh keys (sums.cu, pair_sums.cu, ensemble.cu): a thread
/// block takes a panel of the keys of one replicate tile by tile through shared memory, and each of
/// its threads turns them into kernel values of its queries. The next tile travels in asynchronous
/// copies while the present one is used. A sum runs over at most LaunchLimits::keys_of_thread keys
/// in float32 and from there in float64.
#pragma once

#include <cstdint>

#include "kernels/cuda/arguments.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/products.h"

#if defined(HEADLAB_DEVICE)  // under nvcc and in the emulated build
namespace headlab::HEADLAB_CUDA_NAMESPACE {

/// Coordinate of a padding key: far enough that every law of distances gives it no weight, near
/// enough that its square is a float.
inline constexpr float far_away = 1e18f;

HEADLAB_DEVICE int smaller(int a, int b) {
  return a < b ? a : b;
}

/// Work of one thread block.
struct Assignment {
  std::int64_t replicate;
  std::int64_t panel;
  int first_query;
  int head_group;
};

/// Thread blocks are (replicate, panel, query group, head group), the last one fastest: those that
/// read the same keys run side by side.
HEADLAB_DEVICE Assignment assignment_of(const Tiling& tiling, int head_groups) {
  const std::int64_t block = block_index_x();
  const int head_group = static_cast<int>(block % head_groups);
  const std::int64_t rest = block / head_groups;
  const int query_group = static_cast<int>(rest % tiling.query_groups);
  const std::int64_t panel = rest / tiling.query_groups;
  return {panel / tiling.panels, panel % tiling.panels, query_group * tiling.block_queries,
          head_group};
}

/// A staged tile in shared memory: the keys of a group of heads, head by head and row by row with
/// the norms after them, then values and noise scales.
struct Stage {
  float* heads;   ///< [group_heads][head_stride]
  float* values;  ///< [tile_stride]
  float* scales;  ///< [tile_stride]
  int padded_k;

  HEADLAB_DEVICE float* rows(int head) const { return heads + head * head_stride(padded_k); }
  HEADLAB_DEVICE float* norms(int head) const { return rows(head) + padded_k * tile_stride; }
};
HEADLAB_DEVICE Stage stage_at(float* shared, const WeighArguments& a, int buffer) {
  float* heads = shared + buffer * stage_floats(a.tiling.group_heads, a.padded_k);
  float* values = heads + a.tiling.group_heads * head_stride(a.padded_k);
  return {heads, values, values + tile_stride, a.padded_k};
}

/// Starts the copies of one tile of one group of heads.
HEADLAB_DEVICE void start_copies(const WeighArguments& a, const Stage& stage,
                                 std::int64_t replicate, int head_group, std::int64_t first_key) {
  constexpr int row_fours = tile_keys / 4;
  const TrainingSets& sets = a.sets;
  const int first_head = head_group * a.tiling.group_heads;
  const int heads = smaller(a.tiling.group_heads, a.totals.heads - first_head);
  const int rows = heads * a.padded_k;
  const float* keys = sets.keys_of(replicate) +
                      static_cast<std::int64_t>(first_head) * a.padded_k * sets.slice_points +
                      first_key;
  for (int four = static_cast<int>(thread_index()); four < (rows + 2) * row_fours;
       four += static_cast<int>(block_threads())) {
    const int row = four / row_fours;
    const int at = four % row_fours * 4;
    if (row < rows) {
      copy_async(stage.rows(row / a.padded_k) + row % a.padded_k * tile_stride + at,
                 keys + row * sets.slice_points + at);
    } else if (row == rows) {
      copy_async(stage.values + at, sets.values_of(replicate) + first_key + at);
    } else {
      copy_async(stage.scales + at, sets.scales_of(replicate) + first_key + at);
    }
  }
}

/// Takes the padding out of a tile, and computes the norms of its keys where the microkernel needs
/// them. True if anything was written.
template <class Micro>
HEADLAB_DEVICE bool prepare(const WeighArguments& a, const Stage& stage, int heads,
                            std::int64_t first_key) {
  const auto left = static_cast<std::int64_t>(a.sets.n) - first_key;
  const int thread = static_cast<int>(thread_index());
  const int threads = static_cast<int>(block_threads());
  if (Micro::norms) {
    for (int at = thread; at < heads * tile_keys; at += threads) {
      const int head = at / tile_keys;
      const int key = at % tile_keys;
      float norm = 0;
      for (int j = 0; j < a.padded_k; ++j) {
        const float x = stage.rows(head)[j * tile_stride + key];
        norm = math::fused(x, x, norm);
      }
      norm = a.norm_factor == 0 ? 0.0f : a.norm_factor * norm;
      stage.norms(head)[key] = key < left ? norm : -__builtin_huge_valf();
    }
    return true;
  }
  if (left >= tile_keys) return false;
  const int first = static_cast<int>(left);
  const int width = tile_keys - first;
  for (int at = thread; at < heads * a.padded_k * width; at += threads) {
    const int row = at / width;
    stage.rows(row / a.padded_k)[row % a.padded_k * tile_stride + first + at % width] = far_away;
  }
  return true;
}

/// Calls work(stage, head_group) for each tile of the panel, and in it for each of `groups` groups
/// of heads from first_group on, with the group's keys staged. A barrier stands before and after
/// every call.
template <class Micro, class Work>
HEADLAB_DEVICE void for_each_stage(const WeighArguments& a, float* shared, const Assignment& of,
                                   int first_group, int groups, const Work& work) {
  const std::int64_t begin = of.panel * a.tiling.panel_keys;
  const std::int64_t left = a.sets.padded_n - begin;
  const std::int64_t keys = left < a.tiling.panel_keys ? left : a.tiling.panel_keys;
  const int stages = static_cast<int>(keys / tile_keys) * groups;
  auto copy = [&](int stage) {
    start_copies(a, stage_at(shared, a, stage % 2), of.replicate, first_group + stage % groups,
                 begin + static_cast<std::int64_t>(stage / groups) * tile_keys);
  };
  copy(0);
  commit_copies();
  for (int s = 0; s < stages; ++s) {
    if (s + 1 < stages) copy(s + 1);
    commit_copies();
    wait_copies<1>();
    synchronise_block();
    const Stage stage = stage_at(shared, a, s % 2);
    const int group = first_group + s % groups;
    const int heads = smaller(a.tiling.group_heads, a.totals.heads - group * a.tiling.group_heads);
    if (prepare<Micro>(a, stage, heads,
                       begin + static_cast<std::int64_t>(s / groups) * tile_keys)) {
      synchronise_block();
    }
    work(stage, group);
    synchronise_block();
  }
}

/// Kernel values of the keys of a tile [block_queries][head_rows][tile_keys + 4], queries
/// query_stride apart, from which pairs of heads and the ensemble are summed.
struct WeightTile {
  float* weights;
  int query_stride;
};

/// Stores the kernel values of a group of heads. `loaded` is the head whose queries are in the
/// registers.
template <class Micro>
HEADLAB_DEVICE void store_weights(const WeighArguments& a, Micro& micro, int& loaded,
                                  const Place& place, const Stage& stage, int group, int first_row,
                                  int first_query, const WeightTile& tile) {
  const int head = group * a.tiling.group_heads + place.head;
  if (!place.active || head >= a.totals.heads) return;
  if (loaded != head) {
    micro.load(a, head, place, first_query);
    loaded = head;
  }
  const float* rows = stage.rows(place.head);
  const float* norms = stage.norms(place.head);
  const int lanes = Micro::step_keys / Micro::keys;
  for (int step = place.split / lanes; step < tile_keys / Micro::step_keys;
       step += a.tiling.splits / lanes) {
    const int key = Micro::first_key(place, step);
    float w[Micro::queries][Micro::keys];
    micro.exponents(a, rows, norms, key, w);
    to_weights<Micro>(a, w);
    HEADLAB_UNROLL
    for (int i = 0; i < Micro::queries; ++i) {
      float* out = tile.weights + (place.column + i * a.tiling.query_columns) * tile.query_stride +
                   weight_row(first_row + place.head) + key;
      if constexpr (Micro::keys == 4) {
        *reinterpret_cast<Four*>(out) = {w[i][0], w[i][1], w[i][2], w[i][3]};
      } else {
        HEADLAB_UNROLL
        for (int c = 0; c < Micro::keys; ++c) out[c] = w[i][c];
      }
    }
  }
}

inline Launch launch_of(const WeighArguments& a, std::int64_t replicates, int head_groups) {
  return {.blocks_x = static_cast<unsigned>(replicates * a.tiling.panels * a.tiling.query_groups *
                                            head_groups),
          .threads = static_cast<unsigned>(a.tiling.threads),
          .shared_bytes = a.tiling.shared_bytes};
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
#endif
