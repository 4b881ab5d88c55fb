// SPDX-License-Identifier: Apache-2.0
// The weights of heads at a panel of keys.
//
// A group of queries meets a panel: exponents go into a buffer and become weights there, which are
// summed row by row; with AVX-512 four queries keep both in registers, with the same bits.
#if defined(HEADLAB_CPU_PANEL_WEIGHTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLAB_CPU_PANEL_WEIGHTS_INL_H
#undef HEADLAB_CPU_PANEL_WEIGHTS_INL_H
#else
#define HEADLAB_CPU_PANEL_WEIGHTS_INL_H
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <hwy/highway.h>

#include "kernels/cpu/aligned.h"
#include "kernels/cpu/ensemble_constants-inl.h"
#include "kernels/cpu/head-inl.h"
#include "kernels/cpu/lanes-inl.h"
#include "kernels/cpu/pair_sums-inl.h"
#include "kernels/cpu/panels-inl.h"
#include "kernels/cpu/repair-inl.h"
#include "kernels/cpu/selections-inl.h"
#include "kernels/cpu/sums-inl.h"
#include "kernels/cpu/window-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {

/// The weights of all heads at a group of queries for a panel, and the running sums of all windows.
class PanelWeights {
 public:
  /// Of windows [Q][H].
  PanelWeights(const EnsembleConstants& fixed, const Heads& heads, const Panels& panels,
               std::span<Window> windows, Selections& selections)
      : fixed_(fixed),
        heads_(heads),
        panels_(panels),
        windows_(windows),
        selections_(selections),
        sums_(windows.size() * 4),
        buffer_(allocate_aligned<float>(fixed.buffer_size)) {
    std::fill_n(buffer_.get(), fixed.buffer_size, 0.0f);
  }

  /// Begins a pass. \param keep the weights of all heads are kept \param squares sums of w^2 are
  /// taken one by one \param repairs windows are summed again
  void begin(bool keep, bool squares, bool repairs) {
    keeps_ = keep;
    adds_squares_ = squares;
    repairs_ = repairs;
    panel_tiles_ = keep ? fixed_.weight_tiles : fixed_.key_tiles;
  }

  bool keep() const { return keeps_; }
  std::size_t panel_tiles() const { return panel_tiles_; }
  /// Exponents, then weights of one head at query r of a group.
  float* row(std::size_t r, std::size_t h) {
    return &buffer_[(keeps_ ? r * fixed_.heads + h : r) * panel_keys()];
  }

  /// Weights of one head at Rows queries for a panel: adds their sums, and leaves them in row()
  /// where weights are kept.
  template <std::size_t Rows>
  HWY_ATTR void weigh(const KeyPanel& panel, std::size_t q, std::size_t h) {
    const Sight sight = heads_[h]->sight(panel);
    if (sight == Sight::none) return clear<Rows>(panel, h);
#if HWY_TARGET <= HWY_AVX3
    if constexpr (Rows == fused_rows) {
      if (sight == Sight::all && weigh_fused(panel, q, h)) return;
    }
#endif
    const bool partial = sight == Sight::part || panel.points < panel.tiles * tile_points;
    const float norm = panels_.max_norm(panel, h);
    bool all_repaired = true;
    for (std::size_t r = 0; r < Rows; ++r) all_repaired = all_repaired && window(q + r, h).repaired;
    if (!all_repaired || !fixed_.keeps_all) exponents<Rows>(panel, q, h);
    for (std::size_t r = 0; r < Rows; ++r) {
      const Window& at = window(q + r, h);
      float* sums = running(q + r, h);
      if (!fixed_.keeps_all) {
        selections_.apply(panel, q + r, h, at, row(r, h));
        count_kept(panel, q + r, h, row(r, h));
        add_row(true, panel, 0, row(r, h), sums);
      } else if (at.repaired) {
        heads_[h]->plain_exponents(panel, q + r, row(r, h));
        Repair::shift(at, panel, row(r, h));
        add_row(true, panel, 0, row(r, h), sums);
      } else {
        add_row(partial || norm > at.reach2, panel, at.exponent_offset, row(r, h), sums);
      }
    }
  }

  /// Weights of all heads, of which those of each of some conditions keep one set of tokens. No two
  /// conditions have a head in common.
  template <std::size_t Rows>
  HWY_ATTR void weigh_shared(std::span<const PairSums> conditions, const KeyPanel& panel,
                             std::size_t q) {
    for (std::size_t h = 0; h < fixed_.heads; ++h) {
      heads_[h]->sight(panel) == Sight::none ? clear<Rows>(panel, h) : exponents<Rows>(panel, q, h);
    }
    for (std::size_t r = 0; r < Rows; ++r) {
      for (const PairSums& condition : conditions) {
        keep_shared(condition, panel, q, r, [&](std::size_t h, const Window& at) HWY_ATTR {
          Repair::shift(at, panel, row(r, h));
          count_kept(panel, q + r, h, row(r, h));
          add_row(true, panel, 0, row(r, h), running(q + r, h));
        });
      }
    }
  }

