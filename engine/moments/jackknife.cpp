// SPDX-License-Identifier: Apache-2.0
#include "engine/moments/jackknife.h"

#include <numeric>

namespace headlab {

NodeSpread jackknife_spread(double full, std::span<const double> leave_one_out,
                            std::span<const double> counts, double rounding) {
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
  double second = 0;
  double third = 0;
  double fourth = 0;
  double widest = 0;
  for (std::size_t j = 0; j < counts.size(); ++j) {
    const double others = total / counts[j] - 1;
    const double deviation = shift - others * ((leave_one_out[j] - full) / unit);
    widest = std::max(widest, std::abs(deviation));
    const double square = deviation * deviation / others;
    second += square;
    third += square * deviation / std::sqrt(others);
    fourth += square * square;
  }
  const auto nodes = static_cast<double>(counts.size());
  NodeSpread spread{.error = unit * std::sqrt(second / nodes)};
  if (!(unit * widest > rounding) || !(fourth > 0)) return spread;
  spread.skewness = third / std::pow(second, 1.5);
  const double excess = nodes * fourth / (second * second) - 3 - 2 * std::sqrt(24 / nodes);
  spread.carriers = excess > 0 ? nodes / excess : std::numeric_limits<double>::infinity();
  return spread;
}

double allowance_of(const NodeSpread& spread, double unseen, double hidden) {
  constexpr double errors = 30;
  if (hidden < enough_carriers) return unseen;
  if (spread.carriers >= enough_carriers) return 0;
  return spread.carriers >= 1 ? std::min(unseen, errors * spread.error) : unseen;
}

double jackknife_error(double full, std::span<const double> leave_one_out,
                       std::span<const double> counts) {
  return jackknife_spread(full, leave_one_out, counts).error;
}

double with_rounding(double standard_error, double rounding) {
  // What does not vary at all is so by construction, as C/V of heads that are alike.
  const bool varies = standard_error > 0;
  return varies && rounding > 0 ? std::hypot(standard_error, rounding_errors * rounding)
                                : standard_error;
}

Estimate Jackknifed::figure(std::span<const double> counts) const {
  if (leave_one_out.empty()) return {.value = value, .mcse = 0};
  const NodeSpread spread = jackknife_spread(value, leave_one_out, counts, digits);
  return {.value = value,
          .mcse = with_rounding(spread.error, rounding),
          .skewness = spread.skewness,
          .carriers = std::min(spread.carriers, carriers),
          .allowance = allowance_of(spread, unseen, carriers)};
}

Jackknifed operator+(const Jackknifed& a, const Jackknifed& b) {
  return apply([](double x, double y) { return x + y; }, a, b);
}
Jackknifed operator-(const Jackknifed& a, const Jackknifed& b) {
  return apply([](double x, double y) { return x - y; }, a, b);
}
Jackknifed operator*(const Jackknifed& a, const Jackknifed& b) {
  return apply([](double x, double y) { return x * y; }, a, b);
}
Jackknifed operator/(const Jackknifed& a, const Jackknifed& b) {
  return apply([](double x, double y) { return x / y; }, a, b);
}
Jackknifed log(const Jackknifed& a) {
  return apply([](double x) { return std::log(x); }, a);
}

}  // namespace headlab
