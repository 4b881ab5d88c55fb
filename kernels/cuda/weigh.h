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

/// Work of one thread block.
struct Assignment {
  int replicate;
  int panel;
  int panel_of_all;  ///< among the panels of all replicates
  int first_query;
  int head_group;
};

/// Thread blocks are (replicate, panel, query group, head group), the last one fastest: those that
/// read the same keys run side by side.
HEADLAB_DEVICE Assignment assignment_of(const Tiling& tiling, int head_groups) {
  const auto block = static_cast<int>(block_index_x());
  const int rest = block / head_groups;
  const auto panels = static_cast<int>(tiling.panels);
  const int panel = rest / tiling.query_groups;
  return {panel / panels, panel % panels, panel, rest % tiling.query_groups * tiling.block_queries,
          block % head_groups};
}
/// Row of the partial sums of a query.
HEADLAB_DEVICE std::int64_t partial_row(const WeighArguments& a, const Assignment& of, int query) {
  return static_cast<std::int64_t>(of.panel_of_all) * a.queries.count + query;
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

  HEADLAB_DEVICE Copies(const WeighArguments& a, const Assignment& of, int first_head)
      : a_(a),
        row_(static_cast<int>(thread_index()) / fours),
        key_(static_cast<int>(thread_index()) % fours * 4),
        panel_(a, of, first_head * padded_k_of<Micro>(a)) {
    panel_.keys += own_row() * a.sets.padded_n + key_;
  }

  /// Starts the copies of the tile from key `first` of the panel on: of `heads` heads, from
  /// `head` after the first one on.
  HEADLAB_DEVICE void start(const Tile& tile, int head, int heads, int first) const {
    if (key_ < tile.keys) {
      const std::int64_t row_step = a_.sets.padded_n;
      Panel panel = panel_;
      if (Micro::scarce) {  // computed again
        panel = Panel(a_, assignment_of(a_.tiling, 1), own_row());
        panel.keys += key_;
      }
      const float* from = panel.keys + head * tile.padded_k * row_step + first;
      const bool scales = row_ == rows - 1;
      if (row_ == 0 || (scales && a_.reads_scales)) {
        copy_async(tile.values() + (scales ? Tile::stride : 0) + key_,
                   (scales ? panel.scales : panel.values) + (first + key_));
      }
      if constexpr (Micro::padded_k == 0) {
        for (int h = 0; h < heads; ++h) {
          for (int j = row_; j < tile.padded_k; j += rows) {
            copy_async(tile.rows(h) + j * Tile::stride + key_,
                       from + (h * tile.padded_k + j - row_) * row_step);
          }
        }
      } else {
        // Several heads in a pass, or several passes for a head.
        constexpr int step = rows > width ? rows / width : 1;
        int h = row_ / width;
        float* to = tile.rows(h) + row_ % width * Tile::stride + key_;
        HEADLAB_NO_UNROLL
        for (; h < heads; h += step) {
          HEADLAB_UNROLL
          for (int j = 0; j < width; j += rows) {
            if (width == Micro::padded_k || j + row_ % width < Micro::padded_k) {
              copy_async(to + j * Tile::stride, from + j * row_step);
            }
          }
          to += step * head_stride(Micro::padded_k, TileKeys);
          from += step * Micro::padded_k * row_step;
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

  /// Where the numbers of a panel begin.
  struct Panel {
    const float* keys;  ///< of its first row
    const float* values;
    const float* scales;
    HEADLAB_DEVICE Panel(const WeighArguments& a, const Assignment& of, int row) {
      const std::int64_t first_key = of.panel * a.tiling.panel_keys;
      keys = a.sets.keys_of(of.replicate, row) + first_key;
      values = a.sets.values_of(of.replicate) + first_key;
      scales = a.sets.scales_of(of.replicate) + first_key;
    }
  };

  /// First row that this thread copies.
  HEADLAB_DEVICE int own_row() const {
    return Micro::padded_k == 0 ? row_ : row_ / width * Micro::padded_k + row_ % width;
  }

  const WeighArguments& a_;
  int row_, key_;
  Panel panel_;
};

/// Two words, stored together.
struct alignas(8) TwoWords {
  std::uint32_t v[2];
};

/// Upper and lower parts in float16 of two floats, packed.
struct SplitPair {
  std::uint32_t high, low;
  HEADLAB_DEVICE SplitPair(float x, float y)
      : high(pack_halves(x, y)), low(pack_halves(x - low_half(high), y - high_half(high))) {}
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

/// Takes padding, hidden keys and keys beyond the range of float16 out of four keys that are split;
/// the latter make NaN with softmax.
template <int K, int Parts, int stride>
HEADLAB_DEVICE void take_out(const WeighArguments& a, const float* rows, std::uint16_t* out,
                             int part, int left, Four& norm) {
  HEADLAB_NO_UNROLL
  for (int c = 0; c < 4; ++c) {
    float largest = 0;
    HEADLAB_NO_UNROLL
    for (int j = 0; j < K; ++j) {
      const float x = math::abs(rows[j * stride + c]);
      if (!(x <= largest)) largest = x;
    }
    if (largest < 65504.0f && c < left) continue;
    HEADLAB_NO_UNROLL
    for (int j = part; j < K; j += Parts) {
      out[(j - part) * stride + c] = 0;
      out[(K + j - part) * stride + c] = 0;
    }
    const bool hidden = c >= left || (a.norm_factor != 0 && largest == largest) ||
                        (a.mask_row >= 0 && rows[a.mask_row * stride + c] != 0);
    const float taken = hidden ? -__builtin_huge_valf() : __builtin_nanf("");
    HEADLAB_UNROLL
    for (int i = 0; i < 4; ++i) {
      if (i == c) norm.v[i] = taken;
    }
  }
}

/// Splits the keys of a copied tile into numbers of float16, [2 K][stride] upper parts before lower
/// ones, and computes their norms; `Parts` neighbouring threads share four keys.
template <int Threads, int Parts, class Micro, int TileKeys>
HEADLAB_DEVICE void split(const WeighArguments& a, const Stage<Micro, TileKeys>& copied,
                          const Stage<Micro, TileKeys>& tile, int heads, int left) {
  constexpr int stride = Stage<Micro, TileKeys>::stride;
  constexpr int fours = TileKeys / 4;
  constexpr int whole_warp = static_cast<int>(warp_threads) / Parts;
  constexpr int K = Micro::padded_k;
  // Of numbers that float16 has.
  constexpr float max_square = 0x1p+31f;
  const int thread = static_cast<int>(thread_index());
  const int part = thread % Parts;
  const bool counts = a.norm_factor != 0;
  // Warps stay together: those with threads beyond the last take its keys again.
  const int all = heads * fours;
  HEADLAB_NO_UNROLL
  for (int first = 0; first < all; first += Threads / Parts) {
    const int own = first + thread / Parts;
    if (own / whole_warp * whole_warp >= all) break;
    const int at = smaller(own, all - 1);
    const int head = static_cast<int>(static_cast<unsigned>(at) / fours);
    const int key = 4 * (at - head * fours);
    const float* rows = copied.rows(head) + part * stride + key;
    auto* out = reinterpret_cast<std::uint16_t*>(tile.rows(head)) + part * stride + key;
    Four norm = {};
    HEADLAB_UNROLL_BY_4
    for (int j = 0; j < K; j += Parts) {
      const Four x = *reinterpret_cast<const Four*>(rows + j * stride);
      const SplitPair front(x.v[0], x.v[1]);
      const SplitPair back(x.v[2], x.v[3]);
      *reinterpret_cast<TwoWords*>(out + j * stride) = {front.high, back.high};
      *reinterpret_cast<TwoWords*>(out + (K + j) * stride) = {front.low, back.low};
      HEADLAB_UNROLL
      for (int c = 0; c < 4; ++c) norm.v[c] = math::fused(x.v[c], x.v[c], norm.v[c]);
    }
    HEADLAB_UNROLL
    for (int mask = 1; mask < Parts; mask *= 2) {
      HEADLAB_UNROLL
      for (int c = 0; c < 4; ++c) norm.v[c] += shuffle_xor(norm.v[c], mask);
    }
    const float sum = norm.v[0] + norm.v[1] + norm.v[2] + norm.v[3];
    HEADLAB_UNROLL
    for (int c = 0; c < 4; ++c) norm.v[c] = counts ? -norm.v[c] : 0.0f;
    if (!(sum < max_square) || left < tile.keys) {
      take_out<K, Parts, stride>(a, copied.rows(head) + key, out, part, left - key, norm);
    }
    if (part == 0) *reinterpret_cast<Four*>(tile.norms(head) + key) = norm;
  }
  for (int at = 4 * thread; at < (a.reads_scales ? 2 : 1) * stride; at += 4 * Threads) {
    *reinterpret_cast<Four*>(tile.values() + at) =
        *reinterpret_cast<const Four*>(copied.values() + at);
  }
}

/// Calls work(stage, head_group) for each tile of the panel, and in it for each of `groups` groups
/// of heads from first_group on, with the group's keys staged. A barrier stands before every call;
/// what is staged stays until the next but one.
/// \tparam Parts threads that share four keys of a head which are split
template <class Micro, int TileKeys, int Threads, int Parts, class Work>
HEADLAB_DEVICE void for_each_stage(const WeighArguments& a, float* shared, const Assignment& of,
                                   int first_group, int groups, const Work& work) {
  const std::int64_t begin = of.panel * a.tiling.panel_keys;
  const std::int64_t to_end = a.sets.padded_n - begin;
  const bool last = to_end <= a.tiling.panel_keys;
  const auto keys = static_cast<int>(last ? to_end : a.tiling.panel_keys);
  const int padding = last ? static_cast<int>(a.sets.padded_n) - static_cast<int>(a.sets.n) : 0;
  const int group_heads = a.tiling.group_heads;
  auto heads_of = [&](int group) {
    return smaller(group_heads, a.totals.heads - (first_group + group) * group_heads);
  };
  // Two tiles take turns; or one is copied, and the other has what it is split into.
  const int other = stage_floats(group_heads, padded_k_of<Micro>(a), TileKeys);
  auto stage_at = [&](int first, int buffer) {
    return Stage<Micro, TileKeys>(shared + buffer, a, smaller(keys - first, TileKeys));
  };
  const Copies<Micro, TileKeys, Threads> copies(a, of, first_group * group_heads);
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
    const int left = keys - padding - first;
    const auto copy_next = [&](int into) {
      if (next >= keys) return;
      copies.start(stage_at(next, into), next_group * group_heads, heads_of(next_group), next);
    };
    if constexpr (Micro::halves) {
      const auto tile = stage_at(first, other);
      split<Threads, Parts>(a, stage, tile, heads_of(group), left);
      synchronise_block();
      copy_next(0);
      work(tile, first_group + group);
    } else {
      copy_next(other - buffer);
      if (prepare<Threads>(a, stage, heads_of(group), left)) synchronise_block();
      work(stage, first_group + group);
      buffer = other - buffer;
    }
    first = next;
    group = next_group;
  }
  synchronise_block();
}

/// Kernel values of the keys of a tile [block_queries][head_rows][weight_stride], queries
/// query_stride apart, from which pairs of heads and the ensemble are summed.
struct WeightTile {
  float* weights;
  int query_stride;
};
template <class Micro>
HEADLAB_DEVICE WeightTile weight_tile(const WeighArguments& a, float* shared, int head_rows) {
  return {shared + 2 * stage_floats(a.tiling.group_heads, padded_k_of<Micro>(a), weight_tile_keys),
          weight_query_stride(head_rows, Micro::halves, a.tiling.query_columns)};
}

/// Where a thread stores the values of its query `i` at its keys from `key` on.
template <class Micro, bool Pairs>
HEADLAB_DEVICE int stored_at(const Tiling& tiling, int query_stride, int column, int i, int head,
                             int key) {
  return weight_query(Micro::query_of(tiling, column, i), query_stride, Micro::halves) +
         (Pairs ? weight_place(head, key) : head * weight_stride + key);
}

/// Stores the kernel values of a group of heads. `loaded` is the head whose queries are in the
/// registers.
/// \tparam Pairs see weight_place
template <class Micro, bool Pairs>
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
  const auto* rows = reinterpret_cast<const typename Micro::Number*>(stage.rows(place.head));
  const float* norms = stage.norms(place.head);
  const int lanes = Micro::step_keys / Micro::keys;
  for (int step = place.split / lanes; step < weight_tile_keys / Micro::step_keys;
       step += a.tiling.splits / lanes) {
    const int key = Micro::first_key(place, step);
    float w[Micro::queries][Micro::keys];
    micro.template exponents<stage_stride(weight_tile_keys)>(a, rows + key, norms + key, w);
    to_weights<Micro>(a, w);
    HEADLAB_UNROLL
    for (int i = 0; i < Micro::queries; ++i) {
      float* out = tile.weights + stored_at<Micro, Pairs>(a.tiling, tile.query_stride, place.column,
                                                          i, first_row + place.head, key);
      OfKeys<Micro::keys> together;
      HEADLAB_UNROLL
      for (int c = 0; c < Micro::keys; ++c) together.v[c] = w[i][c];
      *reinterpret_cast<OfKeys<Micro::keys>*>(out) = together;
    }
  }
}

inline Launch launch_of(const WeighArguments& a, std::int64_t replicates, int head_groups) {
  return {.blocks_x = replicates * a.tiling.panels * a.tiling.query_groups * head_groups,
          .threads = static_cast<unsigned>(a.tiling.threads),
          .shared_bytes = a.tiling.shared_bytes};
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
#endif
