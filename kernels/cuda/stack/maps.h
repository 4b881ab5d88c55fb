// SPDX-License-Identifier: Apache-2.0
/// \file Maps of the heads of a layer, given, drawn or pruned (kernels/stack/maps.cpp), by a thread
/// block.
#pragma once

#include <cstdint>

#include "kernels/cuda/stack/tokens.h"

#if defined(HEADLAB_DEVICE)  // under nvcc and in the emulated build
namespace headlab::HEADLAB_CUDA_NAMESPACE {

class MapsOfBlock : protected TokensOfBlock {
 protected:
  HEADLAB_DEVICE MapsOfBlock(const StackArguments& a, const ThreadBlock& block,
                             const StackRoom& room, std::uint64_t replicate, bool pruned)
      : TokensOfBlock(a.shape, block, room), a_(a), replicate_(replicate), pruned_(pruned) {}

  /// Of a head; with shared weights all layers have those of layer 0.
  HEADLAB_DEVICE std::uint64_t place(int head) const {
    return static_cast<std::uint64_t>(s_.shared_weights ? 0 : layer_) *
               static_cast<std::uint64_t>(s_.heads) +
           static_cast<std::uint64_t>(head);
  }

  /// Draws `count` matrices of `size` entries, those of the points from `first` on.
  /// \param distance from one matrix to the next
  HEADLAB_LARGE_DEVICE void draw(Purpose purpose, std::uint64_t first, int count, int size,
                                 double sd, double* out, int distance) const {
    const std::uint64_t stream = subsequence(purpose, replicate_);
    const int quads = (size + 3) / 4;
    block_.for_each(count * quads, [&](int i) {
      const int matrix = i / quads;
      const int quad = i % quads;
      const Words words = philox(a_.seed, stream, first * quads + static_cast<std::uint64_t>(i));
      double* to = out + static_cast<std::int64_t>(matrix) * distance + 4 * quad;
      for (int pair = 0; pair < 4 && 4 * quad + pair < size; pair += 2) {
        const NormalPair z = normal_pair(words.w[pair], words.w[pair + 1]);
        to[pair] = sd * static_cast<double>(z.first);
        if (4 * quad + pair + 1 < size) to[pair + 1] = sd * static_cast<double>(z.second);
      }
    });
  }

  HEADLAB_LARGE_DEVICE void take_maps(int first_scored, int first_used) {
    const int d = s_.d;
    const bool softmax = s_.kernel == AttentionKernel::softmax;
    key_ = nullptr;
    value_ = nullptr;
    query_rank_ = rank_ = d;
    if (!s_.gaussian) {
      query_ = softmax ? a_.query + static_cast<std::int64_t>(first_scored) * d * d : nullptr;
      output_ = a_.value + (s_.averaged ? 0 : static_cast<std::int64_t>(first_used) * d * d);
      return;
    }
    const int k = s_.k;
    const int value_dim = s_.value_dim;
    if (softmax) {
      const std::uint64_t point = place(first_scored);
      const int count = s_.scored();
      const double divisor = pruned_ ? 1 : a_.temperature;
      draw(Purpose::query_weights, point, count, d * k, a_.query_key_sd / divisor, room_.query,
           d * k);
      draw(Purpose::key_weights, point, count, d * k, a_.query_key_sd, room_.key, d * k);
      query_ = room_.query;
      key_ = room_.key;
      query_rank_ = k;
      if (pruned_) {
        block_.product(count, d, k, d, {room_.query, d * k, k}, {room_.key, d * k, 1, k},
                       {room_.pruned_query, d * d, d});
        prune(point, count, 0, a_.temperature, room_.pruned_query);
        query_ = room_.pruned_query;
        key_ = nullptr;
        query_rank_ = d;
      }
    }
    const std::uint64_t point = place(s_.averaged ? 0 : first_used);
    const int count = s_.value_maps();
    draw(Purpose::value_weights, point, count, d * value_dim, a_.value_sd, room_.value,
         d * value_dim);
    draw(Purpose::output_weights, point, count, value_dim * d, a_.output_sd, room_.output,
         value_dim * d);
    value_ = room_.value;
    output_ = room_.output;
    rank_ = value_dim;
    if (pruned_) {
      block_.product(count, d, value_dim, d, {room_.value, d * value_dim, value_dim},
                     {room_.output, value_dim * d, d}, {room_.pruned_value, d * d, d});
      prune(point, count, 1, 1, room_.pruned_value);
      value_ = nullptr;
      output_ = room_.pruned_value;
      rank_ = d;
    }
  }

