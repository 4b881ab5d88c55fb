// SPDX-License-Identifier: Apache-2.0
/// \file Keys that are projected in the thread block that weighs them, for the tensor cores: points
/// pass through memory in place of the keys of all heads, and no kernel of its own projects them.
///
/// A tile of points is split into two numbers of float16 once for all heads of the block. Warps
/// multiply a head's matrix by 16 coordinates of eight points at a time, as lo hi + hi lo + hi hi,
/// and store the products as weighing reads them, split again, with their norms. For 32 keys of a
/// head that are some 210 instructions at d = 32 and d_k = 16 (docs/measured/slots.md), 3.3 for
/// each weight of 64 queries.
///
/// Accuracy. A coordinate of a key is the sum over c of w_c x_c with an error of some 2^-21 sum
/// |w_c x_c|: 2^-22 from lo lo and from the lower parts, the rest from the tensor cores, which
/// truncate three times for each 16 coordinates. Each coordinate of the points has a unit in which
/// its largest projection is about 1, so that columns of X may differ in size. Projections of one
/// column that differ by more than 2^10 lose digits of the small ones: 2^-25 of the largest.
///
/// Range. A coordinate beyond 65504 has no float16: such points are marked, and their keys
/// projected again in float32. Keys far from all queries are as those that are read from memory
/// (products.h): they have no weight, or with softmax make NaN, which the fallback finds.
#pragma once

#include "kernels/cuda/projection.h"
#include "kernels/cuda/weigh.h"

#if defined(HEADLAB_DEVICE)  // under nvcc and in the emulated build
namespace headlab::HEADLAB_CUDA_NAMESPACE {

/// Sums v[i] over the eight lanes that differ in lane / 4. A lane receives the sum of the index
/// lane / 4 / (8 / Count).
template <int Count>
HEADLAB_DEVICE float reduce_rows(float (&v)[Count], int lane) {
  static_assert(Count == 4 || Count == 8);
  int left = Count;
  HEADLAB_UNROLL
  for (int mask = 16; mask >= 4; mask /= 2) {
    if (left == 1) {
      v[0] += shuffle_xor(v[0], mask);
      continue;
    }
    left /= 2;
    const bool upper = (lane & mask) != 0;
    HEADLAB_UNROLL
    for (int i = 0; i < left; ++i) {
      const float given = upper ? v[i] : v[left + i];
      const float kept = upper ? v[left + i] : v[i];
      v[i] = kept + shuffle_xor(given, mask);
    }
  }
  return v[0];
}

/// Tiles of a panel, by all threads of a block: a thread copies and splits the same four keys of
/// every tile, in some rows.
template <class Micro, int TileKeys, int Threads>
class ProjectedTiles {
 public:
  using Tile = Stage<Micro, TileKeys>;
  /// Registers do not suffice for what can be computed again.
  static constexpr bool forgets = Micro::scarce || Micro::padded_k == 32;

  HEADLAB_DEVICE ProjectedTiles(const WeighArguments& a, const Assignment& of, float* shared)
      : a_(a), shared_(shared), own_(a, of) {}

  /// Before the first tile: the state without a mark, and zeros after the last coordinate of a
  /// point.
  HEADLAB_DEVICE void clear(const Assignment& of) const {
    if (thread_index() == 0) {
      state()->marked = -1;
      state()->replicate = of.replicate;
      state()->panel = of.panel;
    }
    const int d = a_.sets.d;
    const int all = chunk_coordinates * a_.projections.chunks;
    for (int at = static_cast<int>(thread_index()); at < (all - d) * stride; at += Threads) {
      split_points()[d * stride + at] = 0;
      split_points()[(all + d) * stride + at] = 0;
    }
  }

  /// Starts the copies of the tile from key `first` of the panel on.
  HEADLAB_DEVICE void start(const Assignment& of, int first) const {
    const int row = own_row();
    Own own = own_;
    if (forgets) own = Own(a_, of);
    const float* x = own.x + first;
    const float* values = own.values + first;
    float* to = copied_points() + row * stride + own_key();
    HEADLAB_NO_UNROLL
    for (int c = row; c < a_.sets.d; c += rows) {
      copy_async(to, x);
      to += rows * stride;
      x += rows * a_.sets.padded_n;
    }
    if (row == 0) copy_async(copied_values() + own_key(), values);
    if (row == 1 && a_.reads_scales) {
      copy_async(copied_values() + stride + own_key(), a_.sets.scales + (values - a_.sets.values));
    }
    commit_copies();
  }

