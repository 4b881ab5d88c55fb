// SPDX-License-Identifier: Apache-2.0
// The Nadaraya-Watson loop: the weights of every head at every query, summed to the statistics of
// one replicate.
//
// The keys of a slab come in segments and panels (kernels/cpu/tiling.h). A group of queries meets a
// panel: exponents go into a buffer and become weights there, which are summed row by row; with
// AVX-512 four queries keep both in registers, with the same bits. Covariances of heads need the
// weights of all heads in the buffer, where the products of all pairs are taken. Sums are float32
// in SIMD lanes over a segment and float64 over segments.
// Over 500 lines, because every pass works on the same running sums.
// docs/measured/cpu_ladder.md lists the limits and every step that was measured or dropped.
#if defined(HEADLAB_CPU_ENSEMBLE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLAB_CPU_ENSEMBLE_INL_H
#undef HEADLAB_CPU_ENSEMBLE_INL_H
#else
#define HEADLAB_CPU_ENSEMBLE_INL_H
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <hwy/highway.h>

#include "kernels/backend.h"
#include "kernels/cpu/aligned.h"
#include "kernels/cpu/ensemble_constants-inl.h"
#include "kernels/cpu/head-inl.h"
#include "kernels/cpu/lanes-inl.h"
#include "kernels/cpu/pair_sums-inl.h"
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
        sees_all_(std::ranges::all_of(heads_, [](const auto& head) { return head->sees_all(); })),
        sums_squares_(fixed_.recomputes || fixed_.squares_in_products),
        windows_(fixed_.queries * fixed_.heads),
        sums_(windows_.size() * 4),
        repair_(*plans[members.front()]),
        selections_(heads_, std::max(fixed_.key_tiles, fixed_.weight_tiles) * tile_points),
        buffer_(allocate_aligned<float>(fixed_.buffer_size)) {
    std::fill_n(buffer_.get(), fixed_.buffer_size, 0.0f);
    if (!fixed_.keeps_all) {
      selections_.set(fixed_.queries, plans[members.front()]->mechanism.levels);
    }
    keep_weights(fixed_.conditional || fixed_.shares_kept);
    for (PairSums& condition : conditions_) {
      std::vector<float*> places;
      for (std::size_t r = 0; r < group_queries; ++r) {
        for (const std::size_t h : condition.heads()) places.push_back(row(r, h));
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
  }

  /// True if this pass over the training set is needed.
  bool begin(Pass pass) {
    pass_ = pass;
    keep_weights((fixed_.conditional && (pass != Pass::sums || fixed_.needs_pairs)) ||
                 fixed_.shares_kept);
    switch (pass) {
      case Pass::sums:
        reset();
        if (!fixed_.keeps_all) {
          repair_.take_all(windows_, fixed_.heads);
          selections_.reset();
        }
        return fixed_.keeps_all;
      case Pass::probe:
        return !fixed_.keeps_all || repair_.find(windows_, max_norms_, sums_squares_);
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
  static constexpr float never = -std::numeric_limits<float>::infinity();

  /// Whether sums of w^2 are taken one by one.
  bool adds_squares() const {
    return !fixed_.squares_in_products && (sums_squares_ || pass_ == Pass::repair);
  }
  std::size_t panel_keys() const { return panel_tiles_ * tile_points; }
  void keep_weights(bool keep) {
    keeps_weights_ = keep;
    panel_tiles_ = keep ? fixed_.weight_tiles : fixed_.key_tiles;
  }
  Window& window(std::size_t q, std::size_t h) { return windows_[q * fixed_.heads + h]; }
  float max_norm(const KeyPanel& panel, std::size_t h) const {
    return panel_norms_[panel.index * fixed_.heads + h];
  }
  /// Running sums of w, w value, w^2 and s^2 w^2.
  float* running(std::size_t q, std::size_t h) { return sums_.at(4 * (q * fixed_.heads + h)); }
  /// Exponents, then weights of one head at query r of a group.
  float* row(std::size_t r, std::size_t h) {
    return &buffer_[(keeps_weights_ ? r * fixed_.heads + h : r) * panel_keys()];
  }

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
    // Where many windows are narrow, squares are summed in the first pass from the next replicate.
    sums_squares_ = sums_squares_ || repair_.needs_squares();
    for (Window& at : windows_) {
      at.sums = {};
      at.repaired = false;
      at.only_key = no_key;
    }
    for (PairSums& condition : conditions_) condition.reset();
    max_norms_.assign(fixed_.heads, 0.0f);
    bounded_.assign(fixed_.heads, false);
    repair_.reset();
  }

  /// Shows a segment to all selections, in the passes before the one that sums.
  HWY_ATTR void select(const TrainingSet& set, std::size_t tile, std::size_t tiles) {
    for (const KeyPanel& panel : panels_) {
      for_queries(0, fixed_.queries, [&]<std::size_t Rows>(std::size_t q) HWY_ATTR {
        for (std::size_t h = 0; h < fixed_.heads; ++h) {
          if (heads_[h]->sight(panel) == Sight::none || !selections_.looks(h)) continue;
          exponents<Rows>(panel, q, h);
          if (looks_at_shared(h)) continue;
          for (std::size_t r = 0; r < Rows; ++r) {
            selections_.add(panel, q + r, h, window(q + r, h), row(r, h));
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
        keep_shared(condition, panel, q, r, [&](std::size_t h, Window& at) HWY_ATTR {
          Repair::raise(panel, at, row(r, h));
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

  /// Divides a segment into panels, and finds the largest |key|^2 of every head in each.
  HWY_ATTR void divide(const TrainingSet& set, std::size_t tile, std::size_t tiles) {
    panels_.clear();
    for (std::size_t t = 0; t < tiles;) {
      const std::size_t most = std::min(panel_tiles_, tiles - t);
      const std::size_t count = sees_all_ ? most : tiles_alike(set, tile + t, most);
      if (count > 0) panels_.push_back(panel_of(set, tile + t, count));
      t += std::max<std::size_t>(count, 1);
    }
    panel_norms_.clear();
    for (const KeyPanel& panel : panels_) {
      for (const auto& head : heads_) {
        const float* norms = set.norms(panel.tile, head->subspace());
        Float largest = hn::Zero(float_tag);
        // What the others see must not matter.
        const bool sees = sees_all_ || head->sight(panel) != Sight::none;
        for (std::size_t i = 0; sees && i < panel.tiles * tile_points; i += lane_count) {
          largest = hn::Max(largest, hn::Load(float_tag, norms + i));
        }
        panel_norms_.push_back(hn::GetLane(hn::MaxOfLanes(float_tag, largest)));
      }
    }
  }
  KeyPanel panel_of(const TrainingSet& set, std::size_t tile, std::size_t tiles) const {
    const std::size_t points = std::min(tiles * tile_points, set.points() - tile * tile_points);
    return {set, tile, tiles, points, panels_.size()};
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

  /// Adds a segment of keys panel by panel, then drains the running sums.
  HWY_ATTR void add_segment(const TrainingSet& set, std::size_t tile, std::size_t tiles) {
    divide(set, tile, tiles);
    if (panels_.empty()) return;
    switch (pass_) {
      case Pass::probe:
        if (!fixed_.keeps_all) return select(set, tile, tiles);
        for (const KeyPanel& panel : panels_) repair_.probe(panel, heads_, windows_, row(0, 0));
        return;
      case Pass::select:
      case Pass::refine:
        return select(set, tile, tiles);
      case Pass::repair:
        if (!fixed_.keeps_all) break;
        for (const std::size_t q : repair_.queries()) {
          add_queries<1>(panels_, q, 0);
          drain(q, 0);
        }
        return;
      case Pass::sums:
        take_norms();
        break;
      case Pass::ensemble:
        break;
    }
    if (keeps_weights_) {
      for (std::size_t q = 0; q < fixed_.queries; q += fixed_.batch) {
        add_batch(q, std::min(fixed_.batch, fixed_.queries - q));
      }
      return;
    }
    for (const KeyPanel& panel : panels_) {
      for (std::size_t h = 0; h < fixed_.heads; ++h) {
        const bool last = h + 1 == fixed_.heads;
        const std::size_t next = panel.tile + (last ? panel.tiles : 0);
        const std::size_t next_subspace = heads_[last ? 0 : h + 1]->subspace();
        for_queries(0, fixed_.queries, [&]<std::size_t Rows>(std::size_t q) HWY_ATTR {
          prefetch(set, next, panel.tiles, next_subspace, q, Rows);
          weigh<Rows>(panel, q, h);
        });
      }
    }
    for (std::size_t q = 0; q < fixed_.queries; ++q) drain(q, 0);
  }

  /// Adds all panels of a segment to `count` queries from `first` on, a few panels at a time, whose
  /// keys stay in L2.
  HWY_ATTR void add_batch(std::size_t first, std::size_t count) {
    const std::span<const KeyPanel> all(panels_);
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
        weigh_shared<Rows>(panel, q);
      } else {
        for (std::size_t h = 0; h < fixed_.heads; ++h) {
          if (pass_ == Pass::repair && !fixed_.conditional && !window(q, h).sum_again) continue;
          weigh<Rows>(panel, q, h);
        }
      }
      if (!keeps_weights_) continue;
      for (std::size_t r = 0; r < Rows; ++r) add_noise(panel, q + r, r, i + r);
    }
  }

  /// Adds the running sums of query q, the i-th of its batch, to those of the replicate. Rounding
  /// happens here, once a segment: panels may depend on the other conditions.
  HWY_ATTR void drain(std::size_t q, std::size_t i) {
    for (std::size_t h = 0; h < fixed_.heads; ++h) {
      const std::size_t at = 4 * (q * fixed_.heads + h);
      Sums unused;
      Sums& sums = pass_ == Pass::ensemble ? unused : window(q, h).sums;
      sums.weight += sums_.drain(at);
      sums.weighted_value += sums_.drain(at + 1);
      if (adds_squares()) sums.weight_squared += sums_.drain(at + 2);
      if (fixed_.conditional && !fixed_.constant_scale) sums.noise += sums_.drain(at + 3);
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

  void take_norms() {
    for (std::size_t h = 0; h < fixed_.heads; ++h) {
      float norm = 0;
      for (const KeyPanel& panel : panels_) norm = std::max(norm, max_norm(panel, h));
      // By the first segment of which the head sees something.
      if (fixed_.has_key_prior && !bounded_[h] &&
          std::ranges::any_of(panels_, [&](const KeyPanel& panel) {
            return heads_[h]->sight(panel) != Sight::none;
          })) {
        bound_exponents(h, std::sqrt(norm));
        bounded_[h] = true;
      }
      max_norms_[h] = std::max(max_norms_[h], norm);
    }
  }

  /// Bounds the exponents of a law with a prior on its keys by the first keys, of norms up to
  /// `norm`.
  void bound_exponents(std::size_t h, float norm) {
    for (std::size_t q = 0; q < fixed_.queries; ++q) {
      Window& at = window(q, h);
      // A window beyond max_offset, which exp2 could not round, exceeds `max_exponent` and is
      // repaired.
      at.set_exponent_offset(
          -std::ceil(std::clamp(at.norm * norm - max_first_exponent, 0.0f, max_offset)));
      const float reach = (at.exponent_offset - static_cast<float>(min_plain_exponent)) / at.norm;
      const bool plain = reach > 0 && at.exponent_offset >= -max_plain_offset;
      at.reach2 = plain ? reach * reach : -1.0f;
    }
  }

  // Weights

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
    const float norm = max_norm(panel, h);
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

  /// Exponents of one head at Rows queries for a panel.
  template <std::size_t Rows>
  HWY_ATTR void exponents(const KeyPanel& panel, std::size_t q, std::size_t h) {
    const std::size_t stride = (keeps_weights_ ? fixed_.heads : 1) * panel_keys();
    heads_[h]->exponents(panel, q, Rows, row(0, h), stride);
  }
  /// Weights of 0 where products of pairs read them.
  template <std::size_t Rows>
  HWY_ATTR void clear(const KeyPanel& panel, std::size_t h) {
    for (std::size_t r = 0; keeps_weights_ && r < Rows; ++r) {
      std::fill_n(row(r, h), panel.keys(), 0.0f);
    }
  }

  /// Weights of all heads, of which those of a condition keep one set of tokens. No two conditions
  /// have a head in common.
  template <std::size_t Rows>
  HWY_ATTR void weigh_shared(const KeyPanel& panel, std::size_t q) {
    for (std::size_t h = 0; h < fixed_.heads; ++h) {
      heads_[h]->sight(panel) == Sight::none ? clear<Rows>(panel, h) : exponents<Rows>(panel, q, h);
    }
    for (std::size_t r = 0; r < Rows; ++r) {
      for (const PairSums& condition : conditions_) {
        keep_shared(condition, panel, q, r, [&](std::size_t h, const Window& at) HWY_ATTR {
          Repair::shift(at, panel, row(r, h));
          count_kept(panel, q + r, h, row(r, h));
          add_row(true, panel, 0, row(r, h), running(q + r, h));
        });
      }
    }
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

  /// Counts the keys of a panel that keep their weight, from their exponents.
  void count_kept(const KeyPanel& panel, std::size_t q, std::size_t h, const float* exponents) {
    if (!fixed_.conditional || pass_ != Pass::repair) return;
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
      rows[r] = {
          .exp2 = &at.exp2, .sums = running(q + r, h), .out = keeps_weights_ ? row(r, h) : nullptr};
    }
    heads_[h]->weigh(panel, q, rows, adds_squares());
    return true;
  }
#endif

  HWY_ATTR void add_row(bool clamp, const KeyPanel& panel, float offset, float* row, float* sums) {
    const float* values = panel.set.values(panel.tile);
    const bool squares = adds_squares();
    auto add = [&]<bool Clamp, bool Squares>() HWY_ATTR {
      if (keeps_weights_) {
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

  /// Adds the products of the weights of all heads at query q, the i-th of its batch, in row(r).
  HWY_ATTR void add_noise(const KeyPanel& panel, std::size_t q, std::size_t r, std::size_t i) {
    const std::size_t keys = panel.keys();
    for (std::size_t h = 0; sums_again_ && h < fixed_.heads; ++h) {
      double& sum = window(q, h).sums.weight_again;
      for (std::size_t at = 0; at < keys; ++at) sum += static_cast<double>(row(r, h)[at]);
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
      scale_by_noise(scales, keys, row(r, h), running(q, h) + 3 * lane_count);
    }
    for (PairSums& condition : conditions_) condition.multiply_scaled_weights(keys, r, i);
  }

  /// w_i <- s(X_i) w_i over a panel; adds (s w)^2 to a running sum.
  HWY_ATTR static void scale_by_noise(const float* scales, std::size_t keys, float* w, float* sum) {
    Float square = hn::Load(float_tag, sum);
    for (std::size_t i = 0; i < keys; i += lane_count) {
      const Float scaled = hn::Mul(hn::Load(float_tag, w + i), hn::Load(float_tag, scales + i));
      square = hn::MulAdd(scaled, scaled, square);
      hn::Store(scaled, float_tag, w + i);
    }
    hn::Store(square, float_tag, sum);
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

  std::vector<std::unique_ptr<Head>> heads_;  ///< distinct ones
  std::vector<PairSums> conditions_;
  const EnsembleConstants fixed_;
  const bool sees_all_;  ///< every head sees every token
  bool sums_squares_;    ///< of w, in the first pass already
  Pass pass_ = Pass::sums;
  std::uint64_t replicate_ = 0;
  bool sums_again_ = false;      ///< sums of w are taken again, of the weights kept
  bool keeps_weights_ = false;   ///< of all heads, in this pass
  std::size_t panel_tiles_ = 0;  ///< in this pass
  double unit_variance_ = 1;     ///< of a noise unit
  double variance_ = 1;          ///< factor of sums of w^2, or of s^2 w^2
  std::vector<Window> windows_;  ///< [Q][heads_]
  LaneSums sums_;                ///< [Q][heads_][4], of one segment
  Repair repair_;
  Selections selections_;                      ///< with stage `keep`
  std::vector<KeyPanel> panels_;               ///< of one segment
  std::vector<float> panel_norms_;             ///< [panels_][heads_], the largest |key|^2
  std::vector<float> max_norms_;               ///< [heads_], of the keys so far
  std::vector<bool> bounded_;                  ///< [heads_], exponents have their bound
  hwy::AlignedFreeUniquePtr<float[]> buffer_;  ///< [group_queries][heads_ or 1][panel_keys]
};

}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
