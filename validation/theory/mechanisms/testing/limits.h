// SPDX-License-Identifier: Apache-2.0
/// \file Limits and prices of stages that have no other closed form, or of which a formula says
/// more.
#pragma once

#include <cmath>
#include <cstdint>

#include <boost/math/distributions/normal.hpp>

#include "validation/theory/exact/scalar_head.h"
#include "validation/theory/mechanisms/sequence.h"

namespace headlab {

/// A head that keeps the fraction p of n independent points, as n grows: what it sees of the
/// scalar U ~ N(0, 1).
struct FractionLimit {
  double mass = 0;      ///< share of the weight that is kept
  double n_sum_w2 = 0;  ///< n sum_i w_i^2
  double mean = 0;      ///< of U under the weights that are kept
};

/// Softmax with tilt a, U = a.X/|a| and z = Phi^-1(1 - p): mass Phi(|a| - z),
/// n sum w^2 = exp(|a|^2) Phi(2|a| - z)/mass^2, mean |a| + phi(z - |a|)/mass.
inline FractionLimit softmax_fraction_limit(double tilt, double fraction) {
  const double z = quantile(complement(boost::math::normal(), fraction));
  const double mass = cdf(boost::math::normal(), tilt - z);
  return {mass, std::exp(tilt * tilt) * cdf(boost::math::normal(), 2 * tilt - z) / (mass * mass),
          tilt + pdf(boost::math::normal(), z - tilt) / mass};
}

struct GaussianFractionLimit : FractionLimit {
  double radius = 0;  ///< P(|U - q| <= radius) = p
};
/// Gaussian kernel of one dimension at the query's projection q.
inline GaussianFractionLimit gaussian_fraction_limit(double q, double bandwidth, double fraction) {
  ScalarHead head;
  head.centre = q;
  head.rate = 1 / bandwidth;
  head.weights = {1.0};
  head.laws = {{0, 1}};
  GaussianFractionLimit limit;
  limit.radius = std::sqrt(2 * head.level_of_mass(fraction)) * bandwidth;
  // K^power turns N(0, 1) into this mass and the law N(mean, sd^2), cut at the radius.
  struct Tilted {
    double mass, low, high, mean, sd;
    Tilted(double q, double b, double radius, double power) {
      const double precision = power / (b * b);
      const double spread = 1 + precision;
      mean = q * precision / spread;
      sd = 1 / std::sqrt(spread);
      low = (q - radius - mean) / sd;
      high = (q + radius - mean) / sd;
      mass = sd * std::exp(-q * q * precision / (2 * spread));
    }
    double share() const {
      return cdf(boost::math::normal(), high) - cdf(boost::math::normal(), low);
    }
  };
  const Tilted once(q, bandwidth, limit.radius, 1);
  const Tilted twice(q, bandwidth, limit.radius, 2);
  limit.mass = once.share();
  limit.n_sum_w2 = twice.mass * twice.share() / std::pow(once.mass * once.share(), 2);
  limit.mean = once.mean +
               once.sd *
                   (pdf(boost::math::normal(), once.low) - pdf(boost::math::normal(), once.high)) /
                   once.share();
  return limit;
}

/// Computes the mean number of tokens that some of H orthogonal heads keeps of its `top`,
/// n (1 - (1 - top/n)^H).
inline double mean_union(std::uint64_t n, std::uint64_t top, int heads) {
  const auto points = static_cast<double>(n);
  return -points * std::expm1(heads * std::log1p(-static_cast<double>(top) / points));
}

/// Computes what merging costs a softmax head at equal leading bias, a truth that is linear or
/// points that are independent: the factor exp((1/tau^2 - 1)|a|^2) of its leading noise variance,
/// tau^2 = block_mean_variance(stride, correlation).
/// \param tilt |a| of the plain head
inline double merge_price(std::uint64_t stride, double correlation, double tilt) {
  return std::exp((1 / block_mean_variance(stride, correlation) - 1) * tilt * tilt);
}

}  // namespace headlab
