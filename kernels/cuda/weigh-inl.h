// SPDX-License-Identifier: Apache-2.0
/// \file The Nadaraya-Watson kernel's common part: a block of threads takes a chunk of the keys of
/// one replicate tile by tile through shared memory, and each of its threads turns them into kernel
/// values of its queries. weigh_sums.cu, weigh_pairs.cu and weigh_ensemble.cu add them up.
///
/// Ladder (issue slots of one kernel value at d_k = k, beside which the exponential unit is busy
/// for 8; none of it has been timed on a GPU yet):
///   v1  one thread a query, keys from global memory, squared differences: robust.cu
///   v2  keys in shared memory, four queries a thread: each key that is loaded is used four times;
///       2 k + 4 slots                                                     (distances2, 4, 8)
///   v3  product form, norms once a tile: k + 5 slots                              (dots4, 8)
///   v4  the product on the tensor cores, in three TF32 products hi hi + hi lo + lo hi: k / 8 + 6
///       slots, and 3 k / 8 fragments for 128 values                    (tensor16, 32, 64)
/// The next tile's keys travel with asynchronous copies while this one's are used.
///
/// Accuracy. Exponents are float32: in the product form their error is 2^-24 times the largest of
/// |query|^2 and |key|^2 in units of the kernel, a few times over, which is why shape.cpp takes
/// that form only for queries near the centre that keys are measured from. The split products lose
/// at most 2^-20 of |query| |key|, most of it by cutting the lower parts off at 11 bits. A sum runs
/// over at most ShapeChoice::keys_of_thread keys in float32 and on in float64.
#pragma once

#include <cstdint>

#include "kernels/cuda/arguments.h"
#include "kernels/cuda/device.h"
#include "kernels/math.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {

inline constexpr float log2_e = 1.442695041f;

/// A padding key stands here, so far out that every law that measures distances gives it no weight,
/// so near that its square is a float.
inline constexpr float far_away = 1e18f;

HEADLAB_DEVICE int smaller(int a, int b) {
  return a < b ? a : b;
}

/// The part of the work that one block of threads has.
struct Part {
  std::int64_t replicate;
  std::int64_t chunk;
  int first_query;
  int head_group;
};

/// Blocks are (replicate, chunk, query group, head group), the last one fastest: those that read
/// the same keys run side by side.
HEADLAB_DEVICE Part part_of(const Tiling& tiling, int head_groups) {
  const std::int64_t block = block_index_x();
  const int head_group = static_cast<int>(block % head_groups);
  const std::int64_t rest = block / head_groups;
  const int query_group = static_cast<int>(rest % tiling.query_groups);
  const std::int64_t part = rest / tiling.query_groups;
  return {part / tiling.chunks, part % tiling.chunks, query_group * tiling.block_queries,
          head_group};
}

/// What a thread has within a staged tile: `queries` of one head, and every splits-th step of keys.
struct Place {
  bool active;
  int head;    ///< in the group
  int column;  ///< its queries are column + i query_blocks
  int split;
  int slot;  ///< head query_blocks + column
};

/// Threads are dealt over columns first, so that neighbours share keys, then heads, then splits.
HEADLAB_DEVICE Place place_of_thread(const Tiling& tiling) {
  const int thread = static_cast<int>(thread_index());
  const int slots = tiling.group_heads * tiling.query_blocks;
  const int slot = thread % slots;
  return {thread < slots * tiling.splits, slot / tiling.query_blocks, slot % tiling.query_blocks,
          thread / slots, slot};
}

/// The same for fragments: a warp has eight columns, its lanes four by four one split each.
HEADLAB_DEVICE Place place_of_lane(const Tiling& tiling) {
  const int thread = static_cast<int>(thread_index());
  const int lane = thread % static_cast<int>(warp_threads);
  const int warp = thread / static_cast<int>(warp_threads);
  const int column_groups = tiling.query_blocks / 8;
  const int slots = tiling.group_heads * column_groups;
  const int head = warp % slots / column_groups;
  const int column = warp % slots % column_groups * 8 + lane / 4;
  return {warp < slots * (tiling.splits / 4), head, column, warp / slots * 4 + lane % 4,
          head * tiling.query_blocks + column};
}

