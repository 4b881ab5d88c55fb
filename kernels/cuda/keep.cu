// SPDX-License-Identifier: Apache-2.0
// Stage `keep`: marks the tokens that a head keeps at a query. One thread block for a replicate, a
// query and a head takes the exponents of the tokens seen, finds the threshold digit by digit from
// histograms of their bits, and sets a bit for every token that reaches it; the fallback then sums
// the tokens that are marked.
//
// Ladder: v1, this one: exponents (or scores of blocks) are kept in shared memory where they fit,
// else computed once for each of the four digits. Not timed on a GPU yet.
#include <cstdint>

#include "kernels/cuda/exact.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

constexpr float minus_infinity = -__builtin_huge_valf();

/// Values of a digit of 8 bits, in groups that are summed first.
constexpr unsigned bins = 256;
constexpr unsigned bins_of_group = 16;

/// Shared memory of a thread block, before the cached numbers.
struct SelectionMemory {
  Nearest of_warps[exact_warps];
  std::uint32_t counts[bins];
  std::uint32_t groups[bins / bins_of_group];
  std::uint32_t digit;
  std::uint32_t left;
  std::uint32_t padding[2];  ///< the numbers behind it are aligned
};
static_assert(sizeof(SelectionMemory) % 16 == 0);

/// Integers in the order of the floats that they stand for, and back.
HEADLAB_DEVICE std::uint32_t ordered(float x) {
  const std::uint32_t bits = math::to_bits(x);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}
HEADLAB_DEVICE float number_of(std::uint32_t order) {
  return math::from_bits((order >> 31) != 0 ? order & 0x7fffffffu : ~order);
}

/// The k-th largest of number(0) ... number(count - 1), -inf where there are fewer; by all threads
/// of a thread block.
template <class Number>
HEADLAB_DEVICE float kth_largest(std::uint64_t count, std::uint64_t k, const Number& number,
                                 SelectionMemory& memory) {
  if (k > count) return minus_infinity;
  const unsigned thread = thread_index();
  std::uint32_t found = 0;
  auto left = static_cast<std::uint32_t>(k);
  for (int shift = 24; shift >= 0; shift -= 8) {
    for (unsigned bin = thread; bin < bins; bin += exact_threads) memory.counts[bin] = 0;
    synchronise_block();
    for (std::uint64_t i = thread; i < count; i += exact_threads) {
      const std::uint32_t order = ordered(number(i));
      if (static_cast<std::uint64_t>(order ^ found) >> (shift + 8) != 0) continue;
      add_atomically(&memory.counts[order >> shift & 0xffu], 1u);
    }
    synchronise_block();
    if (thread < bins / bins_of_group) {
      std::uint32_t sum = 0;
      for (unsigned i = 0; i < bins_of_group; ++i) sum += memory.counts[thread * bins_of_group + i];
      memory.groups[thread] = sum;
    }
    synchronise_block();
    if (thread == 0) {
      unsigned group = bins / bins_of_group - 1;
      while (memory.groups[group] < left) left -= memory.groups[group--];
      unsigned digit = group * bins_of_group + bins_of_group - 1;
      while (memory.counts[digit] < left) left -= memory.counts[digit--];
      memory.digit = digit;
      memory.left = left;
    }
    synchronise_block();
    found |= memory.digit << shift;
    left = memory.left;
    synchronise_block();
  }
  return number_of(found);
}

