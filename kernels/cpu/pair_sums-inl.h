// SPDX-License-Identifier: Apache-2.0
// Sums over pairs of heads, and the statistics of a replicate.
#if defined(HEADLAB_CPU_PAIR_SUMS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLAB_CPU_PAIR_SUMS_INL_H
#undef HEADLAB_CPU_PAIR_SUMS_INL_H
#else
#define HEADLAB_CPU_PAIR_SUMS_INL_H
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <hwy/highway.h>

#include "kernels/controls.h"
#include "kernels/cpu/lanes-inl.h"
#include "kernels/cpu/sums-inl.h"
#include "kernels/cpu/window-inl.h"
#include "kernels/plan.h"
#include "kernels/statistics/moments.h"

HWY_BEFORE_NAMESPACE();
namespace headlab::HWY_NAMESPACE {

/// The sums over pairs of heads of one condition, and its statistics. Weights come in rows, one for
/// each head at one query of a group. Queries come in batches, of which each has running sums of a
/// segment of keys.
class PairSums {
 public:
  /// \param index of the condition among the plans of the worker
  /// \param heads places of its heads among the distinct ones
  PairSums(const Plan& plan, std::size_t index, std::vector<std::size_t> heads)
      : plan_(plan),
        index_(index),
        layout_(plan.layout()),
        heads_(std::move(heads)),
        distinct_(heads_),
        queries_(static_cast<std::size_t>(plan.queries)),
        pairs_(heads_.size() * (heads_.size() + 1) / 2),
        conditional_(plan.estimator == Estimator::conditional),
        constant_scale_(has_constant_noise(plan)) {
    std::ranges::sort(distinct_);
    distinct_.erase(std::unique(distinct_.begin(), distinct_.end()), distinct_.end());
    if (!conditional_) return;
    // Multiply-adds a weight: half the pairs, against those of the weight itself.
    const auto k = static_cast<std::size_t>(plan.k);
    recomputes_ = !layout_.pairwise() && heads_.size() > 2 * (k + 12);
    if (!recomputes_ && (constant_scale_ || layout_.pairwise())) {
      products_.resize(queries_ * pairs_);
    }
    if (!recomputes_ && !constant_scale_) noise_products_.resize(queries_ * pairs_);
    ensemble_noise_.resize(queries_);
    factors_.resize(queries_ * heads_.size());
    more_of_last_ = plan.mechanism.merge.last_share(plan.n) - 1;
    if (layout_.has_alignment() && more_of_last_ != 0) last_.resize(queries_ * heads_.size());
  }

  std::size_t index() const { return index_; }
  const MomentLayout& layout() const { return layout_; }
  /// Places of the heads [H] among the distinct ones. Heads that are alike have one place, and one
  /// row and window there: what changes those goes through distinct_heads().
  const std::vector<std::size_t>& heads() const { return heads_; }
  /// These places, each once.
  const std::vector<std::size_t>& distinct_heads() const { return distinct_; }
  std::size_t pairs() const { return pairs_; }
  /// True if the noise of the ensemble needs a second pass.
  bool recomputes() const { return recomputes_; }
  /// True if sums of w^2 are among those of products.
  bool has_squares() const { return !products_.empty(); }
  /// True if sums of w^2 are there for every window, by this or by the windows: which ones depends
  /// on the plan alone.
  bool knows_squares() const { return has_squares() || recomputes_; }
  /// sum w^2 of its h-th head with the window `at`, where knows_squares().
  double square_of(std::size_t q, std::size_t h, const Window& at) const {
    return has_squares() ? square(q, h) : at.sums.weight_squared;
  }
  /// 1 / sum_i w_i^2 of all heads and the queries finished, w of sum 1, where knows_squares().
  double min_sample_size() const { return 1 / max_concentration_; }

  /// Sets the rows [group][H] of the weights, and the queries of a batch.
  void place(std::vector<float*> rows, std::size_t batch) {
    rows_ = std::move(rows);
    if (!products_.empty()) running_ = LaneSums(batch * pairs_);
    if (!noise_products_.empty()) running_noise_ = LaneSums(batch * pairs_);
    if (recomputes_) running_ensemble_ = LaneSums(batch);
  }

  void reset() {
    std::ranges::fill(products_, 0.0);
    std::ranges::fill(noise_products_, 0.0);
    std::ranges::fill(ensemble_noise_, 0.0);
    std::ranges::fill(last_, 0.0);
    max_concentration_ = 0;
  }
  void reset(std::size_t q) {
    if (!products_.empty()) std::fill_n(&products_[q * pairs_], pairs_, 0.0);
    if (!noise_products_.empty()) std::fill_n(&noise_products_[q * pairs_], pairs_, 0.0);
  }

