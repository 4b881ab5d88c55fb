// SPDX-License-Identifier: Apache-2.0
#include "engine/moments/jackknife.h"

#include <algorithm>
#include <numeric>

namespace headlab {

double jackknife_error(double full, std::span<const double> leave_one_out,
                       std::span<const double> counts) {
  const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
  double largest = 0;
  for (const double one : leave_one_out) largest = std::max(largest, std::abs(one - full));
  // Squares of numbers beyond these would leave float64.
  const bool plain = largest == 0 || (largest > 1e-140 && largest < 1e140);
  const double unit = plain ? 1 : largest;
  double shift = 0;
  for (std::size_t j = 0; j < counts.size(); ++j) {
    shift += (1 - counts[j] / total) * ((leave_one_out[j] - full) / unit);
  }
  double variance = 0;
  for (std::size_t j = 0; j < counts.size(); ++j) {
    const double others = total / counts[j] - 1;
    const double deviation = shift - others * ((leave_one_out[j] - full) / unit);
    variance += deviation * deviation / others;
  }
  return unit * std::sqrt(variance / static_cast<double>(counts.size()));
}

double with_rounding(double standard_error, double rounding) {
  // What does not vary at all is so by construction, as C/V of heads that are alike.
  const bool varies = standard_error > 0;
  return varies && rounding > 0 ? std::hypot(standard_error, rounding_errors * rounding)
                                : standard_error;
}

Estimate Jackknifed::figure(std::span<const double> counts) const {
  return {value, leave_one_out.empty()
                     ? 0.0
                     : with_rounding(jackknife_error(value, leave_one_out, counts), rounding)};
}

}  // namespace headlab
