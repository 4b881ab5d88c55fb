// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/population/population_error.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <variant>

#include "engine/scenario/condition.h"
#include "kernels/laws.h"

namespace headlab {
namespace {

using Kind = Correlation::Kind;

/// Shorter lengths than this are not resolved but continued to, see Continuation.
constexpr double shortest_length = 0.5;
/// Step of the mixture of lengths, in log length^2: about exp(-pi^2/step), 1e-6.
constexpr double mixture_step = 0.7;

/// The index of a correlation, added where it is not there.
std::size_t index_of(std::vector<Correlation>& correlations, const Correlation& wanted) {
  for (std::size_t c = 0; c < correlations.size(); ++c) {
    if (correlations[c].kind == wanted.kind && correlations[c].scale == wanted.scale) return c;
  }
  correlations.push_back(wanted);
  return correlations.size() - 1;
}

void add_scale(TruthLaw& law, double variance, double length) {
  const Correlation resolved = {Kind::gaussian, std::max(length, shortest_length)};
  law.scales.push_back({variance, length, index_of(law.correlations, resolved)});
}

/// The gamma law of g = (length/l)^2, shape and rate v, by the trapezoid rule in log g.
void add_matern(TruthLaw& law, double l, double v, int d) {
  const double log_factor = v * std::log(v) - std::lgamma(v);
  for (double t = -60; t < 8; t += mixture_step) {
    const double weight = mixture_step * std::exp(log_factor + v * t - v * std::exp(t));
    const double length = l * std::exp(t / 2);
    // What little is left of a correlation over the whole of the design is left out.
    const double seen = std::pow(1 + 0.02 / (length * length), -0.5 * d);
    if (weight * seen > 1e-9) add_scale(law, weight, length);
  }
  double kept = 0;
  for (const auto& scale : law.scales) kept += scale.variance;
  // White noise of the truth: correlated with nothing, but part of its variance.
  if (1 - kept > 0) add_scale(law, 1 - kept, 1e-9);
}

/// The expectations of one head for a scale that may be too short to be resolved. Differences of
/// points are taken to be normal there, so that a value at the shortest length gives their variance
/// and that the value at any length: exact where it matters least, in the limit of short lengths up
/// to a factor near one.
struct Continuation {
  double length, resolved;
  int k;
  double operator()(double value) const {
    if (length >= resolved || !(value > 0)) return value;
    const double variance = std::pow(value, -2.0 / k) - 1;
    const double ratio = resolved / length;
    return std::pow(1 + variance * ratio * ratio, -0.5 * k);
  }
};

/// What one part of the truth, of variance 1, adds to each figure.
struct ErrorPart {
  double squared_bias, variance, covariance;
};

ErrorPart stationary_part(const PopulationHead& head, const PopulationEnsemble& ensemble,
                          const TruthLaw::Scale& scale, const TruthLaw& truth) {
  const auto c = static_cast<Eigen::Index>(scale.correlation);
  const Continuation continued = {scale.length, truth.correlations[scale.correlation].scale,
                                  ensemble.k};
  const Correlation correlation = {Kind::gaussian, scale.length};
  const double n = static_cast<double>(ensemble.n), share = 1.0 / ensemble.heads;
  const double rest = correlation.mean(ensemble.d - ensemble.k);
  const double again = continued(head.independent_sets(c)) * rest;
  const double one = 1 - head.squares;
  const double pairs = one > 0 ? one * continued(head.pairs(c) / one) * rest : 0;
  ErrorPart part = {1 - 2 * continued(head.to_query(c)) * rest + share * again,
                    head.squares + pairs - again, 0};
  if (!(ensemble.heads > 1)) return part;
  const double outside = correlation.mean(ensemble.d - 2 * ensemble.k);
  const double unconditional = std::pow(continued(head.independent_point(c)), 2) * outside;
  part.squared_bias += (1 - share) * unconditional;
  part.covariance =
      1 / n + (1 - 1 / n) * std::pow(continued(head.one_weight(c)), 2) * outside - unconditional;
  return part;
}

/// A coordinate that one of the heads sees.
ErrorPart seen_part(const PopulationHead& head, const PopulationEnsemble& ensemble,
                    const TruthLaw::Coordinate& coordinate, const TruthLaw& truth) {
  const auto c = static_cast<Eigen::Index>(coordinate.correlation);
  const double n = static_cast<double>(ensemble.n), share = 1.0 / ensemble.heads;
  const double unseen = truth.correlations[coordinate.correlation].mean(1);
  const double own_pair = share * share, mixed_pair = 2 * share * (1 - share);
  const double other_pair = 1 - own_pair - mixed_pair;
  ErrorPart part;
  part.squared_bias = 1 - 2 * (share * head.to_query(c) + (1 - share) * unseen) +
                      own_pair * head.independent_sets(c) + mixed_pair * head.independent_point(c) +
                      other_pair * unseen;
  part.variance = head.squares + share * (head.pairs(c) - head.independent_sets(c)) -
                  (1 - share) * unseen * head.squares;
  // Of ordered pairs of two heads, 2/H have the one that sees it.
  part.covariance = 1 / n +
                    (1 - 1 / n) * (2 * share * head.one_weight(c) + (1 - 2 * share) * unseen) -
                    (2 * share * head.independent_point(c) + (1 - 2 * share) * unseen);
  return part;
}

/// One that none sees: noise with a share that all points have in common, which is not an error.
ErrorPart unseen_part(const PopulationHead& head, const PopulationEnsemble& ensemble,
                      const TruthLaw::Coordinate& coordinate, const TruthLaw& truth) {
  const double own = 1 - truth.correlations[coordinate.correlation].mean(1);
  return {own, own * head.squares, own / static_cast<double>(ensemble.n)};
}

}  // namespace

double TruthLaw::variance() const {
  double sum = 0;
  for (const Scale& scale : scales) sum += scale.variance;
  for (const Coordinate& coordinate : coordinates) sum += coordinate.variance;
  return sum;
}

TruthLaw truth_law(const Condition& condition) {
  TruthLaw law;
  const int d = dimension_of(condition);
  if (const auto* cosines = std::get_if<RandomCosinesRegression>(&*condition.regression)) {
    if (cosines->smoothness) {
      add_matern(law, cosines->length_scale, *cosines->smoothness, d);
    } else {
      add_scale(law, 1, cosines->length_scale);
    }
  } else if (const auto* additive = std::get_if<AdditiveRegression>(&*condition.regression)) {
    for (std::size_t j = 0; j < additive->amplitude.size(); ++j) {
      const Correlation wave = {Kind::wave, std::abs(additive->frequency[j])};
      law.coordinates.push_back(
          {additive->amplitude[j] * additive->amplitude[j] / 2, index_of(law.correlations, wave)});
    }
  } else if (!std::holds_alternative<ZeroRegression>(*condition.regression)) {
    const std::string name =
        std::visit([](const auto& m) { return std::string(m.name); }, *condition.regression);
    reject(condition, "data.regression",
           "the theory of the mean over truths is for the laws zero, random_cosines and "
           "additive, this one is \"" +
               name + "\" - take one of them, or --source simulation");
  }
  return law;
}

PopulationError population_error(const PopulationHead& head, const PopulationEnsemble& ensemble,
                                 const TruthLaw& truth) {
  const double noise = ensemble.noise_sd * ensemble.noise_sd, share = 1.0 / ensemble.heads;
  PopulationError error;
  error.variance = noise * head.squares;
  error.covariance = noise / static_cast<double>(ensemble.n);
  const auto take = [&](const ErrorPart& part, double variance) {
    error.squared_bias += variance * part.squared_bias;
    error.variance += variance * part.variance;
    error.covariance += variance * part.covariance;
  };
  for (const TruthLaw::Scale& scale : truth.scales) {
    take(stationary_part(head, ensemble, scale, truth), scale.variance);
  }
  const auto seen = static_cast<std::size_t>(std::lround(ensemble.heads * ensemble.k));
  for (std::size_t j = 0; j < truth.coordinates.size(); ++j) {
    const TruthLaw::Coordinate& coordinate = truth.coordinates[j];
    take(j < seen ? seen_part(head, ensemble, coordinate, truth)
                  : unseen_part(head, ensemble, coordinate, truth),
         coordinate.variance);
  }
  if (!(ensemble.heads > 1)) error.covariance = 0;
  error.mse = error.squared_bias + share * error.variance + (1 - share) * error.covariance;
  error.change = head.change * (noise * share + truth.variance() * (4 + share));
  return error;
}

}  // namespace headlab