  /// Sum of the numbers that are chosen by the bits of a mask, in their order.
  HEADLAB_DEVICE static double sum_of(const double* numbers, int count, int mask) {
    double sum = 0;
    for (int i = 0; i < count; ++i) {
      if ((mask >> i & 1) != 0) sum += numbers[i];
    }
    return sum;
  }

  /// Replaces the entries of d x d maps, the first or second of their heads, by the nearest subset
  /// sums over a divisor. A warp an entry: a lane tries some sums of one half of the samples with
  /// all sums of the other.
  HEADLAB_LARGE_DEVICE void prune(std::uint64_t point, int count, int which, double divisor,
                                  double* maps) const {
    const int of_map = s_.d * s_.d;
    const int m = s_.samples;
    const int half = m / 2;
    const int warps = static_cast<int>(ThreadBlock::warps);
    const std::uint64_t quads = static_cast<std::uint64_t>(of_map) * static_cast<std::uint64_t>(m);
    const std::uint64_t stream = subsequence(Purpose::pruning_samples, replicate_);
    double* samples = reinterpret_cast<double*>(shared_memory()) + ThreadBlock::shared_numbers +
                      ThreadBlock::warp() * (m + (1 << (m - half)));
    double* sums = samples + m;
    const int lane = ThreadBlock::lane();
    const int lanes = static_cast<int>(warp_threads);
    for (int base = 0; base < count * of_map; base += warps) {
      const int at = base + ThreadBlock::warp();
      const bool active = at < count * of_map;
      synchronise_block();
      if (active && lane < m) {
        const std::uint64_t entry = static_cast<std::uint64_t>(which * of_map + at % of_map);
        const std::uint64_t first =
            2 * (entry * static_cast<std::uint64_t>(m) + static_cast<std::uint64_t>(lane));
        const Words words = philox(
            a_.seed, stream, (point + static_cast<std::uint64_t>(at / of_map)) * quads + first / 4);
        samples[lane] = static_cast<double>(uniform_symmetric(words.w[first % 4])) *
                        static_cast<double>(uniform_symmetric(words.w[first % 4 + 1]));
      }
      synchronise_block();
      for (int mask = lane; active && mask < 1 << (m - half); mask += lanes) {
        sums[mask] = sum_of(samples + half, m - half, mask);
      }
      synchronise_block();
      if (!active) continue;
      const double target = maps[at];
      double nearest = 0;
      for (int low = lane; low < 1 << half; low += lanes) {
        const double sum = sum_of(samples, half, low);
        for (int mask = 0; mask < 1 << (m - half); ++mask) {
          nearest = stack::nearer_sum(nearest, sum + sums[mask], target);
        }
      }
      for (int mask = 16; mask > 0; mask /= 2) {
        nearest = stack::nearer_sum(nearest, shuffle_xor(nearest, mask), target);
      }
      if (lane == 0) maps[at] = nearest / divisor;
    }
    synchronise_block();
  }

  const StackArguments& a_;
  std::uint64_t replicate_;
  bool pruned_;
  int layer_ = 0;  ///< layers passed
  // Maps of the layer; without key or value these are the identity.
  const double* query_ = nullptr;
  const double* key_ = nullptr;
  const double* value_ = nullptr;
  const double* output_ = nullptr;
  int query_rank_ = 0;
  int rank_ = 0;
};

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
#endif
