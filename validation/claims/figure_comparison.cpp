// SPDX-License-Identifier: Apache-2.0
#include "validation/claims/figure_comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "validation/claims/counterexample_of.h"

namespace headlab {
namespace {

Jackknifed magnitude(const Jackknifed& a) {
  return apply([](double x) { return std::abs(x); }, a);
}

[[noreturn]] void reject_undefined(const FigureAt& side, const Experiment& experiment) {
  const Condition& condition = experiment.condition(side.condition);
  if (condition.stack) {
    reject(side.location, side.key,
           side.figure.text() + " is undefined in condition #" + std::to_string(side.condition) +
               " (those of attention in layer 0, those of singular values without run.spectra, "
               "logarithms and angles of tokens that are 0 in some replicate)");
  }
  reject(side.location, side.key,
         side.figure.text() + " is undefined in condition #" + std::to_string(side.condition) +
             " (" + std::to_string(condition.heads) + " heads, " +
             std::to_string(experiment.plan(side.condition).queries) + " queries, " +
             (condition.moments == MomentMode::pairwise ? "pairwise" : "aggregate") + " moments)");
}

/// Adds the counterexample that `low` is not at most `high`, or not equal to it.
FigureComparison with_counterexample(Experiment& experiment, Comparison comparison,
                                     const FigureAt& low, const FigureAt& high) {
  FigureComparison compared{.comparison = std::move(comparison)};
  if (contradicts(compared.comparison)) {
    compared.counterexample =
        counterexample_of(experiment, ConditionFigure{low.figure, low.condition},
                          ConditionFigure{high.figure, high.condition});
  }
  return compared;
}

}  // namespace

double unit_of(const Experiment& experiment, const FigureAt& side) {
  if (!side.noise_unit) return 1;
  if (experiment.condition(side.condition).stack) {
    reject(side.location, side.key, "has the unit s2/n, and a study of depth has no noise");
  }
  const double floor = noise_floor(experiment.condition(side.condition));
  if (floor == 0) reject(side.location, side.key, "has the unit s2/n, which is 0 without noise");
  return floor;
}

Jackknifed observed(Experiment& experiment, const FigureAt& side) {
  const Jackknifed* figure = experiment.figure(side.condition, side.figure);
  if (figure == nullptr || !std::isfinite(figure->value)) reject_undefined(side, experiment);
  return side.noise_unit ? *figure / unit_of(experiment, side) : *figure;
}

Jackknifed difference_above_rounding(const Jackknifed& a, const Jackknifed& b) {
  constexpr double rounding = 64 * std::numeric_limits<double>::epsilon();
  return apply(
      [](double x, double y) {
        const bool same = std::abs(x - y) <= rounding * std::max(std::abs(x), std::abs(y));
        return same ? 0 : x - y;
      },
      a, b);
}

Comparison at_most(Experiment& experiment, std::string what, const Jackknifed& low,
                   const Jackknifed& high, const Margin& margin) {
  const Jackknifed room = difference_above_rounding(high, low);
  Comparison comparison =
      at_least_zero(std::move(what), margin.relative ? room / magnitude(high) : room, 1,
                    margin.value, experiment.node_counts());
  comparison.observed = low.value;
  comparison.expected = high.value;
  return comparison;
}

Comparison equal(Experiment& experiment, std::string what, const Jackknifed& a, const Jackknifed& b,
                 const Margin& margin, double theory_error) {
  const Jackknifed off = difference_above_rounding(a, b);
  Comparison comparison = equal_to(
      std::move(what), margin.relative ? off / magnitude(b) : off, 0, 1, margin.value,
      experiment.node_counts(), margin.relative ? theory_error / std::abs(b.value) : theory_error);
  comparison.observed = a.value;
  comparison.expected = b.value;
  return comparison;
}

FigureComparison less_than(Experiment& experiment, const FigureAt& low, const FigureAt& high,
                           const Margin& margin) {
  return with_counterexample(experiment,
                             at_most(experiment, low.text + " less than " + high.text,
                                     observed(experiment, low), observed(experiment, high), margin),
                             low, high);
}

FigureComparison equal_to(Experiment& experiment, const FigureAt& a, const FigureAt& b,
                          const Margin& margin) {
  return with_counterexample(experiment,
                             equal(experiment, a.text + " equal to " + b.text,
                                   observed(experiment, a), observed(experiment, b), margin),
                             a, b);
}

}  // namespace headlab