  /// Splits the points that this thread has copied. The first `left` keys of the tile are real.
  HEADLAB_DEVICE void split(int left) const {
    const int row = own_row();
    const int key = own_key();
    auto* high_row = split_points() + row * stride + key;
    const int lower = chunk_coordinates * a_.projections.chunks * stride;
    const float* from = copied_points() + row * stride + key;
    const CoordinateUnit* unit = a_.projections.units + row;
    HEADLAB_NO_UNROLL
    for (int c = row; c < a_.sets.d; c += rows) {
      Four x = *reinterpret_cast<const Four*>(from);
      HEADLAB_UNROLL
      for (int e = 0; e < 4; ++e) x.v[e] = math::fused(x.v[e], unit->scale, unit->offset);
      if (key + 4 > left) {
        HEADLAB_UNROLL
        for (int e = 0; e < 4; ++e) x.v[e] = key + e < left ? x.v[e] : 0.0f;
      }
      const SplitPair front(x.v[0], x.v[1]);
      const SplitPair back(x.v[2], x.v[3]);
      *reinterpret_cast<TwoWords*>(high_row) = {front.high, back.high};
      *reinterpret_cast<TwoWords*>(high_row + lower) = {front.low, back.low};
      high_row += rows * stride;
      from += rows * stride;
      unit += rows;
    }
  }

  /// Moves the values and scales that this thread has copied, and remembers which tile is next.
  HEADLAB_DEVICE void go_on(int next) const {
    if (thread_index_again() == 0) state()->next = next;
    const int row = own_row();
    if (row < (a_.reads_scales ? 2 : 1)) {
      const int at = row * stride + own_key();
      *reinterpret_cast<Four*>(tile().values() + at) =
          *reinterpret_cast<const Four*>(copied_values() + at);
    }
  }

  /// Keys of `heads` heads from first_head on, from points that are split. Marks the tile that
  /// begins at key `first` where a key is far away, or a coordinate of a point has no float16 and
  /// its keys are NaN: infinity and minus infinity from its parts.
  HEADLAB_DEVICE void project(int first_head, int heads, int left, int first) const {
    const unsigned thread = thread_index_again();
    const unsigned lane = thread % warp_threads;
    const int chunks = a_.projections.chunks;
    const auto row = static_cast<int>(lane / 4);
    const int own_place = row * stride + static_cast<int>(lane % 4) * 2;
    const std::uint16_t* points = split_points() +
                                  (lane < 16 ? 0 : chunk_coordinates * chunks * stride) +
                                  static_cast<int>(lane % 16) * stride;
    const Tile tile = this->tile();
    const FourWords* matrices = a_.projections.fragments + lane;
    HEADLAB_NO_UNROLL
    for (int unit = static_cast<int>(thread / warp_threads); unit < heads * units_of_head;
         unit += Threads / static_cast<int>(warp_threads)) {
      const int head = static_cast<int>(static_cast<unsigned>(unit) / units_of_head);
      const int key = (unit - head * units_of_head) * unit_keys;
      const FourWords* matrix = matrices + (first_head + head) * a_.projections.head_words;
      auto* out = reinterpret_cast<std::uint16_t*>(tile.rows(head)) + own_place + key;
      // All rows of the head together: points are read once.
      float sum[row_blocks][unit_eights][4] = {};
      const std::uint16_t* from = points + key;
      int chunk = chunks;
      HEADLAB_NO_UNROLL
      do {
        std::uint32_t x_high[unit_eights][2];
        std::uint32_t x_low[unit_eights][2];
        HEADLAB_UNROLL
        for (int u = 0; u < unit_eights; ++u) {
          std::uint32_t both[4];
          load_transposed(both, reinterpret_cast<const std::uint32_t*>(from + 8 * u));
          HEADLAB_UNROLL
          for (int e = 0; e < 2; ++e) {
            x_high[u][e] = both[e];
            x_low[u][e] = both[2 + e];
          }
        }
        HEADLAB_UNROLL
        for (int block = 0; block < row_blocks; ++block) {
          const FourWords high = read_constants(matrix);
          const FourWords low = read_constants(matrix + warp_threads);
          HEADLAB_UNROLL
          for (int u = 0; u < unit_eights; ++u) {
            multiply_add_f16(sum[block][u], low.v, x_high[u]);
            multiply_add_f16(sum[block][u], high.v, x_low[u]);
            multiply_add_f16(sum[block][u], high.v, x_high[u]);
          }
          matrix += 2 * warp_threads;
        }
        from += chunk_coordinates * stride;
      } while (--chunk > 0);
      float squares[2 * unit_eights] = {};
      HEADLAB_UNROLL
      for (int block = 0; block < row_blocks; ++block) {
        HEADLAB_UNROLL
        for (int u = 0; u < unit_eights; ++u) {
          HEADLAB_UNROLL
          for (int half = 0; half < (K < 16 ? 1 : 2); ++half) {
            const float* two = sum[block][u] + 2 * half;
            const SplitPair key_parts(two[0], two[1]);
            auto* at = out + (16 * block + 8 * half) * stride + 8 * u;
            *reinterpret_cast<std::uint32_t*>(at) = key_parts.high;
            *reinterpret_cast<std::uint32_t*>(at + K * stride) = key_parts.low;
            HEADLAB_UNROLL
            for (int e = 0; e < 2; ++e) {
              squares[2 * u + e] = math::fused(two[e], two[e], squares[2 * u + e]);
            }
          }
        }
      }
      const float square = reduce_rows(squares, static_cast<int>(lane));
      const int index = row / (4 / unit_eights);
      const int own = key + index / 2 * 8 + static_cast<int>(lane % 4) * 2 + index % 2;
      float norm = a_.norm_factor * square;
      if (!(square < max_square)) {
        const bool out_of_reach = a_.norm_factor != 0 && square == square;
        norm = out_of_reach ? __builtin_huge_valf() : __builtin_nanf("");
        if (own < left) state()->marked = first;
      }
      tile.norms(head)[own] = own < left ? norm : -__builtin_huge_valf();
    }
  }

