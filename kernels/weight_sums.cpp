// SPDX-License-Identifier: Apache-2.0
#include "kernels/weight_sums.h"

#include <cmath>
#include <sstream>
#include <stdexcept>
#include <string>

namespace headlab {
namespace {

/// Share of sum w^2 that underflow may lose, see kernels/safe_sums.h.
constexpr double underflow = 0x1p-30;

[[noreturn]] void fail(const WindowPlace& place, const std::string& problem) {
  throw std::logic_error("internal error in replicate " + std::to_string(place.replicate) +
                         ", query " + std::to_string(place.query) + ", head " +
                         std::to_string(place.head) + ": " + problem +
                         " - please report this with the scenario");
}

std::string text(double number) {
  std::ostringstream out;
  out.precision(9);
  out << number;
  return out.str();
}

}  // namespace

void require_consistent(const WeightSums& sums, double rounding, const WindowPlace& place) {
  if (sums.squares) {
    // (1 - r) of the squares and (1 + r)^2 of the square of the sum, and their product.
    const double allowed = 1 - 4 * rounding - underflow;
    const double most = static_cast<double>(sums.kept) * *sums.squares;
    if (!(most >= allowed * sums.sum * sums.sum)) {
      fail(place, "the weights of " + std::to_string(sums.kept) + " keys have sum " +
                      text(sums.sum) + " and sum of squares " + text(*sums.squares) +
                      ", which no weights have");
    }
  }
  if (sums.again && !(std::abs(*sums.again - sums.sum) <= 2 * rounding * sums.sum)) {
    fail(place,
         "the weights have sum " + text(*sums.again) + ", and were summed to " + text(sums.sum));
  }
}

}  // namespace headlab
