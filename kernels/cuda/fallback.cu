// SPDX-License-Identifier: Apache-2.0
// Fallback for any finite input: one thread block for one query of one replicate, every exponent
// relative to the largest of its head, every sum in float64, nothing kept. It sums again the few
// queries whose float32 sums are not safe (all keys far from the query, exponents that overflow),
// every query where there are more pairs of heads than pair_sums.cu is written for, and every query
// with stage `keep`. Speed does not matter here: every pair of heads recomputes its kernel values.
//
// rows.cu lists the rows that are not safe. The list's length is not known on the host, which does
// not wait for it: thread blocks that fill a device a few times over take the rows of the list in
// turns.
#include <algorithm>
#include <cstdint>

#include "kernels/cuda/exact.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

/// Thread blocks that take the rows of a list; most lists are empty.
constexpr std::int64_t max_listed_blocks = 1024;

HEADLAB_DEVICE double add(double a, double b) {
  return a + b;
}

/// Adds one value per thread over the thread block, in a fixed order; every thread has the sum.
HEADLAB_DEVICE double sum_of_block(double value, double* of_warps) {
  for (int mask = 16; mask > 0; mask /= 2) value = add(value, shuffle_xor(value, mask));
  const unsigned thread = thread_index();
  if (thread % warp_threads == 0) of_warps[thread / warp_threads] = value;
  synchronise_block();
  double sum = 0;
  for (unsigned w = 0; w < exact_warps; ++w) sum = add(sum, of_warps[w]);
  synchronise_block();
  return sum;
}
/// Window of one head.
struct Window {
  float shift;            ///< largest exponent
  float factor;           ///< a_h / sum w, once it is known
  std::int64_t only_key;  ///< if not negative: all other keys have zero weight
};

/// One query of one replicate.
/// \tparam staged whether heads see or keep a part of the tokens
template <bool staged>
struct Query : ExactQuery {
  const FallbackArguments& r;
  std::int64_t row;

  /// Calls work(key) for the keys that a head weighs, each on one thread.
  template <class Work>
  HEADLAB_DEVICE void for_each_key(int head, const Work& work) const {
    const auto thread = static_cast<std::int64_t>(thread_index());
    if constexpr (staged) {
      const SeenTokens seen = r.seen[head];
      for (auto i = static_cast<std::uint64_t>(thread); i < seen.count(); i += exact_threads) {
        const auto key = static_cast<std::int64_t>(seen.token(i));
        if (keeps(head, key)) work(key);
      }
    } else {
      const auto n = static_cast<std::int64_t>(a.sets.n);
      for (std::int64_t key = thread; key < n; key += exact_threads) work(key);
    }
  }
  HEADLAB_DEVICE bool keeps(int head, std::int64_t key) const {
    if (r.kept.bits == nullptr) return true;
    return (r.kept.of(row, a.totals.heads, head)[key / 32] >> key % 32 & 1u) != 0;
  }

  HEADLAB_DEVICE double weight(const Window& window, int head, std::int64_t key) const {
    if (window.only_key >= 0) return key == window.only_key ? 1.0 : 0.0;
    if constexpr (staged) {
      if (!r.seen[head].holds(static_cast<std::uint64_t>(key)) || !keeps(head, key)) return 0;
    }
    return static_cast<double>(exp2_unit(at(head, key).exponent - window.shift));
  }
};

/// Shared memory of a thread block.
struct Shared {
  double* of_warps;           ///< [exact_warps]
  Nearest* nearest_of_warps;  ///< [exact_warps]
  Window* windows;            ///< [H]
};

