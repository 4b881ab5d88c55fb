// SPDX-License-Identifier: Apache-2.0
#include "validation/claims/figure_comparison.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "engine/moments/measures.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/scenario.h"
#include "kernels/counted.h"
#include "kernels/laws.h"
#include "kernels/plan.h"
#include "validation/curves/curves.h"

namespace headlab {
namespace {

/// Ends the words of a comparison whose effect is in units of the second of its figures.
constexpr const char* relative_to_latter = ", relative to the latter";

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
             " (" + counted(static_cast<std::uint64_t>(condition.heads), "head") + ", " +
             counted(static_cast<std::uint64_t>(experiment.plan(side.condition).queries), "query",
                     "queries") +
             ", " + (condition.moments == MomentMode::pairwise ? "pairwise" : "aggregate") +
             " moments)");
}

const Jackknifed& known(Experiment& experiment, const ConditionFigure& at) {
  const Jackknifed* figure = experiment.figure(at.condition, at.figure);
  if (figure == nullptr) throw std::logic_error("counterexample of " + at.figure.text());
  return *figure;
}

/// A figure as a quotient, where it is one.
struct Quotient {
  Jackknifed top;
  Jackknifed bottom;
};

/// Ratios are, and what is 1 less them; of heads that are all the same C/V is 1 without error, and
/// no quotient of numbers.
std::optional<Quotient> quotient_of(Experiment& experiment, const FigureAt& side) {
  if (side.figure.layer) return std::nullopt;
  const JackknifedEstimates& seen = experiment.observed(side.condition);
  const Jackknifed* figure = find_figure<Jackknifed>(seen, side.figure);
  const Ratio<Jackknifed>* ratio = ratio_of(seen, figure);
  if (ratio == nullptr || (seen.*ratio->figure).unseen == 0) return std::nullopt;
  const Jackknifed& top = seen.*ratio->top;
  const Jackknifed& bottom = seen.*ratio->bottom;
  return Quotient{figure == &(seen.*ratio->figure) ? top : bottom - top, bottom};
}

/// Whether the standard error of a figure is of squares, of responses or of estimates.
bool is_of_squares(const FigureName& figure) {
  return !figure.layer && !figure.name.ends_with("head_bias") && figure.name != "index_weights";
}

/// Drops the doubts of a comparison where two figures are equal by construction.
void take_as_same(Experiment& experiment, const FigureAt& a, const FigureAt& b, Comparison& c) {
  if (c.carriers > 0 || a.noise_unit != b.noise_unit ||
      !is_same_figure(experiment.simulated(a.condition), a.figure,
                      experiment.simulated(b.condition), b.figure)) {
    return;
  }
  c.unseen = 0;
  if (c.effect.mcse == 0) c.rounding = 0;
}

/// Whether a figure is a measure that divides by what may be 0.
bool divides_by_noise(Experiment& experiment, const FigureAt& side) {
  if (side.figure.layer) return false;
  const JackknifedEstimates& seen = experiment.observed(side.condition);
  return std::ranges::any_of(seen.measures, [&](const Measured<Jackknifed>& measure) {
    return name_of(*measure.of) == side.figure.name &&
           denominator_errors * measure.divisor_error > 1;
  });
}

/// Says of a comparison where its figures are from, and what they say against deciding it.
Comparison with_doubts(Experiment& experiment, Comparison comparison,
                       const std::vector<const FigureAt*>& sides) {
  for (const FigureAt* side : sides) comparison.conditions.push_back(side->condition);
  const bool long_tails = std::ranges::any_of(sides, [&](const FigureAt* side) {
    return is_of_squares(side->figure) &&
           experiment.plan(side->condition).bounds.squares_are_long_tailed();
  });
  if (long_tails) comparison = with_long_tails(std::move(comparison));
  for (const FigureAt* side : sides) {
    if (!comparison.open.empty()) break;
    if (is_of_squares(side->figure) &&
        experiment.plan(side->condition).bounds.squares_are_heavy()) {
      comparison.open = heavy_squares;
    }
    const std::optional<Quotient> quotient = quotient_of(experiment, *side);
    if ((quotient && !is_away_from_zero(quotient->bottom, experiment.node_counts())) ||
        divides_by_noise(experiment, *side)) {
      comparison.open = near_zero_denominator;
    }
  }
  return comparison;
}