  /// Sets the factors a_h / sum w of the weights in the ensemble, before the second pass, from the
  /// windows of query q.
  void set_factors(std::size_t q, const Window* windows) {
    for (std::size_t h = 0; h < heads_.size(); ++h) {
      factors_[q * heads_.size() + h] =
          static_cast<float>(plan_.head_weights[h] / windows[heads_[h]].sums.weight);
    }
  }

  /// Adds the products of the weights of all heads at the r-th query of a group, the i-th of its
  /// batch, over `keys` keys.
  HWY_ATTR void multiply_weights(std::size_t keys, std::size_t r, std::size_t i) {
    if (!products_.empty()) add_products(rows(r), keys, running_.at(i * pairs_));
  }
  /// Takes the weights of the last token, key `key` of a panel, at query q, the r-th of a group.
  void take_last(std::size_t q, std::size_t r, std::size_t key) {
    if (last_.empty()) return;
    for (std::size_t h = 0; h < heads_.size(); ++h) {
      last_[q * heads_.size() + h] = static_cast<double>(rows(r)[h][key]);
    }
  }
  /// Adds those of weights that are multiplied by the scale of the noise.
  HWY_ATTR void multiply_scaled_weights(std::size_t keys, std::size_t r, std::size_t i) {
    if (!noise_products_.empty()) add_products(rows(r), keys, running_noise_.at(i * pairs_));
  }
  /// Adds s^2 (sum_h a_h w_h / sum w_h)^2 of query q, in the second pass; s in noise units.
  HWY_ATTR void add_ensemble_noise(const float* scales, std::size_t keys, std::size_t q,
                                   std::size_t r, std::size_t i) {
    const std::size_t count = heads_.size();
    Float square = hn::Load(float_tag, running_ensemble_.at(i));
    for (std::size_t at = 0; at < keys; at += lane_count) {
      Float ensemble = hn::Zero(float_tag);
      for (std::size_t h = 0; h < count; ++h) {
        ensemble = hn::MulAdd(hn::Set(float_tag, factors_[q * count + h]),
                              hn::Load(float_tag, rows_[r * count + h] + at), ensemble);
      }
      ensemble = hn::Mul(ensemble, hn::Load(float_tag, scales + at));
      square = hn::MulAdd(ensemble, ensemble, square);
    }
    hn::Store(square, float_tag, running_ensemble_.at(i));
  }

  /// Adds the running sums of query q, the i-th of its batch, to those of the replicate.
  HWY_ATTR void drain(std::size_t q, std::size_t i) {
    for (std::size_t pair = 0; pair < products_.size() / queries_; ++pair) {
      products_[q * pairs_ + pair] += running_.drain(i * pairs_ + pair);
    }
    for (std::size_t pair = 0; pair < noise_products_.size() / queries_; ++pair) {
      noise_products_[q * pairs_ + pair] += running_noise_.drain(i * pairs_ + pair);
    }
  }
  HWY_ATTR void drain_ensemble(std::size_t q, std::size_t i) {
    ensemble_noise_[q] += running_ensemble_.drain(i);
  }

  /// sum w^2 of its h-th head, where has_squares().
  double square(std::size_t q, std::size_t h) const {
    return products_[q * pairs_ + pair_index(heads_.size(), h, h)];
  }

  /// Writes the statistics of query q, see kernels/statistics/moments.h, from its windows.
  /// `variance` is the factor of sums of w^2, `unit_variance` that of the ensemble's, in noise
  /// units.
  void finish(std::size_t q, const Window* windows, double centre, double variance,
              double unit_variance, double* out) {
    const std::size_t count = heads_.size();
    inverse_.resize(count);  // 1 / sum w
    for (std::size_t h = 0; h < count; ++h) {
      const Sums& sums = windows[heads_[h]].sums;
      inverse_[h] = 1 / sums.weight;
      out[h] = centre + sums.weighted_value * inverse_[h];
    }
    if (!layout_.pairwise()) {
      out[count] = 0;
      for (std::size_t h = 0; h < count; ++h) out[count] += plan_.head_weights[h] * out[h];
    }
    if (!conditional_) return;
    if (knows_squares()) concentrate(q, windows);
    double* noise = out + layout_.noise_offset();
    if (!layout_.pairwise()) {
      finish_aggregate(q, windows, variance, unit_variance, noise);
      return;
    }
    const std::vector<double>& scaled = constant_scale_ ? products_ : noise_products_;
    const std::size_t first = q * pairs_;
    for (std::size_t h = 0, pair = 0; h < count; ++h) {
      for (std::size_t l = h; l < count; ++l, ++pair) {
        noise[pair] = variance * scaled[first + pair] * inverse_[h] * inverse_[l];
      }
    }
    if (layout_.has_alignment()) out[layout_.alignment_offset()] = alignment(q);
    if (!plan_.controls) return;
    for (std::size_t h = 0; h < count; ++h) {
      inverse_[h] = windows[heads_[h]].log_weight_sum();
    }
    set_controlled(*plan_.controls, layout_, q, inverse_, plan_.head_weights, out);
  }

