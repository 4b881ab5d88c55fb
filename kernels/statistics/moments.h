// SPDX-License-Identifier: Apache-2.0
/// \file Centred, mergeable float64 moments of the replicates of one condition.
///
/// A replicate yields, for each query, a vector of statistics:
///   estimates  [G]  mu_h (conditional) or f_h (plain); in aggregate mode the ensemble
///                   sum_h a_h f_h follows as component H
///   noise      [P]  conditional only: S_gl = sum_i s2(X_i) w_gi w_li for the pairs below
///   alignment  [1]  conditional and pairwise only: mean over pairs of heads of cos(w_h, w_l), w
///   the
///                   weights on responses
/// Pairs: g <= l of all components, row by row (pairwise, P = G(G+1)/2), or g = l (aggregate, P =
/// G). A node holds the mean of that vector over its replicates and the centred comoments sum_r
/// (f_g - mean_g)(f_l - mean_l) of the estimates for the same pairs.
///
/// With exact controls (kernels/controls.h) these follow:
///   controlled estimates [H], noise [P] and ensemble sum_h a_h mu'_h [1]
/// and the comoments end with that of the controlled ensemble with itself.
///
/// In mode `separate` queries are groups and heads are statistics of a group: a stack's layers and
/// their metrics. A statistic that is undefined, NaN or beyond float64, in any replicate has the
/// NaN of std::numeric_limits for its mean and comoment.
///
/// Where heads or queries are drawn again for every leaf, moments are per draw: a node holds means
/// of figures of the draws (engine/moments/estimates.h), and no comoments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "kernels/hd.h"
#include "kernels/statistics/extremes.h"

namespace headlab {

/// How the noise enters a replicate's statistics.
enum class Estimator {
  conditional,  ///< integrated exactly, given the design points
  plain         ///< drawn
};

enum class MomentMode {
  pairwise,   ///< covariance of every pair of heads
  aggregate,  ///< variances of the heads and of the ensemble only
  separate    ///< statistics that are not heads: the variance of each, with no other
};

/// What follows the statistics that need no controls.
enum class ControlStatistics {
  none,
  sums,       ///< of a pilot: d_h [H]
  controlled  ///< estimates [H], noise [P] and ensemble
};

/// Statistics of a leaf whose moments are per draw.
inline constexpr std::size_t draw_statistics = 8;

/// Where each statistic stands.
struct MomentLayout {
  int queries = 1;
  int heads = 1;
  MomentMode mode = MomentMode::pairwise;
  bool conditional = true;
  bool per_draw = false;  ///< figures of draws of heads or queries, a leaf each
  ControlStatistics controls = ControlStatistics::none;  ///< else conditional and pairwise

  HEADLAB_HD bool pairwise() const { return mode == MomentMode::pairwise; }
  /// G: components whose moments are kept.
  HEADLAB_HD std::size_t components() const {
    return static_cast<std::size_t>(heads) + (mode == MomentMode::aggregate ? 1u : 0u);
  }
  /// P: pairs whose comoments are kept.
  HEADLAB_HD std::size_t pairs() const {
    return pairwise() ? components() * (components() + 1) / 2 : components();
  }
  /// Index of the pair (g, l), g <= l, among the pairs of a pairwise layout.
  HEADLAB_HD std::size_t pair(std::size_t g, std::size_t l) const {
    return g * components() - g * (g + 1) / 2 + l;
  }
  HEADLAB_HD bool has_alignment() const { return conditional && pairwise() && heads > 1; }

  HEADLAB_HD std::size_t noise_offset() const { return components(); }
  HEADLAB_HD std::size_t alignment_offset() const {
    return components() + (conditional ? pairs() : 0);
  }
  HEADLAB_HD std::size_t control_offset() const {
    return alignment_offset() + (has_alignment() ? 1u : 0u);
  }
  HEADLAB_HD bool controlled() const { return controls == ControlStatistics::controlled; }
  HEADLAB_HD std::size_t controlled_noise_offset() const { return control_offset() + components(); }
  HEADLAB_HD std::size_t controlled_ensemble() const { return controlled_noise_offset() + pairs(); }
  /// Statistics of one query.
  HEADLAB_HD std::size_t per_query() const {
    return controlled()                          ? controlled_ensemble() + 1
           : controls == ControlStatistics::sums ? control_offset() + components()
                                                 : control_offset();
  }
  /// Comoments of one query.
  HEADLAB_HD std::size_t comoments_per_query() const { return pairs() + (controlled() ? 1u : 0u); }
  /// Statistics of one replicate, [queries][per_query], or of one draw.
  HEADLAB_HD std::size_t statistics() const {
    return per_draw ? draw_statistics : static_cast<std::size_t>(queries) * per_query();
  }
  /// Comoments of one node, [queries][comoments_per_query()]; none per draw.
  HEADLAB_HD std::size_t comoments() const {
    return per_draw ? 0 : static_cast<std::size_t>(queries) * comoments_per_query();
  }

  bool operator==(const MomentLayout&) const = default;
};

/// Windows that held too little weight, counted over replicates, queries and heads.
struct WindowCounts {
  std::uint64_t empty = 0;   ///< no kernel value above 2^-126
  std::uint64_t narrow = 0;  ///< effective sample size 1 / sum_i w_i^2 below 2
  void add(const WindowCounts& other) {
    empty += other.empty;
    narrow += other.narrow;
  }
  bool operator==(const WindowCounts&) const = default;
};

/// Moments of a node: consecutive replicates.
struct Moments {
  std::uint64_t count = 0;
  std::vector<double> mean;      ///< [layout.statistics()]
  std::vector<double> comoment;  ///< [layout.comoments()]
  WindowCounts windows;
  std::shared_ptr<const Extremes> extremes = {};  ///< null: not known
};

/// Replicates in a leaf, the smallest node of a long run.
inline constexpr int leaf_replicates = 8;

/// Moments of up to leaf_replicates replicates from their statistics [count][layout.statistics()],
/// by two passes. A constant statistic gives a comoment of exactly 0.
void leaf_moments(const MomentLayout& layout, std::span<const double> statistics, int count,
                  Moments& out);

/// Merges 2^m nodes of one size, siblings first, as the tree over all replicates does.
Moments merge_siblings(const MomentLayout& layout, std::span<Moments> nodes);

/// a <- a with b, b being the later replicates (Chan, Golub and LeVeque 1983). Not commutative in
/// its rounding: callers merge in the order of the replicates.
void merge_moments(const MomentLayout& layout, Moments& a, const Moments& b);

/// What is known beforehand of the size of a head's estimates f_h, whatever a training set is.
struct EstimateBounds {
  /// The largest |f_h|, and the largest |m| at a query.
  double estimate = std::numeric_limits<double>::infinity();
  /// The largest variance that noise gives to f_h, given the design points.
  double noise_variance = std::numeric_limits<double>::infinity();
  /// Moments of f_h below this order are finite.
  double moments = std::numeric_limits<double>::infinity();
  /// Nothing differs between replicates.
  bool certain = false;

  /// Squares of f_h have no variance, so that second moments have no standard error.
  bool squares_are_heavy() const { return moments <= 4; }
  /// Squares of f_h have no kurtosis: the skewness of a sample of them is mostly too small.
  bool squares_are_long_tailed() const { return moments <= 8; }
};

}  // namespace headlab
