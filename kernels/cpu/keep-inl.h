// SPDX-License-Identifier: Apache-2.0
// Stage `keep`: which exponents of a window keep their weight.
#if defined(HEADLAB_CPU_KEEP_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLAB_CPU_KEEP_INL_H
#undef HEADLAB_CPU_KEEP_INL_H
#else
#define HEADLAB_CPU_KEEP_INL_H
#endif

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include <hwy/highway.h>

#include "kernels/cpu/head-inl.h"
#include "kernels/cpu/lanes-inl.h"
#include "kernels/cpu/window-inl.h"
#include "kernels/mechanism.h"

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {

/// The k-th largest of numbers that come in rows, in memory for 4 k of them.
class LargestNumbers {
 public:
  void reset(std::uint64_t k) {
    k_ = static_cast<std::size_t>(k);
    capacity_ = (4 * k_ + 255) / lane_count * lane_count;
    if (kept_.size() < capacity_ + lane_count) kept_.resize(capacity_ + lane_count);
    count_ = 0;
    bound_ = never;
  }
  /// Adds the numbers of a row that are above the k-th largest so far.
  HWY_ATTR void add(const float* row, std::size_t count) {
    for (std::size_t i = 0; i < count; i += lane_count) {
      const Float lanes = hn::Load(float_tag, row + i);
      const auto above = hn::Gt(lanes, hn::Set(float_tag, bound_));
      if (hn::AllFalse(float_tag, above)) continue;
      count_ += append(lanes, above, &kept_[count_]);
      if (count_ > capacity_ - lane_count) shrink();
    }
  }
  /// -inf where fewer than k are above it.
  HWY_ATTR float kth() {
    if (count_ >= k_) bound_ = find();
    return bound_;
  }

 private:
  static constexpr float never = -std::numeric_limits<float>::infinity();

  /// Stores the lanes of a mask one after another, and anything behind them; returns their number.
  /// In a register first: processors compress into memory slowly.
  template <class Mask>
  HWY_ATTR static std::size_t append(Float lanes, Mask mask, float* to) {
    hn::StoreU(hn::Compress(lanes, mask), float_tag, to);
    return hn::CountTrue(float_tag, mask);
  }

  /// Drops what is below the k-th largest.
  HWY_ATTR void shrink() {
    bound_ = find();
    const Float bound = hn::Set(float_tag, bound_);
    std::size_t above = 0;
    for (std::size_t i = 0; i < count_; i += lane_count) {
      const Float lanes = hn::LoadU(float_tag, &kept_[i]);
      above += append(lanes, hn::Gt(lanes, bound), &kept_[above]);
    }
    std::fill(kept_.begin() + static_cast<std::ptrdiff_t>(above),
              kept_.begin() + static_cast<std::ptrdiff_t>(k_), bound_);
    count_ = k_;
  }
  /// By bisection over the floats, in the order of their bits: the largest one that at least k
  /// numbers reach. No comparison is a branch.
  HWY_ATTR float find() {
    for (std::size_t i = count_; i % lane_count != 0; ++i) kept_[i] = never;
    std::int64_t low = order(-std::numeric_limits<float>::max());
    std::int64_t high = order(std::numeric_limits<float>::max());
    while (low < high) {
      const std::int64_t middle = low + (high - low + 1) / 2;
      if (reaching(number(middle)) >= k_) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return number(low);
  }
  HWY_ATTR std::size_t reaching(float bound) const {
    const Float least = hn::Set(float_tag, bound);
    std::size_t count = 0;
    for (std::size_t i = 0; i < count_; i += lane_count) {
      count += hn::CountTrue(float_tag, hn::Ge(hn::LoadU(float_tag, &kept_[i]), least));
    }
    return count;
  }
  /// Integers in the order of the floats that they stand for.
  static std::int64_t order(float x) {
    const auto bits = std::bit_cast<std::int32_t>(x);
    return bits >= 0 ? std::int64_t{bits} : -std::int64_t{bits & 0x7fffffff};
  }
  static float number(std::int64_t order) {
    const auto bits = static_cast<std::int32_t>(order >= 0 ? order : -order);
    return std::bit_cast<float>(order >= 0 ? bits
                                           : bits | std::numeric_limits<std::int32_t>::min());
  }

  std::size_t k_ = 1;
  std::size_t capacity_ = 0;
  std::size_t count_ = 0;
  std::vector<float> kept_;
  float bound_ = 0;
};

/// What a window keeps, found in the passes `probe` and `select` and used in the one that sums.
struct Selection {
  LargestNumbers largest;
  std::vector<double> scores;  ///< of the blocks of tokens
  double min_score = 0;
  float least = 0;  ///< exponent kept

  /// Prepares for a head, before its exponents come.
  void reset(const Head& head) {
    const HeadKeep& keep = head.keep();
    if (keep.rule == Keep::Rule::top) largest.reset(keep.top);
    if (keep.rule == Keep::Rule::block) {
      scores.assign(static_cast<std::size_t>((head.seen().count() + keep.block - 1) / keep.block),
                    0.0);
    }
  }
  /// Adds the exponents of a panel while the largest is being looked for.
  HWY_ATTR void add(const Head& head, const KeyPanel& panel, const float* row) {
    if (head.keep().rule == Keep::Rule::top) largest.add(row, panel.keys());
  }
  /// Adds them to the scores of blocks, once the largest of all panels is known.
  HWY_ATTR void add_scores(const Head& head, const KeyPanel& panel, const float* row,
                           float largest_exponent) {
    const HeadKeep& keep = head.keep();
    if (keep.rule != Keep::Rule::block || std::isinf(largest_exponent)) return;
    for (std::size_t i = 0; i < panel.points; ++i) {
      const std::uint64_t token = panel.first_key() + i;
      if (!head.seen().holds(token)) continue;
      scores[static_cast<std::size_t>(head.seen().rank(token) / keep.block)] +=
          std::exp2(static_cast<double>(row[i]) - static_cast<double>(largest_exponent));
    }
  }
  void finish(const Head& head, float largest_exponent) {
    const HeadKeep& keep = head.keep();
    least = -std::numeric_limits<float>::infinity();
    if (keep.rule == Keep::Rule::ratio) {
      least = largest_exponent + static_cast<float>(std::log2(keep.ratio));
    } else if (keep.rule == Keep::Rule::top) {
      least = largest.kth();
    } else if (keep.rule == Keep::Rule::block) {
      std::vector<double> sorted = scores;
      const auto at = sorted.begin() + static_cast<std::ptrdiff_t>(keep.top - 1);
      std::nth_element(sorted.begin(), at, sorted.end(), std::greater<>());
      min_score = *at;
    }
  }
  /// True for a token of the panel that is kept, by its exponent.
  bool keeps(const Head& head, std::uint64_t token, float exponent) const {
    const HeadKeep& keep = head.keep();
    // A weight of 0 is never kept.
    if (exponent == -std::numeric_limits<float>::infinity()) return false;
    if (keep.rule != Keep::Rule::block) return exponent >= least;
    return head.seen().holds(token) &&
           scores[static_cast<std::size_t>(head.seen().rank(token) / keep.block)] >= min_score;
  }
  /// Sets the exponents that are not kept to -inf.
  HWY_ATTR void drop(const Head& head, const KeyPanel& panel, float* row) const {
    constexpr float never = -std::numeric_limits<float>::infinity();
    if (head.keep().rule == Keep::Rule::block) {
      for (std::size_t i = 0; i < panel.points; ++i) {
        if (!keeps(head, panel.first_key() + i, row[i])) row[i] = never;
      }
      return;
    }
    const Float bound = hn::Set(float_tag, least);
    for (std::size_t i = 0; i < panel.keys(); i += lane_count) {
      const Float exponent = hn::Load(float_tag, row + i);
      hn::Store(hn::IfThenElse(hn::Ge(exponent, bound), exponent, hn::Set(float_tag, never)),
                float_tag, row + i);
    }
  }
};

}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
