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
#include <type_traits>

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
template <int K, int Queries>
HEADLAB_DEVICE void load_queries(const WeighArguments& a, const float* rows, int head,
                                 const Place& place, int first_query, float (&query)[K][Queries]) {
  HEADLAB_UNROLL
  for (int j = 0; j < K; ++j) {
    const float* row = query_row(a, rows, head, j, first_query) + place.column;
    HEADLAB_UNROLL
    for (int i = 0; i < Queries; ++i) query[j][i] = row[i * a.tiling.query_columns];
  }
}
template <int Queries>
HEADLAB_DEVICE void load_shifts(const WeighArguments& a, int head, const Place& place,
                                int first_query, float (&shift)[Queries]) {
  const float* row = a.queries.shifts + static_cast<std::int64_t>(head) * a.queries.padded +
                     first_query + place.column;
  HEADLAB_UNROLL
  for (int i = 0; i < Queries; ++i) shift[i] = row[i * a.tiling.query_columns];
}

/// Numbers of neighbouring keys, loaded together.
template <int Keys>
struct alignas(4 * Keys) OfKeys {
  float v[Keys];
};
template <int Keys>
HEADLAB_DEVICE const OfKeys<Keys>& keys_at(const float* numbers) {
  return *reinterpret_cast<const OfKeys<Keys>*>(numbers);
}

/// Minus squared distances of queries to keys, K coordinates in registers.
template <int K, int Queries, int Keys>
struct Distances {
  static constexpr int padded_k = K;
  static constexpr int queries = Queries;
  static constexpr int keys = Keys;             ///< of a thread in a step
  static constexpr int step_keys = Keys;        ///< of all lanes that share a step
  static constexpr bool in_registers = K <= 4;  ///< pairs of heads, see register_pairs.cu
  static constexpr bool norms = false;
  static constexpr bool product = false;
  static constexpr bool shifted = true;
  float query[K][queries];

  HEADLAB_DEVICE static Place place(const Tiling& tiling) { return place_of_thread(tiling); }
  HEADLAB_DEVICE static int first_key(const Place&, int step) { return step * step_keys; }

  HEADLAB_DEVICE void load(const WeighArguments& a, int head, const Place& place, int first_query) {
    load_queries(a, a.queries.points, head, place, first_query, query);
  }

  /// rows [K][stride]: the staged keys of the head.
  template <int stride>
  HEADLAB_DEVICE void exponents(const WeighArguments&, const float* rows, const float*, int key,
                                float (&t)[queries][keys]) const {
    HEADLAB_UNROLL
    for (int j = 0; j < K; ++j) {
      const auto k = keys_at<Keys>(rows + j * stride + key);
      HEADLAB_UNROLL
      for (int i = 0; i < queries; ++i) {
        HEADLAB_UNROLL
        for (int c = 0; c < keys; ++c) {
          const float difference = k.v[c] - query[j][i];
          t[i][c] = math::fused(-difference, difference, j == 0 ? 0.0f : t[i][c]);
        }
      }
    }
  }
};

/// Products of queries and keys, K coordinates in registers. Without `Shifted` the exponents lack
/// the shift of their query, a factor of all sums of a head that no result depends on.
template <int K, int Queries, int Keys, bool Shifted>
struct Dots {
  static constexpr int padded_k = K;
  static constexpr int queries = Queries;
  static constexpr int keys = Keys;
  static constexpr int step_keys = Keys;
  static constexpr bool in_registers = K <= 4;
  static constexpr bool norms = true;
  static constexpr bool product = true;
  static constexpr bool shifted = Shifted;
  float query[K][queries];
  float shift[Shifted ? queries : 1];

  HEADLAB_DEVICE static Place place(const Tiling& tiling) { return place_of_thread(tiling); }
  HEADLAB_DEVICE static int first_key(const Place&, int step) { return step * step_keys; }

  HEADLAB_DEVICE void load(const WeighArguments& a, int head, const Place& place, int first_query) {
    if constexpr (Shifted) load_shifts(a, head, place, first_query, shift);
    load_queries(a, a.queries.products, head, place, first_query, query);
  }

