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

/// Coordinates of a key, a constant where the microkernel knows them.
template <class Micro>
HEADLAB_DEVICE int padded_k_of(const WeighArguments& a) {
  return Micro::padded_k == 0 ? a.padded_k : Micro::padded_k;
}

/// A staged tile in shared memory: the keys of a group of heads, head by head and row by row with
/// the norms after them, then values and noise scales.
template <class Micro, int TileKeys>
struct Stage {
  static constexpr int stride = stage_stride(TileKeys);
  float* heads;  ///< [group_heads][head_stride]
  int group_heads;
  int padded_k;
  int keys;  ///< of the tile, a multiple of key_group

  HEADLAB_DEVICE Stage(float* at, const WeighArguments& a, int count)
      : heads(at),
        group_heads(a.tiling.group_heads),
        padded_k(padded_k_of<Micro>(a)),
        keys(count) {}

  HEADLAB_DEVICE float* rows(int head) const {
    return heads + head * head_stride(padded_k, TileKeys);
  }
  HEADLAB_DEVICE float* norms(int head) const { return rows(head) + padded_k * stride; }
  HEADLAB_DEVICE float* values() const { return rows(group_heads); }
  HEADLAB_DEVICE float* scales() const { return values() + stride; }
};

/// Copies of the tiles of a panel, by all threads of a block. A thread has the same four keys of
/// every tile, and one row in each pass over the rows.
template <class Micro, int TileKeys, int Threads>
class Copies {
 public:
  using Tile = Stage<Micro, TileKeys>;

  HEADLAB_DEVICE Copies(const WeighArguments& a, std::int64_t replicate, int first_head,
                        std::int64_t first_key)
      : row_(static_cast<int>(thread_index()) / fours),
        key_(static_cast<int>(thread_index()) % fours * 4),
        row_step_(a.sets.slice_points),
        keys_(a.sets.keys_of(replicate) + first_key + key_ +
              (static_cast<std::int64_t>(first_head) * padded_k_of<Micro>(a) + own_row()) *
                  row_step_),
        numbers_(row_ == 0                            ? a.sets.values_of(replicate)
                 : row_ == rows - 1 && a.reads_scales ? a.sets.scales_of(replicate)
                                                      : nullptr) {
    if (numbers_ != nullptr) numbers_ += first_key + key_;
  }

  /// Starts the copies of the tile from key `first` of the panel on: of `heads` heads, from
  /// `head` after the first one on.
  HEADLAB_DEVICE void start(const Tile& tile, int head, int heads, int first) const {
    if (key_ < tile.keys) {
      float* to = tile.heads + key_;
      if (numbers_ != nullptr) {
        copy_async(tile.values() + (row_ == 0 ? 0 : Tile::stride) + key_, numbers_ + first);
      }
      const float* from =
          keys_ + static_cast<std::int64_t>(head) * tile.padded_k * row_step_ + first;
      if constexpr (Micro::padded_k == 0) {
        for (int h = 0; h < heads; ++h) {
          for (int j = row_; j < tile.padded_k; j += rows) {
            copy_async(
                tile.rows(h) + j * Tile::stride + key_,
                from + (static_cast<std::int64_t>(h) * tile.padded_k + j - row_) * row_step_);
          }
        }
      } else {
        // Several heads in a pass, or several passes for a head.
        constexpr int step = rows > width ? rows / width : 1;
        int h = row_ / width;
        to += h * head_stride(Micro::padded_k, TileKeys) + row_ % width * Tile::stride;
        HEADLAB_NO_UNROLL
        for (; h < heads; h += step) {
          HEADLAB_UNROLL
          for (int j = 0; j < width; j += rows) {
            if (width == Micro::padded_k || j + row_ % width < Micro::padded_k) {
              copy_async(to + j * Tile::stride, from + j * row_step_);
            }
          }
          to += step * head_stride(Micro::padded_k, TileKeys);
          from += step * Micro::padded_k * row_step_;
        }
      }
    }
    commit_copies();
  }

 private:
  static constexpr int fours = TileKeys / 4;
  static constexpr int rows = Threads / fours;  ///< of a pass
  static constexpr int width = power_of_two_from(Micro::padded_k);
  static_assert(Threads % fours == 0);

  /// First row that this thread copies.
  HEADLAB_DEVICE int own_row() const {
    return Micro::padded_k == 0 ? row_ : row_ / width * Micro::padded_k + row_ % width;
  }

  int row_, key_;
  std::int64_t row_step_;
  const float* keys_;
  const float* numbers_;  ///< values or noise scales, by the threads that copy these
};

