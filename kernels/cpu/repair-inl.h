// SPDX-License-Identifier: Apache-2.0
// Windows whose sums float32 does not hold: they are found after the first pass, probed for their
// largest exponent in a second one, and summed again, relative to that exponent, in a third.
#if defined(HEADLAB_CPU_REPAIR_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLAB_CPU_REPAIR_INL_H
#undef HEADLAB_CPU_REPAIR_INL_H
#else
#define HEADLAB_CPU_REPAIR_INL_H
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <hwy/highway.h>

#include "kernels/cpu/head-inl.h"
#include "kernels/cpu/lanes-inl.h"
#include "kernels/cpu/products-inl.h"
#include "kernels/cpu/window-inl.h"
#include "kernels/plan.h"
#include "kernels/statistics/safe_sums.h"

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {

/// large: sums of (s w)^2 stay below 2^128 for a noise scale s up to 2^28.
inline constexpr float max_first_exponent = 16;
inline constexpr float max_exponent = 32;

/// The windows [Q][H] of a replicate that are summed again.
class Repair {
 public:
  /// The estimator, n and kernel law of `plan` are read.
  explicit Repair(const Plan& plan)
      : min_safe_sum_(min_safe_sum(plan.estimator, plan.n, Underflow::flushed)),
        has_key_prior_(
            std::visit([](const auto& law) { return law.has_key_prior; }, *plan.kernel)) {}

  void reset() { queries_.clear(); }
  /// Queries with windows that are summed again.
  const std::vector<std::size_t>& queries() const { return queries_; }
  /// True where more than one window in 16 was summed again only for its sum of w^2.
  bool needs_squares() const { return needs_squares_; }

  /// Finds the windows that are summed again; true if some of them need a probe.
  /// \param max_norms [H], the largest |key|^2  \param squares whether sums of w^2 are there
  bool find(std::span<Window> windows, std::span<const float> max_norms, bool squares) {
    const std::size_t heads = max_norms.size();
    bool probes = false;
    std::size_t without_squares = 0;
    for (std::size_t q = 0; q * heads < windows.size(); ++q) {
      bool again = false;
      for (std::size_t h = 0; h < heads; ++h) {
        Window& at = windows[q * heads + h];
        const float bound =
            has_key_prior_ ? at.norm * std::sqrt(max_norms[h]) + at.exponent_offset : 0.5f;
        at.repaired = !(at.sums.weight >= min_safe_sum_) || bound > max_exponent;
        // sum w^2 <= max w sum w: such a window is not narrow.
        const bool wide = at.sums.weight >= 2.001 * std::exp2(static_cast<double>(bound));
        if (!at.repaired && !wide && !squares) ++without_squares;
        at.sum_again = at.repaired || (!wide && !squares);
        if (at.repaired) {
          at.shift = never;
          at.nearest = std::numeric_limits<float>::infinity();
        }
        probes = probes || at.repaired;
        again = again || at.sum_again;
      }
      if (again) queries_.push_back(q);
    }
    needs_squares_ = 16 * without_squares > windows.size();
    return probes;
  }

  /// Has every window summed again, and all of them probed before.
  void take_all(std::span<Window> windows, std::size_t heads) {
    for (Window& at : windows) {
      at.repaired = true;
      at.sum_again = true;
      at.shift = never;
      at.nearest = std::numeric_limits<float>::infinity();
    }
    for (std::size_t q = 0; q * heads < windows.size(); ++q) queries_.push_back(q);
  }

  /// Takes the largest exponent and the nearest key of the windows with unsafe sums from a panel.
  /// \param row scratch [panel.tiles * tile_points]
  HWY_ATTR void probe(const KeyPanel& panel, const Heads& heads, std::span<Window> windows,
                      float* row) const {
    for (const std::size_t q : queries_) {
      for (std::size_t h = 0; h < heads.size(); ++h) {
        Window& at = windows[q * heads.size() + h];
        if (!at.repaired || heads[h]->sight(panel) == Sight::none) continue;
        heads[h]->plain_exponents(panel, q, row);
        look(panel, *heads[h], q, at, row);
      }
    }
  }

  /// The same for one window, whose exponents at the panel are in `row`, which may change.
  HWY_ATTR static void look(const KeyPanel& panel, const Head& head, std::size_t q, Window& at,
                            float* row) {
    raise(panel, at, row);
    if (at.shift == never) {
      find_nearest(panel, head, q, at, row);
    }
  }

  /// Raises the largest exponent of a window to those of a panel.
  HWY_ATTR static void raise(const KeyPanel& panel, Window& at, const float* row) {
    Float largest = hn::Set(float_tag, at.shift);
    for (std::size_t i = 0; i < panel.keys(); i += lane_count) {
      largest = hn::Max(largest, hn::Load(float_tag, row + i));
    }
    at.shift = hn::GetLane(hn::MaxOfLanes(float_tag, largest));
  }

  /// Makes plain exponents relative to the largest one of the window.
  static void shift(const Window& at, const KeyPanel& panel, float* exponents) {
    if (at.only_key == no_key) {
      for (std::size_t i = 0; i < panel.keys(); ++i) exponents[i] -= at.shift;
      return;
    }
    std::fill_n(exponents, panel.keys(), never);
    const std::int64_t only = at.only_key - static_cast<std::int64_t>(panel.first_key());
    if (only >= 0 && only < static_cast<std::int64_t>(panel.points)) exponents[only] = 0;
  }

 private:
  /// Finds the first of the nearest keys, for a window in which no key has any weight.
  HWY_ATTR static void find_nearest(const KeyPanel& panel, const Head& head, std::size_t q,
                                    Window& at, float* distances) {
    const PackedRows<1> query{head.query(q)};
    multiply_tiles<1, true>(panel.set.keys(panel.tile, head.subspace()), panel.tiles, head.k(),
                            query, nullptr, 0, &distances, [](Float r2) HWY_ATTR { return r2; });
    for (std::size_t i = 0; i < panel.points; ++i) {
      if (!head.seen().holds(panel.first_key() + i)) continue;
      if (distances[i] < at.nearest || at.only_key == no_key) {
        at.nearest = distances[i];
        at.only_key = static_cast<std::int64_t>(panel.first_key() + i);
      }
    }
  }

  double min_safe_sum_;
  bool has_key_prior_;
  bool needs_squares_ = false;
  std::vector<std::size_t> queries_;
};

}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
