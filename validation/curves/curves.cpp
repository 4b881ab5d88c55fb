// SPDX-License-Identifier: Apache-2.0
#include "validation/curves/curves.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace headlab {
namespace {

constexpr double curve_alpha = 0.05;  // of an interval, and of all signs together

double quantile_of(double level, std::span<const double> node_counts) {
  return student_quantile(1 - level, static_cast<double>(node_counts.size()) - 1);
}

}  // namespace

Jackknifed slope_of(const Curve& curve) {
  const Jackknifed none;
  if (curve.x.size() < 2) return none;
  double mean = 0, squares = 0;
  for (std::size_t i = 0; i < curve.x.size(); ++i) {
    if (!(curve.x[i] > 0 && curve.y[i].value > 0)) return none;
    mean += std::log(curve.x[i]) / static_cast<double>(curve.x.size());
  }
  for (const double x : curve.x) squares += std::pow(std::log(x) - mean, 2);
  Jackknifed slope = 0;
  for (std::size_t i = 0; i < curve.x.size(); ++i) {
    slope = slope + ((std::log(curve.x[i]) - mean) / squares) * log(curve.y[i]);
  }
  return slope;
}

SlopeEstimate log_log_slope(const Curve& curve, std::span<const double> node_counts) {
  constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
  const Jackknifed slope = slope_of(curve);
  if (std::isnan(slope.value)) return {.slope = {}, .interval = {undefined, undefined}};
  const Estimate estimate = slope.figure(node_counts);
  const double half = quantile_of(curve_alpha / 2, node_counts) * estimate.mcse;
  return {.slope = estimate, .interval = {estimate.value - half, estimate.value + half}};
}

std::vector<Crossing> crossings(const Curve& a, const Curve& b,
                                std::span<const double> node_counts) {
  const std::size_t points = a.x.size();
  if (points < 2) return {};
  const bool logarithmic = std::ranges::all_of(a.x, [](double x) { return x > 0; });
  const double t = quantile_of(curve_alpha / static_cast<double>(points), node_counts);
  std::vector<Crossing> all;
  std::size_t last = points;  // the last point of known sign, if any
  double sign = 0, before = 0, changed = 0;
  for (std::size_t i = 0; i < points; ++i) {
    const Jackknifed difference = a.y[i] - b.y[i];
    const double d = difference.value;
    if (last != points && before * sign > 0 && d * sign <= 0) {
      const double u = before / (before - d);
      const double left = a.x[i - 1], right = a.x[i];
      changed = logarithmic ? left * std::pow(right / left, u) : left + u * (right - left);
    }
    before = d;
    if (!(std::abs(d) > t * difference.figure(node_counts).mcse)) continue;
    if (last != points && d * sign < 0) all.push_back({changed, a.x[last], a.x[i]});
    last = i;
    sign = d;
  }
  return all;
}

}  // namespace headlab