/// One head at one query.
HEADLAB_KERNEL void HEADLAB_LAUNCH_BOUNDS(exact_threads, 1) select_kernel(const KeepArguments r) {
  auto& memory = *reinterpret_cast<SelectionMemory*>(shared_memory());
  auto* cache = reinterpret_cast<float*>(&memory + 1);
  const WeighArguments& a = r.weigh;
  const int heads = a.totals.heads;
  const std::int64_t row = static_cast<std::int64_t>(block_index_x()) / heads;
  const int head = static_cast<int>(static_cast<std::int64_t>(block_index_x()) % heads);
  const std::int64_t replicate = row / a.queries.count;
  const ExactQuery query = {a, a.sets.keys_of(replicate), a.sets.padded_n, row % a.queries.count};
  const SeenTokens seen = r.seen[head];
  const std::uint64_t tokens = seen.count();
  const auto thread = static_cast<std::uint64_t>(thread_index());
  std::uint32_t* kept = r.kept.of(row, heads, head);
  const auto mark = [&](std::int64_t key) {
    add_atomically(&kept[key / 32], std::uint32_t{1} << key % 32);
  };
  const auto at = [&](std::uint64_t i) {
    return query.at(head, static_cast<std::int64_t>(seen.token(i)));
  };

  for (std::int64_t word = thread_index(); word < r.kept.words; word += exact_threads) {
    kept[word] = 0;
  }
  const auto none = static_cast<std::int64_t>(a.sets.n);
  Nearest largest = {__builtin_huge_valf(), none};  // minus the exponent
  Nearest nearest = {__builtin_huge_valf(), none};
  for (std::uint64_t i = thread; i < tokens; i += exact_threads) {
    const ExactQuery::Value value = at(i);
    const auto key = static_cast<std::int64_t>(seen.token(i));
    largest = nearer(largest, {-value.exponent, key});
    nearest = nearer(nearest, {value.distance, key});
  }
  // Barriers of these stand between the words and their bits.
  largest = nearest_of_block(largest, memory.of_warps);
  nearest = nearest_of_block(nearest, memory.of_warps);
  const float largest_exponent = -largest.value;
  if (largest_exponent == minus_infinity) {
    if (thread == 0) mark(nearest.key % none);
    return;
  }

  if (r.rule != Keep::Rule::block) {
    float least = largest_exponent + r.log_ratio;
    const bool cached = r.rule == Keep::Rule::top && tokens <= r.cached;
    if (r.rule == Keep::Rule::top) {
      for (std::uint64_t i = thread; cached && i < tokens; i += exact_threads) {
        cache[i] = at(i).exponent;
      }
      least = kth_largest(
          tokens, r.top[head], [&](std::uint64_t i) { return cached ? cache[i] : at(i).exponent; },
          memory);
    }
    for (std::uint64_t i = thread; i < tokens; i += exact_threads) {
      const float exponent = cached ? cache[i] : at(i).exponent;
      // A weight of 0 is never kept.
      if (exponent >= least && exponent > minus_infinity) {
        mark(static_cast<std::int64_t>(seen.token(i)));
      }
    }
    return;
  }

  const std::uint64_t blocks = (tokens + r.block - 1) / r.block;
  const auto end_of = [&](std::uint64_t block) {
    return (block + 1) * r.block < tokens ? (block + 1) * r.block : tokens;
  };
  const ExactQuery mean_query = {a, r.pooled + replicate * heads * a.padded_k * r.pooled_stride,
                                 r.pooled_stride, query.index};
  const auto score = [&](std::uint64_t block) {
    if (r.pooled != nullptr) {
      return mean_query.at(head, static_cast<std::int64_t>(block)).exponent;
    }
    double sum = 0;
    for (std::uint64_t i = block * r.block; i < end_of(block); ++i) {
      sum += static_cast<double>(exp2_unit(at(i).exponent - largest_exponent));
    }
    return static_cast<float>(sum);
  };
  const bool cached = blocks <= r.cached;
  for (std::uint64_t i = thread; cached && i < blocks; i += exact_threads) cache[i] = score(i);
  const auto known = [&](std::uint64_t block) { return cached ? cache[block] : score(block); };
  const float least = kth_largest(blocks, r.top[head], known, memory);
  for (std::uint64_t block = thread; block < blocks; block += exact_threads) {
    if (!(known(block) >= least)) continue;
    for (std::uint64_t i = block * r.block; i < end_of(block); ++i) {
      if (at(i).exponent > minus_infinity) mark(static_cast<std::int64_t>(seen.token(i)));
    }
  }
}

/// Adds to the tokens that each head keeps those of the others that it sees; one thread for 32
/// tokens of a row.
HEADLAB_KERNEL void share_kernel(const KeepArguments r) {
  const std::int64_t at =
      static_cast<std::int64_t>(block_index_x()) * block_threads() + thread_index();
  if (at >= r.rows * r.kept.words) return;
  const std::int64_t row = at / r.kept.words;
  const std::int64_t word = at % r.kept.words;
  const int heads = r.weigh.totals.heads;
  std::uint32_t all = 0;
  for (int h = 0; h < heads; ++h) all |= r.kept.of(row, heads, h)[word];
  for (int h = 0; h < heads; ++h) {
    std::uint32_t seen = 0;
    for (int bit = 0; bit < 32; ++bit) {
      const std::int64_t key = word * 32 + bit;
      if (r.seen[h].holds(static_cast<std::uint64_t>(key))) seen |= std::uint32_t{1} << bit;
    }
    r.kept.of(row, heads, h)[word] = all & seen;
  }
}

}  // namespace

void select_kept(Stream& stream, const KeepArguments& r) {
  const std::uint64_t shared = sizeof(SelectionMemory) + r.cached * sizeof(float);
  launch(
      stream, "select_kept",
      {.blocks_x = r.rows * r.weigh.totals.heads, .threads = exact_threads, .shared_bytes = shared},
      select_kernel, r);
  if (!r.shared) return;
  constexpr unsigned threads = 128;
  launch(stream, "share_kept",
         {.blocks_x = (r.rows * r.kept.words + threads - 1) / threads, .threads = threads},
         share_kernel, r);
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