  template <int stride>
  HEADLAB_DEVICE void exponents(const WeighArguments&, const float* rows, const float* norm,
                                int key, float (&t)[queries][keys]) const {
    const auto n = keys_at<Keys>(norm + key);
    HEADLAB_UNROLL
    for (int i = 0; i < queries; ++i) {
      HEADLAB_UNROLL
      for (int c = 0; c < keys; ++c) {
        if constexpr (Shifted) {
          t[i][c] = n.v[c] + shift[i];
        } else {
          t[i][c] = n.v[c];
        }
      }
    }
    HEADLAB_UNROLL
    for (int j = 0; j < K; ++j) {
      const auto k = keys_at<Keys>(rows + j * stride + key);
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
  static constexpr int padded_k = 8 * KSteps;
  static constexpr int queries = 2 * fragments;
  static constexpr int keys = 2;
  static constexpr int step_keys = 8;
  static constexpr bool in_registers = false;
  static constexpr bool norms = true;
  static constexpr bool product = true;
  static constexpr bool shifted = true;
  float high[fragments][KSteps][4];
  float low[fragments][KSteps][4];
  float shift[queries];

  HEADLAB_DEVICE static Place place(const Tiling& tiling) { return place_of_lane(tiling); }
  HEADLAB_DEVICE static int first_key(const Place& place, int step) {
    return step * step_keys + 2 * (place.split % 4);
  }

  HEADLAB_DEVICE void load(const WeighArguments& a, int head, const Place& place, int first_query) {
    load_shifts(a, head, place, first_query, shift);
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

  template <int stride>
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
      const float* at = rows + (8 * step + c) * stride + first + lane / 4;
      const SplitFloat upper = split_tf32(at[0]);
      const SplitFloat lower = split_tf32(at[4 * stride]);
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
  static constexpr int padded_k = 0;  // that of the launch
  static constexpr int queries = 1;
  static constexpr int keys = 4;
  static constexpr int step_keys = 4;
  static constexpr bool in_registers = false;
  static constexpr bool norms = true;  // a mask for the padding
  static constexpr bool product = false;
  static constexpr bool shifted = true;
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

  template <int stride>
  HEADLAB_DEVICE void exponents(const WeighArguments& a, const float* rows, const float* norm,
                                int key, float (&t)[queries][keys]) const {
    const bool multiplies = a.exponent == Exponent::product;
    float sum[keys] = {};
    for (int j = 0; j < a.padded_k; ++j) {
      const Four k = *reinterpret_cast<const Four*>(rows + j * stride + key);
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
      t[0][c] = multiplies ? sum[c] + (n.v[c] + shift) : n.v[c] - sum[c];
    }
  }
};

/// A float whose square root comes from the unit of a multiprocessor, for the laws.
struct UnitFloat {
  float x;
  HEADLAB_DEVICE explicit UnitFloat(float value) : x(value) {}
  HEADLAB_DEVICE explicit UnitFloat(double value) : x(static_cast<float>(value)) {}
  HEADLAB_DEVICE explicit UnitFloat(int value) : x(static_cast<float>(value)) {}
  HEADLAB_DEVICE friend UnitFloat operator-(UnitFloat a, UnitFloat b) {
    return UnitFloat(a.x - b.x);
  }
  HEADLAB_DEVICE friend UnitFloat operator*(UnitFloat a, UnitFloat b) {
    return UnitFloat(a.x * b.x);
  }
  HEADLAB_DEVICE friend UnitFloat max(UnitFloat a, UnitFloat b) {
    return UnitFloat(math::max(a.x, b.x));
  }
  HEADLAB_DEVICE friend UnitFloat sqrt(UnitFloat a) { return UnitFloat(sqrt_unit(a.x)); }
};

/// x <- map(x) for every number of an array of any shape.
template <class Numbers, class Map>
HEADLAB_DEVICE void map_numbers(Numbers& numbers, const Map& map) {
  if constexpr (std::is_array_v<Numbers>) {
    HEADLAB_UNROLL
    for (auto& part : numbers) map_numbers(part, map);
  } else {
    numbers = map(numbers);
  }
}

/// Kernel values from the results of a microkernel: w <- 2^exponent, or the law of w = -distance.
template <class Micro, class Weights>
HEADLAB_DEVICE void to_weights(const WeighArguments& a, Weights& w) {
  bool done = false;
  if (!Micro::product && a.exponent == Exponent::law) {
    a.kernel.visit([&]<class Law>(const Law& law) {
      if constexpr (HasNormCoefficient<Law>) return;
      done = HasWeight<Law>;
      map_numbers(w, [&](float value) {
        // Not -value, which the compiler would compute in place of value.
        const UnitFloat distance(math::abs(value));
        if constexpr (HasWeight<Law>) {
          return law.weight(distance).x;
        } else {
          return law.log_weight(distance).x * log2_e;
        }
      });
    });
  }
  if (!done) map_numbers(w, [](float value) { return exp2_unit(value); });
}

/// Calls run.template operator()<M>() with the struct M of a microkernel, which has `Queries`
/// queries and `Keys` keys of a thread on the CUDA cores.
template <int Queries, int Keys, class Run>
void with_microkernel(Microkernel microkernel, const Run& run) {
  switch (microkernel) {
    case Microkernel::distances1:
      return run.template operator()<Distances<1, Queries, Keys>>();
    case Microkernel::distances2:
      return run.template operator()<Distances<2, Queries, Keys>>();
    case Microkernel::distances4:
      return run.template operator()<Distances<4, Queries, Keys>>();
    case Microkernel::distances8:
      return run.template operator()<Distances<8, Queries, Keys>>();
    case Microkernel::dots1:
      return run.template operator()<Dots<1, Queries, Keys, false>>();
    case Microkernel::dots2:
      return run.template operator()<Dots<2, Queries, Keys, false>>();
    case Microkernel::dots3:
      return run.template operator()<Dots<3, Queries, Keys, false>>();
    case Microkernel::dots4:
      return run.template operator()<Dots<4, Queries, Keys, false>>();
    case Microkernel::shifted4:
      return run.template operator()<Dots<4, Queries, Keys, true>>();
    case Microkernel::shifted8:
      return run.template operator()<Dots<8, Queries, Keys, true>>();
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
