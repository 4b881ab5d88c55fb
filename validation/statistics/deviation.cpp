// SPDX-License-Identifier: Apache-2.0
#include "validation/statistics/deviation.h"

#include <cmath>
#include <stdexcept>

#include <boost/math/distributions/chi_squared.hpp>

namespace headlab {

Interval deviation_interval(double df, double confidence) {
  if (!(df > 0) || !(confidence > 0 && confidence < 1)) {
    throw std::invalid_argument("deviation_interval: needs df > 0 and a confidence inside (0, 1)");
  }
  const boost::math::chi_squared law(df);
  const double tail = (1 - confidence) / 2;
  return {std::sqrt(df / quantile(complement(law, tail))), std::sqrt(df / quantile(law, tail))};
}

}  // namespace headlab
