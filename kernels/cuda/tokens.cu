// SPDX-License-Identifier: Apache-2.0
// Stages of a mechanism between the draw and the weights: tokens of points (`merge`), mean keys of
// several scales (`levels`), mean keys of the blocks that `keep` scores, and the tokens that a head
// does not see. The kernels that weigh keys see the tokens that come out, and know no stage.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/weigh.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

constexpr unsigned token_threads = 128;
/// Tokens whose keys a thread block averages together, at least.
constexpr std::int64_t average_tokens = 256;

Launch over(std::int64_t numbers) {
  return {.blocks_x = (numbers + token_threads - 1) / token_threads, .threads = token_threads};
}
HEADLAB_DEVICE std::int64_t index_of_thread() {
  return static_cast<std::int64_t>(block_index_x()) * block_threads() + thread_index();
}

/// One token: X_g, Y_g less the centre of complete groups, and its noise scale.
HEADLAB_KERNEL void token_kernel(const TokenArguments a) {
  const TrainingSets& to = a.tokens;
  const TrainingSets& from = a.points;
  const std::int64_t at = index_of_thread();
  if (at >= a.replicates * to.padded_n) return;
  const std::int64_t replicate = at / to.padded_n;
  const auto position = static_cast<std::uint64_t>(at % to.padded_n);
  float* x = to.x_of(replicate) + position;
  float* value = to.values_of(replicate) + position;
  float* scale = to.scales_of(replicate) + position;
  if (position >= to.n) {
    for (int c = 0; c < to.d; ++c) x[c * to.padded_n] = 0;
    *value = 0;
    *scale = 0;
    return;
  }

  const std::uint64_t first = a.numbers.of(position) * a.stride;
  const auto points = static_cast<std::int64_t>(a.n - first < a.stride ? a.n - first : a.stride);
  const double weight = a.gate > 0 ? a.gate : 1 / static_cast<double>(points);
  const double sum_of_weights = a.gate > 0 ? a.gate * static_cast<double>(points) : 1.0;
  const auto v = static_cast<float>(weight);
  const std::uint64_t drawn = a.sequence ? first : position * a.stride;
  const float* of_x = from.x_of(replicate) + drawn;
  // What weights of sum 1 leave of the centre is nothing, and else the rest of it.
  const auto rest_of_centre = static_cast<float>(sum_of_weights - 1);
  for (int c = 0; c < to.d; ++c) {
    float sum = 0;
    const float centre = a.centre[c];
    for (std::int64_t i = 0; i < points; ++i) sum += of_x[c * from.padded_n + i] - centre;
    x[c * to.padded_n] = math::fused(v, sum, rest_of_centre * centre);
  }
  const float* of_values = from.values_of(replicate) + drawn;
  const float* of_scales = from.scales_of(replicate) + drawn;
  float sum = 0;
  float square = 0;
  for (std::int64_t i = 0; i < points; ++i) {
    sum += of_values[i];
    square = math::fused(of_scales[i], of_scales[i], square);
  }
  // With a gate the centre of an incomplete group is another one.
  const auto rest_of_value = static_cast<float>(sum_of_weights - a.group_weight);
  *value = math::fused(v, sum, rest_of_value * a.value_centre);
  *scale = v * (points == 1 ? of_scales[0] : math::sqrt(square));
}

/// The keys of one head in a replicate: row j at rows + j padded_n.
struct HeadKeys {
  std::int64_t replicate;
  int head;
  float* rows;
};
HEADLAB_DEVICE HeadKeys keys_of_head(const KeyArguments& a, std::int64_t index) {
  const std::int64_t replicate = index / a.heads;
  const int head = static_cast<int>(index % a.heads);
  return {replicate, head, a.sets.keys_of(replicate, head * a.padded_k)};
}

/// Tokens of the block of 2^level tokens around a position.
HEADLAB_DEVICE std::int64_t tokens_of_block(const KeyArguments& a, std::int64_t position,
                                            int level) {
  const std::int64_t size = std::int64_t{1} << level;
  const std::int64_t left = static_cast<std::int64_t>(a.sets.n) - (position & -size);
  return left < size ? left : size;
}

