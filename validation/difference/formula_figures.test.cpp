// SPDX-License-Identifier: Apache-2.0
/// \file Figures that are formulas of others are what a measure of the same formula is, wherever
/// they are computed.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "engine/moments/measures.h"
#include "engine/run/run.h"
#include "engine/scenario/testing/three_heads.h"
#include "engine/testing/refusal.h"
#include "engine/testing/stored_condition.h"
#include "validation/difference/pairing.h"
#include "validation/theory/side_by_side.h"
#include "validation/theory/theory.h"

namespace headlab {
namespace {

constexpr double eps = std::numeric_limits<double>::epsilon();

/// A figure whose doc is a formula of others.
struct FormulaFigure {
  std::string name;
  std::string stored;  ///< its name where results are compared
  std::string formula;

  FigureName figure() const { return {.name = name}; }
  FigureName measure() const { return {.name = "of_" + name}; }
};

/// Keeps names and docs of the numbers that stand by themselves.
struct NamesAndDocs {
  std::vector<std::pair<std::string, std::string>> all = {};
  template <class T>
  void operator()(const char* name, const T&, const char* doc, const FieldText& = {}) {
    if constexpr (std::is_same_v<T, Estimate>) all.emplace_back(name, doc);
  }
};

std::vector<FormulaFigure> formula_figures() {
  std::vector<FormulaFigure> all;
  const auto add = [&](const FormulaFigure& one) {
    const std::string text = "[measures]\nm = \"" + one.formula + "\"\n";
    const auto read = [&] { read_measures(parse_toml(text, "m.toml")); };
    if (refusal_line(read) == "accepted") all.push_back(one);
  };
  NamesAndDocs averages, indices;
  const ErrorTerms<Estimate> terms;
  terms.fields(averages);
  terms.index_fields(indices);
  for (const auto& [name, doc] : averages.all) add({name, name, doc});
  for (const auto& [name, doc] : indices.all) add({"index_" + name, "indices." + name, doc});
  return all;
}

Scenario scenario_with_measures(std::vector<std::string> sets = {}) {
  for (const FormulaFigure& one : formula_figures()) {
    sets.push_back("measures." + one.measure().name + "=\"" + one.formula + "\"");
  }
  return parse_scenario(three_heads(64), "formulas.toml", sets);
}

ConditionResult with_measures(const std::vector<std::string>& sets = {}) {
  return run(scenario_with_measures(sets), {.backend = "reference", .threads = 2}).conditions.at(0);
}

template <class Number>
const Number& number_of(const ErrorTerms<Number>& terms, const FigureName& name) {
  static const Number none;
  const Number* found = find_figure<Number>(terms, name);
  EXPECT_NE(found, nullptr) << name.text();
  return found != nullptr ? *found : none;
}

/// How far apart standard errors may be that are the same but for rounding: those of g values left
/// out, each less the whole, which are off by two roundings of numbers of this size.
double rounding_of_error(double value, std::size_t nodes) {
  return std::sqrt(static_cast<double>(nodes)) * 4 * eps * (1 + std::abs(value));
}

TEST(FormulaFigures, AreAllRatios) {
  const std::vector<FormulaFigure> formulas = formula_figures();
  const auto formula_of = [&](const std::string& name) {
    const auto found = std::ranges::find(formulas, name, &FormulaFigure::name);
    return found == formulas.end() ? "none" : found->formula;
  };
  ErrorTerms<Estimate> terms;
  const auto name_of_place = [&](Ratio<Estimate>::Place place) -> std::string {
    for (const FigureKind& kind : figure_kinds()) {
      if (kind.axes.empty() && find_figure<Estimate>(terms, {.name = kind.name}) == &(terms.*place))
        return kind.name;
    }
    return "nothing";
  };
  std::size_t found = 0;
  for (const Ratio<Estimate>& ratio : ratios<Estimate>) {
    const std::string name = name_of_place(ratio.figure);
    EXPECT_EQ(formula_of(name), name_of_place(ratio.top) + " / " + name_of_place(ratio.bottom));
    ++found;
    if (ratio.one_minus == nullptr) continue;
    EXPECT_EQ(formula_of(name_of_place(ratio.one_minus)), "1 - " + name);
    ++found;
  }
  EXPECT_EQ(found, formulas.size());
  EXPECT_GE(found, 2u);
}

TEST(FormulaFigures, AreSimulatedAsTheirMeasures) {
  const ConditionResult one = with_measures();
  for (const FormulaFigure& formula : formula_figures()) {
    const Estimate& figure = number_of<Estimate>(one.estimates, formula.figure());
    const Estimate& measure = number_of<Estimate>(one.estimates, formula.measure());
    EXPECT_LE(std::abs(figure.value - measure.value), 2 * eps * (1 + std::abs(figure.value)))
        << formula.name;
    EXPECT_LE(std::abs(figure.mcse - measure.mcse),
              rounding_of_error(figure.value, one.estimates.node_counts.size()))
        << formula.name;
    EXPECT_GT(figure.mcse, 0) << formula.name;
    // Both know when they divide by what may be 0.
    ConditionEstimates noisy = one.estimates;
    const Estimate& place = number_of<Estimate>(noisy, formula.figure());
    EXPECT_FALSE(divides_by_noise(noisy, place)) << formula.name;
    const Ratio<Estimate>* ratio = ratio_of(noisy, &place);
    ASSERT_NE(ratio, nullptr) << formula.name;
    (noisy.*ratio->bottom).mcse = 0.2 * std::abs((noisy.*ratio->bottom).value);
    EXPECT_TRUE(divides_by_noise(noisy, place)) << formula.name;
  }
}

TEST(FormulaFigures, DifferAsTheirMeasures) {
  const ConditionResult a = with_measures(), b = with_measures({"heads.kernel.bandwidth=0.7"});
  const auto errors = paired_errors(stored_condition(a), stored_condition(b));
  ASSERT_TRUE(errors);
  for (const FormulaFigure& formula : formula_figures()) {
    ASSERT_TRUE(errors->contains(formula.stored) && errors->contains(formula.measure().name))
        << formula.name;
    const double figure = errors->at(formula.stored);
    const double size = number_of<Estimate>(a.estimates, formula.figure()).value;
    EXPECT_LE(std::abs(figure - errors->at(formula.measure().name)),
              2 * rounding_of_error(size, a.estimates.node_counts.size()))
        << formula.name;
    EXPECT_GT(figure, 0) << formula.name;
  }
}

TEST(FormulaFigures, HaveTheRemaindersOfTheirMeasures) {
  const Condition condition = scenario_with_measures().conditions.at(0);
  const Theory theory = compute_theory(condition, TheorySource::first_order, 1);
  ErrorTerms<Remainder> computed = theory.figures;
  ConditionEstimates estimates = with_measures().estimates;
  // So few replicates may not carry a figure, which then is not compared at all.
  for (Estimate* number : all_numbers<Estimate>(estimates)) number->allowance = 0;
  const SideBySide compared = side_by_side(estimates, computed, theory.plan->truth);
  std::size_t rows = 0;
  for (const FormulaFigure& formula : formula_figures()) {
    const Remainder& figure = number_of<Remainder>(computed, formula.figure());
    const Remainder& measure = number_of<Remainder>(computed, formula.measure());
    const double rounding = 8 * eps * (1 + std::abs(figure.value));
    EXPECT_LE(std::abs(figure.value - measure.value), rounding) << formula.name;
    // A ratio (t + |q| b) / (V - b) has both parts off at once, its measure one after the other.
    const Ratio<Remainder>* ratio = ratio_of(computed, &figure);
    ASSERT_NE(ratio, nullptr) << formula.name;
    const Remainder& bottom = computed.*ratio->bottom;
    EXPECT_GE(figure.remainder, measure.remainder - rounding) << formula.name;
    EXPECT_LE(figure.remainder,
              measure.remainder / (1 - bottom.remainder / bottom.value) + rounding)
        << formula.name;
    EXPECT_GT(figure.remainder, 100 * rounding) << formula.name;

    const auto row = std::ranges::find(compared.figures, formula.name, &ComparedFigure::name);
    if (row == compared.figures.end()) continue;  // the index is in files only
    ++rows;
    const double mcse = number_of<Estimate>(estimates, formula.measure()).mcse;
    EXPECT_GE(row->z_scale, (1 - 1e-9) * std::hypot(mcse, measure.remainder)) << formula.name;
    // What is unknown is not taken for 0.
    ErrorTerms<Remainder> unknown = computed;
    unknown.*ratio->figure = {figure.value};
    const SideBySide without = side_by_side(estimates, unknown, theory.plan->truth);
    const std::ptrdiff_t at = row - compared.figures.begin();
    EXPECT_TRUE(std::isnan(without.figures.at(static_cast<std::size_t>(at)).z)) << formula.name;
  }
  EXPECT_GE(rows, std::size(ratios<Estimate>));
}

/// Terms that are not constant have the numbers of those that are.
TEST(FormulaFigures, AreListedOfAnyTerms) {
  ErrorTerms<double> terms;
  terms.queries.push_back({});
  const ErrorTerms<double>& constant = terms;
  std::size_t of_any = 0, of_constant = 0;
  for_each_number<const double>(terms, [&](const std::string&, int, double) { ++of_any; });
  for_each_number<const double>(constant, [&](const std::string&, int, double) { ++of_constant; });
  EXPECT_EQ(of_any, of_constant);
  EXPECT_EQ(all_numbers<const double>(terms).size(), all_numbers<double>(terms).size());
  EXPECT_GT(of_any, 10u);
}

}  // namespace
}  // namespace headlab
