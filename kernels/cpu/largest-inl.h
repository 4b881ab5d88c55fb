// SPDX-License-Identifier: Apache-2.0
// The largest of many numbers, in memory that does not depend on how many come.
#if defined(HEADLAB_CPU_LARGEST_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLAB_CPU_LARGEST_INL_H
#undef HEADLAB_CPU_LARGEST_INL_H
#else
#define HEADLAB_CPU_LARGEST_INL_H
#endif

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include <hwy/highway.h>

#include "kernels/cpu/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {

/// Integers in the order of the floats that they stand for.
inline std::uint32_t ordered_bits(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000U;
}
inline float from_ordered_bits(std::uint32_t ordered) {
  return std::bit_cast<float>(ordered >> 31 != 0 ? ordered & 0x7fffffffU : ~ordered);
}

/// The k-th largest of numbers that come in rows, from a list of 4 k of them.
class LargestNumbers {
 public:
  void reset(std::uint64_t k) {
    k_ = static_cast<std::size_t>(k);
    capacity_ = (4 * k_ + 255) / lane_count * lane_count;
    if (listed_.size() < capacity_ + lane_count) listed_.resize(capacity_ + lane_count);
    count_ = 0;
    bound_ = never;
  }
  /// Adds the numbers of a row that may be among the k largest.
  HWY_ATTR void add(const float* row, std::size_t count) {
    Float bound = hn::Set(float_tag, bound_);
    for (std::size_t i = 0; i < count; i += lane_count) {
      const Float lanes = hn::Load(float_tag, row + i);
      const auto above = hn::Gt(lanes, bound);
      if (hn::AllFalse(float_tag, above)) continue;
      count_ += append(lanes, above, &listed_[count_]);
      if (count_ <= capacity_ - lane_count) continue;
      shrink();
      bound = hn::Set(float_tag, bound_);
    }
  }
  /// -inf where fewer than k are above it.
  HWY_ATTR float kth() { return count_ >= k_ ? bound_of(k_) : bound_; }

 private:
  /// Stores the lanes of a mask one after another, and anything behind them; returns their number.
  /// In a register first: processors compress into memory slowly.
  template <class Mask>
  HWY_ATTR static std::size_t append(Float lanes, Mask mask, float* to) {
    hn::StoreU(hn::Compress(lanes, mask), float_tag, to);
    return hn::CountTrue(float_tag, mask);
  }

  /// Drops most of what is not among the k largest. What equals the bound may go where k are listed
  /// that reach it: it does not move the k-th largest.
  HWY_ATTR void shrink() {
    bound_ = bound_of(2 * k_);
    const Float bound = hn::Set(float_tag, bound_);
    std::size_t above = 0;
    for (std::size_t i = 0; i < count_; i += lane_count) {
      const Float lanes = hn::LoadU(float_tag, &listed_[i]);
      above += append(lanes, hn::Gt(lanes, bound), &listed_[above]);
    }
    for (; above < k_; ++above) listed_[above] = bound_;
    count_ = above;
  }

  /// A number that k to `most` of those listed reach, most >= k, or the k-th largest where there is
  /// none; with most = k the k-th largest. By bisection without branches on the numbers.
  HWY_ATTR float bound_of(std::size_t most) {
    for (std::size_t i = count_; i % lane_count != 0; ++i) listed_[i] = never;
    float high = largest();
    float low = std::max(bound_, std::numeric_limits<float>::lowest());
    for (int step = 0; low < high; ++step) {
      float middle = low + (high - low) / 2;
      // Halves of an interval around 0 would never end.
      if (step >= 16 || !(middle > low && middle <= high)) {
        const std::uint32_t from = ordered_bits(low);
        middle = from_ordered_bits(from + (ordered_bits(high) - from + 1) / 2);
      }
      const std::size_t count = reaching(middle);
      if (count < k_) {
        high = from_ordered_bits(ordered_bits(middle) - 1);
        continue;
      }
      low = middle;
      if (count <= most) return most > k_ ? low : min_reaching(low);
    }
    return low;
  }
  HWY_ATTR std::size_t reaching(float bound) const {
    const Float least = hn::Set(float_tag, bound);
    std::size_t count = 0;
    for (std::size_t i = 0; i < count_; i += lane_count) {
      count += hn::CountTrue(float_tag, hn::Ge(hn::LoadU(float_tag, &listed_[i]), least));
    }
    return count;
  }
  HWY_ATTR float largest() const {
    Float most = hn::Set(float_tag, never);
    for (std::size_t i = 0; i < count_; i += lane_count) {
      most = hn::Max(most, hn::LoadU(float_tag, &listed_[i]));
    }
    return hn::GetLane(hn::MaxOfLanes(float_tag, most));
  }
  /// The least of those listed that reach a number.
  HWY_ATTR float min_reaching(float bound) const {
    const Float from = hn::Set(float_tag, bound);
    const Float none = hn::Set(float_tag, std::numeric_limits<float>::infinity());
    Float least = none;
    for (std::size_t i = 0; i < count_; i += lane_count) {
      const Float lanes = hn::LoadU(float_tag, &listed_[i]);
      least = hn::Min(least, hn::IfThenElse(hn::Ge(lanes, from), lanes, none));
    }
    return hn::GetLane(hn::MinOfLanes(float_tag, least));
  }

