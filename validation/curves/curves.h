// SPDX-License-Identifier: Apache-2.0
/// \file Figures along a parameter, of conditions that share their draws: slopes, the lowest, and
/// where two curves cross.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/moments/jackknife.h"
#include "validation/statistics/intervals.h"

namespace headlab {

/// A figure at ascending values of a parameter.
struct Curve {
  std::vector<double> x = {};
  std::vector<Jackknifed> y = {};  ///< over common nodes
};

/// The slope of log y on log x by least squares without weights; NaN where an x or a y is not
/// positive, or there is one point.
Jackknifed slope_of(const Curve& curve);

/// An estimate with its 95 % interval.
struct SlopeEstimate {
  Estimate slope;
  Interval interval;
};

/// slope_of() with its standard error, that of the jackknife over the nodes, so that what the
/// points have in common counts as it is. \param node_counts [nodes], replicates of each
SlopeEstimate log_log_slope(const Curve& curve, std::span<const double> node_counts);

/// Two curves that cross.
struct Crossing {
  double at = 0;   ///< where lines between their points do, over log x where x is positive
  double low = 0;  ///< points of the sweep that it lies between
  double high = 0;
};

/// The crossings that are shown of two curves over the same x, ascending: between neighbouring
/// points at which the signs of the difference are known and opposite. A sign is known where
/// |d| > t(1 - 0.05/m; nodes - 1) SE(d), of m points; so with probability 95 % at least all of
/// these signs are right, and curves without jumps cross in every one of the intervals, whatever
/// they do between the points.
std::vector<Crossing> crossings(const Curve& a, const Curve& b,
                                std::span<const double> node_counts);

}  // namespace headlab