/// Sums of one row, a query of a replicate, with rescaled weights; by all threads of a thread
/// block.
template <bool staged>
HEADLAB_DEVICE void sum_rescaled(const FallbackArguments& r, std::int64_t row,
                                 const Shared& shared) {
  const WeighArguments& a = r.weigh;
  const TotalsLayout& layout = a.totals;
  const std::int64_t replicate = row / a.queries.count;
  double* totals = r.totals + row * layout.size();
  const int heads = layout.heads;
  const auto thread = static_cast<std::int64_t>(thread_index());
  double* of_warps = shared.of_warps;
  Nearest* nearest_of_warps = shared.nearest_of_warps;
  Window* windows = shared.windows;
  const Query<staged> query = {
      {a, a.sets.keys_of(replicate), a.sets.padded_n, row % a.queries.count}, r, row};
  const float* values = a.sets.values_of(replicate);
  const float* scales = a.sets.scales_of(replicate);
  const auto n = static_cast<std::int64_t>(a.sets.n);

  std::uint32_t taken = 1;
  for (int h = 0; h < heads; ++h) {
    Nearest largest = {__builtin_huge_valf(), n};  // minus the exponent
    Nearest nearest = {__builtin_huge_valf(), n};
    query.for_each_key(h, [&](std::int64_t key) {
      const ExactQuery::Value value = query.at(h, key);
      largest = nearer(largest, {-value.exponent, key});
      nearest = nearer(nearest, {value.distance, key});
    });
    largest = nearest_of_block(largest, nearest_of_warps);
    nearest = nearest_of_block(nearest, nearest_of_warps);
    const float exponent = -largest.value;
    const bool none = exponent == -__builtin_huge_valf();
    if (thread == 0) {
      windows[h] = {none ? 0.0f : exponent, 0.0f, none ? nearest.key % n : std::int64_t{-1}};
      // Of no weight at all it is -inf, the logarithm of the sum.
      if (layout.controls) totals[layout.shift(h)] = static_cast<double>(exponent);
      if (r.counts_empty && exponent < -126.0f) ++taken;
    }
  }
  if (thread == 0) r.taken[row] = taken;
  synchronise_block();

  for (int h = 0; h < heads; ++h) {
    double weight = 0;
    double value = 0;
    double square = 0;
    double scaled = 0;
    query.for_each_key(h, [&](std::int64_t key) {
      const double w = query.weight(windows[h], h, key);
      const double sw = w * static_cast<double>(scales[key]);
      weight += w;
      value += w * static_cast<double>(values[key]);
      square += w * w;
      scaled += sw * sw;
    });
    weight = sum_of_block(weight, of_warps);
    value = sum_of_block(value, of_warps);
    square = sum_of_block(square, of_warps);
    scaled = sum_of_block(scaled, of_warps);
    if (thread == 0) {
      totals[layout.weight(h)] = weight;
      totals[layout.value(h)] = value;
      totals[layout.square(h, h)] = square;
      if (layout.scaled) totals[layout.noise(h, h)] = scaled;
      windows[h].factor = static_cast<float>(a.queries.weights[h] / weight);
    }
  }
  synchronise_block();

  for (int g = 0; layout.pairs && g < heads; ++g) {
    for (int l = g + 1; l < heads; ++l) {
      double product = 0;
      double scaled = 0;
      query.for_each_key(g, [&](std::int64_t key) {
        const double both = query.weight(windows[g], g, key) * query.weight(windows[l], l, key);
        const auto s = static_cast<double>(scales[key]);
        product += both;
        scaled += both * s * s;
      });
      product = sum_of_block(product, of_warps);
      scaled = sum_of_block(scaled, of_warps);
      if (thread == 0) {
        totals[layout.square(g, l)] = product;
        if (layout.scaled) totals[layout.noise(g, l)] = scaled;
      }
    }
  }
  if (!layout.ensemble) return;
  double square = 0;
  for (std::int64_t key = thread; key < n; key += exact_threads) {
    double ensemble = 0;
    for (int h = 0; h < heads; ++h) {
      ensemble += static_cast<double>(windows[h].factor) * query.weight(windows[h], h, key);
    }
    if (layout.scaled) ensemble *= static_cast<double>(scales[key]);
    square += ensemble * ensemble;
  }
  square = sum_of_block(square, of_warps);
  if (thread == 0) totals[layout.ensemble_noise()] = square;
}

template <bool staged>
HEADLAB_KERNEL void HEADLAB_LAUNCH_BOUNDS(exact_threads, 1)
    fallback_kernel(const FallbackArguments r, const RowList list, const std::uint32_t blocks) {
  auto* of_warps = reinterpret_cast<double*>(shared_memory());
  auto* nearest_of_warps = reinterpret_cast<Nearest*>(of_warps + exact_warps);
  auto* windows = reinterpret_cast<Window*>(nearest_of_warps + exact_warps);
  const Shared shared = {of_warps, nearest_of_warps, windows};

  const std::uint32_t count = list.rows == nullptr ? blocks : list.count();
  for (std::uint32_t i = block_index_x(); i < count; i += blocks) {
    sum_rescaled<staged>(r, list.rows == nullptr ? i : list.rows[i], shared);
    // The windows of a row are read until its end.
    synchronise_block();
  }
}

}  // namespace

void sum_fallback(Stream& stream, const FallbackArguments& r, const RowList& list,
                  std::int64_t replicates) {
  const std::int64_t rows = replicates * r.weigh.queries.count;
  const auto blocks =
      static_cast<std::uint32_t>(list.rows == nullptr ? rows : std::min(rows, max_listed_blocks));
  const Launch grid = {
      .blocks_x = blocks,
      .threads = exact_threads,
      .shared_bytes = exact_warps * (sizeof(double) + sizeof(Nearest)) +
                      static_cast<std::uint64_t>(r.weigh.totals.heads) * sizeof(Window)};
  if (r.seen == nullptr) {
    launch(stream, "sum_fallback", grid, fallback_kernel<false>, r, list, blocks);
  } else {
    launch(stream, "sum_fallback", grid, fallback_kernel<true>, r, list, blocks);
  }
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