/// A number that is no quotient against another.
Comparison of_number(const std::string& what, const Jackknifed& figure, Relation relation,
                     double number, const Margin& margin, std::span<const double> counts) {
  // An absolute margin is in units of 1, a relative one in those of the number.
  const double unit = margin.relative ? std::abs(number) : 1;
  if (relation == Relation::equals) {
    return equal_to(what, difference_above_rounding(figure, number), 0, unit, margin.value, counts);
  }
  const double sign = relation == Relation::at_least ? 1 : -1;
  return at_least_zero(what, Jackknifed(sign) * difference_above_rounding(figure, number), 1,
                       margin.value * unit, counts);
}

/// A comparison in shares of a figure; those of one that is exactly 0 decide nothing, which more
/// replicates do not change.
Comparison in_shares_of(const Jackknifed& figure, Comparison comparison,
                        std::span<const double> counts) {
  const Estimate estimate = figure.figure(counts);
  if (estimate.value == 0 && estimate.mcse == 0 && estimate.allowance == 0) {
    comparison.open = "the margin is relative to a figure that is exactly 0: give an absolute one";
  }
  return comparison;
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

Counterexample counterexample_of(Experiment& experiment, const ConditionFigure& first,
                                 const ConditionFigure& second) {
  const Jackknifed& a = known(experiment, first);
  const Jackknifed& b = known(experiment, second);
  const std::vector<double>& counts = experiment.node_counts();
  Counterexample counterexample{.scenario = experiment.scenario().text,
                                .seed = experiment.condition().seed,
                                .replicates = experiment.replicates(),
                                .figures = {first.figure.text(), second.figure.text()},
                                .conditions = {first.condition, second.condition},
                                .first = a.figure(counts),
                                .second = b.figure(counts),
                                .difference = (a - b).figure(counts)};
  counterexample.z = counterexample.difference.value / counterexample.difference.mcse;
  return counterexample;
}

Counterexample counterexample_of(Experiment& experiment, std::size_t first, std::size_t second) {
  return counterexample_of(experiment, ConditionFigure{FigureName{"mse"}, first},
                           ConditionFigure{FigureName{"mse"}, second});
}

double unit_of(const Experiment& experiment, const FigureAt& side) {
  if (!side.noise_unit) return 1;
  if (experiment.condition(side.condition).stack) {
    reject(side.location, side.key, "has the unit s2/n, and a study of depth has no noise");
  }
  const Condition& condition = experiment.condition(side.condition);
  if (!constant_noise_sd(*condition.noise)) {
    reject(
        side.location, side.key,
        "has the unit s2/n, and the noise has another variance at every point - leave `unit` out");
  }
  const double floor = noise_floor(condition);
  if (floor == 0) reject(side.location, side.key, "has the unit s2/n, which is 0 without noise");
  return floor;
}

Jackknifed observed(Experiment& experiment, const FigureAt& side) {
  const Jackknifed* figure = experiment.figure(side.condition, side.figure);
  if (figure == nullptr || !std::isfinite(figure->value)) reject_undefined(side, experiment);
  return side.noise_unit ? *figure / unit_of(experiment, side) : *figure;
}

Comparison at_most(Experiment& experiment, std::string what, const Jackknifed& low,
                   const Jackknifed& high, const Margin& margin) {
  const Jackknifed room = difference_above_rounding(high, low);
  const std::vector<double>& counts = experiment.node_counts();
  if (margin.relative) what += relative_to_latter;
  Comparison comparison = margin.relative
                              ? in_shares_of(high,
                                             ratio_at_least(std::move(what), room, magnitude(high),
                                                            0, margin.value, counts),
                                             counts)
                              : at_least_zero(std::move(what), room, 1, margin.value, counts);
  comparison.observed = low.value;
  comparison.expected = high.value;
  return comparison;
}

Comparison equal(Experiment& experiment, std::string what, const Jackknifed& a, const Jackknifed& b,
                 const Margin& margin, double theory_error) {
  const Jackknifed off = difference_above_rounding(a, b);
  const std::vector<double>& counts = experiment.node_counts();
  if (margin.relative) what += relative_to_latter;
  Comparison comparison =
      margin.relative
          ? in_shares_of(
                b, ratio_equal_to(std::move(what), off, magnitude(b), 0, margin.value, counts),
                counts)
          : equal_to(std::move(what), off, 0, 1, margin.value, counts);
  comparison.theory_error = margin.relative ? theory_error / std::abs(b.value) : theory_error;
  comparison.observed = a.value;
  comparison.expected = b.value;
  return comparison;
}

Comparison against_number(Experiment& experiment, std::string what,
                          const std::vector<FigureAt>& terms, Relation relation, double number,
                          const Margin& margin, double theory_error) {
  // An order with a number has an effect in its own unit, whatever its margin is in.
  if (margin.relative && relation == Relation::equals) what += relative_to_latter;
  const std::vector<double>& counts = experiment.node_counts();
  const Jackknifed figure = observed(experiment, terms[0]);
  std::optional<Quotient> quotient;
  if (terms.size() == 2) {
    quotient = Quotient{figure, observed(experiment, terms[1])};
  } else {
    quotient = quotient_of(experiment, terms[0]);
  }
  const double unit = margin.relative ? std::abs(number) : 1;
  Comparison comparison;
  if (!quotient) {
    comparison = of_number(what, figure, relation, number, margin, counts);
  } else if (relation == Relation::equals) {
    comparison = ratio_equal_to(what, quotient->top / unit, quotient->bottom, number / unit,
                                margin.value, counts);
  } else {
    const double sign = relation == Relation::at_least ? 1 : -1;
    comparison = ratio_at_least(what, Jackknifed(sign) * quotient->top, quotient->bottom,
                                sign * number, margin.value * unit, counts);
  }
  comparison.theory_error = theory_error / unit;
  if (terms.size() == 2) take_as_same(experiment, terms[0], terms[1], comparison);
  comparison.observed = quotient ? quotient->top.value / quotient->bottom.value : figure.value;
  comparison.expected = number;
  std::vector<const FigureAt*> sides;
  for (const FigureAt& term : terms) sides.push_back(&term);
  return with_doubts(experiment, std::move(comparison), sides);
}

Comparison slope_against_number(Experiment& experiment, const std::string& what,
                                const std::vector<FigureAt>& points, const std::vector<double>& x,
                                Relation relation, double number, const Margin& margin) {
  const std::vector<double>& counts = experiment.node_counts();
  Curve curve{.x = x};
  std::vector<const FigureAt*> sides;
  bool is_positive = true;
  for (const FigureAt& point : points) {
    sides.push_back(&point);
    curve.y.push_back(observed(experiment, point));
    if (!(curve.y.back().value > 0)) {
      reject(point.location, point.key,
             "has no slope: " + point.text + " is " + number_text(curve.y.back().value) +
                 ", and logarithms are of numbers above 0");
    }
    is_positive = is_positive && is_away_from_zero(curve.y.back(), counts);
  }
  const Jackknifed slope = slope_of(curve);
  Comparison comparison = of_number(what, slope, relation, number, margin, counts);
  comparison.observed = slope.value;
  comparison.expected = number;
  if (!is_positive) comparison.open = near_zero_denominator;
  return with_doubts(experiment, std::move(comparison), sides);
}

FigureComparison less_than(Experiment& experiment, const FigureAt& low, const FigureAt& high,
                           const Margin& margin) {
  Comparison comparison = at_most(experiment, low.text + " less than " + high.text,
                                  observed(experiment, low), observed(experiment, high), margin);
  take_as_same(experiment, low, high, comparison);
  return with_counterexample(
      experiment, with_doubts(experiment, std::move(comparison), {&low, &high}), low, high);
}

FigureComparison equal_to(Experiment& experiment, const FigureAt& a, const FigureAt& b,
                          const Margin& margin) {
  Comparison comparison = equal(experiment, a.text + " equal to " + b.text, observed(experiment, a),
                                observed(experiment, b), margin);
  take_as_same(experiment, a, b, comparison);
  return with_counterexample(experiment, with_doubts(experiment, std::move(comparison), {&a, &b}),
                             a, b);
}

namespace {

constexpr int largest_dimension = 64;  ///< of products that are compared
constexpr double rounding = 1e-12;

/// W V' of two projections [d][k].
std::vector<double> product(const double* w, const double* v, std::size_t d, std::size_t k) {
  std::vector<double> out(d * d, 0.0);
  for (std::size_t i = 0; i < d; ++i) {
    for (std::size_t j = 0; j < d; ++j) {
      for (std::size_t c = 0; c < k; ++c) out[i * d + j] += w[i * k + c] * v[j * k + c];
    }
  }
  return out;
}

bool is_same_head(const Plan& a, int h, const Plan& b, int l) {
  if (a.d != b.d || a.k != b.k || a.mechanism.seen_by(h, a.n) != b.mechanism.seen_by(l, b.n) ||
      a.mechanism.keep.of_head(h) != b.mechanism.keep.of_head(l)) {
    return false;
  }
  const auto d = static_cast<std::size_t>(a.d), k = static_cast<std::size_t>(a.k);
  const double* keys_a = &a.projections[static_cast<std::size_t>(h) * d * k];
  const double* keys_b = &b.projections[static_cast<std::size_t>(l) * d * k];
  const double* queries_a = a.query_projection(h);
  const double* queries_b = b.query_projection(l);
  if (std::equal(keys_a, keys_a + d * k, keys_b) &&
      std::equal(queries_a, queries_a + d * k, queries_b)) {
    return true;
  }
  if (a.d > largest_dimension) return false;
  const auto equal = [](const std::vector<double>& one, const std::vector<double>& other) {
    return std::ranges::equal(one, other, [](double x, double y) {
      return std::abs(x - y) <= rounding * std::max({1.0, std::abs(x), std::abs(y)});
    });
  };
  return equal(product(keys_a, keys_a, d, k), product(keys_b, keys_b, d, k)) &&
         equal(product(queries_a, keys_a, d, k), product(queries_b, keys_b, d, k));
}

/// The heads of a plan that differ, each by the first that is like it, and what the ensemble gives
/// to all of them.
struct DistinctHeads {
  std::vector<int> heads;
  std::vector<double> weights;

  explicit DistinctHeads(const Plan& plan) {
    for (int h = 0; h < plan.heads; ++h) {
      const double weight = plan.head_weights[static_cast<std::size_t>(h)];
      std::size_t i = 0;
      while (i < heads.size() && !is_same_head(plan, heads[i], plan, h)) ++i;
      if (i == heads.size()) {
        heads.push_back(h);
        weights.push_back(0);
      }
      weights[i] += weight;
    }
  }
};

bool is_same_ensemble(const Plan& a, const Plan& b) {
  const DistinctHeads of_a(a), of_b(b);
  if (of_a.heads.size() != of_b.heads.size()) return false;
  for (std::size_t i = 0; i < of_a.heads.size(); ++i) {
    std::size_t j = 0;
    while (j < of_b.heads.size() && !is_same_head(a, of_a.heads[i], b, of_b.heads[j])) ++j;
    if (j == of_b.heads.size() || std::abs(of_a.weights[i] - of_b.weights[j]) > rounding) {
      return false;
    }
  }
  return true;
}

/// Whether draws of heads or queries leave the heads of a plan what they are: frames of the whole
/// space.
bool draws_change_heads(const Plan& plan) {
  return plan.redraws && !(plan.k == plan.d && plan.query_projections.empty());
}

/// Whether what is not of single heads is the same.
bool is_same_world(const Plan& a, const Plan& b) {
  const Mechanism &left = a.mechanism, &right = b.mechanism;
  return !a.stack && !b.stack && !a.learning && !b.learning && !draws_change_heads(a) &&
         !draws_change_heads(b) && a.redraws == b.redraws && shares_draws(a, b) &&
         a.kernel->index() == b.kernel->index() &&
         length_scale(*a.kernel) == length_scale(*b.kernel) && a.query_points == b.query_points &&
         left.merge == right.merge && left.levels == right.levels && !left.keep.shared &&
         !right.keep.shared;
}

}  // namespace

bool is_same_figure(const Plan& a, const FigureName& of_a, const Plan& b, const FigureName& of_b) {
  if (of_a.name != of_b.name || of_a.layer != of_b.layer ||
      of_a.index.size() != of_b.index.size()) {
    return false;
  }
  const bool same_plan = &a == &b;
  if (same_plan && of_a == of_b) return true;
  if (a.stack || (same_plan ? a.learning || draws_change_heads(a) : !is_same_world(a, b)))
    return false;
  if (!of_a.index.empty() && of_a.index[0] != of_b.index[0]) return false;
  if (of_a.index.size() > 1) {
    const auto same = [&](std::size_t i, std::size_t j) {
      return is_same_head(a, static_cast<int>(of_a.index[i]), b, static_cast<int>(of_b.index[j]));
    };
    return of_a.index.size() == 2 ? same(1, 1)
                                  : (same(1, 1) && same(2, 2)) || (same(1, 2) && same(2, 1));
  }
  // Of a measure no more is known than that equal heads make it equal.
  const bool is_built_in = std::ranges::count(figure_kinds(), of_a.name, &FigureKind::name) > 0;
  const bool of_ensemble = is_built_in && (of_a.name.find("mse") != std::string::npos ||
                                           of_a.name.starts_with("bias_squared"));
  if (of_ensemble) return is_same_ensemble(a, b);
  const DistinctHeads one(a), other(b);
  return one.heads.size() == 1 && other.heads.size() == 1 && is_same_head(a, 0, b, 0);
}

}  // namespace headlab