  std::size_t k_ = 1;
  std::size_t capacity_ = 0;
  std::size_t count_ = 0;
  std::vector<float> listed_;
  float bound_ = 0;  ///< at least k are listed or were counted that reach it, once it is finite
};

/// The k-th largest of numbers of any count in 16 KiB, by one pass over them for each digit of
/// their bits in order.
class KthByDigits {
 public:
  static constexpr int passes = 3;

  void reset(std::uint64_t k) {
    left_ = k;
    digit_ = 0;
    found_ = 0;
    counts_.assign(std::size_t{1} << width, 0);
  }
  /// Counts the numbers of a row that begin with the digits found.
  void add(const float* row, std::size_t count) {
    const int shift = shifts[digit_];
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t bits = ordered_bits(row[i]);
      if (digit_ > 0 && bits >> shifts[digit_ - 1] != found_) continue;
      ++counts_[(bits >> shift) & mask()];
    }
  }
  /// Finds the next digit, after a pass over all numbers.
  void end_pass() {
    std::uint32_t digit = mask();
    while (digit > 0 && counts_[digit] < left_) left_ -= counts_[digit--];
    found_ = found_ << (digit_ == 0 ? 0 : shifts[digit_ - 1] - shifts[digit_]) | digit;
    ++digit_;
    std::fill(counts_.begin(), counts_.end(), 0);
  }
  /// After `passes` passes.
  float kth() const { return from_ordered_bits(found_); }

 private:
  static constexpr int width = 11;
  static constexpr int shifts[passes] = {21, 10, 0};

  std::uint32_t mask() const { return digit_ + 1 < passes ? (1U << width) - 1 : (1U << 10) - 1; }

  std::uint64_t left_ = 1;             ///< k less the numbers above the digits found
  int digit_ = 0;                      ///< that is counted
  std::uint32_t found_ = 0;            ///< digits before it
  std::vector<std::uint64_t> counts_;  ///< of each value of it
};

/// The blocks of the k largest scores and of those equal to the k-th, in memory for some times as
/// many.
class LargestBlocks {
 public:
  void reset(std::uint64_t k) {
    k_ = static_cast<std::size_t>(k);
    limit_ = 2 * k_ + 64;
    bound_ = -std::numeric_limits<double>::infinity();
    blocks_.clear();
    scores_.clear();
  }
  /// Adds a block, which has a higher number than those before.
  void add(std::uint64_t block, double score) {
    if (score < bound_) return;
    blocks_.push_back(block);
    scores_.push_back(score);
    if (blocks_.size() < limit_) return;
    shrink();
    // All of them may be equal.
    limit_ = std::max(limit_, 2 * blocks_.size());
  }
  /// Drops what is below the k-th largest, after all were added.
  void finish() { shrink(); }
  /// The blocks kept that do not come before this one, in the order of their numbers.
  const std::uint64_t* from(std::uint64_t block) const {
    return std::to_address(std::ranges::lower_bound(blocks_, block));
  }
  const std::uint64_t* end() const { return std::to_address(blocks_.end()); }

 private:
  void shrink() {
    if (blocks_.size() <= k_) return;
    sorted_ = scores_;
    const auto kth = sorted_.begin() + static_cast<std::ptrdiff_t>(k_ - 1);
    std::nth_element(sorted_.begin(), kth, sorted_.end(), std::greater<>());
    bound_ = *kth;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      if (scores_[i] < bound_) continue;
      blocks_[kept] = blocks_[i];
      scores_[kept++] = scores_[i];
    }
    blocks_.resize(kept);
    scores_.resize(kept);
  }

  std::size_t k_ = 1;
  std::size_t limit_ = 0;
  double bound_ = 0;
  std::vector<std::uint64_t> blocks_;
  std::vector<double> scores_;
  std::vector<double> sorted_;  ///< scratch
};

}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