/// Query rows of one head, from the first query of the block on.
HEADLAB_DEVICE const float* query_row(const WeighArguments& a, const float* rows, int head, int row,
                                      int first_query) {
  return rows + static_cast<std::int64_t>(head * a.padded_k + row) * a.queries.padded + first_query;
}

/// Squared distances of four queries to four keys, K coordinates in registers.
template <int K>
struct Distances {
  static constexpr int queries = thread_queries;
  static constexpr int keys = 4;       ///< of a thread in a step
  static constexpr int step_keys = 4;  ///< of all lanes that share a step
  static constexpr bool norms = false;
  static constexpr bool product = false;
  float query[K][queries];

  HEADLAB_DEVICE static Place place(const Tiling& tiling) { return place_of_thread(tiling); }
  HEADLAB_DEVICE static int first_key(const Place&, int step) { return step * step_keys; }

  HEADLAB_DEVICE void load(const WeighArguments& a, int head, const Place& place, int first_query) {
    HEADLAB_UNROLL
    for (int j = 0; j < K; ++j) {
      const float* row = query_row(a, a.queries.points, head, j, first_query);
      HEADLAB_UNROLL
      for (int i = 0; i < queries; ++i) {
        query[j][i] = row[place.column + i * a.tiling.query_blocks];
      }
    }
  }

  /// rows [K][tile_stride]: the staged keys of the head.
  HEADLAB_DEVICE void exponents(const WeighArguments&, const float* rows, const float*, int key,
                                float (&t)[queries][keys]) const {
    HEADLAB_UNROLL
    for (int j = 0; j < K; ++j) {
      const Four k = *reinterpret_cast<const Four*>(rows + j * tile_stride + key);
      HEADLAB_UNROLL
      for (int i = 0; i < queries; ++i) {
        HEADLAB_UNROLL
        for (int c = 0; c < keys; ++c) {
          const float difference = k.v[c] - query[j][i];
          t[i][c] = j == 0 ? difference * difference : math::fused(difference, difference, t[i][c]);
        }
      }
    }
  }
};

/// Products of four queries and four keys, K coordinates in registers.
template <int K>
struct Dots {
  static constexpr int queries = thread_queries;
  static constexpr int keys = 4;
  static constexpr int step_keys = 4;
  static constexpr bool norms = true;
  static constexpr bool product = true;
  float query[K][queries];
  float shift[queries];

  HEADLAB_DEVICE static Place place(const Tiling& tiling) { return place_of_thread(tiling); }
  HEADLAB_DEVICE static int first_key(const Place&, int step) { return step * step_keys; }

  HEADLAB_DEVICE void load(const WeighArguments& a, int head, const Place& place, int first_query) {
    const float* shifts =
        a.queries.shifts + static_cast<std::int64_t>(head) * a.queries.padded + first_query;
    HEADLAB_UNROLL
    for (int i = 0; i < queries; ++i) shift[i] = shifts[place.column + i * a.tiling.query_blocks];
    HEADLAB_UNROLL
    for (int j = 0; j < K; ++j) {
      const float* row = query_row(a, a.queries.products, head, j, first_query);
      HEADLAB_UNROLL
      for (int i = 0; i < queries; ++i) {
        query[j][i] = row[place.column + i * a.tiling.query_blocks];
      }
    }
  }

  HEADLAB_DEVICE void exponents(const WeighArguments&, const float* rows, const float* norm,
                                int key, float (&t)[queries][keys]) const {
    const Four n = *reinterpret_cast<const Four*>(norm + key);
    HEADLAB_UNROLL
    for (int i = 0; i < queries; ++i) {
      HEADLAB_UNROLL
      for (int c = 0; c < keys; ++c) t[i][c] = n.v[c] + shift[i];
    }
    HEADLAB_UNROLL
    for (int j = 0; j < K; ++j) {
      const Four k = *reinterpret_cast<const Four*>(rows + j * tile_stride + key);
      HEADLAB_UNROLL
      for (int i = 0; i < queries; ++i) {
        HEADLAB_UNROLL
        for (int c = 0; c < keys; ++c) t[i][c] = math::fused(query[j][i], k.v[c], t[i][c]);
      }
    }
  }
};