/// Takes the padding out of a tile, of which the first `left` keys are real, and computes the norms
/// of its keys where the microkernel needs them. True if anything was written.
template <int Threads, class Micro, int TileKeys>
HEADLAB_DEVICE bool prepare(const WeighArguments& a, const Stage<Micro, TileKeys>& tile, int heads,
                            int left) {
  constexpr int stride = Stage<Micro, TileKeys>::stride;
  const int thread = static_cast<int>(thread_index());
  if (Micro::norms) {
    const float factor = Micro::shifted ? a.norm_factor : -1.0f;
    HEADLAB_NO_UNROLL
    for (int four = thread; four < heads * (TileKeys / 4); four += Threads) {
      const int head = static_cast<int>(static_cast<unsigned>(four) / (TileKeys / 4));
      const int key = 4 * (four - head * (TileKeys / 4));
      const float* rows = tile.rows(head) + key;
      Four norm = {};
      HEADLAB_UNROLL
      for (int j = 0; j < tile.padded_k; ++j) {
        const Four x = *reinterpret_cast<const Four*>(rows + j * stride);
        HEADLAB_UNROLL
        for (int c = 0; c < 4; ++c) norm.v[c] = math::fused(x.v[c], x.v[c], norm.v[c]);
      }
      HEADLAB_UNROLL
      for (int c = 0; c < 4; ++c) {
        norm.v[c] = factor == 0 ? 0.0f : factor * norm.v[c];
      }
      if (left < tile.keys) {
        HEADLAB_UNROLL
        for (int c = 0; c < 4; ++c) {
          if (key + c >= left) norm.v[c] = -__builtin_huge_valf();
        }
      }
      *reinterpret_cast<Four*>(tile.norms(head) + key) = norm;
    }
    return true;
  }
  if (left >= tile.keys) return false;
  const int width = tile.keys - left;
  HEADLAB_NO_UNROLL
  for (int at = thread; at < heads * tile.padded_k * width; at += Threads) {
    const int row = at / width;
    tile.rows(row / tile.padded_k)[row % tile.padded_k * stride + left + at % width] = far_away;
  }
  return true;
}

/// Calls work(stage, head_group) for each tile of the panel, and in it for each of `groups` groups
/// of heads from first_group on, with the group's keys staged. A barrier stands before every call;
/// what is staged stays until the next but one.
template <class Micro, int TileKeys, int Threads, class Work>
HEADLAB_DEVICE void for_each_stage(const WeighArguments& a, float* shared, const Assignment& of,
                                   int first_group, int groups, const Work& work) {
  const std::int64_t begin = of.panel * a.tiling.panel_keys;
  const std::int64_t left = a.sets.padded_n - begin;
  const bool last = left <= a.tiling.panel_keys;
  const auto keys = static_cast<int>(last ? left : a.tiling.panel_keys);
  const int padding = last ? static_cast<int>(a.sets.padded_n) - static_cast<int>(a.sets.n) : 0;
  const int group_heads = a.tiling.group_heads;
  auto heads_of = [&](int group) {
    return smaller(group_heads, a.totals.heads - (first_group + group) * group_heads);
  };
  // Two tiles take turns.
  const int other = stage_floats(group_heads, padded_k_of<Micro>(a), TileKeys);
  auto stage_at = [&](int first, int buffer) {
    return Stage<Micro, TileKeys>(shared + buffer, a, smaller(keys - first, TileKeys));
  };
  const Copies<Micro, TileKeys, Threads> copies(a, of.replicate, first_group * group_heads, begin);
  copies.start(stage_at(0, 0), 0, heads_of(0), 0);
  int buffer = 0;
  int group = 0;
  HEADLAB_NO_UNROLL
  for (int first = 0; first < keys;) {
    wait_copies<0>();
    synchronise_block();
    const auto stage = stage_at(first, buffer);
    const int next_group = group + 1 < groups ? group + 1 : 0;
    const int next = next_group == 0 ? first + TileKeys : first;
    if (next < keys) {
      copies.start(stage_at(next, other - buffer), next_group * group_heads, heads_of(next_group),
                   next);
    }
    if (prepare<Threads>(a, stage, heads_of(group), keys - padding - first)) synchronise_block();
    work(stage, first_group + group);
    first = next;
    group = next_group;
    buffer = other - buffer;
  }
  synchronise_block();
}

/// Kernel values of the keys of a tile [block_queries][head_rows][weight_stride], queries
/// query_stride apart, from which pairs of heads and the ensemble are summed.
struct WeightTile {
  float* weights;
  int query_stride;
};

/// Stores the kernel values of a group of heads. `loaded` is the head whose queries are in the
/// registers.
template <class Micro>
HEADLAB_DEVICE void store_weights(const WeighArguments& a, Micro& micro, int& loaded,
                                  const Place& place, const Stage<Micro, weight_tile_keys>& stage,
                                  int group, int first_row, int first_query,
                                  const WeightTile& tile) {
  const int head = group * a.tiling.group_heads + place.head;
  if (!place.active || head >= a.totals.heads) return;
  if (loaded != head) {
    micro.load(a, head, place, first_query);
    loaded = head;
  }
  const float* rows = stage.rows(place.head);
  const float* norms = stage.norms(place.head);
  const int lanes = Micro::step_keys / Micro::keys;
  for (int step = place.split / lanes; step < weight_tile_keys / Micro::step_keys;
       step += a.tiling.splits / lanes) {
    const int key = Micro::first_key(place, step);
    float w[Micro::queries][Micro::keys];
    micro.template exponents<stage_stride(weight_tile_keys)>(a, rows, norms, key, w);
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