/// Replaces the keys of some tokens of one head by their averages over the levels, kappa, and sets
/// the prior D = sum_l lambda_l |mean key of level l - kappa|^2. Sums of pairs, of pairs of pairs
/// ... of the tokens stand one level after another in shared memory.
HEADLAB_KERNEL void average_kernel(const KeyArguments a, const std::int64_t tokens,
                                   const std::int64_t parts) {
  const HeadKeys keys = keys_of_head(a, static_cast<std::int64_t>(block_index_x()) / parts);
  const std::int64_t begin = static_cast<std::int64_t>(block_index_x()) % parts * tokens;
  const std::int64_t there = static_cast<std::int64_t>(a.sets.n) - begin;
  auto* sums = reinterpret_cast<float*>(shared_memory());  // [2 tokens]
  float* priors = sums + 2 * tokens;                       // [tokens]
  const auto thread = static_cast<std::int64_t>(thread_index());
  for (std::int64_t i = thread; i < tokens; i += token_threads) priors[i] = 0;
  for (int j = 0; j < a.k; ++j) {
    float* row = keys.rows + j * a.sets.padded_n + begin;
    for (std::int64_t i = thread; i < tokens; i += token_threads) sums[i] = i < there ? row[i] : 0;
    synchronise_block();
    const float* below = sums;
    for (int level = 1; level < a.levels; ++level) {
      float* level_sums = sums + (2 * tokens - (2 * tokens >> level));
      for (std::int64_t i = thread; i < tokens >> level; i += token_threads) {
        level_sums[i] = below[2 * i] + below[2 * i + 1];
      }
      synchronise_block();
      below = level_sums;
    }
    for (std::int64_t i = thread; i < tokens && i < there; i += token_threads) {
      const auto mean = [&](int level) {
        return sums[2 * tokens - (2 * tokens >> level) + (i >> level)] /
               static_cast<float>(tokens_of_block(a, begin + i, level));
      };
      float key = 0;
      for (int level = 0; level < a.levels; ++level) {
        key = math::fused(a.level_weights[level], mean(level), key);
      }
      float prior = priors[i];
      for (int level = 0; level < a.levels; ++level) {
        const float difference = mean(level) - key;
        prior = math::fused(a.level_weights[level] * difference, difference, prior);
      }
      priors[i] = prior;
      row[i] = key;
    }
    synchronise_block();
  }
  if (a.extra_row != ExtraRow::prior) return;
  float* row = keys.rows + a.k * a.sets.padded_n + begin;
  for (std::int64_t i = thread; i < tokens && i < there; i += token_threads) {
    row[i] = math::sqrt(priors[i]);
  }
}

/// Makes a token weigh nothing for a head that does not see it.
HEADLAB_KERNEL void hide_kernel(const KeyArguments a) {
  const std::int64_t at = index_of_thread();
  const auto tokens = static_cast<std::int64_t>(a.sets.n);
  if (at >= a.replicates * a.heads * tokens) return;
  const HeadKeys keys = keys_of_head(a, at / tokens);
  const std::int64_t position = at % tokens;
  if (a.seen[keys.head].holds(static_cast<std::uint64_t>(position))) return;
  if (a.extra_row == ExtraRow::mask) {
    keys.rows[a.k * a.sets.padded_n + position] = -far_away;
  } else {
    keys.rows[position] = far_away;
  }
}

/// The mean key of one block of the tokens that a head sees, before `levels`: with kappa and D as
/// if the block were a token whose key at level l is the mean of those of its tokens.
HEADLAB_KERNEL void pool_kernel(const KeyArguments a) {
  const std::int64_t at = index_of_thread();
  if (at >= a.replicates * a.heads * a.pooled_stride) return;
  const HeadKeys keys = keys_of_head(a, at / a.pooled_stride);
  const std::int64_t block = at % a.pooled_stride;
  const SeenTokens seen = a.seen[keys.head];
  const std::uint64_t first = static_cast<std::uint64_t>(block) * a.block;
  if (first >= seen.count()) return;
  const std::uint64_t end = first + a.block < seen.count() ? first + a.block : seen.count();
  float* out =
      a.pooled + (keys.replicate * a.heads + keys.head) * a.padded_k * a.pooled_stride + block;
  float prior = 0;
  for (int j = 0; j < a.k; ++j) {
    const float* row = keys.rows + j * a.sets.padded_n;
    float means[max_levels] = {};
    float key = 0;
    for (int level = 0; level < a.levels; ++level) {
      float sum = 0;
      float mean = 0;
      std::int64_t known = -1;
      for (std::uint64_t i = first; i < end; ++i) {
        const auto position = static_cast<std::int64_t>(seen.token(i));
        if (position >> level != known) {
          known = position >> level;
          const std::int64_t tokens = tokens_of_block(a, position, level);
          mean = 0;
          for (std::int64_t t = 0; t < tokens; ++t) mean += row[(known << level) + t];
          mean /= static_cast<float>(tokens);
        }
        sum += mean;
      }
      means[level] = sum / static_cast<float>(end - first);
      key = math::fused(a.level_weights[level], means[level], key);
    }
    for (int level = 0; level < a.levels; ++level) {
      const float difference = means[level] - key;
      prior = math::fused(a.level_weights[level] * difference, difference, prior);
    }
    out[j * a.pooled_stride] = key;
  }
  for (int j = a.k; j < a.padded_k; ++j) {
    out[j * a.pooled_stride] =
        j == a.k && a.extra_row == ExtraRow::prior ? math::sqrt(prior) : 0.0f;
  }
}

}  // namespace

void make_tokens(Stream& stream, const TokenArguments& a) {
  launch(stream, "make_tokens", over(a.replicates * a.tokens.padded_n), token_kernel, a);
}

void average_keys(Stream& stream, const KeyArguments& a) {
  std::int64_t tokens = average_tokens;
  while (tokens < std::int64_t{1} << (a.levels - 1)) tokens *= 2;
  const std::int64_t parts = (static_cast<std::int64_t>(a.sets.n) + tokens - 1) / tokens;
  launch(stream, "average_keys",
         {.blocks_x = a.replicates * a.heads * parts,
          .threads = token_threads,
          .shared_bytes = 3 * static_cast<std::uint64_t>(tokens) * sizeof(float)},
         average_kernel, a, tokens, parts);
}

void hide_tokens(Stream& stream, const KeyArguments& a) {
  launch(stream, "hide_tokens", over(a.replicates * a.heads * static_cast<std::int64_t>(a.sets.n)),
         hide_kernel, a);
}

void pool_keys(Stream& stream, const KeyArguments& a) {
  launch(stream, "pool_keys", over(a.replicates * a.heads * a.pooled_stride), pool_kernel, a);
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
