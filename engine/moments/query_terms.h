// SPDX-License-Identifier: Apache-2.0
/// \file From the moments of one query to the terms of its error.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "engine/moments/error_terms.h"
#include "kernels/controls.h"
#include "kernels/statistics/moments.h"

namespace headlab {

/// Which statistics of one query are taken with controls.
struct ControlledStatistics {
  bool estimates = false;
  std::vector<bool> noise = {};              ///< [P]
  std::vector<double> covariance_left = {};  ///< [P], where estimates are

  static ControlledStatistics none(const MomentLayout& layout) {
    return {false, std::vector<bool>(layout.pairs())};
  }
  /// \param use null: all \param replicates of the run
  static ControlledStatistics of(const MomentLayout& layout, const ControlUse* use, std::size_t q,
                                 std::uint64_t replicates) {
    ControlledStatistics in_use = none(layout);
    if (!layout.controlled()) return in_use;
    in_use.estimates = use == nullptr || use->has_estimates(q, replicates);
    if (use != nullptr && in_use.estimates && !use->covariance_left.empty()) {
      const auto from =
          use->covariance_left.begin() + static_cast<std::ptrdiff_t>(q * layout.pairs());
      in_use.covariance_left.assign(from, from + static_cast<std::ptrdiff_t>(layout.pairs()));
    }
    for (std::size_t p = 0; p < layout.pairs(); ++p) {
      in_use.noise[p] = use == nullptr || use->has_noise(q * layout.pairs() + p, replicates);
    }
    return in_use;
  }
};

/// Turns moments of one query into the terms of its error. Formulas: docs/theory.md and, with
/// controls, docs/controls.md.
class QueryTerms {
 public:
  QueryTerms(const MomentLayout& layout, std::span<const double> head_weights)
      : layout_(layout), a_(head_weights), in_use_(ControlledStatistics::none(layout)) {
    uniform_ = std::all_of(a_.begin(), a_.end(),
                           [&](double a) { return a == 1.0 / static_cast<double>(a_.size()); });
  }

  /// Takes statistics of the next query with controls, or without.
  void set_controlled(ControlledStatistics in_use) { in_use_ = std::move(in_use); }

  /// True where the covariances of pairs of heads have a mean that is known.
  bool has_covariance_mean() const { return a_.size() > 1 && (layout_.pairwise() || uniform_); }

  /// Numbers that are known of the heads: [H] biases, then [P] covariances.
  std::size_t head_numbers() const { return a_.size() + layout_.pairs(); }

  /// Sets `terms` and `of_heads` [head_numbers()] from the moments of a single query (layout with
  /// queries = 1). The index of the weights is their alignment still, and ratios are left alone:
  /// see set_ratios().
  void operator()(const Moments& moments, double truth, ErrorTerms<double>& terms,
                  double* of_heads) const {
    const std::size_t heads = a_.size();
    const auto replicates = static_cast<double>(moments.count);
    double* bias = of_heads;
    double* covariance = bias + heads;
    const double* plain = moments.mean.data();
    const double* means = plain + (in_use_.estimates ? layout_.control_offset() : 0);
    const double* controlled_noise = plain + layout_.controlled_noise_offset();

    // between: the part that varies from replicate to replicate, which also makes the variance of
    // the mean; for the plain estimator it is all there is.
    const double per_pair = moments.count > 1 ? 1 / (replicates - 1) : undefined;
    for (std::size_t h = 0; h < heads; ++h) bias[h] = means[h] - truth;
    if (about_controlled_means()) {
      // The expectation of the comoment about them lacks what controls leave over R.
      for (std::size_t h = 0, p = 0; h < heads; ++h) {
        for (std::size_t l = h; l < heads; ++l, ++p) {
          covariance[p] = (moments.comoment[p] + in_use_.covariance_left[p]) / replicates +
                          (plain[h] - means[h]) * (plain[l] - means[l]);
        }
      }
    } else {
      for (std::size_t p = 0; p < layout_.pairs(); ++p) {
        covariance[p] = moments.comoment[p] * per_pair;
      }
    }
    if (layout_.conditional) {
      for (std::size_t p = 0; p < layout_.pairs(); ++p) {
        covariance[p] += in_use_.noise[p] ? controlled_noise[p] : plain[layout_.noise_offset() + p];
      }
    }

    double ensemble = 0;
    if (layout_.pairwise()) {
      for (std::size_t h = 0; h < heads; ++h) ensemble += a_[h] * means[h];
    } else {
      ensemble = means[heads];
    }
    const Sums sums = sums_of_pairs(covariance);
    terms.bias_squared_plugin = (ensemble - truth) * (ensemble - truth);
    const double of_ensemble =
        in_use_.estimates ? moments.comoment.back() : ensemble_comoment(moments.comoment.data());
    terms.bias_squared = terms.bias_squared_plugin - of_ensemble * per_pair / replicates;
    set_sums(sums, terms);
    terms.mse = terms.bias_squared + terms.variance_term + terms.covariance_term;
    terms.weights_index =
        layout_.has_alignment() ? moments.mean[layout_.alignment_offset()] : undefined;
  }

