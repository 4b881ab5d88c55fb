// SPDX-License-Identifier: Apache-2.0
// The panels that a segment of keys is divided into, and the norms of their keys.
#if defined(HEADLAB_CPU_PANELS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLAB_CPU_PANELS_INL_H
#undef HEADLAB_CPU_PANELS_INL_H
#else
#define HEADLAB_CPU_PANELS_INL_H
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include <hwy/highway.h>

#include "kernels/cpu/head-inl.h"
#include "kernels/cpu/lanes-inl.h"
#include "kernels/cpu/repair-inl.h"
#include "kernels/cpu/training_set-inl.h"
#include "kernels/cpu/window-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {

/// The panels of one segment.
class Panels {
 public:
  explicit Panels(const Heads& heads)
      : heads_(heads),
        sees_all_(std::ranges::all_of(heads, [](const auto& head) { return head->sees_all(); })) {}

  /// Divides a segment into panels of up to `panel_tiles` tiles, and finds the largest |key|^2 of
  /// every head in each.
  HWY_ATTR void divide(const TrainingSet& set, std::size_t tile, std::size_t tiles,
                       std::size_t panel_tiles) {
    all_.clear();
    for (std::size_t t = 0; t < tiles;) {
      const std::size_t most = std::min(panel_tiles, tiles - t);
      const std::size_t count = sees_all_ ? most : tiles_alike(set, tile + t, most);
      if (count > 0) all_.push_back(panel_of(set, tile + t, count));
      t += std::max<std::size_t>(count, 1);
    }
    norms_.clear();
    for (const KeyPanel& panel : all_) {
      for (const auto& head : heads_) {
        const float* norms = set.norms(panel.tile, head->subspace());
        Float largest = hn::Zero(float_tag);
        // What the others see must not matter.
        const bool sees = sees_all_ || head->sight(panel) != Sight::none;
        for (std::size_t i = 0; sees && i < panel.tiles * tile_points; i += lane_count) {
          largest = hn::Max(largest, hn::Load(float_tag, norms + i));
        }
        norms_.push_back(hn::GetLane(hn::MaxOfLanes(float_tag, largest)));
      }
    }
  }
  const std::vector<KeyPanel>& all() const { return all_; }
  /// The largest |key|^2 of a head in a panel.
  float max_norm(const KeyPanel& panel, std::size_t h) const {
    return norms_[panel.index * heads_.size() + h];
  }

 private:
  KeyPanel panel_of(const TrainingSet& set, std::size_t tile, std::size_t tiles) const {
    const std::size_t points = std::min(tiles * tile_points, set.points() - tile * tile_points);
    return {set, tile, tiles, points, all_.size()};
  }
  /// How many tiles from `tile` on every head sees as it sees that one, up to `most`; 0 where none
  /// sees it. A tile that some head sees a part of stands alone.
  std::size_t tiles_alike(const TrainingSet& set, std::size_t tile, std::size_t most) const {
    std::size_t count = 1;
    bool seen = false;
    for (const auto& head : heads_) {
      const Sight sight = head->sight(panel_of(set, tile, 1));
      seen = seen || sight != Sight::none;
      if (sight == Sight::part) most = 1;
    }
    if (!seen) return 0;
    for (; count < most; ++count) {
      const KeyPanel next = panel_of(set, tile + count, 1);
      for (const auto& head : heads_) {
        if (head->sight(next) != head->sight(panel_of(set, tile, 1))) return count;
      }
    }
    return count;
  }

  const Heads& heads_;
  const bool sees_all_;  ///< every head sees every token
  std::vector<KeyPanel> all_;
  std::vector<float> norms_;  ///< [all_][heads_]
};

/// The largest |key|^2 of every head in a training set, and the bounds that follow from the first.
class KeyNorms {
 public:
  void reset(std::size_t heads) {
    largest_.assign(heads, 0.0f);
    bounded_.assign(heads, false);
  }

  /// Takes a segment. \param windows [Q][H]; with `has_key_prior`, the exponents of a head are
  /// bounded by the first segment of which it sees something.
  void take(const Panels& panels, const Heads& heads, std::span<Window> windows,
            bool has_key_prior) {
    for (std::size_t h = 0; h < heads.size(); ++h) {
      float norm = 0;
      bool sees = false;
      for (const KeyPanel& panel : panels.all()) {
        norm = std::max(norm, panels.max_norm(panel, h));
        sees = sees || heads[h]->sight(panel) != Sight::none;
      }
      if (has_key_prior && sees && !bounded_[h]) {
        for (std::size_t i = h; i < windows.size(); i += heads.size()) {
          bound_exponents(windows[i], std::sqrt(norm));
        }
        bounded_[h] = true;
      }
      largest_[h] = std::max(largest_[h], norm);
    }
  }

  /// [H], of the keys so far.
  const std::vector<float>& largest() const { return largest_; }

 private:
  /// Bounds the exponents of a law with a prior on its keys by the first keys, of norms up to
  /// `norm`.
  static void bound_exponents(Window& at, float norm) {
    // A window beyond max_offset, which exp2 could not round, exceeds `max_exponent` and is
    // repaired.
    at.set_exponent_offset(
        -std::ceil(std::clamp(at.norm * norm - max_first_exponent, 0.0f, max_offset)));
    const float reach = (at.exponent_offset - static_cast<float>(min_plain_exponent)) / at.norm;
    const bool plain = reach > 0 && at.exponent_offset >= -max_plain_offset;
    at.reach2 = plain ? reach * reach : -1.0f;
  }

  std::vector<float> largest_;
  std::vector<bool> bounded_;  ///< exponents have their bound
};

}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