  /// Exponents of one head at Rows queries for a panel.
  template <std::size_t Rows>
  HWY_ATTR void exponents(const KeyPanel& panel, std::size_t q, std::size_t h) {
    const std::size_t stride = (keeps_ ? fixed_.heads : 1) * panel_keys();
    heads_[h]->exponents(panel, q, Rows, row(0, h), stride);
  }
  /// Sets the exponents that no head of a condition keeps at query q + r, in the rows r, to -inf;
  /// calls body(h, window) for the distinct heads that see some of the panel.
  template <class Body>
  HWY_ATTR void keep_shared(const PairSums& condition, const KeyPanel& panel, std::size_t q,
                            std::size_t r, const Body& body) {
    selections_.apply_together(panel, q + r, condition.distinct_heads(), &window(q + r, 0),
                               [&](std::size_t h) { return row(r, h); });
    for (const std::size_t h : condition.distinct_heads()) {
      if (heads_[h]->sight(panel) != Sight::none) body(h, window(q + r, h));
    }
  }

  /// w_i <- s(X_i) w_i over a panel, for the weights w of head h in the row r of query q; adds
  /// (s w)^2 to a running sum.
  HWY_ATTR void scale_by_noise(const float* scales, std::size_t keys, std::size_t q, std::size_t r,
                               std::size_t h) {
    float* const w = row(r, h);
    float* const sum = running(q, h) + 3 * lane_count;
    Float square = hn::Load(float_tag, sum);
    for (std::size_t i = 0; i < keys; i += lane_count) {
      const Float scaled = hn::Mul(hn::Load(float_tag, w + i), hn::Load(float_tag, scales + i));
      square = hn::MulAdd(scaled, scaled, square);
      hn::Store(scaled, float_tag, w + i);
    }
    hn::Store(square, float_tag, sum);
  }

  /// Adds the running sums of a window to `sums`, and sets them to 0.
  HWY_ATTR void drain(std::size_t q, std::size_t h, Sums& sums) {
    const std::size_t at = 4 * (q * fixed_.heads + h);
    sums.weight += sums_.drain(at);
    sums.weighted_value += sums_.drain(at + 1);
    if (adds_squares_) sums.weight_squared += sums_.drain(at + 2);
    if (fixed_.conditional && !fixed_.constant_scale) sums.noise += sums_.drain(at + 3);
  }

 private:
  std::size_t panel_keys() const {
    return panel_tiles_ * tile_points;
  }
  Window& window(std::size_t q, std::size_t h) {
    return windows_[q * fixed_.heads + h];
  }
  /// Running sums of w, w value, w^2 and s^2 w^2.
  float* running(std::size_t q, std::size_t h) {
    return sums_.at(4 * (q * fixed_.heads + h));
  }

  /// Weights of 0 where products of pairs read them.
  template <std::size_t Rows>
  HWY_ATTR void clear(const KeyPanel& panel, std::size_t h) {
    for (std::size_t r = 0; keeps_ && r < Rows; ++r) {
      std::fill_n(row(r, h), panel.keys(), 0.0f);
    }
  }

  /// Counts the keys of a panel that keep their weight, from their exponents.
  void count_kept(const KeyPanel& panel, std::size_t q, std::size_t h, const float* exponents) {
    if (!fixed_.conditional || !repairs_) return;
    window(q, h).sums.kept += static_cast<std::uint64_t>(
        std::count_if(exponents, exponents + panel.points, [](float e) { return e > never; }));
  }

#if HWY_TARGET <= HWY_AVX3
  /// The same with the exponents in registers; false, with nothing done, where that is impossible.
  HWY_ATTR bool weigh_fused(const KeyPanel& panel, std::size_t q, std::size_t h) {
    WeightRow rows[fused_rows];
    for (std::size_t r = 0; r < fused_rows; ++r) {
      const Window& at = window(q + r, h);
      if (at.repaired || at.exponent_offset < -max_plain_offset) return false;
      rows[r] = {.exp2 = &at.exp2, .sums = running(q + r, h), .out = keeps_ ? row(r, h) : nullptr};
    }
    heads_[h]->weigh(panel, q, rows, adds_squares_);
    return true;
  }
#endif

  HWY_ATTR void add_row(bool clamp, const KeyPanel& panel, float offset, float* row, float* sums) {
    const float* values = panel.set.values(panel.tile);
    const bool squares = adds_squares_;
    auto add = [&]<bool Clamp, bool Squares>() HWY_ATTR {
      if (keeps_) {
        sum_row<Clamp, Squares, true>(row, values, panel.keys(), offset, sums);
      } else {
        sum_row<Clamp, Squares, false>(row, values, panel.keys(), offset, sums);
      }
    };
    if (clamp) {
      squares ? add.template operator()<true, true>() : add.template operator()<true, false>();
    } else {
      squares ? add.template operator()<false, true>() : add.template operator()<false, false>();
    }
  }

  const EnsembleConstants& fixed_;
  const Heads& heads_;
  const Panels& panels_;
  const std::span<Window> windows_;  ///< [Q][H]
  Selections& selections_;
  bool keeps_ = false;                         ///< the weights of all heads, in this pass
  bool adds_squares_ = false;                  ///< sums of w^2 are taken one by one, in this pass
  bool repairs_ = false;                       ///< windows are summed again, in this pass
  std::size_t panel_tiles_ = 0;                ///< the most of a panel, in this pass
  LaneSums sums_;                              ///< [Q][H][4], of one segment
  hwy::AlignedFreeUniquePtr<float[]> buffer_;  ///< [group_queries][H or 1][panel_keys]
};

}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
