// SPDX-License-Identifier: Apache-2.0
// Mean keys of the blocks of tokens that a head sees, for the scores of stage `keep`.
#if defined(HEADLAB_CPU_BLOCK_MEANS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLAB_CPU_BLOCK_MEANS_INL_H
#undef HEADLAB_CPU_BLOCK_MEANS_INL_H
#else
#define HEADLAB_CPU_BLOCK_MEANS_INL_H
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <hwy/aligned_allocator.h>
#include <hwy/highway.h>

#include "kernels/cpu/aligned.h"
#include "kernels/cpu/head-inl.h"
#include "kernels/cpu/keep-inl.h"
#include "kernels/cpu/lanes-inl.h"
#include "kernels/cpu/training_set-inl.h"
#include "kernels/mechanism.h"

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {

/// Turns the tokens of a head into tiles of mean keys, one a block, whose exponents are the scores
/// of the blocks. Sums are float64, in the order of the tokens.
class BlockMeans {
 public:
  BlockMeans(const Head& head, const Levels& levels)
      : head_(head),
        levels_(levels.off() ? std::vector<double>{1} : levels.weights),
        sums_(levels_.size() * head.k()),
        keys_(allocate_aligned<float>((head.k() + 2) * tile_points)) {
    std::fill_n(keys_.get(), (head.k() + 2) * tile_points, 0.0f);
  }

  const Head& head() const { return head_; }

  void reset() {
    std::ranges::fill(sums_, 0.0);
    count_ = 0;
    filled_ = 0;
  }

  /// Adds some tiles of a training set, which follow those before. Calls take(tile, first, count)
  /// for mean keys of the blocks first ... first + count - 1 once they are complete.
  template <class Take>
  void add(const TrainingSet& set, std::size_t tile, std::size_t tiles, const Take& take) {
    const std::uint64_t from = set.first_point() + tile * tile_points;
    const std::uint64_t to =
        std::min<std::uint64_t>(from + tiles * tile_points, set.first_point() + set.points());
    for_blocks(head_.seen(), head_.keep().block, from, to,
               [&](std::uint64_t block, std::uint64_t first, std::uint64_t end, bool last) {
                 for (std::uint64_t i = first; i < end; ++i) {
                   add_token(set, static_cast<std::size_t>(i - set.first_point()));
                 }
                 if (!last) return;
                 store_mean();
                 const bool all = (block + 1) * head_.keep().block >= head_.seen().count();
                 if (filled_ < tile_points && !all) return;
                 take(KeyTile{keys_.get(), norms(), levels_.size() > 1 ? spreads() : nullptr},
                      block + 1 - filled_, filled_);
                 filled_ = 0;
               });
  }

 private:
  float* norms() { return keys_.get() + head_.k() * tile_points; }
  float* spreads() { return norms() + tile_points; }

  void add_token(const TrainingSet& set, std::size_t i) {
    for (std::size_t l = 0; l < levels_.size(); ++l) {
      const float* key = levels_.size() > 1 ? set.level_keys(l, i / tile_points, head_.subspace())
                                            : set.keys(i / tile_points, head_.subspace());
      for (std::size_t j = 0; j < head_.k(); ++j) {
        sums_[l * head_.k() + j] += static_cast<double>(key[j * tile_points + i % tile_points]);
      }
    }
    ++count_;
  }
  /// Makes the sums the next mean key of the tile: kappa = sum_l lambda_l mean_l, with
  /// sum_l lambda_l |mean_l|^2 and sum_l lambda_l |mean_l - kappa|^2.
  void store_mean() {
    const std::size_t k = head_.k();
    double norm2 = 0;
    double spread = 0;
    for (std::size_t j = 0; j < k; ++j) {
      double key = 0;
      for (std::size_t l = 0; l < levels_.size(); ++l) {
        double& mean = sums_[l * k + j];
        mean /= static_cast<double>(count_);
        key += levels_[l] * mean;
        norm2 += levels_[l] * mean * mean;
      }
      for (std::size_t l = 0; l < levels_.size(); ++l) {
        const double difference = sums_[l * k + j] - key;
        spread += levels_[l] * difference * difference;
      }
      keys_[j * tile_points + filled_] = static_cast<float>(key);
    }
    norms()[filled_] = static_cast<float>(norm2);
    spreads()[filled_] = static_cast<float>(spread);
    ++filled_;
    std::ranges::fill(sums_, 0.0);
    count_ = 0;
  }

  const Head& head_;
  std::vector<double> levels_;               ///< weights
  std::vector<double> sums_;                 ///< [levels][k], of the tokens of a block so far
  std::uint64_t count_ = 0;                  ///< tokens in them
  std::size_t filled_ = 0;                   ///< mean keys of the tile
  hwy::AlignedFreeUniquePtr<float[]> keys_;  ///< [k][tile_points], then norms and spreads
};

}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