 private:
  std::span<float* const> rows(std::size_t r) const {
    return std::span(rows_).subspan(r * heads_.size(), heads_.size());
  }

  /// Takes the largest sum_i w_i^2 of query q, w of sum 1.
  void concentrate(std::size_t q, const Window* windows) {
    for (std::size_t h = 0; h < heads_.size(); ++h) {
      const double sum = square_of(q, h, windows[heads_[h]]);
      max_concentration_ = std::max(max_concentration_, sum * inverse_[h] * inverse_[h]);
    }
  }

  /// Writes the noise of each head and of the ensemble.
  void finish_aggregate(std::size_t q, const Window* windows, double variance, double unit_variance,
                        double* noise) {
    const std::size_t count = heads_.size();
    const std::vector<double>& scaled = constant_scale_ ? products_ : noise_products_;
    const std::size_t first = q * pairs_;
    for (std::size_t h = 0; h < count; ++h) {
      const Sums& sums = windows[heads_[h]].sums;
      const double square = !recomputes_      ? scaled[first + pair_index(count, h, h)]
                            : constant_scale_ ? sums.weight_squared
                                              : sums.noise;
      noise[h] = variance * square * inverse_[h] * inverse_[h];
    }
    noise[count] = unit_variance * ensemble_noise_[q];
    if (recomputes_) return;
    for (std::size_t h = 0; h < count; ++h) inverse_[h] *= plan_.head_weights[h];
    for (std::size_t h = 0; h < count; ++h) {
      for (std::size_t l = h; l < count; ++l) {
        noise[count] += (h == l ? 1 : 2) * variance * scaled[first + pair_index(count, h, l)] *
                        inverse_[h] * inverse_[l];
      }
    }
  }

  /// The mean cosine between the weights of two heads on the responses.
  double alignment(std::size_t q) {
    const std::size_t count = heads_.size();
    const double* products = &products_[q * pairs_];
    const auto product = [&](std::size_t pair, std::size_t h, std::size_t l) {
      if (last_.empty()) return products[pair];
      return products[pair] + more_of_last_ * last_[q * count + h] * last_[q * count + l];
    };
    for (std::size_t h = 0; h < count; ++h) {
      inverse_[h] = 1 / std::sqrt(product(pair_index(count, h, h), h, h));
    }
    double cosines = 0;
    for (std::size_t h = 0, pair = 0; h < count; ++h) {
      ++pair;  // (h, h)
      for (std::size_t l = h + 1; l < count; ++l, ++pair) {
        cosines += product(pair, h, l) * inverse_[h] * inverse_[l];
      }
    }
    return cosines / static_cast<double>(count * (count - 1) / 2);
  }

  const Plan& plan_;
  std::size_t index_;
  MomentLayout layout_;
  std::vector<std::size_t> heads_;     ///< [H]
  std::vector<std::size_t> distinct_;  ///< of heads_
  std::size_t queries_;
  std::size_t pairs_;
  bool conditional_;
  bool constant_scale_;
  bool recomputes_ = false;
  double max_concentration_ = 0;        ///< of sum w^2 / (sum w)^2
  std::vector<float*> rows_;            ///< [group][H]
  LaneSums running_;                    ///< [batch][pairs], of one segment
  LaneSums running_noise_;              ///< [batch][pairs], the same for noise_products_
  LaneSums running_ensemble_;           ///< [batch], the same for ensemble_noise_
  std::vector<double> products_;        ///< [Q][pairs], sum_i w_hi w_li
  std::vector<double> noise_products_;  ///< [Q][pairs], sum_i s_i^2 w_hi w_li
  std::vector<double> ensemble_noise_;  ///< [Q]
  double more_of_last_ = 0;             ///< share of the last token in the alignment, less 1
  std::vector<double> last_;            ///< [Q][H], its weights, where that is not 0
  std::vector<float> factors_;          ///< [Q][H], a_h / sum w
  std::vector<double> inverse_;         ///< scratch [H]
};

}  // namespace headlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
