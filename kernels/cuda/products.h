// SPDX-License-Identifier: Apache-2.0
/// \file Exponents of kernel values, from keys staged in shared memory and queries in registers:
/// the microkernels of the weighing kernels, one struct each.
///
/// Accuracy. Exponents are float32: the error of a product is 2^-24 times the largest of |query|^2
/// and |key|^2 in units of the kernel, a few times over, so launch_plan.cpp takes products only for
/// queries near the centre that keys are measured from. Of split products lo lo is left out, 2^-22
/// of |query| |key|, and the lower parts are rounded to as much; coordinates below 2^-3 have an
/// error of 2^-25, which is as small. Tensor cores truncate the nine terms of eight coordinates
/// and their sum, three times for each eight: together at most 11 2^-24 of the largest term each
/// time, as emulator.h has it of an A100.
///
/// Range. A coordinate beyond 65504 has no float16. Such a key is out of reach of all queries where
/// products are distances, and has no weight. With softmax its norm becomes NaN, and the fallback
/// sums the rows that read it.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/arguments.h"
#include "kernels/cuda/device.h"
#include "kernels/math.h"

#if defined(HEADLAB_DEVICE)  // under nvcc and in the emulated build
namespace headlab::HEADLAB_CUDA_NAMESPACE {

HEADLAB_DEVICE int smaller(int a, int b) {
  return a < b ? a : b;
}

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
HEADLAB_DEVICE Place place_of_thread(const Tiling& tiling, int thread) {
  const int slots = tiling.group_heads * tiling.query_columns;
  const int slot = thread % slots;
  return {thread < slots * tiling.splits, slot / tiling.query_columns, slot % tiling.query_columns,
          thread / slots, slot};
}

/// The thread of a place where a block has one head in a group.
HEADLAB_DEVICE int thread_of_place(const Tiling& tiling, int split, int column) {
  return split * tiling.query_columns + column;
}

/// Place for fragments: a warp has eight columns, and each of the four lanes of a column a split.
HEADLAB_DEVICE Place place_of_lane(const Tiling& tiling, int thread) {
  const int lane = thread % static_cast<int>(warp_threads);
  const int warp = thread / static_cast<int>(warp_threads);
  const int column_groups = tiling.query_columns / 8;
  const int slots = tiling.group_heads * column_groups;
  const int head = warp % slots / column_groups;
  const int column = warp % slots % column_groups * 8 + lane / 4;
  return {warp < slots * (tiling.splits / 4), head, column, warp / slots * 4 + lane % 4,
          head * tiling.query_columns + column};
}

HEADLAB_DEVICE int lane_of_place(const Tiling& tiling, int split, int column) {
  const int warp = split / 4 * (tiling.query_columns / 8) + column / 8;
  return (warp * 8 + column % 8) * 4 + split % 4;
}

/// Coordinate `row` of the queries of one head, from the first query of the thread block on.
HEADLAB_DEVICE const float* query_row(const WeighArguments& a, const float* rows, int head, int row,
                                      int first_query) {
  return rows + static_cast<std::int64_t>(head * a.padded_k + row) * a.queries.padded + first_query;
}
/// Query of a thread with one column: column + i query_columns.
HEADLAB_DEVICE int query_in_columns(const Tiling& tiling, int column, int i) {
  return column + i * tiling.query_columns;
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

/// What the microkernels on the CUDA cores have in common: a thread has keys in a row.
template <int Keys>
struct KeysInARow {
  static constexpr int keys = Keys;       ///< of a thread in a step
  static constexpr int step_keys = Keys;  ///< of all lanes that share a step
  using Number = float;
  static constexpr bool halves = false;
  static constexpr bool scarce = false;

  HEADLAB_DEVICE static Place place(const Tiling& tiling, int thread) {
    return place_of_thread(tiling, thread);
  }
  HEADLAB_DEVICE static int thread_of(const Tiling& tiling, int split, int column) {
    return thread_of_place(tiling, split, column);
  }
  HEADLAB_DEVICE static int first_key(const Place&, int step) { return step * step_keys; }
  HEADLAB_DEVICE static int query_of(const Tiling& tiling, int column, int i) {
    return query_in_columns(tiling, column, i);
  }
};

/// Minus squared distances of queries to keys, K coordinates in registers.
template <int K, int Queries, int Keys>
struct Distances : KeysInARow<Keys> {
  static constexpr int padded_k = K;
  static constexpr int queries = Queries;
  static constexpr bool in_registers = K <= 4;  ///< pairs of heads, see register_pairs.cu
  static constexpr bool laws = true;
  static constexpr bool norms = false;
  static constexpr bool shifted = true;
  float query[K][queries];

  HEADLAB_DEVICE void load(const WeighArguments& a, int head, const Place& place, int first_query) {
    load_queries(a, a.queries.points, head, place, first_query, query);
  }

  /// rows [K][stride]: the staged keys of the head.
  template <int stride>
  HEADLAB_DEVICE void exponents(const WeighArguments&, const float* rows, const float*,
                                float (&t)[queries][Keys]) const {
    HEADLAB_UNROLL
    for (int j = 0; j < K; ++j) {
      const auto k = keys_at<Keys>(rows + j * stride);
      HEADLAB_UNROLL
      for (int i = 0; i < queries; ++i) {
        HEADLAB_UNROLL
        for (int c = 0; c < Keys; ++c) {
          const float difference = k.v[c] - query[j][i];
          t[i][c] = math::fused(-difference, difference, j == 0 ? 0.0f : t[i][c]);
        }
      }
    }
  }
};

/// Products of queries and keys, K coordinates in registers. Without `Shifted` the exponents lack
/// the shift of their query, a factor of all sums of a head that no result depends on.
/// \tparam Law a law of the distance
template <int K, int Queries, int Keys, bool Shifted, bool Law = false>
struct Dots : KeysInARow<Keys> {
  static constexpr int padded_k = K;
  static constexpr int queries = Queries;
  static constexpr bool in_registers = K <= 4;
  static constexpr bool laws = Law;
  static constexpr bool norms = true;
  static constexpr bool shifted = Shifted;
  float query[K][queries];
  float shift[Shifted ? queries : 1];

  HEADLAB_DEVICE void load(const WeighArguments& a, int head, const Place& place, int first_query) {
    if constexpr (Shifted) load_shifts(a, head, place, first_query, shift);
    load_queries(a, a.queries.products, head, place, first_query, query);
  }

  template <int stride>
  HEADLAB_DEVICE void exponents(const WeighArguments&, const float* rows, const float* norm,
                                float (&t)[queries][Keys]) const {
    const auto n = keys_at<Keys>(norm);
    HEADLAB_UNROLL
    for (int i = 0; i < queries; ++i) {
      HEADLAB_UNROLL
      for (int c = 0; c < Keys; ++c) {
        if constexpr (Shifted) {
          t[i][c] = n.v[c] + shift[i];
        } else {
          t[i][c] = n.v[c];
        }
      }
    }
    HEADLAB_UNROLL
    for (int j = 0; j < K; ++j) {
      const auto k = keys_at<Keys>(rows + j * stride);
      HEADLAB_UNROLL
      for (int i = 0; i < queries; ++i) {
        HEADLAB_UNROLL
        for (int c = 0; c < Keys; ++c) t[i][c] = math::fused(query[j][i], k.v[c], t[i][c]);
      }
    }
  }
};

/// Products on the tensor cores: a warp multiplies its queries by 8 keys in chunks of 16
/// coordinates, as lo hi + hi lo + hi hi of numbers split into two of float16. Lane (g, c) = (lane
/// / 4, lane % 4) receives the queries g and g + 8 of each fragment of 16 and the keys 2 c, 2 c
/// + 1. The fragments of the queries are in registers, or for pairs of heads read again for every
/// step, or every few steps.
/// \tparam Law a law of the distance
template <int K, int Fragments, bool InRegisters, bool Law>
struct TensorDots {
  static constexpr int padded_k = K;
  static constexpr int queries = 2 * Fragments;
  static constexpr int keys = 2;
  static constexpr int step_keys = 8;
  static constexpr bool in_registers = !(K >= 32 && Law);  // there they do not suffice
  static constexpr bool norms = true;
  static constexpr bool halves = true;
  static constexpr bool scarce = !InRegisters && (K >= 32 || Law);  ///< registers
  static constexpr bool laws = Law;
  static constexpr bool shifted = true;
  static constexpr int quads = fragment_quads(K);
  using Number = std::uint16_t;  ///< float16 of a staged key

  HEADLAB_DEVICE static Place place(const Tiling& tiling, int thread) {
    return place_of_lane(tiling, thread);
  }
  HEADLAB_DEVICE static int thread_of(const Tiling& tiling, int split, int column) {
    return lane_of_place(tiling, split, column);
  }
  HEADLAB_DEVICE static int first_key(const Place& place, int step) {
    return step * step_keys + 2 * (place.split % 4);
  }
  HEADLAB_DEVICE static int query_of(const Tiling&, int column, int i) {
    return (column / 8 * Fragments + i / 2) * fragment_queries + i % 2 * 8 + column % 8;
  }

  HEADLAB_DEVICE void load(const WeighArguments& a, int head, const Place& place, int first_query) {
    const int group =
        (first_query + query_of(a.tiling, place.column / 8 * 8, 0)) / fragment_queries;
    from_ = a.queries.fragments + thread_index() % warp_threads +
            (static_cast<std::int64_t>(group) * fragment_heads(a.totals.heads) + head) * head_words;
    fragments_apart_ = fragment_heads(a.totals.heads) * head_words;
    if constexpr (InRegisters) {
      HEADLAB_UNROLL
      for (int f = 0; f < Fragments; ++f) {
        shifts_[f] = shifts_of(f);
        HEADLAB_UNROLL
        for (int m = 0; m < chunks; ++m) words_[f][m] = read(f, m);
      }
    }
  }

  /// The fragments of the head, and their words: those of the next head follow.
  static constexpr int head_words = quads * static_cast<int>(warp_threads);
  HEADLAB_DEVICE const FourWords* fragments() const { return from_; }
  HEADLAB_DEVICE void read_from(const FourWords* fragments) { from_ = fragments; }

  /// rows [2 K][stride]: the staged keys of the head, their upper parts before the lower. Several
  /// steps read the queries once; t has the keys of one after those of the other.
  template <int stride, int Keys>
  HEADLAB_DEVICE void exponents(const WeighArguments&, const Number* rows, const float* norm,
                                float (&t)[queries][Keys]) const {
    constexpr int steps = Keys / keys;
    const int lane = static_cast<int>(thread_index() % warp_threads);
    const int matrix = lane / 8 % (2 * key_words);
    const int row = matrix / key_words * K + matrix % key_words * 8 + lane % 8;
    const Number* from = rows + row * stride - lane % 4 * 2;
    float sum[Fragments][steps][4];
    HEADLAB_UNROLL
    for (int f = 0; f < Fragments; ++f) {
      const FourWords shifts = InRegisters ? shifts_[f] : shifts_of(f);
      HEADLAB_UNROLL
      for (int u = 0; u < steps; ++u) {
        HEADLAB_UNROLL
        for (int e = 0; e < 4; ++e) sum[f][u][e] = math::from_bits(shifts.v[e]);
      }
    }
    HEADLAB_UNROLL
    for (int m = 0; m < chunks; ++m) {
      std::uint32_t high[steps][key_words];
      std::uint32_t low[steps][key_words];
      HEADLAB_UNROLL
      for (int u = 0; u < steps; ++u) {
        std::uint32_t both[2 * key_words];
        load_transposed(
            both, reinterpret_cast<const std::uint32_t*>(from + m * 16 * stride + step_keys * u));
        HEADLAB_UNROLL
        for (int e = 0; e < key_words; ++e) {
          high[u][e] = both[e];
          low[u][e] = both[key_words + e];
        }
      }
      HEADLAB_UNROLL
      for (int f = 0; f < Fragments; ++f) {
        const Words query = InRegisters ? words_[f][InRegisters ? m : 0] : read(f, m);
        HEADLAB_UNROLL
        for (int u = 0; u < steps; ++u) {
          multiply_add_f16(sum[f][u], query.low, high[u]);
          multiply_add_f16(sum[f][u], query.high, low[u]);
          multiply_add_f16(sum[f][u], query.high, high[u]);
        }
      }
    }
    HEADLAB_UNROLL
    for (int u = 0; u < steps; ++u) {
      const auto n = keys_at<keys>(norm + step_keys * u);
      HEADLAB_UNROLL
      for (int i = 0; i < queries; ++i) {
        HEADLAB_UNROLL
        for (int c = 0; c < keys; ++c) {
          t[i][keys * u + c] = n.v[c] + sum[i / 2][u][i % 2 * keys + c];
        }
      }
    }
  }

 private:
  static constexpr int chunks = K < 16 ? 1 : K / 16;
  static constexpr int key_words = K < 16 ? 1 : 2;  ///< of a lane, for a chunk of keys

  /// Of a lane: one chunk of the queries of a fragment.
  struct Words {
    std::uint32_t high[2 * key_words];
    std::uint32_t low[2 * key_words];
  };
  HEADLAB_DEVICE FourWords shifts_of(int f) const {
    return read_constants(from_ + (quads - 1) * static_cast<int>(warp_threads) +
                          static_cast<std::int64_t>(f) * fragments_apart_);
  }
  HEADLAB_DEVICE Words read(int f, int m) const {
    const FourWords* at = from_ + 2 * m * static_cast<int>(warp_threads) +
                          static_cast<std::int64_t>(f) * fragments_apart_;
    const FourWords high = read_constants(at);
    const FourWords low = K < 16 ? high : read_constants(at + warp_threads);
    Words words;
    HEADLAB_UNROLL
    for (int e = 0; e < 2 * key_words; ++e) {
      words.high[e] = high.v[e];
      words.low[e] = low.v[K < 16 ? 2 + e : e];
    }
    return words;
  }

  FourWords shifts_[InRegisters ? Fragments : 1];
  const FourWords* from_;
  int fragments_apart_;
  Words words_[Fragments][InRegisters ? chunks : 1];
};

/// One query per thread and any number of coordinates: distances, or products where the law has
/// them.
struct AnyDimension : KeysInARow<4> {
  static constexpr int padded_k = 0;  // that of the launch
  static constexpr int queries = 1;
  static constexpr bool in_registers = false;
  static constexpr bool laws = true;
  static constexpr bool norms = true;  // a mask for the padding
  static constexpr bool shifted = true;
  const float* query;
  float shift;

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
                                float (&t)[queries][keys]) const {
    const bool multiplies = a.exponent == Exponent::product;
    float sum[keys] = {};
    for (int j = 0; j < a.padded_k; ++j) {
      const Four k = *reinterpret_cast<const Four*>(rows + j * stride);
      const float q = query[static_cast<std::int64_t>(j) * a.queries.padded];
      HEADLAB_UNROLL
      for (int c = 0; c < keys; ++c) {
        const float difference = multiplies ? k.v[c] : k.v[c] - q;
        sum[c] = math::fused(multiplies ? q : difference, difference, sum[c]);
      }
    }
    const Four n = *reinterpret_cast<const Four*>(norm);
    HEADLAB_UNROLL
    for (int c = 0; c < keys; ++c) {
      t[0][c] = multiplies ? sum[c] + (n.v[c] + shift) : n.v[c] - sum[c];
    }
  }
};

/// A float whose square root and maximum are one instruction each, for the laws.
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
    return UnitFloat(max_unit(a.x, b.x));
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
  if (Micro::laws && a.exponent == Exponent::law) {
    a.kernel.visit([&]<class Law>(const Law& law) {
      if constexpr (HasNormCoefficient<Law>) return;
      done = HasWeight<Law>;
      map_numbers(w, [&](float value) {
        // Not -value, which the compiler would compute in place of value.
        const UnitFloat distance(abs_unit(value));
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

/// Calls run.template operator()<M>() with the struct M of the microkernel of arguments, which has
/// `Queries` queries and `Keys` keys of a thread on the CUDA cores, and `Fragments` on the tensor
/// cores.
template <int Queries, int Keys, int Fragments = Queries / 2, class Run>
void with_microkernel(Microkernel microkernel, bool law, const Run& run) {
  // Queries of eight heads do not fit in registers.
  constexpr bool rereads = Queries == pair_queries;
  const auto with_law = [&]<int K, int Of = Fragments>() {
    if (law) return run.template operator()<TensorDots<K, Of, !rereads, true>>();
    return run.template operator()<TensorDots<K, Of, !rereads, false>>();
  };
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
    case Microkernel::shifted1:
      return run.template operator()<Dots<1, Queries, Keys, true>>();
    case Microkernel::shifted2:
      return run.template operator()<Dots<2, Queries, Keys, true>>();
    case Microkernel::shifted4:
      if (law) return run.template operator()<Dots<4, Queries, Keys, true, true>>();
      return run.template operator()<Dots<4, Queries, Keys, true>>();
    case Microkernel::tensor8:
      return with_law.template operator()<8>();
    case Microkernel::tensor16:
      return with_law.template operator()<16>();
    case Microkernel::tensor32:
      return with_law.template operator()<32>();
    case Microkernel::tensor64:
      return with_law.template operator()<64, (Fragments < 2 ? Fragments : 2)>();
    case Microkernel::any:
      return run.template operator()<AnyDimension>();
  }
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
#endif