/// A float as the sum of two of which the tensor cores, that read 11 significant bits, lose little:
/// the nearest number of 11 bits, and what is left, at most 2^-11 of it.
struct Split {
  float high, low;
};
HEADLAB_DEVICE Split split_tf32(float x) {
  const float high = math::from_bits((math::to_bits(x) + 0x1000u) & 0xffffe000u);
  return {high, x - high};
}

/// Products on the tensor cores: a warp multiplies its queries with 8 keys, 8 coordinates at a
/// time, as hi hi + hi lo + lo hi. Lane (g, c) = (lane / 4, lane % 4) ends with the queries of
/// column g and the keys 2 c, 2 c + 1.
template <int Chunks>
struct TensorDots {
  /// Of 16 queries each; with eight chunks the registers hold no more than one.
  static constexpr int fragments = Chunks > 4 ? 1 : 2;
  static constexpr int queries = 2 * fragments;
  static constexpr int keys = 2;
  static constexpr int step_keys = 8;
  static constexpr bool norms = true;
  static constexpr bool product = true;
  float high[fragments][Chunks][4];
  float low[fragments][Chunks][4];
  float shift[queries];

  HEADLAB_DEVICE static Place place(const Tiling& tiling) { return place_of_lane(tiling); }
  HEADLAB_DEVICE static int first_key(const Place& place, int step) {
    return step * step_keys + 2 * (place.split % 4);
  }

  HEADLAB_DEVICE void load(const WeighArguments& a, int head, const Place& place, int first_query) {
    const float* shifts =
        a.queries.shifts + static_cast<std::int64_t>(head) * a.queries.padded + first_query;
    HEADLAB_UNROLL
    for (int i = 0; i < queries; ++i) shift[i] = shifts[place.column + i * a.tiling.query_blocks];
    HEADLAB_UNROLL
    for (int fragment = 0; fragment < fragments; ++fragment) {
      HEADLAB_UNROLL
      for (int chunk = 0; chunk < Chunks; ++chunk) {
        HEADLAB_UNROLL
        for (int e = 0; e < 4; ++e) {
          // Element e of a fragment: query row g or g + 8, coordinate c or c + 4.
          const int i = 2 * fragment + e % 2;
          const int row = 8 * chunk + place.split % 4 + 4 * (e / 2);
          const Split s =
              split_tf32(query_row(a, a.queries.products, head, row,
                                   first_query)[place.column + i * a.tiling.query_blocks]);
          high[fragment][chunk][e] = s.high;
          low[fragment][chunk][e] = s.low;
        }
      }
    }
  }

  HEADLAB_DEVICE void exponents(const WeighArguments&, const float* rows, const float* norm,
                                int key, float (&t)[queries][keys]) const {
    const int lane = static_cast<int>(thread_index() % warp_threads);
    const int c = lane % 4;
    const int first = key - 2 * c;
    float sum[fragments][4];
    HEADLAB_UNROLL
    for (int fragment = 0; fragment < fragments; ++fragment) {
      HEADLAB_UNROLL
      for (int e = 0; e < 4; ++e) {
        sum[fragment][e] = norm[key + e % 2] + shift[2 * fragment + e / 2];
      }
    }
    HEADLAB_UNROLL
    for (int chunk = 0; chunk < Chunks; ++chunk) {
      const float* at = rows + (8 * chunk + c) * tile_stride + first + lane / 4;
      const Split upper = split_tf32(at[0]);
      const Split lower = split_tf32(at[4 * tile_stride]);
      const float key_high[2] = {upper.high, lower.high};
      const float key_low[2] = {upper.low, lower.low};
      HEADLAB_UNROLL
      for (int fragment = 0; fragment < fragments; ++fragment) {
        // Tensor cores cut their sums off, always towards zero: a sum that starts at zero is small
        // and its error with it, and what is large is added with rounding.
        float part[4] = {};
        multiply_add_tf32(part, low[fragment][chunk], key_high);
        multiply_add_tf32(part, high[fragment][chunk], key_low);
        multiply_add_tf32(part, high[fragment][chunk], key_high);
        HEADLAB_UNROLL
        for (int e = 0; e < 4; ++e) sum[fragment][e] += part[e];
      }
    }
    HEADLAB_UNROLL
    for (int i = 0; i < queries; ++i) {
      HEADLAB_UNROLL
      for (int e = 0; e < keys; ++e) t[i][e] = sum[i / 2][2 * (i % 2) + e];
    }
  }
};