  /// Bounds of what shared rounding moves the numbers by that operator() sets, to first order.
  /// \param of_estimates [H], of_noise [P], of the statistics with controls
  void set_rounding(const Moments& moments, double truth, std::span<const double> of_estimates,
                    std::span<const double> of_noise, ErrorTerms<double>& terms,
                    double* of_heads) const {
    const std::size_t heads = a_.size();
    std::fill_n(of_heads, head_numbers(), 0.0);
    const double* means = moments.mean.data() + layout_.control_offset();
    double of_ensemble = 0, ensemble = 0;
    for (std::size_t h = 0; h < heads; ++h) {
      if (in_use_.estimates) of_heads[h] = of_estimates[h];
      of_ensemble += std::abs(a_[h]) * of_heads[h];
      ensemble += a_[h] * means[h];
    }
    double* of_covariance = of_heads + heads;
    for (std::size_t h = 0, p = 0; h < heads; ++h) {
      for (std::size_t l = h; l < heads; ++l, ++p) {
        of_covariance[p] = in_use_.noise[p] ? of_noise[p] : 0.0;
        if (!about_controlled_means()) continue;
        of_covariance[p] += std::abs(moments.mean[h] - means[h]) * of_heads[l] +
                            std::abs(moments.mean[l] - means[l]) * of_heads[h];
      }
    }
    terms.bias_squared_plugin = (2 * std::abs(ensemble - truth) + of_ensemble) * of_ensemble;
    terms.bias_squared = terms.bias_squared_plugin;
    set_sums(sums_of_pairs(of_covariance, true), terms);
    terms.mse = terms.bias_squared + terms.variance_term + terms.covariance_term;
    terms.weights_index = 0;
  }

 private:
  static constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

  /// Whether covariances of estimates are taken about their controlled means, which controls
  /// follow.
  bool about_controlled_means() const {
    return in_use_.estimates && !in_use_.covariance_left.empty();
  }

  /// sum_hl a_h a_l of numbers of the pairs of the layout.
  double ensemble_comoment(const double* of_pairs) const {
    if (!layout_.pairwise()) return of_pairs[a_.size()];
    double sum = 0;
    for (std::size_t h = 0; h < a_.size(); ++h) {
      sum += a_[h] * a_[h] * of_pairs[layout_.pair(h, h)];
      for (std::size_t l = h + 1; l < a_.size(); ++l) {
        sum += 2 * a_[h] * a_[l] * of_pairs[layout_.pair(h, l)];
      }
    }
    return sum;
  }

  struct Sums {
    double own = 0;          ///< sum_h a_h^2 C_hh
    double cross = 0;        ///< sum_{h != l} a_h a_l C_hl
    double variances = 0;    ///< sum_h C_hh
    double covariances = 0;  ///< sum_{h != l} C_hl
  };
  /// \param bounds add sizes, whatever the signs of head weights are
  Sums sums_of_pairs(const double* covariance, bool bounds = false) const {
    const std::size_t heads = a_.size();
    Sums sums;
    if (layout_.pairwise()) {
      for (std::size_t h = 0; h < heads; ++h) {
        const std::size_t diagonal = layout_.pair(h, h);
        sums.own += a_[h] * a_[h] * covariance[diagonal];
        sums.variances += covariance[diagonal];
        for (std::size_t l = h + 1; l < heads; ++l) {
          const std::size_t pair = layout_.pair(h, l);
          const double product = a_[h] * a_[l];
          sums.cross += 2 * (bounds ? std::abs(product) : product) * covariance[pair];
          sums.covariances += 2 * covariance[pair];
        }
      }
      return sums;
    }
    for (std::size_t h = 0; h < heads; ++h) {
      sums.own += a_[h] * a_[h] * covariance[h];
      sums.variances += covariance[h];
    }
    sums.cross = heads > 1 ? covariance[heads] - sums.own : 0.0;
    const auto count = static_cast<double>(heads);
    // The ensemble's variance gives the mean over pairs only where every pair weighs the same.
    sums.covariances = uniform_ ? count * count * covariance[heads] - sums.variances : undefined;
    return sums;
  }
  void set_sums(const Sums& sums, ErrorTerms<double>& terms) const {
    const auto heads = static_cast<double>(a_.size());
    terms.variance_term = sums.own;
    terms.covariance_term = sums.cross;
    terms.head_variance_mean = sums.variances / heads;
    terms.head_covariance_mean =
        a_.size() > 1 ? sums.covariances / (heads * (heads - 1)) : undefined;
  }

  MomentLayout layout_;
  std::span<const double> a_;
  ControlledStatistics in_use_;
  bool uniform_ = false;
};

/// Part of a node that belongs to one query.
inline Moments query_moments(const MomentLayout& layout, const Moments& node, int query) {
  const auto q = static_cast<std::ptrdiff_t>(query);
  const auto statistics = static_cast<std::ptrdiff_t>(layout.per_query());
  const auto comoments = static_cast<std::ptrdiff_t>(layout.comoments_per_query());
  Moments part;
  part.count = node.count;
  part.mean.assign(node.mean.begin() + q * statistics, node.mean.begin() + (q + 1) * statistics);
  part.comoment.assign(node.comoment.begin() + q * comoments,
                       node.comoment.begin() + (q + 1) * comoments);
  return part;
}

}  // namespace headlab
