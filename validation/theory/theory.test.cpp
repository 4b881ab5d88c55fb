// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/theory.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/files/error.h"
#include "engine/run/run.h"
#include "validation/theory/finite_n.h"

namespace headlab {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

const std::string text = R"([scenario]
name = "theory"
[data]
n = 4000
design = { law = "normal", dim = 3 }
regression = { law = "cosines", amplitude = [1.0], frequency = [[1.0, -0.5, 0.3]], phase = [0.3] }
noise = { law = "normal", sd = 0.5 }
[heads]
count = 3
dim = 1
subspaces = { law = "haar" }
kernel = { law = "gaussian", bandwidth = 0.6 }
weights = { law = "explicit", values = [0.6, 0.1, 0.2] }
[queries]
law = "points"
points = [[0, 0, 0], [0.5, -0.2, 0.4]]
[run]
seed = 7
replicates = 20
)";

Condition condition_of(const std::vector<std::string>& sets = {}) {
  return parse_scenario(text, "theory.toml", sets).conditions.at(0);
}

Theory first_order_of(const std::vector<std::string>& sets = {}) {
  return compute_theory(condition_of(sets), TheorySource::first_order, 1);
}

std::string refusal(const std::vector<std::string>& sets, TheorySource source) {
  try {
    compute_theory(condition_of(sets), source, 1);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(Theory, IsTheSimulationOfAFixedDesign) {
  const std::vector<std::string> sets = {"data.fixed_design=true", "data.n=40",
                                         "data.design.law=\"sphere\""};
  const Theory theory = compute_theory(condition_of(sets), TheorySource::automatic, 1);
  EXPECT_EQ(theory.source, "exact");
  EXPECT_EQ(theory.form, "exact for the fixed design");
  const ErrorTerms<Remainder>& computed = theory.figures;
  const Scenario scenario = parse_scenario(text, "theory.toml", sets);
  const ConditionEstimates simulated =
      run(scenario, {.backend = "reference"}).conditions.at(0).estimates;
  const auto closed = numbers_of<Remainder>(computed);
  const auto estimates = numbers_of<Estimate>(simulated);
  for (std::size_t i = 0; i < closed.size(); ++i) {
    if (std::string(closed[i].name) == "bias_squared_plugin") continue;
    EXPECT_NEAR(closed[i].number->value, estimates[i].number->value, 1e-14) << closed[i].name;
    EXPECT_EQ(closed[i].number->remainder, 0) << closed[i].name;
  }
  EXPECT_NEAR(computed.output_index.value, simulated.output_index.value, 1e-14);
  EXPECT_NEAR(computed.weights_index.value, simulated.weights_index.value, 1e-14);
  EXPECT_EQ(20 * theory.windows->narrow, simulated.windows.narrow);
  // Negative control: another design.
  const Theory other = compute_theory(
      condition_of({sets[0], sets[1], sets[2], "data.design_seed=1"}), TheorySource::exact, 1);
  EXPECT_GT(std::abs(other.figures.mse.value - computed.mse.value), 1e-6);
}

TEST(Theory, IsExactAtFiniteNWhereThatFormApplies) {
  const std::vector<std::string> sets = {"data.n=12", "heads.count=2",
                                         "heads.weights={law=\"uniform\"}"};
  const Theory theory = compute_theory(condition_of(sets), TheorySource::automatic, 1);
  EXPECT_EQ(theory.source, "exact");
  EXPECT_EQ(theory.form, "exact at finite n");
  EXPECT_LE(theory.normalisation_error, 1e-9);
  const FiniteN exact = finite_n(theory_model(condition_of(sets))).at(1);
  EXPECT_EQ(theory.heads[1].covariance, exact.covariance);
  EXPECT_EQ(theory.figures.queries[1].head_covariance[1].remainder, exact.change(0, 1));
  // Negative control: first order is another number at this n.
  const Theory first = compute_theory(condition_of(sets), TheorySource::first_order, 1);
  EXPECT_GT(std::abs(first.heads[1].covariance(0, 1) - exact.covariance(0, 1)), 1e-5);
}

TEST(Theory, DecomposesTheErrorByHand) {
  const Theory theory = first_order_of();
  EXPECT_EQ(theory.form, "first order in 1/n");
  const ErrorTerms<Remainder>& e = theory.figures;
  const VectorXd a = (VectorXd(3) << 0.6, 0.1, 0.2).finished();
  double mse = 0, bias = 0, own = 0, all = 0;
  for (std::size_t q = 0; q < 2; ++q) {
    const HeadTheory& at = theory.heads[q];
    const double b = a.dot(at.bias) + (a.sum() - 1) * theory.plan.truth[q];
    const double variance = a.dot(at.covariance * a);
    bias += b * b / 2;
    all += variance / 2;
    own += at.covariance.diagonal().dot(a.cwiseAbs2()) / 2;
    mse += (b * b + variance) / 2;
    EXPECT_NEAR(e.queries[q].mse.value, b * b + variance, 1e-15);
  }
  EXPECT_NEAR(e.mse.value, mse, 1e-15);
  EXPECT_NEAR(e.bias_squared.value, bias, 1e-15);
  EXPECT_NEAR(e.variance_term.value, own, 1e-16);
  EXPECT_NEAR(e.covariance_term.value, all - own, 1e-16);
  // Negative control: the term (A - 1) m is no rounding.
  EXPECT_GT(
      std::abs(first_order_of({"heads.weights.values=[0.6, 0.1, 0.3]"}).figures.bias_squared.value -
               bias),
      1e-3);
  EXPECT_TRUE(std::isnan(e.mse.remainder));  // of a bias nothing is known
  EXPECT_TRUE(std::isnan(e.weights_index.value));
}

TEST(Theory, CarriesRemaindersThroughEveryFigure) {
  Theory theory = first_order_of();
  for (HeadTheory& at : theory.heads) at.bias_remainder.setConstant(1e-3);
  set_head_weights(theory, theory.plan.head_weights);
  const ErrorTerms<Remainder> before = theory.figures;
  const double step = 1e-6;
  for (HeadTheory& at : theory.heads) {
    at.bias += step * at.bias_remainder;
    at.covariance += step * at.covariance_remainder;
  }
  set_head_weights(theory, theory.plan.head_weights);
  const ErrorTerms<Remainder> after = theory.figures;
  const auto left = numbers_of<Remainder>(before);
  const auto right = numbers_of<Remainder>(after);
  for (std::size_t i = 0; i < left.size(); ++i) {
    const double slope = (right[i].number->value - left[i].number->value) / step;
    const double remainder = left[i].number->remainder;
    EXPECT_NE(remainder, 0) << left[i].name;
    EXPECT_NEAR(slope, remainder, 1e-4 * std::abs(remainder) + 1e-9) << left[i].name;
  }
  EXPECT_EQ(before.queries[1].head_covariance[5].remainder,
            theory.heads[1].covariance_remainder(1, 2));
}

TEST(Theory, FindsTheWeightsThatAPilotLooksFor) {
  const Theory theory = first_order_of({"heads.weights={law=\"optimal\"}"});
  const double least = theory.figures.mse.value;
  const std::vector<double>& best = theory.plan.head_weights;
  EXPECT_NEAR(best[0] + best[1] + best[2], 1, 1e-14);
  for (std::size_t h = 0; h < 3; ++h) {
    Theory moved = theory;
    std::vector<double> a = best;
    a[h] += 1e-3;
    a[(h + 1) % 3] -= 1e-3;
    set_head_weights(moved, a);
    EXPECT_LT(least, moved.figures.mse.value) << h;
  }
  EXPECT_EQ(first_order_of({"heads.weights={law=\"optimal\"}", "heads.count=1"}).plan.head_weights,
            (std::vector<double>{1.0}));
}

TEST(Theory, HasNoCovarianceOfASingleHead) {
  const ErrorTerms<Remainder> e =
      first_order_of({"heads.count=1", "heads.weights={law=\"uniform\"}"}).figures;
  EXPECT_EQ(e.covariance_term.value, 0);
  EXPECT_EQ(e.covariance_term.remainder, 0);
  EXPECT_TRUE(std::isnan(e.head_covariance_mean.value));
  EXPECT_TRUE(std::isnan(e.output_correlation.value));
  EXPECT_GT(e.mse.value, 0);
}

TEST(Theory, RefusesWhatItsRemainderMakesWorthless) {
  EXPECT_EQ(refusal({}, TheorySource::first_order), "");
  const std::string narrow =
      refusal({"data.n=30", "heads.kernel.bandwidth=0.1"}, TheorySource::first_order);
  EXPECT_TRUE(
      narrow.starts_with("first order in 1/n: the second-order term of the variance of head "))
      << narrow;
  EXPECT_NE(narrow.find(" % of it (allowed: 10 %) - "), std::string::npos) << narrow;
  // Also without noise, where it is a warning of the same size.
  EXPECT_NE(refusal({"data.n=30", "heads.kernel.bandwidth=0.1", "data.noise.sd=0"},
                    TheorySource::first_order),
            "");
  EXPECT_EQ(
      refusal({"data.noise.sd=0", "data.regression={law=\"zero\"}"}, TheorySource::first_order),
      "");
  // And where numbers leave their range.
  EXPECT_NE(refusal({"queries.points=[[900, 0, 0]]"}, TheorySource::first_order), "");
}

TEST(Theory, TakesFirstOrderWhereTheQuadratureOfTheExactFormIsRefused) {
  std::vector<std::string> sets = {"data.n=100000000000", "heads.count=1",
                                   "heads.weights={law=\"uniform\"}", "queries.points=[[0, 0, 0]]"};
  ASSERT_TRUE(refusal(sets, TheorySource::exact).starts_with("exact at finite n: "));
  const Theory theory = compute_theory(condition_of(sets), TheorySource::automatic, 1);
  EXPECT_EQ(theory.source, "first_order");
  EXPECT_EQ(theory.heads.size(), 1U);
  EXPECT_TRUE(std::isnan(theory.normalisation_error));
  // Where that is refused too, the exact form says why.
  sets.back() = "queries.points=[[0, 0, 0], [30, 0, 0]]";
  ASSERT_TRUE(refusal(sets, TheorySource::first_order).starts_with("first order in 1/n: "));
  EXPECT_EQ(refusal(sets, TheorySource::automatic), refusal(sets, TheorySource::exact));
}

TEST(Theory, TheMseOfATruthWithoutBiasHasTheRemainderOfItsVariance) {
  const ErrorTerms<Remainder> e = first_order_of({"data.regression={law=\"zero\"}"}).figures;
  EXPECT_TRUE(e.mse.remainder > 0);
  EXPECT_NEAR(e.mse.remainder, e.variance_term.remainder + e.covariance_term.remainder,
              1e-12 * e.mse.value);
  EXPECT_TRUE(std::isnan(first_order_of().figures.mse.remainder));
}

TEST(Theory, NamesTheAssumptionThatFails) {
  EXPECT_NE(refusal({"data.design.law=\"sphere\""}, TheorySource::automatic)
                .find("closed forms need a normal or mixture design; law \"sphere\" is neither"),
            std::string::npos);
  EXPECT_EQ(refusal({"data.fixed_design=true"}, TheorySource::first_order),
            "--set data.fixed_design=true: data.fixed_design: first order is over training sets "
            "that each draw their own design - use --source exact");
  EXPECT_EQ(refusal({"data.fixed_design=true", "data.design.law=\"sphere\""}, TheorySource::exact),
            "");
}

/// A design at 2^20 standard deviations from 0, which float32 could not draw, has the figures of
/// the same design at 0.
TEST(Theory, IsTheSameFarFromZero) {
  const auto figures_at = [](double mean, double query, TheorySource source) {
    const auto point = [](double first) { return "[" + std::to_string(first) + ", 0, 0]"; };
    const std::vector<std::string> sets = {
        "data.design={ law = \"normal\", dim = 3, mean = " + point(mean) + " }",
        "data.regression={ law = \"bumps\", heights = [1.0], centres = [" + point(mean + 0.5) +
            "], widths = [1.5] }",
        "queries.points=[" + point(query) + "]"};
    const Condition condition =
        parse_scenario(text, "theory.toml", sets, ".", {.simulates = false}).conditions.at(0);
    return compute_theory(condition, source, 1).figures;
  };
  constexpr double far = 1 << 19;
  for (const TheorySource source : {TheorySource::first_order, TheorySource::exact}) {
    const ErrorTerms<Remainder> near = figures_at(0, 0.25, source);
    const ErrorTerms<Remainder> shifted = figures_at(far, far + 0.25, source);
    const auto expected = numbers_of<Remainder>(near), actual = numbers_of<Remainder>(shifted);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_LE(std::abs(actual[i].number->value - expected[i].number->value),
                1e-6 * std::abs(expected[i].number->value))
          << expected[i].name;
    }
    const ErrorTerms<Remainder> elsewhere = figures_at(far, far, source);
    EXPECT_GT(std::abs(elsewhere.mse.value - near.mse.value), 1e-4 * near.mse.value);
  }
}

}  // namespace
}  // namespace headlab
