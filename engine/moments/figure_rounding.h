// SPDX-License-Identifier: Apache-2.0
/// \file How far rounding may move figures: an estimate f_h is off by up to
/// u = eps (|m(x)| + |B| + sqrt(V)) + the least normal number, below which nothing is left, a
/// second moment by 2 sqrt(moment) u + u^2.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <span>
#include <string_view>

#include "engine/moments/error_terms.h"

namespace headlab {

/// 2 sqrt(moment) u + u^2, of a second moment of numbers that are off by u.
inline double moment_rounding(double moment, double u) {
  return 2 * std::sqrt(std::abs(moment)) * u + u * u;
}

/// V of head h at a query, or what bounds it: the MSE, where moments are aggregate.
template <class Number>
double head_variance(const QueryErrorTerms<Number>& at, std::size_t h) {
  return at.head_covariance.empty() ? at.mse.value
                                    : at.head_covariance[h * at.head_bias.size() + h].value;
}

/// The least normal number of arithmetic with this rounding, float32 or float64.
inline double min_normal(double eps) {
  if (eps == 0) return 0;
  return eps < 1e-12 ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
}

/// u of head h at a query.
template <class Number>
double head_rounding(const QueryErrorTerms<Number>& at, std::size_t h, double truth, double eps) {
  return eps * (std::abs(truth) + std::abs(at.head_bias[h].value) +
                std::sqrt(std::abs(head_variance(at, h)))) +
         min_normal(eps);
}

/// How far the covariance of two heads at a query may be off.
template <class Number>
double covariance_rounding(const QueryErrorTerms<Number>& at, std::size_t h, std::size_t l,
                           double truth, double eps) {
  return moment_rounding(
      std::max(head_variance(at, h), head_variance(at, l)),
      std::max(head_rounding(at, h, truth, eps), head_rounding(at, l, truth, eps)));
}

/// How far the averages over queries may be off, but for measures.
template <class Number>
ErrorTerms<double> figure_roundings(const ErrorTerms<Number>& terms, std::span<const double> truth,
                                    double eps) {
  double of_total = 0;  // MSE and its terms
  double of_heads = 0;  // means of V and C over heads
  const auto queries = static_cast<double>(terms.queries.size());
  for (std::size_t q = 0; q < terms.queries.size(); ++q) {
    const QueryErrorTerms<Number>& at = terms.queries[q];
    double largest = 0, of_moments = 0;
    for (std::size_t h = 0; h < at.head_bias.size(); ++h) {
      const double u = head_rounding(at, h, truth[q], eps);
      largest = std::max(largest, u);
      of_moments = std::max(of_moments, moment_rounding(head_variance(at, h), u));
    }
    of_total += moment_rounding(at.mse.value, largest) / queries;
    of_heads += of_moments / queries;
  }
  ErrorTerms<double> roundings;
  for (const Measured<Number>& measure : terms.measures)
    roundings.measures.push_back({.of = measure.of});
  NumberList<double> averages;
  roundings.fields(averages);
  for (const NamedNumber<double>& one : averages.all) {
    *one.number = std::string_view(one.name).starts_with("head_") ? of_heads : of_total;
  }
  roundings.weights_index = eps;
  for (std::size_t i = 0; i < std::size(ratios<double>); ++i) {
    const Ratio<Number>& of_terms = ratios<Number>[i];
    const Ratio<double>& ratio = ratios<double>[i];
    const double quotient = (roundings.*ratio.top +
                             std::abs((terms.*of_terms.figure).value) * roundings.*ratio.bottom) /
                            std::abs((terms.*of_terms.bottom).value);
    for_figures_of(ratio, roundings,
                   [&](double& figure) { figure = std::isfinite(quotient) ? quotient : 0; });
  }
  return roundings;
}

}  // namespace headlab