  /// Once project has ended for all threads: whether the tile is marked, and the first key of the
  /// next one.
  HEADLAB_DEVICE bool marked(int first) const { return state()->marked == first; }
  HEADLAB_DEVICE int next() const { return state()->next; }
  /// Replicate and panel of the block.
  HEADLAB_DEVICE Assignment assignment() const {
    return {.replicate = state()->replicate, .panel = state()->panel};
  }

  /// Of a marked tile: keys whose norm is infinite are out of reach and lose their weight; keys
  /// whose norm is NaN are projected again, in float32.
  HEADLAB_DEVICE void repair(int first_head, int heads, int left, int first) const {
    const Assignment of = assignment();
    const Tile tile = this->tile();
    const TrainingSets& sets = a_.sets;
    const int width = projection_width(sets.key_rows);
    for (int at = static_cast<int>(thread_index()); at < heads * TileKeys; at += Threads) {
      const int head = at / TileKeys;
      const int key = at % TileKeys;
      float& norm = tile.norms(head)[key];
      if (key >= left || norm < __builtin_huge_valf()) continue;
      const float* x = sets.x_of(of.replicate) + of.panel * a_.tiling.panel_keys + first + key;
      auto* out = reinterpret_cast<std::uint16_t*>(tile.rows(head)) + key;
      const float* matrix = a_.projections.matrix + (first_head + head) * K;
      float square = norm == norm ? norm : 0.0f;
      for (int j = 0; j < K && norm != norm; ++j) {
        float sum = 0;
        for (int c = 0; c < sets.d; ++c) {
          const CoordinateUnit unit = a_.projections.units[c];
          if (unit.scale == 0) continue;
          sum = math::fused(matrix[c * width + j] / unit.scale,
                            math::fused(x[c * sets.padded_n], unit.scale, unit.offset), sum);
        }
        square = math::fused(sum, sum, square);
        const SplitPair parts(sum, 0);
        out[j * stride] = static_cast<std::uint16_t>(parts.high);
        out[(K + j) * stride] = static_cast<std::uint16_t>(parts.low);
      }
      if (square < max_square) {
        norm = a_.norm_factor * square;
        continue;
      }
      for (int j = 0; j < 2 * K; ++j) out[j * stride] = 0;
      if (a_.norm_factor != 0 && square == square) norm = -__builtin_huge_valf();
    }
  }

