// SPDX-License-Identifier: Apache-2.0
#include "kernels/statistics/weight_sums.h"

#include <sstream>
#include <stdexcept>
#include <string>

namespace headlab {
namespace {

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

void fail_inconsistent(const WeightSums& sums, bool squares_hold, const WindowPlace& place) {
  if (!squares_hold) {
    fail(place, "the weights of " + std::to_string(sums.kept) + " keys have sum " + text(sums.sum) +
                    " and sum of squares " + text(*sums.squares) + ", which no weights have");
  }
  fail(place,
       "the weights have sum " + text(*sums.again) + ", and were summed to " + text(sums.sum));
}

}  // namespace headlab
