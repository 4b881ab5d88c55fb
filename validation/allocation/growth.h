// SPDX-License-Identifier: Apache-2.0
/// \file How the best dimension of a head grows with n: which laws fit, and which cannot be told
/// apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/moments/jackknife.h"
#include "validation/statistics/intervals.h"

namespace headlab {

/// Errors by dimension at one n, over blocks that are common to all dimensions and to all n.
struct GrowthPoint {
  double n = 1;
  std::vector<int> dims;                    ///< [K], ascending
  std::vector<std::vector<double>> errors;  ///< [K][blocks]
};

/// The best dimension between whole ones.
struct BestDimension {
  double value = 1;
  double interpolation = 0;  ///< how much it depends on the way of interpolating
  bool at_end = false;       ///< the least error is at an end of the range: not interpolated

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("value", value, "best dimension of a head k*");
    visit("interpolation", interpolation, "how much it depends on the way of interpolating");
    visit("at_the_end", at_end, "an end of the range has the least error");
  }
};

/// Returns the vertex of the parabola in log k through the least of `errors` [K] and its neighbours
/// on either side. `interpolation` is its distance from the vertex of the parabola in k. Exact for
/// errors that are quadratic in log k.
BestDimension interpolated_best(const std::vector<int>& dims, const std::vector<double>& errors);

/// One law fitted to k*(n) by generalised least squares.
struct GrowthFit {
  std::string name;     ///< "constant", "log", "power"; of heads "linear", "power"
  double level = 0;     ///< k* at the geometric mean of the n
  double slope = 0;     ///< of log: dimensions a decade; of power: the exponent; of constant: 0
  Interval interval{};  ///< of the slope, 95 %, by resampling blocks and interpolations
  double p_value = 0;   ///< that the law misses by so much where it is true
  bool rejected = false;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("law", name, "law of growth");
    visit("level", level, "at the geometric mean");
    visit("slope", slope, "dimensions a decade, or the exponent");
    visit("interval", std::pair(interval.low, interval.high), "95 % interval of the slope");
    visit("p_value", p_value, "that the law misses by so much where it is true");
    visit("rejected", rejected, "the law is rejected");
  }
};

/// k* at one n.
struct BestDimensionAt {
  double n;
  Estimate best;
  double interpolation;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("n", n, "training points in one training set");
    visit("best_dim", best, "best dimension of a head k*");
    visit("interpolation", interpolation, "how much it depends on the way of interpolating");
  }
};

/// The best number of heads under one budget.
struct BestHeadsAt {
  int budget;
  Estimate best;
  double interpolation;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("budget", budget, "budget D = H d_k");
    visit("best_heads", best, "best number of heads H* = D/k*");
    visit("interpolation", interpolation, "how much it depends on the way of interpolating");
  }
};

/// What is known of the growth of k*.
struct Growth {
  std::vector<double> n;  ///< those that were interpolated
  std::vector<BestDimension> best;
  std::vector<double> errors;    ///< standard errors of `best`, by resampling
  std::vector<double> left_out;  ///< n with the least error at an end of the range
  std::vector<double> ends;      ///< that end, for each n left out
  std::string trend;             ///< "rises", "falls" or "none seen", from the first n to the last
  std::vector<GrowthFit> fits;   ///< constant, log, power; none for fewer than four n
  std::string verdict;           ///< "constant", "log", "power", "not distinguishable", ...
  double smallest_exponent = 0;  ///< see below; NaN where none below 2 could

  /// What was interpolated, n by n.
  std::vector<BestDimensionAt> points() const {
    std::vector<BestDimensionAt> all;
    for (std::size_t i = 0; i < n.size(); ++i) {
      all.push_back({n[i], {best[i].value, errors[i]}, best[i].interpolation});
    }
    return all;
  }

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("points", points(), "k* inside the range", {.item = "point"});
    visit("at_the_end", left_out, "n with the least error at an end of the range");
    visit("laws", fits, "laws of growth", {.item = "law"});
    visit("ends", ends, "that end, for each n left out");
    visit("trend", trend, "of k* from the first n to the last");
    visit("verdict", verdict, "which law it is");
    visit("smallest_exponent", smallest_exponent, "least exponent that could be told from a log");
  }
};

/// What is known of the growth of the best number of heads with the budget, H* = D/k*.
struct HeadGrowth {
  std::vector<int> budgets;  ///< those with k* inside the range
  std::vector<double> heads;
  std::vector<double> errors;         ///< standard errors of `heads`, by resampling
  std::vector<double> interpolation;  ///< how much `heads` depend on the way of interpolating
  std::vector<int> left_out;          ///< budgets with the least error at an end of the range
  std::vector<GrowthFit> fits;        ///< linear, power; none for fewer than three budgets
  std::string verdict;  ///< "linear", "power", "neither", "at an end of the range", "too few D"

  /// What was interpolated, budget by budget.
  std::vector<BestHeadsAt> points() const {
    std::vector<BestHeadsAt> all;
    for (std::size_t i = 0; i < budgets.size(); ++i) {
      all.push_back({budgets[i], {heads[i], errors[i]}, interpolation[i]});
    }
    return all;
  }

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("points", points(), "H* inside the range", {.item = "point"});
    visit("at_the_end", left_out, "budgets with the least error at an end of the range");
    visit("laws", fits, "laws of growth", {.item = "law"});
    visit("verdict", verdict, "which law it is");
  }
};

/// Level at which a law is rejected.
inline constexpr double growth_alpha = 0.01;

/// Fits k*(n) with
///     constant  k* = c
///     log       k* = c + s log10(n / n_0)
///     power     k* = c (n / n_0)^p
/// n_0 the geometric mean of the n. The covariance S of the k* comes from `resamples` resamples of
/// the blocks, which go through the interpolation and its choice of the least error, with the
/// squared interpolation error on its diagonal, as if interpolations were off at random. A law is
/// rejected where its weighted sum of squares r^T S^-1 r is too large for Hotelling's T^2 on blocks
/// - 1 degrees of freedom, at growth_alpha. The verdict is
///     "constant"             where the constant is not rejected: no growth is seen
///     "log" or "power"       where it alone of the two is not rejected
///     "not distinguishable"  where neither is
///     "none of these laws"   where all are
///     "at an end of the range"  where that is best at every n
///     "too few n"            below four n inside the range.
/// `smallest_exponent` is the least p whose power law, at the level seen, would be told from every
/// log in 9 of 10 studies like this one (noncentral chi^2).
///
/// `trend` compares k* at the first and the last n, ends of the range too: it rises or falls where
/// all but 0.5 % of the resamples say so.
Growth fit_growth(const std::vector<GrowthPoint>& points, std::uint64_t seed,
                  std::size_t resamples = 1000);

/// Fits H*(D) = D/k*(D) with
///     linear  H* = c D
///     power   H* = c (D / D_0)^p
/// D_0 the geometric mean of the budgets, on logarithms; points[i] holds the errors under
/// budgets[i], all at one n and on the same blocks. Covariance and rejection as in fit_growth().
/// The verdict is "linear" where that is not rejected, "power" where it alone is not.
HeadGrowth fit_head_growth(const std::vector<GrowthPoint>& points, const std::vector<int>& budgets,
                           std::uint64_t seed, std::size_t resamples = 1000);

}  // namespace headlab
