// SPDX-License-Identifier: Apache-2.0
// Stage `keep`: which exponents of a window keep their weight.
#if defined(HEADLAB_CPU_KEEP_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLAB_CPU_KEEP_INL_H
#undef HEADLAB_CPU_KEEP_INL_H
#else
#define HEADLAB_CPU_KEEP_INL_H
#endif

#include <algorithm>
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

/// The k-th largest of numbers that come in rows, in memory for 2 k of them.
class LargestNumbers {
 public:
  void reset(std::uint64_t k) {
    k_ = static_cast<std::size_t>(k);
    kept_.clear();
    bound_ = -std::numeric_limits<float>::infinity();
  }
  HWY_ATTR void add(const float* row, std::size_t count) {
    for (std::size_t i = 0; i < count; i += lane_count) {
      const Float lanes = hn::Load(float_tag, row + i);
      if (hn::AllFalse(float_tag, hn::Gt(lanes, hn::Set(float_tag, bound_)))) continue;
      for (std::size_t j = i; j < i + lane_count; ++j) {
        if (row[j] > bound_) kept_.push_back(row[j]);
      }
      if (kept_.size() >= 2 * k_ + lane_count) shrink();
    }
  }
  /// -inf where there are fewer than k above it.
  float kth() {
    if (kept_.size() >= k_) shrink();
    return bound_;
  }

 private:
  void shrink() {
    std::nth_element(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(k_ - 1),
                     kept_.end(), std::greater<>());
    kept_.resize(k_);
    bound_ = kept_.back();
  }

  std::size_t k_ = 1;
  std::vector<float> kept_;
  float bound_ = 0;
};

/// What a window keeps, found in the pass `select` and used in the one that sums.
struct Selection {
  LargestNumbers largest;
  std::vector<double> scores;  ///< of the blocks of tokens
  double least_score = 0;
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
  /// Adds the exponents of a panel, of which `largest_exponent` is the largest of all panels.
  HWY_ATTR void add(const Head& head, const KeyPanel& panel, const float* row,
                    float largest_exponent) {
    const HeadKeep& keep = head.keep();
    if (keep.rule == Keep::Rule::top) largest.add(row, panel.keys());
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
      least_score = *at;
    }
  }
  /// True for a token of the panel that is kept, by its exponent.
  bool keeps(const Head& head, std::uint64_t token, float exponent) const {
    const HeadKeep& keep = head.keep();
    // A weight of 0 is never kept.
    if (exponent == -std::numeric_limits<float>::infinity()) return false;
    if (keep.rule != Keep::Rule::block) return exponent >= least;
    return head.seen().holds(token) &&
           scores[static_cast<std::size_t>(head.seen().rank(token) / keep.block)] >= least_score;
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
