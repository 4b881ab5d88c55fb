// SPDX-License-Identifier: Apache-2.0
// Stage `levels`: keys averaged with the mean keys of their blocks.
#if defined(HEADLAB_CPU_LEVELS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLAB_CPU_LEVELS_INL_H
#undef HEADLAB_CPU_LEVELS_INL_H
#else
#define HEADLAB_CPU_LEVELS_INL_H
#endif

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <hwy/highway.h>

#include "kernels/cpu/lanes-inl.h"
#include "kernels/math.h"
#include "kernels/mechanism.h"
#include "kernels/tile.h"

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {

/// Averages of keys over the levels, sum_l lambda_l mean_l, where mean_l is the mean key of the
/// block of 2^l tokens that a token is in.
class LevelMeans {
 public:
  explicit LevelMeans(const Levels& levels)
      : weights_(levels.weights),
        block_(static_cast<std::size_t>(std::max(levels.block(), std::uint64_t{tile_points}))),
        means_((weights_.size() + 1) * block_) {}

  /// Tokens that hold whole tiles, and whole blocks of every level.
  std::size_t block() const { return block_; }

  /// Replaces the keys [tile][k][tile_points] of a block, or of the `tokens` that there are of the
  /// last one; sets sum_l lambda_l |mean_l|^2 in `norms` and sum_l lambda_l |mean_l - average|^2 in
  /// `spreads`. Mean keys of level l go to apart + l step, as keys, unless `apart` is null.
  HWY_ATTR void average(float* keys, std::size_t k, std::size_t tokens, float* norms,
                        float* spreads, float* apart, std::size_t step) {
    if (block_ == tile_points && tokens == tile_points) {
      return average_tile<max_tile_levels>(keys, k, norms, spreads, apart, step);
    }
    const std::size_t padded = (tokens + tile_points - 1) / tile_points * tile_points;
    std::fill_n(norms, padded, 0.0f);
    std::fill_n(spreads, padded, 0.0f);
    for (std::size_t j = 0; j < k; ++j) {
      float* const apart_j = apart == nullptr ? nullptr : apart + j * tile_points;
      average_coordinate(keys + j * tile_points, k, tokens, norms, spreads, apart_j, step);
    }
  }

 private:
  /// One coordinate of the keys, at keys[tile k tile_points].
  HWY_ATTR void average_coordinate(float* keys, std::size_t k, std::size_t tokens,
                                   float* HWY_RESTRICT norms, float* HWY_RESTRICT spreads,
                                   float* apart, std::size_t step) {
    const std::size_t padded = (tokens + tile_points - 1) / tile_points * tile_points;
    float* HWY_RESTRICT sums = means_.data();
    for (std::size_t i = 0; i < padded; i += tile_points) {
      std::copy_n(keys + i * k, tile_points, sums + i);
    }
    std::fill(sums + tokens, sums + block_, 0.0f);

    // The mean of the block of 2^l tokens around each token, at means_[(1 + l) block_].
    for (std::size_t l = 0, size = 1; l < weights_.size(); ++l, size *= 2) {
      if (l > 0) {
        const std::size_t half = size / 2;
        for (std::size_t at = 0; at < block_; at += size) {
          for (std::size_t i = at; i < at + half; ++i) {
            const float sum = sums[i] + sums[i + half];
            sums[i] = sum;
            sums[i + half] = sum;
          }
        }
      }
      float* HWY_RESTRICT means = sums + (1 + l) * block_;
      const std::size_t whole = tokens / size * size;
      const auto share = 1 / static_cast<float>(size);
      for (std::size_t i = 0; i < whole; ++i) means[i] = sums[i] * share;
      // The last block has the tokens that there are.
      const float left = 1 / static_cast<float>(std::max<std::size_t>(tokens - whole, 1));
      for (std::size_t i = whole; i < padded; ++i) means[i] = i < tokens ? sums[i] * left : 0.0f;
    }
    std::fill_n(sums, padded, 0.0f);
    for (std::size_t l = 0; l < weights_.size(); ++l) {
      const float* HWY_RESTRICT means = sums + (1 + l) * block_;
      const auto weight = static_cast<float>(weights_[l]);
      for (std::size_t i = 0; apart != nullptr && i < padded; i += tile_points) {
        std::copy_n(means + i, tile_points, apart + l * step + i * k);
      }
      for (std::size_t i = 0; i < padded; ++i) sums[i] = math::fused(weight, means[i], sums[i]);
    }
    for (std::size_t l = 0; l < weights_.size(); ++l) {
      const float* HWY_RESTRICT means = sums + (1 + l) * block_;
      const auto weight = static_cast<float>(weights_[l]);
      for (std::size_t i = 0; i < padded; ++i) {
        const float difference = means[i] - sums[i];
        spreads[i] = math::fused(weight * difference, difference, spreads[i]);
        norms[i] = math::fused(weight * means[i], means[i], norms[i]);
      }
    }
    for (std::size_t i = 0; i < padded; i += tile_points) {
      std::copy_n(sums + i, tile_points, keys + i * k);
    }
  }

  /// The same for all coordinates of a whole tile that holds whole blocks, of at most Levels
  /// levels: a number that the compiler knows leaves means in registers.
  template <std::size_t Levels>
  HWY_ATTR void average_tile(float* keys, std::size_t k, float* norms, float* spreads, float* apart,
                             std::size_t step) const {
    if constexpr (Levels > 1) {
      if (weights_.size() < Levels) {
        return average_tile<Levels - 1>(keys, k, norms, spreads, apart, step);
      }
    }
    Float norm2[vectors];
    Float spread[vectors];
    for (std::size_t v = 0; v < vectors; ++v) norm2[v] = spread[v] = hn::Zero(float_tag);
    for (std::size_t j = 0; j < k; ++j) {
      float* key = keys + j * tile_points;
      Float sums[vectors];
      Float averages[vectors];
      Float means[Levels][vectors];
      for (std::size_t v = 0; v < vectors; ++v) {
        sums[v] = hn::Load(float_tag, key + v * lane_count);
        averages[v] = hn::Zero(float_tag);
      }
#pragma GCC unroll 6
      for (std::size_t l = 0; l < Levels; ++l) {
        if (l > 0) add_other_halves(sums, std::size_t{1} << (l - 1));
        const Float share = hn::Set(float_tag, 1 / static_cast<float>(std::size_t{1} << l));
        const Float weight = hn::Set(float_tag, static_cast<float>(weights_[l]));
        for (std::size_t v = 0; v < vectors; ++v) {
          means[l][v] = hn::Mul(sums[v], share);
          averages[v] = hn::MulAdd(weight, means[l][v], averages[v]);
          if (apart == nullptr) continue;
          hn::Store(means[l][v], float_tag, apart + l * step + j * tile_points + v * lane_count);
        }
      }
#pragma GCC unroll 6
      for (std::size_t l = 0; l < Levels; ++l) {
        const Float weight = hn::Set(float_tag, static_cast<float>(weights_[l]));
        for (std::size_t v = 0; v < vectors; ++v) {
          const Float mean = means[l][v];
          const Float difference = hn::Sub(mean, averages[v]);
          spread[v] = hn::MulAdd(hn::Mul(weight, difference), difference, spread[v]);
          norm2[v] = hn::MulAdd(hn::Mul(weight, mean), mean, norm2[v]);
        }
      }
      for (std::size_t v = 0; v < vectors; ++v) {
        hn::Store(averages[v], float_tag, key + v * lane_count);
      }
    }
    for (std::size_t v = 0; v < vectors; ++v) {
      hn::Store(norm2[v], float_tag, norms + v * lane_count);
      hn::Store(spread[v], float_tag, spreads + v * lane_count);
    }
  }

  static constexpr std::size_t vectors = tile_points / lane_count;
  static constexpr auto max_tile_levels = static_cast<std::size_t>(std::bit_width(tile_points));

  /// Adds to the sum of each block of `half` tokens that of the other half of its block of twice
  /// as many.
  HWY_ATTR HWY_INLINE static void add_other_halves(Float (&sums)[vectors], std::size_t half) {
    Float others[vectors];
    std::int32_t lanes[lane_count];
    for (std::size_t i = 0; i < lane_count; ++i) {
      lanes[i] = static_cast<std::int32_t>(half < lane_count ? i ^ half : i);
    }
    const auto indices = hn::SetTableIndices(float_tag, lanes);
    for (std::size_t v = 0; v < vectors; ++v) {
      others[v] = half < lane_count ? hn::TableLookupLanes(sums[v], indices)
                                    : sums[v ^ (half / lane_count)];
    }
    for (std::size_t v = 0; v < vectors; ++v) sums[v] = hn::Add(sums[v], others[v]);
  }

  std::vector<double> weights_;  ///< lambda_l
  std::size_t block_;
  std::vector<float> means_;  ///< sums of a coordinate of the keys of a block, then means [level]
};

}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
