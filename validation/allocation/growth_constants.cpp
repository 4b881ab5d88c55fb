// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <variant>

#include "engine/scenario/condition.h"
#include "kernels/laws.h"
#include "validation/allocation/allocations.h"
#include "validation/allocation/theory_study.h"
#include "validation/theory/population/population_error.h"

namespace headlab {
namespace {

constexpr double no_constant = std::numeric_limits<double>::quiet_NaN();

}  // namespace

GrowthConstants growth_constants(const Condition& condition, int budget) {
  const double width = kernel_width(*condition.kernel);
  const double decade = std::log(10.0);
  if (is_softmax(condition)) {
    // log-normal weights of variance k/t^2 at |q|^2 = k, which condense at 2 log n.
    const double spread = 2 / (width * width);
    return {spread < 1 ? decade / (-0.5 * std::log1p(-spread)) : no_constant,
            decade * 2 * width * width, no_constant};
  }
  const double a = 1 / (width * width);
  const auto entropy = [](double tilt) {
    return (std::log1p(tilt) - tilt / ((1 + tilt) * (1 + tilt))) / 2;
  };
  GrowthConstants constants = {decade / (1.5 * std::log1p(a) - 0.5 * std::log1p(3 * a)),
                               decade / entropy(a), no_constant};
  const TruthLaw truth = truth_law(condition);
  const int d = dimension_of(condition);
  double noise = std::pow(std::get<NormalNoise>(*condition.noise).sd, 2);
  for (const auto& scale : truth.scales) {
    noise += scale.variance * (1 - Correlation{Correlation::Kind::gaussian, scale.length}.mean(d));
  }
  for (const auto& one : truth.coordinates) {
    noise += one.variance * (1 - truth.correlations[one.correlation].mean(1));
  }
  // A coordinate of U under the weights is N(q/(1+b^2), spread), q ~ N(0, 1).
  const auto explained = [&](double tilt) {
    const double spread = 1 / (1 + tilt);
    const double to_query = spread * (1 + spread);
    const double to_independent = 1 + spread + (1 - spread) * (1 - spread);
    double sum = 0;
    for (const auto& scale : truth.scales) {
      const double square = scale.length * scale.length;
      sum += scale.variance * budget *
             Correlation{Correlation::Kind::gaussian, scale.length}.mean(d) *
             std::log((square + to_independent) / (square + to_query));
    }
    for (std::size_t j = 0; j < truth.coordinates.size() && j < static_cast<std::size_t>(budget);
         ++j) {
      const double f = truth.correlations[truth.coordinates[j].correlation].scale;
      sum += truth.coordinates[j].variance * 2 *
             (std::exp(-f * f * to_query / 2) - std::exp(-f * f * to_independent / 2));
    }
    return sum;
  };
  double least = 0;
  constexpr int steps = 20000;
  for (int step = 0; step <= steps; ++step) {
    const double tilt = a * std::pow(1e-4, static_cast<double>(step) / steps);
    const double value = ((1 - tilt / a) * noise - explained(tilt)) / entropy(tilt);
    if (value < least) {
      least = value;
      constants.asymptotic = decade / entropy(tilt);
    }
  }
  return constants;
}

}  // namespace headlab