/// One query a thread and any number of coordinates: distances, or products where the law has them.
struct AnyForm {
  static constexpr int queries = 1;
  static constexpr int keys = 4;
  static constexpr int step_keys = 4;
  static constexpr bool norms = true;  // as a mask for the padding
  static constexpr bool product = false;
  const float* query;
  float shift;

  HEADLAB_DEVICE static Place place(const Tiling& tiling) { return place_of_thread(tiling); }
  HEADLAB_DEVICE static int first_key(const Place&, int step) { return step * step_keys; }

  HEADLAB_DEVICE void load(const WeighArguments& a, int head, const Place& place, int first_query) {
    const bool multiplies = a.exponent == Exponent::product;
    query = query_row(a, multiplies ? a.queries.products : a.queries.points, head, 0,
                      first_query + place.column);
    shift = multiplies ? a.queries.shifts[static_cast<std::int64_t>(head) * a.queries.padded +
                                          first_query + place.column]
                       : 0.0f;
  }

  HEADLAB_DEVICE void exponents(const WeighArguments& a, const float* rows, const float* norm,
                                int key, float (&t)[queries][keys]) const {
    const bool multiplies = a.exponent == Exponent::product;
    float sum[keys] = {};
    for (int j = 0; j < a.padded_k; ++j) {
      const Four k = *reinterpret_cast<const Four*>(rows + j * tile_stride + key);
      const float q = query[static_cast<std::int64_t>(j) * a.queries.padded];
      HEADLAB_UNROLL
      for (int c = 0; c < keys; ++c) {
        const float difference = multiplies ? k.v[c] : k.v[c] - q;
        sum[c] = math::fused(multiplies ? q : difference, difference, sum[c]);
      }
    }
    const Four n = *reinterpret_cast<const Four*>(norm + key);
    HEADLAB_UNROLL
    for (int c = 0; c < keys; ++c) {
      t[0][c] = multiplies ? sum[c] + (n.v[c] + shift) : sum[c] - n.v[c];
    }
  }
};

/// Kernel values from what a form computed: w <- 2^exponent.
template <class Form, int Queries, int Keys>
HEADLAB_DEVICE void to_weights(const WeighArguments& a, float (&w)[Queries][Keys]) {
  if (!Form::product) {
    if (a.exponent == Exponent::minus_distance) {
      HEADLAB_UNROLL
      for (auto& row : w) {
        HEADLAB_UNROLL
        for (float& value : row) value = -value;
      }
    } else if (a.exponent == Exponent::law) {
      a.kernel.visit([&](const auto& law) {
        HEADLAB_UNROLL
        for (auto& row : w) {
          HEADLAB_UNROLL
          for (float& value : row) value = law.log_weight(value) * log2_e;
        }
      });
    }
  }
  HEADLAB_UNROLL
  for (auto& row : w) {
    HEADLAB_UNROLL
    for (float& value : row) value = exp2_unit(value);
  }
}

/// One staged tile in shared memory: the keys of a group of heads, each head row by row with its
/// norms after them, then values and noise scales.
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
  constexpr int pieces = tile_keys / 4;
  const Points& points = a.points;
  const int first_head = head_group * a.tiling.group_heads;
  const int heads = smaller(a.tiling.group_heads, a.totals.heads - first_head);
  const int rows = heads * a.padded_k;
  const float* keys = points.keys_of(replicate) +
                      static_cast<std::int64_t>(first_head) * a.padded_k * points.slice_points +
                      first_key;
  for (int piece = static_cast<int>(thread_index()); piece < (rows + 2) * pieces;
       piece += static_cast<int>(block_threads())) {
    const int row = piece / pieces;
    const int at = piece % pieces * 4;
    if (row < rows) {
      copy_async(stage.rows(row / a.padded_k) + row % a.padded_k * tile_stride + at,
                 keys + row * points.slice_points + at);
    } else if (row == rows) {
      copy_async(stage.values + at, points.values_of(replicate) + first_key + at);
    } else {
      copy_async(stage.scales + at, points.scales_of(replicate) + first_key + at);
    }
  }
}

