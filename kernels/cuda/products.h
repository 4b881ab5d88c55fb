// SPDX-License-Identifier: Apache-2.0
/// \file Exponents of kernel values, from keys staged in shared memory and queries in registers:
/// the microkernels of the weighing kernels, one struct each.
///
/// Ladder (issue slots of one kernel value at d_k = k, next to which the exponential unit is busy
/// for 8; none of it has been timed on a GPU yet):
///   v1  one thread per query, keys from global memory, squared differences: fallback.cu
///   v2  keys in shared memory, four queries per thread: each loaded key is used four times;
///       2 k + 4 slots                                                     (distances2, 4, 8)
///   v3  products, norms once per tile: k + 5 slots                                (dots4, 8)
///   v4  products on the tensor cores, in three TF32 products hi hi + hi lo + lo hi: k / 8 + 6
///       slots, and 3 k / 8 fragments for 128 values                    (tensor16, 32, 64)
///
/// Accuracy. Exponents are float32: the error of a product is 2^-24 times the largest of |query|^2
/// and |key|^2 in units of the kernel, a few times over, so launch_plan.cpp takes products only for
/// queries near the centre that keys are measured from. Split products lose at most 2^-20 of
/// |query| |key|, most of it where the lower halves are cut to 11 bits.
#pragma once

#include <cstdint>

#include "kernels/cuda/arguments.h"
#include "kernels/cuda/device.h"
#include "kernels/math.h"

