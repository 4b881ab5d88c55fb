// SPDX-License-Identifier: Apache-2.0
// The Nadaraya-Watson loop: the weights of every head at every query, summed to the statistics of
// one replicate.
//
// The keys of a slab come in segments and panels (kernels/cpu/tiling.h), which become weights
// (kernels/cpu/panel_weights-inl.h). Covariances of heads need the weights of all heads at a panel,
// where the products of all pairs are taken. Sums are float32 in SIMD lanes over a segment and
// float64 over segments. docs/measured/cpu_ladder.md lists the limits and every step that was
// measured or dropped.
#if defined(HEADLAB_CPU_ENSEMBLE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLAB_CPU_ENSEMBLE_INL_H
#undef HEADLAB_CPU_ENSEMBLE_INL_H
#else
#define HEADLAB_CPU_ENSEMBLE_INL_H
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <hwy/highway.h>

#include "kernels/backend.h"
#include "kernels/cpu/ensemble_constants-inl.h"
#include "kernels/cpu/head-inl.h"
#include "kernels/cpu/lanes-inl.h"
#include "kernels/cpu/pair_sums-inl.h"
#include "kernels/cpu/panel_weights-inl.h"
#include "kernels/cpu/panels-inl.h"
#include "kernels/cpu/products-inl.h"
#include "kernels/cpu/repair-inl.h"
#include "kernels/cpu/selections-inl.h"
#include "kernels/cpu/subnormals.h"
#include "kernels/cpu/sums-inl.h"
#include "kernels/cpu/training_set-inl.h"
#include "kernels/cpu/window-inl.h"
#include "kernels/kernel_laws.h"
#include "kernels/plan.h"
#include "kernels/statistics/weight_sums.h"

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {

/// The passes over a training set, in this order. Most replicates need only the first; with stage
/// `keep` all windows are probed first, and summed in the pass `repair`.
enum class Pass {
  sums,      ///< the sums of all windows
  probe,     ///< the largest exponent and the nearest key of windows with unsafe sums
  select,    ///< what else stage `keep` has to know of all exponents
  refine,    ///< and after that
  repair,    ///< their sums again, relative to that exponent
  ensemble,  ///< the noise of the ensemble, where it is cheaper than the products of all pairs
};
inline constexpr Pass all_passes[] = {Pass::sums,   Pass::probe,  Pass::select,
                                      Pass::refine, Pass::repair, Pass::ensemble};

/// The conditions of a sweep that have one kernel law, d_k and set of queries in common.
class Ensembles {
 public:
  /// Of plans[i] for each i of `members`. Registers their subspaces, each once, and evaluates a
  /// head that several of them have once.
  Ensembles(Plans plans, const std::vector<std::size_t>& members, PackedSubspaces& subspaces)
      : conditions_(make_conditions(plans, members, subspaces)),
        fixed_(*plans[members.front()], heads_.size(), conditions_),
        sums_squares_(fixed_.recomputes || fixed_.squares_in_products),
        windows_(fixed_.queries * fixed_.heads),
        repair_(*plans[members.front()]),
        selections_(heads_, std::max(fixed_.key_tiles, fixed_.weight_tiles) * tile_points),
        panels_(heads_),
        weights_(fixed_, heads_, panels_, windows_, selections_) {
    if (!fixed_.keeps_all) {
      selections_.set(fixed_.queries, plans[members.front()]->mechanism.levels);
    }
    weights_.begin(fixed_.conditional || fixed_.shares_kept, false, false);
    for (PairSums& condition : conditions_) {
      std::vector<float*> places;
      for (std::size_t r = 0; r < group_queries; ++r) {
        for (const std::size_t h : condition.heads()) places.push_back(weights_.row(r, h));
      }
      condition.place(std::move(places), std::min(fixed_.batch, fixed_.queries));
    }
    for (std::size_t h = 0; h < fixed_.heads; ++h) {
      Head& head = *heads_[h];
      for (std::size_t q = 0; q < fixed_.queries; ++q) head.place(q, window(q, h));
      for_queries(0, fixed_.queries,
                  [&]<std::size_t Rows>(std::size_t q) { head.template pack<Rows>(q); });
    }
  }

  /// True if every replicate needs this pass over the training set.
  bool always_needs(Pass pass) const {
    switch (pass) {
      case Pass::sums:
        return fixed_.keeps_all;
      case Pass::probe:
      case Pass::repair:
        return !fixed_.keeps_all;
      case Pass::select:
        return selections_.more_passes() >= 1;
      case Pass::refine:
        return selections_.more_passes() >= 2;
      case Pass::ensemble:
        return fixed_.recomputes;
    }
    return false;
  }

  /// Begins a replicate, of number `replicate`; its passes follow.
  void begin_replicate(std::uint64_t replicate) {
    replicate_ = replicate;
    sums_again_ = (fixed_.conditional || fixed_.shares_kept) && sums_again(replicate);
    // Where many windows are narrow, squares are summed in the first pass from the next replicate.
    sums_squares_ = sums_squares_ || repair_.needs_squares();
  }

  /// True if this pass over the training set is needed.
  bool begin(Pass pass) {
    pass_ = pass;
    const bool keeps = fixed_.conditional && (pass != Pass::sums || fixed_.needs_pairs);
    const bool adds_squares =
        !fixed_.squares_in_products && (sums_squares_ || pass == Pass::repair);
    weights_.begin(keeps || fixed_.shares_kept, adds_squares, pass == Pass::repair);
    switch (pass) {
      case Pass::sums:
        reset();
        if (!fixed_.keeps_all) {
          repair_.take_all(windows_, fixed_.heads);
          selections_.reset();
        }
        return fixed_.keeps_all;
      case Pass::probe:
        return !fixed_.keeps_all || repair_.find(windows_, norms_.largest(), sums_squares_);
      case Pass::select:
      case Pass::refine:
        return selections_.begin_pass(pass == Pass::select ? 1 : 2, windows_);
      case Pass::repair:
        if (!fixed_.keeps_all) selections_.finish(windows_);
        reset_repaired();
        return !repair_.queries().empty();
      case Pass::ensemble:
        set_factors();
        // The weights are computed again, of all heads.
        for (Window& at : windows_) {
          if (fixed_.recomputes) at.sums.weight_again = 0;
        }
        return fixed_.recomputes;
    }
    return false;
  }

  /// Adds the next slab of the training set in the pass that was begun.
  HWY_ATTR void add(const TrainingSet& set) {
    const WithoutSubnormals without_subnormals;
    unit_variance_ = set.noise_unit() * set.noise_unit();
    variance_ = unit_variance_;
    if (fixed_.constant_scale) {
      const double sd = set.constant_scale();
      variance_ *= sd * sd;
    }
    for (std::size_t tile = 0; tile < set.tiles(); tile += segment_tiles) {
      add_segment(set, tile, std::min(segment_tiles, set.tiles() - tile));
    }
  }

  /// Writes the statistics [layout.statistics()] of each condition to its place, see
  /// kernels/statistics/moments.h, counts its windows and sets its least effective sample size
  /// where sums of w^2 are there for every window. Throws std::logic_error where sums contradict
  /// one another.
  HWY_ATTR void finish(double centre, std::span<const std::span<double>> statistics,
                       std::span<WindowCounts> counts, std::span<double> sample_sizes) {
    for (PairSums& condition : conditions_) {
      for (std::size_t q = 0; q < fixed_.queries; ++q) {
        for (std::size_t h = 0; h < condition.heads().size(); ++h) {
          count_window(window(q, condition.heads()[h]), counts[condition.index()]);
          require_consistent_sums(condition, q, h);
        }
        condition.finish(q, &window(q, 0), centre, variance_, unit_variance_,
                         &statistics[condition.index()][q * condition.layout().per_query()]);
      }
      if (condition.knows_squares()) {
        sample_sizes[condition.index()] = condition.min_sample_size();
      }
    }
  }

 private:
  Window& window(std::size_t q, std::size_t h) { return windows_[q * fixed_.heads + h]; }

  /// Where additions of float32 are the most: every lane over a segment, then the lanes.
  static constexpr double sum_rounding =
      static_cast<double>(segment_tiles * tile_points / lane_count + lane_count) * 0x1p-24;

  /// Of the h-th head of a condition.
  void require_consistent_sums(const PairSums& condition, std::size_t q, std::size_t h) {
    const std::size_t place = condition.heads()[h];
    const Window& at = window(q, place);
    const std::uint64_t seen = heads_[place]->seen().count();
    WeightSums sums{.sum = at.sums.weight,
                    .kept = fixed_.keeps_all ? seen : std::min(seen, at.sums.kept)};
    if (fixed_.conditional && condition.knows_squares()) {
      sums.squares = condition.square_of(q, h, at);
    }
    if (sums_again_) sums.again = at.sums.weight_again;
    require_consistent(sums, sum_rounding, {.replicate = replicate_, .query = q, .head = h});
  }

  // Construction

  std::vector<PairSums> make_conditions(Plans plans, const std::vector<std::size_t>& members,
                                        PackedSubspaces& subspaces) {
    std::vector<PairSums> conditions;
    for (const std::size_t index : members) {
      const Plan& plan = *plans[index];
      const auto k = static_cast<std::size_t>(plan.k);
      const double reach = plain_reach(*plan.kernel);
      std::vector<std::size_t> heads;
      for (std::size_t h = 0; h < static_cast<std::size_t>(plan.heads); ++h) {
        const double* w = &plan.projections[h * static_cast<std::size_t>(plan.d) * k];
        heads.push_back(add_head(make_head(subspaces.add(w, k), plan, static_cast<int>(h), reach)));
      }
      conditions.emplace_back(plan, index, std::move(heads));
    }
    return conditions;
  }

  /// Returns the place of a head, which is added unless it is there.
  std::size_t add_head(std::unique_ptr<Head> head) {
    const auto known =
        std::ranges::find_if(heads_, [&](const auto& one) { return one->is(*head); });
    if (known != heads_.end()) return static_cast<std::size_t>(known - heads_.begin());
    heads_.push_back(std::move(head));
    return heads_.size() - 1;
  }

  // Passes

  void reset() {
    for (Window& at : windows_) {
      at.sums = {};
      at.repaired = false;
      at.only_key = no_key;
    }
    for (PairSums& condition : conditions_) condition.reset();
    norms_.reset(fixed_.heads);
    repair_.reset();
  }

  /// Shows a segment to all selections, in the passes before the one that sums.
  HWY_ATTR void select(const TrainingSet& set, std::size_t tile, std::size_t tiles) {
    for (const KeyPanel& panel : panels_.all()) {
      for_queries(0, fixed_.queries, [&]<std::size_t Rows>(std::size_t q) HWY_ATTR {
        for (std::size_t h = 0; h < fixed_.heads; ++h) {
          if (heads_[h]->sight(panel) == Sight::none || !selections_.looks(h)) continue;
          weights_.exponents<Rows>(panel, q, h);
          if (looks_at_shared(h)) continue;
          for (std::size_t r = 0; r < Rows; ++r) {
            selections_.add(panel, q + r, h, window(q + r, h), weights_.row(r, h));
          }
        }
        if (fixed_.shares_kept && pass_ == Pass::select) look_at_shared<Rows>(panel, q);
      });
    }
    selections_.add_means(set, tile, tiles);
  }
  /// True where the largest exponent is that of what several heads keep by pooled scores.
  bool looks_at_shared(std::size_t h) const {
    return fixed_.shares_kept && pass_ == Pass::select && heads_[h]->keep().pooled;
  }
  template <std::size_t Rows>
  HWY_ATTR void look_at_shared(const KeyPanel& panel, std::size_t q) {
    for (const PairSums& condition : conditions_) {
      if (!looks_at_shared(condition.heads().front())) continue;
      for (std::size_t r = 0; r < Rows; ++r) {
        weights_.keep_shared(condition, panel, q, r, [&](std::size_t h, Window& at) HWY_ATTR {
          Repair::raise(panel, at, weights_.row(r, h));
        });
      }
    }
  }

  void reset_repaired() {
    for (const std::size_t q : repair_.queries()) {
      for (std::size_t h = 0; h < fixed_.heads; ++h) {
        Window& at = window(q, h);
        if (fixed_.conditional || at.sum_again) at.sums = {};
        if (at.shift > never) at.only_key = no_key;
      }
      for (PairSums& condition : conditions_) condition.reset(q);
    }
  }

  void set_factors() {
    for (PairSums& condition : conditions_) {
      if (!condition.recomputes()) continue;
      for (std::size_t q = 0; q < fixed_.queries; ++q) condition.set_factors(q, &window(q, 0));
    }
  }

  /// Calls body.template operator()<Rows>(q) for groups that cover `count` queries from `first` on:
  /// all of them, or a batch.
  template <class Body>
  HWY_ATTR void for_queries(std::size_t first, std::size_t count, const Body& body) {
    for_row_tiles<group_queries>(count, [&]<std::size_t Rows>(std::size_t q) HWY_ATTR {
      body.template operator()<Rows>(first + q);
    });
  }

  /// Prefetches keys of `tiles` tiles from `tile` on, as far as there are any, into L2: the share
  /// of `count` queries from q on. Inline, because g++ 12 drops calls of a function that does
  /// nothing else.
  HWY_INLINE void prefetch(const TrainingSet& set, std::size_t tile, std::size_t tiles,
                           std::size_t subspace, std::size_t q, std::size_t count) const {
    if (tile >= set.tiles()) return;
    constexpr std::size_t line = 64 / sizeof(float);
    const std::size_t lines = std::min(tiles, set.tiles() - tile) * tile_points * fixed_.k / line;
    const std::size_t end = lines * (q + count) / fixed_.queries;
    const float* keys = set.keys(tile, subspace);
    for (std::size_t i = lines * q / fixed_.queries; i < end; ++i) {
      __builtin_prefetch(keys + i * line, 0, 2);
    }
  }

  /// Adds a segment of keys panel by panel, then drains the running sums.
  HWY_ATTR void add_segment(const TrainingSet& set, std::size_t tile, std::size_t tiles) {
    panels_.divide(set, tile, tiles, weights_.panel_tiles());
    if (panels_.all().empty()) return;
    switch (pass_) {
      case Pass::probe:
        if (!fixed_.keeps_all) return select(set, tile, tiles);
        for (const KeyPanel& panel : panels_.all()) {
          repair_.probe(panel, heads_, windows_, weights_.row(0, 0));
        }
        return;
      case Pass::select:
      case Pass::refine:
        return select(set, tile, tiles);
      case Pass::repair:
        if (!fixed_.keeps_all) break;
        for (const std::size_t q : repair_.queries()) {
          add_queries<1>(panels_.all(), q, 0);
          drain(q, 0);
        }
        return;
      case Pass::sums:
        norms_.take(panels_, heads_, windows_, fixed_.has_key_prior);
        break;
      case Pass::ensemble:
        break;
    }
    if (weights_.keep()) {
      for (std::size_t q = 0; q < fixed_.queries; q += fixed_.batch) {
        add_batch(q, std::min(fixed_.batch, fixed_.queries - q));
      }
      return;
    }
    for (const KeyPanel& panel : panels_.all()) {
      for (std::size_t h = 0; h < fixed_.heads; ++h) {
        const bool last = h + 1 == fixed_.heads;
        const std::size_t next = panel.tile + (last ? panel.tiles : 0);
        const std::size_t next_subspace = heads_[last ? 0 : h + 1]->subspace();
        for_queries(0, fixed_.queries, [&]<std::size_t Rows>(std::size_t q) HWY_ATTR {
          prefetch(set, next, panel.tiles, next_subspace, q, Rows);
          weights_.weigh<Rows>(panel, q, h);
        });
      }
    }
    for (std::size_t q = 0; q < fixed_.queries; ++q) drain(q, 0);
  }

  /// Adds all panels of a segment to `count` queries from `first` on, a few panels at a time, whose
  /// keys stay in L2.
  HWY_ATTR void add_batch(std::size_t first, std::size_t count) {
    const std::span<const KeyPanel> all(panels_.all());
    for (std::size_t p = 0; p < all.size(); p += fixed_.l2_panels) {
      const auto panels = all.subspan(p, std::min(fixed_.l2_panels, all.size() - p));
      for_queries(first, count, [&]<std::size_t Rows>(std::size_t q) HWY_ATTR {
        add_queries<Rows>(panels, q, q - first);
      });
    }
    for (std::size_t i = 0; i < count; ++i) drain(first + i, i);
  }

  /// Adds some panels to Rows queries, the first of which has place `i` of the running sums. Heads
  /// are innermost, because their weights are multiplied.
  template <std::size_t Rows>
  HWY_ATTR void add_queries(std::span<const KeyPanel> panels, std::size_t q, std::size_t i) {
    for (const KeyPanel& panel : panels) {
      if (fixed_.shares_kept) {
        weights_.weigh_shared<Rows>(conditions_, panel, q);
      } else {
        for (std::size_t h = 0; h < fixed_.heads; ++h) {
          if (pass_ == Pass::repair && !fixed_.conditional && !window(q, h).sum_again) continue;
          weights_.weigh<Rows>(panel, q, h);
        }
      }
      if (!weights_.keep()) continue;
      for (std::size_t r = 0; r < Rows; ++r) add_noise(panel, q + r, r, i + r);
    }
  }

  /// Adds the running sums of query q, the i-th of its batch, to those of the replicate. Rounding
  /// happens here, once a segment: panels may depend on the other conditions.
  HWY_ATTR void drain(std::size_t q, std::size_t i) {
    for (std::size_t h = 0; h < fixed_.heads; ++h) {
      Sums unused;
      weights_.drain(q, h, pass_ == Pass::ensemble ? unused : window(q, h).sums);
    }
    for (PairSums& condition : conditions_) {
      if (pass_ != Pass::ensemble) {
        condition.drain(q, i);
      } else if (condition.recomputes()) {
        condition.drain_ensemble(q, i);
      }
    }
    if (pass_ == Pass::ensemble || !fixed_.squares_in_products) return;
    for (const PairSums& condition : conditions_) {
      for (std::size_t h = 0; h < condition.heads().size(); ++h) {
        window(q, condition.heads()[h]).sums.weight_squared = condition.square(q, h);
      }
    }
  }

  /// Adds the products of the weights of all heads at query q, the i-th of its batch, in row(r).
  HWY_ATTR void add_noise(const KeyPanel& panel, std::size_t q, std::size_t r, std::size_t i) {
    const std::size_t keys = panel.keys();
    for (std::size_t h = 0; sums_again_ && h < fixed_.heads; ++h) {
      double& sum = window(q, h).sums.weight_again;
      for (std::size_t at = 0; at < keys; ++at) sum += static_cast<double>(weights_.row(r, h)[at]);
    }
    const float* scales = panel.set.scales(panel.tile);
    if (pass_ == Pass::ensemble) {
      for (PairSums& condition : conditions_) {
        if (condition.recomputes()) condition.add_ensemble_noise(scales, keys, q, r, i);
      }
      return;
    }
    const bool has_last = panel.first_key() + panel.points == panel.set.n();
    for (PairSums& condition : conditions_) {
      condition.multiply_weights(keys, r, i);
      if (has_last) condition.take_last(q, r, panel.points - 1);
    }
    if (fixed_.constant_scale) return;
    for (std::size_t h = 0; h < fixed_.heads; ++h) {
      weights_.scale_by_noise(scales, keys, q, r, h);
    }
    for (PairSums& condition : conditions_) condition.multiply_scaled_weights(keys, r, i);
  }

  void count_window(const Window& at, WindowCounts& counts) const {
    // What is kept has its exponents less the offset.
    const float offset = fixed_.keeps_all ? 0.0f : at.exponent_offset;
    if (fixed_.counts_empty_windows && at.repaired && at.shift + offset < -126.0f) ++counts.empty;
    // Two points of equal weight are not narrow, whichever way float32 rounds their squares.
    const bool counted = sums_squares_ || at.sum_again;
    const double min_square = 2 * (1 - 1e-5) * at.sums.weight_squared;
    if (counted && at.sums.weight * at.sums.weight < min_square) ++counts.narrow;
  }

  Heads heads_;  ///< distinct ones
  std::vector<PairSums> conditions_;
  const EnsembleConstants fixed_;
  bool sums_squares_;  ///< of w, in the first pass already
  Pass pass_ = Pass::sums;
  std::uint64_t replicate_ = 0;
  bool sums_again_ = false;      ///< sums of w are taken again, of the weights kept
  double unit_variance_ = 1;     ///< of a noise unit
  double variance_ = 1;          ///< factor of sums of w^2, or of s^2 w^2
  std::vector<Window> windows_;  ///< [Q][heads_]
  Repair repair_;
  Selections selections_;  ///< with stage `keep`
  Panels panels_;          ///< of one segment
  PanelWeights weights_;
  KeyNorms norms_;
};

}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