/// Takes the padding out of a tile, and computes the norms of its keys where the form needs them.
/// True if anything was written.
template <class Form>
HEADLAB_DEVICE bool prepare(const WeighArguments& a, const Stage& stage, int heads,
                            std::int64_t first_key) {
  const auto left = static_cast<std::int64_t>(a.points.n) - first_key;
  const int thread = static_cast<int>(thread_index());
  const int threads = static_cast<int>(block_threads());
  if (Form::norms) {
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

/// Calls work(stage, head_group, tile) for each tile of the chunk, and in it for each group of
/// heads from first_group up to last_group, with that group's keys staged. Barriers stand before
/// and after every call.
template <class Form, class Work>
HEADLAB_DEVICE void for_each_stage(const WeighArguments& a, float* shared, const Part& part,
                                   int first_group, int groups, const Work& work) {
  const std::int64_t begin = part.chunk * a.tiling.chunk_keys;
  const std::int64_t left = a.points.padded_n - begin;
  const std::int64_t keys = left < a.tiling.chunk_keys ? left : a.tiling.chunk_keys;
  const int stages = static_cast<int>(keys / tile_keys) * groups;
  auto copy = [&](int stage) {
    start_copies(a, stage_at(shared, a, stage % 2), part.replicate, first_group + stage % groups,
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
    if (prepare<Form>(a, stage, heads, begin + static_cast<std::int64_t>(s / groups) * tile_keys)) {
      synchronise_block();
    }
    work(stage, group, s / groups);
    synchronise_block();
  }
}

/// Kernel values of a group of heads at the queries of the block, into weights
/// [block_queries][head_rows][tile_keys + 4], queries query_stride apart: what the pairs of heads
/// and the ensemble are summed from. `loaded` remembers whose queries are in the registers.
struct WeightTile {
  float* weights;
  int query_stride;
};

template <class Form>
HEADLAB_DEVICE void store_weights(const WeighArguments& a, Form& form, int& loaded,
                                  const Place& place, const Stage& stage, int group, int first_row,
                                  int first_query, const WeightTile& tile) {
  const int head = group * a.tiling.group_heads + place.head;
  if (!place.active || head >= a.totals.heads) return;
  if (loaded != head) {
    form.load(a, head, place, first_query);
    loaded = head;
  }
  const float* rows = stage.rows(place.head);
  const float* norms = stage.norms(place.head);
  const int lanes = Form::step_keys / Form::keys;
  for (int step = place.split / lanes; step < tile_keys / Form::step_keys;
       step += a.tiling.splits / lanes) {
    const int key = Form::first_key(place, step);
    float w[Form::queries][Form::keys];
    form.exponents(a, rows, norms, key, w);
    to_weights<Form>(a, w);
    HEADLAB_UNROLL
    for (int i = 0; i < Form::queries; ++i) {
      float* out = tile.weights + (place.column + i * a.tiling.query_blocks) * tile.query_stride +
                   weight_row(first_row + place.head) + key;
      if constexpr (Form::keys == 4) {
        *reinterpret_cast<Four*>(out) = {w[i][0], w[i][1], w[i][2], w[i][3]};
      } else {
        HEADLAB_UNROLL
        for (int c = 0; c < Form::keys; ++c) out[c] = w[i][c];
      }
    }
  }
}

/// Calls run.template operator()<F>() with the type F of a form.
template <class Run>
void with_form(Form form, const Run& run) {
  switch (form) {
    case Form::distances2:
      return run.template operator()<Distances<2>>();
    case Form::distances4:
      return run.template operator()<Distances<4>>();
    case Form::distances8:
      return run.template operator()<Distances<8>>();
    case Form::dots4:
      return run.template operator()<Dots<4>>();
    case Form::dots8:
      return run.template operator()<Dots<8>>();
    case Form::tensor16:
      return run.template operator()<TensorDots<2>>();
    case Form::tensor32:
      return run.template operator()<TensorDots<4>>();
    case Form::tensor64:
      return run.template operator()<TensorDots<8>>();
    case Form::any:
      return run.template operator()<AnyForm>();
  }
}

inline Launch launch_of(const WeighArguments& a, std::int64_t replicates, int head_groups) {
  return {.blocks_x = static_cast<unsigned>(replicates * a.tiling.chunks * a.tiling.query_groups *
                                            head_groups),
          .threads = static_cast<unsigned>(a.tiling.threads),
          .shared_bytes = a.tiling.shared_bytes};
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
