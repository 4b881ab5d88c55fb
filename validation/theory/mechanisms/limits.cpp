// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/mechanisms/limits.h"

#include <cmath>

#include <boost/math/distributions/normal.hpp>

#include "validation/theory/exact/scalar_head.h"
#include "validation/theory/mechanisms/sequence.h"

namespace headlab {
namespace {

double normal_cdf(double z) {
  return cdf(boost::math::normal(), z);
}
double normal_pdf(double z) {
  return pdf(boost::math::normal(), z);
}

}  // namespace

FractionLimit softmax_fraction_limit(double tilt, double fraction) {
  const double z = quantile(complement(boost::math::normal(), fraction));
  const double mass = normal_cdf(tilt - z);
  return {mass, std::exp(tilt * tilt) * normal_cdf(2 * tilt - z) / (mass * mass),
          tilt + normal_pdf(z - tilt) / mass};
}

GaussianFractionLimit gaussian_fraction_limit(double q, double bandwidth, double fraction) {
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
    double share() const { return normal_cdf(high) - normal_cdf(low); }
  };
  const Tilted once(q, bandwidth, limit.radius, 1);
  const Tilted twice(q, bandwidth, limit.radius, 2);
  limit.mass = once.share();
  limit.n_sum_w2 = twice.mass * twice.share() / std::pow(once.mass * once.share(), 2);
  limit.mean = once.mean + once.sd * (normal_pdf(once.low) - normal_pdf(once.high)) / once.share();
  return limit;
}

double mean_union(std::uint64_t n, std::uint64_t top, int heads) {
  const auto points = static_cast<double>(n);
  return -points * std::expm1(heads * std::log1p(-static_cast<double>(top) / points));
}

double merge_price(std::uint64_t stride, double correlation, double tilt) {
  return std::exp((1 / block_mean_variance(stride, correlation) - 1) * tilt * tilt);
}

}  // namespace headlab
