// SPDX-License-Identifier: Apache-2.0
/// \file Comparisons of the figures of an experiment with one another and with numbers.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "engine/files/document.h"
#include "engine/moments/figure_name.h"
#include "validation/claims/claim.h"
#include "validation/claims/experiment.h"
#include "validation/statistics/comparison.h"

namespace headlab {

struct Plan;

/// A figure of one condition, as a claim names it.
struct FigureAt {
  FigureName figure;
  std::size_t condition = 0;
  Location location;
  std::string key;          ///< "claim.compare[0].less"
  std::string text;         ///< "mse at heads.count = 4"
  bool noise_unit = false;  ///< the figure is a variance, in units of s2/n
};

/// A figure of a condition of an experiment.
struct ConditionFigure {
  FigureName figure;
  std::size_t condition = 0;
};

/// Makes the counterexample that `first`, the lesser by the claim, is larger than `second`: the
/// experiment's own scenario at its seed and replicates. Both figures must be defined.
Counterexample counterexample_of(Experiment& experiment, const ConditionFigure& first,
                                 const ConditionFigure& second);

/// The same for the MSE of condition `first`, better by the claim, and that of `second`.
Counterexample counterexample_of(Experiment& experiment, std::size_t first, std::size_t second);

/// How far from the letter a claim may be.
struct Margin {
  double value = 0;
  bool relative = false;
};

/// A comparison, and the counterexample where it fails between two conditions.
struct FigureComparison {
  Comparison comparison;
  std::optional<Counterexample> counterexample = {};
};

/// What the figure is divided by: 1, or s2/n of its condition. Throws InvalidInput where that is 0.
double unit_of(const Experiment& experiment, const FigureAt& side);

/// The figure as simulated so far, in its unit; throws InvalidInput where the condition has none.
Jackknifed observed(Experiment& experiment, const FigureAt& side);

/// "low is at most high", up to the margin, which is relative to `high`.
Comparison at_most(Experiment& experiment, std::string what, const Jackknifed& low,
                   const Jackknifed& high, const Margin& margin);

/// "a equals b", up to the margin, which is relative to `b`.
/// \param theory_error  largest error of `b` where it is a closed form
Comparison equal(Experiment& experiment, std::string what, const Jackknifed& a, const Jackknifed& b,
                 const Margin& margin, double theory_error = 0);

/// How a figure stands to a number.
enum class Relation { equals, at_most, at_least };

/// A figure, or the ratio of two, against a number. Ratios and C/V are judged as linear figures of
/// numerator and denominator. A relative margin is relative to the number.
/// \param terms one figure, or numerator and denominator
Comparison against_number(Experiment& experiment, std::string what,
                          const std::vector<FigureAt>& terms, Relation relation, double number,
                          const Margin& margin, double theory_error = 0);

/// The slope of log figure on log x against a number. \param points  the figure at each x
Comparison slope_against_number(Experiment& experiment, const std::string& what,
                                const std::vector<FigureAt>& points, const std::vector<double>& x,
                                Relation relation, double number, const Margin& margin);

/// "low less than high", with its counterexample where it fails.
FigureComparison less_than(Experiment& experiment, const FigureAt& low, const FigureAt& high,
                           const Margin& margin);

/// "a equal to b", with its counterexample where it fails.
FigureComparison equal_to(Experiment& experiment, const FigureAt& a, const FigureAt& b,
                          const Margin& margin);

/// True where a figure of one plan and one of another are the same in every replicate, but for
/// rounding: of the same training sets, kernel and queries, and of heads that weigh alike, or of
/// ensembles that give such heads the same weight. Weights of a head depend on W_K W_K' and W_Q
/// W_K' alone, so that frames of one subspace are one head.
bool is_same_figure(const Plan& a, const FigureName& of_a, const Plan& b, const FigureName& of_b);

}  // namespace headlab