#if defined(HEADLAB_DEVICE)  // under nvcc and in the emulated build
namespace headlab::HEADLAB_CUDA_NAMESPACE {

inline constexpr float log2_e = 1.442695041f;

/// Share of a thread in a staged tile: `queries` of one head, and every splits-th step of keys.
struct Place {
  bool active;
  int head;    ///< in the group
  int column;  ///< its queries are column + i query_columns
  int split;
  int slot;  ///< head query_columns + column
};

/// Threads vary fastest over columns, so that neighbours share keys, then over heads, then splits.
HEADLAB_DEVICE Place place_of_thread(const Tiling& tiling) {
  const int thread = static_cast<int>(thread_index());
  const int slots = tiling.group_heads * tiling.query_columns;
  const int slot = thread % slots;
  return {thread < slots * tiling.splits, slot / tiling.query_columns, slot % tiling.query_columns,
          thread / slots, slot};
}

/// Place for fragments: a warp has eight columns, and each of the four lanes of a column a split.
HEADLAB_DEVICE Place place_of_lane(const Tiling& tiling) {
  const int thread = static_cast<int>(thread_index());
  const int lane = thread % static_cast<int>(warp_threads);
  const int warp = thread / static_cast<int>(warp_threads);
  const int column_groups = tiling.query_columns / 8;
  const int slots = tiling.group_heads * column_groups;
  const int head = warp % slots / column_groups;
  const int column = warp % slots % column_groups * 8 + lane / 4;
  return {warp < slots * (tiling.splits / 4), head, column, warp / slots * 4 + lane % 4,
          head * tiling.query_columns + column};
}

/// Coordinate `row` of the queries of one head, from the first query of the thread block on.
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
        query[j][i] = row[place.column + i * a.tiling.query_columns];
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
    for (int i = 0; i < queries; ++i) shift[i] = shifts[place.column + i * a.tiling.query_columns];
    HEADLAB_UNROLL
    for (int j = 0; j < K; ++j) {
      const float* row = query_row(a, a.queries.products, head, j, first_query);
      HEADLAB_UNROLL
      for (int i = 0; i < queries; ++i) {
        query[j][i] = row[place.column + i * a.tiling.query_columns];
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

/// A float as the nearest number of 11 significant bits, which is what tensor cores read, and the
/// rest, at most 2^-11 of it.
struct SplitFloat {
  float high, low;
};
HEADLAB_DEVICE SplitFloat split_tf32(float x) {
  const float high = math::from_bits((math::to_bits(x) + 0x1000u) & 0xffffe000u);
  return {high, x - high};
}

/// Products on the tensor cores: a warp multiplies its queries by 8 keys in KSteps steps of 8
/// coordinates, as hi hi + hi lo + lo hi. Lane (g, c) = (lane / 4, lane % 4) receives the queries
/// of column g and the keys 2 c, 2 c + 1.
template <int KSteps>
struct TensorDots {
  /// Of 16 queries each; with eight steps the registers hold only one.
  static constexpr int fragments = KSteps > 4 ? 1 : 2;
  static constexpr int queries = 2 * fragments;
  static constexpr int keys = 2;
  static constexpr int step_keys = 8;
  static constexpr bool norms = true;
  static constexpr bool product = true;
  float high[fragments][KSteps][4];
  float low[fragments][KSteps][4];
  float shift[queries];

  HEADLAB_DEVICE static Place place(const Tiling& tiling) { return place_of_lane(tiling); }
  HEADLAB_DEVICE static int first_key(const Place& place, int step) {
    return step * step_keys + 2 * (place.split % 4);
  }

  HEADLAB_DEVICE void load(const WeighArguments& a, int head, const Place& place, int first_query) {
    const float* shifts =
        a.queries.shifts + static_cast<std::int64_t>(head) * a.queries.padded + first_query;
    HEADLAB_UNROLL
    for (int i = 0; i < queries; ++i) shift[i] = shifts[place.column + i * a.tiling.query_columns];
    HEADLAB_UNROLL
    for (int fragment = 0; fragment < fragments; ++fragment) {
      HEADLAB_UNROLL
      for (int step = 0; step < KSteps; ++step) {
        HEADLAB_UNROLL
        for (int e = 0; e < 4; ++e) {
          // Element e of a fragment: query row g or g + 8, coordinate c or c + 4.
          const int i = 2 * fragment + e % 2;
          const int row = 8 * step + place.split % 4 + 4 * (e / 2);
          const SplitFloat s =
              split_tf32(query_row(a, a.queries.products, head, row,
                                   first_query)[place.column + i * a.tiling.query_columns]);
          high[fragment][step][e] = s.high;
          low[fragment][step][e] = s.low;
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
    for (int step = 0; step < KSteps; ++step) {
      const float* at = rows + (8 * step + c) * tile_stride + first + lane / 4;
      const SplitFloat upper = split_tf32(at[0]);
      const SplitFloat lower = split_tf32(at[4 * tile_stride]);
      const float key_high[2] = {upper.high, lower.high};
      const float key_low[2] = {upper.low, lower.low};
      HEADLAB_UNROLL
      for (int fragment = 0; fragment < fragments; ++fragment) {
        // Tensor cores truncate their sums: a sum that starts at zero is small, and its error with
        // it; large sums are added with rounding.
        float terms[4] = {};
        multiply_add_tf32(terms, low[fragment][step], key_high);
        multiply_add_tf32(terms, high[fragment][step], key_low);
        multiply_add_tf32(terms, high[fragment][step], key_high);
        HEADLAB_UNROLL
        for (int e = 0; e < 4; ++e) sum[fragment][e] += terms[e];
      }
    }
    HEADLAB_UNROLL
    for (int i = 0; i < queries; ++i) {
      HEADLAB_UNROLL
      for (int e = 0; e < keys; ++e) t[i][e] = sum[i / 2][2 * (i % 2) + e];
    }
  }
};

/// One query per thread and any number of coordinates: distances, or products where the law has
/// them.
struct AnyDimension {
  static constexpr int queries = 1;
  static constexpr int keys = 4;
  static constexpr int step_keys = 4;
  static constexpr bool norms = true;  // a mask for the padding
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

/// Kernel values from the results of a microkernel: w <- 2^exponent.
template <class Micro, int Queries, int Keys>
HEADLAB_DEVICE void to_weights(const WeighArguments& a, float (&w)[Queries][Keys]) {
  if (!Micro::product) {
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

/// Calls run.template operator()<M>() with the struct M of a microkernel.
template <class Run>
void with_microkernel(Microkernel microkernel, const Run& run) {
  switch (microkernel) {
    case Microkernel::distances2:
      return run.template operator()<Distances<2>>();
    case Microkernel::distances4:
      return run.template operator()<Distances<4>>();
    case Microkernel::distances8:
      return run.template operator()<Distances<8>>();
    case Microkernel::dots4:
      return run.template operator()<Dots<4>>();
    case Microkernel::dots8:
      return run.template operator()<Dots<8>>();
    case Microkernel::tensor16:
      return run.template operator()<TensorDots<2>>();
    case Microkernel::tensor32:
      return run.template operator()<TensorDots<4>>();
    case Microkernel::tensor64:
      return run.template operator()<TensorDots<8>>();
    case Microkernel::any:
      return run.template operator()<AnyDimension>();
  }
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
#endif
