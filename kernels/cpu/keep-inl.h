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
#include <limits>

#include <hwy/highway.h>

#include "kernels/cpu/exp2-inl.h"
#include "kernels/cpu/head-inl.h"
#include "kernels/cpu/lanes-inl.h"
#include "kernels/cpu/largest-inl.h"
#include "kernels/cpu/tiling.h"
#include "kernels/cpu/window-inl.h"
#include "kernels/mechanism.h"

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {

/// Calls body(first, end) for the tokens from `first` to `end` that a head sees, in at most two
/// parts.
template <class Body>
HWY_ATTR HWY_INLINE void for_seen(const SeenTokens& seen, std::uint64_t first, std::uint64_t end,
                                  const Body& body) {
  const auto part = [&](std::uint64_t from, std::uint64_t to) HWY_ATTR {
    if (std::max(first, from) < std::min(end, to)) body(std::max(first, from), std::min(end, to));
  };
  part(0, seen.sinks);
  part(seen.begin, seen.end);
}

/// The same by blocks of `size` tokens, counted among those seen: body(block, first, end, last),
/// where `last` says that the block ends there.
template <class Body>
HWY_ATTR HWY_INLINE void for_blocks(const SeenTokens& seen, std::uint64_t size, std::uint64_t first,
                                    std::uint64_t end, const Body& body) {
  for_seen(seen, first, end, [&](std::uint64_t from, std::uint64_t to) HWY_ATTR {
    std::uint64_t rank = seen.rank(from);
    std::uint64_t block = rank / size;
    std::uint64_t left = size - rank % size;  // tokens of the block
    while (from < to) {
      const std::uint64_t count = std::min(to - from, left);
      from += count;
      rank += count;
      left -= count;
      body(block, from - count, from, left == 0 || rank == seen.count());
      if (left > 0) continue;
      left = size;
      ++block;
    }
  });
}

/// What a window keeps, found in the passes before the one that sums.
class Selection {
 public:
  /// Passes over the exponents after the one that finds the largest: for the digits of the k-th
  /// largest, for the weights of blocks, or for the largest of those kept where that is another
  /// one.
  static int more_passes(const HeadKeep& keep) {
    if (by_digits(keep)) return KthByDigits::passes - 1;
    return keep.rule == Keep::Rule::block ? 1 : 0;
  }

  /// Prepares for a head, before its exponents come.
  void reset(const Head& head) {
    const HeadKeep& keep = head.keep();
    if (by_digits(keep)) {
      digits_.reset(keep.top);
    } else if (keep.rule == Keep::Rule::top) {
      largest_.reset(keep.top);
    } else if (keep.rule == Keep::Rule::block) {
      blocks_.reset(keep.top);
      mass_ = 0;
    }
  }
  /// Adds the exponents of a panel while the largest is being looked for.
  HWY_ATTR void add(const Head& head, const KeyPanel& panel, const float* row) {
    if (by_digits(head.keep())) {
      digits_.add(row, panel.keys());
    } else if (head.keep().rule == Keep::Rule::top) {
      largest_.add(row, panel.keys());
    }
  }
  /// Adds the score of a block from its mean key.
  void add_block(std::uint64_t block, float exponent) {
    if (exponent > never) blocks_.add(block, static_cast<double>(exponent));
  }
  /// Begins one of more_passes().
  void begin_pass(const Head& head) {
    if (by_digits(head.keep())) digits_.end_pass();
    if (head.keep().pooled) finish(head, 0);
  }
  /// Adds the exponents of a panel in it. \param weights scratch [panel.keys()]
  HWY_ATTR void add_again(const Head& head, const KeyPanel& panel, const float* row,
                          float largest_exponent, float* weights) {
    if (by_digits(head.keep())) {
      digits_.add(row, panel.keys());
    } else if (largest_exponent > never) {
      add_masses(head, panel, row, largest_exponent, weights);
    }
  }
  void finish(const Head& head, float largest_exponent) {
    const HeadKeep& keep = head.keep();
    least_ = never;
    if (keep.rule == Keep::Rule::ratio) {
      least_ = largest_exponent + static_cast<float>(std::log2(keep.ratio));
    } else if (by_digits(keep)) {
      digits_.end_pass();
      least_ = digits_.kth();
    } else if (keep.rule == Keep::Rule::top) {
      least_ = largest_.kth();
    } else if (keep.rule == Keep::Rule::block) {
      blocks_.finish();
    }
    // A weight of 0 is never kept.
    least_ = std::max(least_, std::numeric_limits<float>::lowest());
  }

  /// Marks the tokens of the panel that are kept.
  HWY_ATTR void mark(const Head& head, const KeyPanel& panel, const float* row,
                     unsigned char* kept) const {
    const std::uint64_t first = panel.first_key();
    for_kept(head, panel, [&](std::uint64_t from, std::uint64_t to, bool keeps) HWY_ATTR {
      for (std::uint64_t i = from - first; keeps && i < to - first; ++i) {
        if (row[i] >= least_) kept[i] = 1;
      }
    });
  }
  /// Makes the exponents that are kept relative to `shift`, and the others -inf.
  HWY_ATTR void apply(const Head& head, const KeyPanel& panel, float shift, float* row) const {
    const std::uint64_t first = panel.first_key();
    for_kept(head, panel, [&](std::uint64_t from, std::uint64_t to, bool keeps) HWY_ATTR {
      if (!keeps) std::fill(row + (from - first), row + (to - first), never);
    });
    const Float least = hn::Set(float_tag, least_);
    const Float offset = hn::Set(float_tag, shift);
    const Float none = hn::Set(float_tag, never);
    for (std::size_t i = 0; i < panel.keys(); i += lane_count) {
      const Float exponent = hn::Load(float_tag, row + i);
      hn::Store(hn::IfThenElse(hn::Ge(exponent, least), hn::Sub(exponent, offset), none), float_tag,
                row + i);
    }
  }

 private:
  static bool by_digits(const HeadKeep& keep) {
    return keep.rule == Keep::Rule::top && keep.top > max_listed;
  }

  /// Calls body(first, end, keeps) for the parts of a panel that a rule keeps, or may keep, or not.
  template <class Body>
  HWY_ATTR HWY_INLINE void for_kept(const Head& head, const KeyPanel& panel,
                                    const Body& body) const {
    const std::uint64_t first = panel.first_key();
    if (head.keep().rule != Keep::Rule::block) return body(first, first + panel.points, true);
    const std::uint64_t* at = nullptr;
    for_blocks(head.seen(), head.keep().block, first, first + panel.points,
               [&](std::uint64_t block, std::uint64_t from, std::uint64_t to, bool) HWY_ATTR {
                 if (at == nullptr) at = blocks_.from(block);
                 while (at != blocks_.end() && *at < block) ++at;
                 body(from, to, at != blocks_.end() && *at == block);
               });
  }

  HWY_ATTR void add_masses(const Head& head, const KeyPanel& panel, const float* row,
                           float largest_exponent, float* weights) {
    const Exp2<true> exp2(0);
    const Float offset = hn::Set(float_tag, largest_exponent);
    for (std::size_t i = 0; i < panel.keys(); i += lane_count) {
      Float weight[] = {hn::Sub(hn::Load(float_tag, row + i), offset)};
      exp2(weight);
      hn::Store(weight[0], float_tag, weights + i);
    }
    const std::uint64_t first = panel.first_key();
    for_blocks(head.seen(), head.keep().block, first, first + panel.points,
               [&](std::uint64_t block, std::uint64_t from, std::uint64_t to, bool last) HWY_ATTR {
                 for (std::uint64_t i = from - first; i < to - first; ++i) {
                   auto weight = static_cast<double>(weights[i]);
                   // Below the range of float32.
                   if (weight == 0) {
                     weight = std::exp2(static_cast<double>(row[i]) -
                                        static_cast<double>(largest_exponent));
                   }
                   mass_ += weight;
                 }
                 if (!last) return;
                 if (mass_ > 0) blocks_.add(block, mass_);
                 mass_ = 0;
               });
  }

  LargestNumbers largest_;
  KthByDigits digits_;
  LargestBlocks blocks_;
  double mass_ = 0;  ///< of a block, so far
  float least_ = 0;  ///< exponent kept
};

}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
