// SPDX-License-Identifier: Apache-2.0
#include "validation/statistics/intervals.h"

#include <cmath>
#include <stdexcept>

#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/students_t.hpp>

namespace headlab {
namespace {

void require_probability(double p) {
  if (!(p > 0 && p < 1)) throw std::invalid_argument("a probability must lie inside (0, 1)");
}

}  // namespace

double student_quantile(double probability, double df) {
  require_probability(probability);
  return boost::math::quantile(boost::math::students_t(df), probability);
}

double student_tail(double t, double df) {
  if (std::isnan(t)) return 1;
  if (std::isinf(t)) return t > 0 ? 0 : 1;
  return boost::math::cdf(boost::math::complement(boost::math::students_t(df), t));
}

Interval clopper_pearson(std::uint64_t successes, std::uint64_t trials, double confidence) {
  require_probability(confidence);
  if (trials == 0 || successes > trials) {
    throw std::invalid_argument("successes must be at most trials, and trials more than none");
  }
  using Binomial = boost::math::binomial;
  const auto n = static_cast<double>(trials);
  const auto k = static_cast<double>(successes);
  const double tail = (1 - confidence) / 2;
  return {Binomial::find_lower_bound_on_p(n, k, tail), Binomial::find_upper_bound_on_p(n, k, tail)};
}

Interval deviation_interval(double df, double confidence) {
  if (!(df > 0) || !(confidence > 0 && confidence < 1)) {
    throw std::invalid_argument("deviation_interval: needs df > 0 and a confidence inside (0, 1)");
  }
  const boost::math::chi_squared law(df);
  const double tail = (1 - confidence) / 2;
  return {std::sqrt(df / quantile(complement(law, tail))), std::sqrt(df / quantile(law, tail))};
}

}  // namespace headlab