  /// What is staged of a tile for weighing.
  HEADLAB_DEVICE Tile tile() const {
    return Tile(shared_ + projected_front(TileKeys), a_, TileKeys);
  }

 private:
  static constexpr int K = Micro::padded_k;
  static constexpr int stride = Tile::stride;
  static constexpr int fours = TileKeys / 4;
  static constexpr int rows = Threads / fours;  ///< of a pass over the coordinates
  static constexpr int row_blocks = K < 16 ? 1 : K / 16;
  /// Groups of eight keys, of which a warp has a head's products in registers.
  static constexpr int unit_eights = projected_eights(K, TileKeys);
  static constexpr int unit_keys = 8 * unit_eights;
  static constexpr int units_of_head = TileKeys / unit_keys;
  static constexpr float max_square = 0x1p+31f;

  /// What the threads of a block share: the first keys of the next tile and of the tile marked
  /// last, and what registers do not suffice for.
  struct State {
    int next, marked, replicate, panel;
  };
  static_assert(sizeof(State) == state_floats * sizeof(float));

  /// What a thread copies of the panel's first tile.
  struct Own {
    const float* x;
    const float* values;
    HEADLAB_DEVICE Own(const WeighArguments& a, const Assignment& of) {
      const std::int64_t first = of.panel * a.tiling.panel_keys + own_key();
      x = a.sets.x_of(of.replicate) + own_row() * a.sets.padded_n + first;
      values = a.sets.values_of(of.replicate) + first;
    }
  };

  /// First coordinate and first key of what a thread copies and splits.
  HEADLAB_DEVICE static int own_row() {
    return static_cast<int>(thread_index_again() / static_cast<unsigned>(fours));
  }
  HEADLAB_DEVICE static int own_key() {
    return static_cast<int>(thread_index_again() % static_cast<unsigned>(fours)) * 4;
  }

  // Shared memory, see projected_floats.
  HEADLAB_DEVICE State* state() const { return reinterpret_cast<State*>(shared_); }
  HEADLAB_DEVICE float* copied_values() const { return shared_ + state_floats; }
  HEADLAB_DEVICE std::uint16_t* split_points() const {
    return reinterpret_cast<std::uint16_t*>(shared_ + a_.projections.split_at);
  }
  HEADLAB_DEVICE float* copied_points() const { return shared_ + a_.projections.copied_at; }

  const WeighArguments& a_;
  float* shared_;
  Own own_;
};

/// Calls work(stage) for each tile of the panel, with the projected keys of the heads from
/// first_head on. A barrier stands before every call.
template <class Micro, int TileKeys, int Threads, class Work>
HEADLAB_DEVICE void for_each_projected_tile(const WeighArguments& a, float* shared,
                                            const Assignment& of, int first_head,
                                            const Work& work) {
  using Tiles = ProjectedTiles<Micro, TileKeys, Threads>;
  const int heads = smaller(a.tiling.group_heads, a.totals.heads - first_head);
  const Tiles tiles(a, of, shared);
  tiles.clear(of);
  tiles.start(of, 0);
  synchronise_block();
  HEADLAB_NO_UNROLL
  for (int first = 0; first >= 0; first = tiles.next()) {
    const Assignment now = Tiles::forgets ? tiles.assignment() : of;
    const auto panel_keys = static_cast<int>(a.tiling.panel_keys);
    const int before = now.panel * panel_keys;
    const int keys = smaller(panel_keys, static_cast<int>(a.sets.padded_n) - before) - first;
    const int left = static_cast<int>(a.sets.n) - before - first;
    wait_copies<0>();
    tiles.split(left);
    synchronise_block();
    tiles.go_on(keys > TileKeys ? first + TileKeys : -1);
    if (keys > TileKeys) tiles.start(now, first + TileKeys);
    tiles.project(first_head, heads, left, first);
    synchronise_block();
    if (tiles.marked(first)) {
      tiles.repair(first_head, heads, left, first);
      synchronise_block();
    }
    work(tiles.tile());
  }
  synchronise_block();
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
#endif
