// SPDX-License-Identifier: Apache-2.0
#include "validation/claims/against_theory.h"

#include <cmath>
#include <string>

namespace headlab {
namespace {

/// A remainder as the largest error of its figure; a figure without one has none.
double error_of(const Remainder& figure) {
  return std::isnan(figure.remainder) ? 0.0 : std::abs(figure.remainder);
}

}  // namespace

std::vector<Comparison> against_theory(const JackknifedEstimates& observed, const Theory& theory,
                                       double margin) {
  const std::span<const double> counts = observed.node_counts;
  std::vector<Comparison> all;
  for (std::size_t q = 0; q < observed.queries.size(); ++q) {
    const auto& seen = observed.queries[q];
    const auto& closed = theory.figures.queries.at(q);
    const std::string at = " at query " + std::to_string(q + 1);
    const std::size_t heads = seen.head_bias.size();
    for (std::size_t h = 0; h < heads; ++h) {
      const Remainder& bias = closed.head_bias.at(h);
      const double variance = closed.head_covariance.at(h * heads + h).value;
      const double scale = std::sqrt(bias.value * bias.value + variance);
      all.push_back(equal_to("bias of head " + std::to_string(h + 1) + at, seen.head_bias[h],
                             bias.value, scale, margin, counts, error_of(bias) / scale));
    }
    for (std::size_t h = 0; h < heads; ++h) {
      for (std::size_t l = h; l < heads; ++l) {
        const Remainder& covariance = closed.head_covariance.at(h * heads + l);
        const double scale = std::sqrt(closed.head_covariance[h * heads + h].value *
                                       closed.head_covariance[l * heads + l].value);
        const std::string what = h == l ? "variance of head " + std::to_string(h + 1)
                                        : "covariance of heads " + std::to_string(h + 1) + " and " +
                                              std::to_string(l + 1);
        all.push_back(equal_to(what + at, seen.head_covariance.at(h * heads + l), covariance.value,
                               scale, margin, counts, error_of(covariance) / scale));
      }
    }
    all.push_back(equal_to("MSE" + at, seen.mse, closed.mse.value, closed.mse.value, margin, counts,
                           error_of(closed.mse) / closed.mse.value));
  }
  return all;
}

}  // namespace headlab
