// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/theory.h"

#include <cmath>

#include <gtest/gtest.h>

#include "engine/run/run.h"
#include "engine/scenario/testing/three_heads.h"
#include "engine/testing/refusal.h"
#include "validation/theory/finite_n.h"
#include "validation/theory/first_order/first_order.h"

namespace headlab {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

const std::string text = three_heads(20);

Condition condition_of(const std::vector<std::string>& sets = {}) {
  return parse_scenario(text, "theory.toml", sets).conditions.at(0);
}

Theory first_order_of(const std::vector<std::string>& sets = {}) {
  return compute_theory(condition_of(sets), TheorySource::first_order, 1);
}

std::string refusal(const std::vector<std::string>& sets, TheorySource source) {
  return refusal_line([&] { compute_theory(condition_of(sets), source, 1); });
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
  EXPECT_EQ(theory.figures.queries[1].head_covariance[1].remainder, std::abs(exact.change(0, 1)));
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
    const double b = a.dot(at.bias) + (a.sum() - 1) * theory.plan->truth[q];
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
  EXPECT_TRUE(std::isnan(e.weights_index.value));
}

/// Largest change of each figure over all ways to move biases and covariances by `share` of their
/// remainders, up or down, as a share of the figure's own remainder; NaN is infinite.
double largest_move(const Theory& theory, double share) {
  const ErrorTerms<Remainder> before = theory.figures;
  const auto left = numbers_of<Remainder>(before);
  double largest = 0;
  for (unsigned signs = 0; signs < 1024; ++signs) {
    Theory moved = theory;
    for (HeadTheory& at : moved.heads) {
      unsigned bit = 0;
      const auto sign = [&] { return (signs >> bit++ & 1) == 0 ? share : -share; };
      for (Index h = 0; h < 3; ++h) {
        at.bias(h) += sign() * at.bias_remainder(h);
        for (Index l = 0; l <= h; ++l) {
          at.covariance(h, l) += sign() * at.covariance_remainder(h, l);
          at.covariance(l, h) = at.covariance(h, l);
        }
      }
    }
    set_head_weights(moved, theory.plan->head_weights);
    const auto right = numbers_of<Remainder>(moved.figures);
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (std::isnan(left[i].number->value)) continue;
      const double change = std::abs(right[i].number->value - left[i].number->value);
      const double relative = change / left[i].number->remainder;
      largest = relative <= largest ? largest : std::isnan(relative) ? INFINITY : relative;
    }
  }
  return largest;
}

TEST(Theory, CarriesRemaindersThroughEveryFigure) {
  Theory theory = first_order_of({"heads.weights.values=[0.6, -0.1, 0.2]"});
  // So large that its square counts.
  for (HeadTheory& at : theory.heads) at.bias_remainder.setConstant(0.5);
  set_head_weights(theory, theory.plan->head_weights);
  EXPECT_EQ(theory.figures.queries[1].head_covariance[5].remainder,
            theory.heads[1].covariance_remainder(1, 2));
  EXPECT_GT(theory.figures.bias_squared.remainder, 0);
  EXPECT_LE(largest_move(theory, 1), 1 + 1e-6);
  EXPECT_GT(largest_move(theory, 1), 0.9);
  // Negative control: a little more than the remainders of the heads.
  EXPECT_GT(largest_move(theory, 1.2), 1 + 1e-6);
}

TEST(Theory, FindsTheWeightsThatAPilotLooksFor) {
  const Theory theory = first_order_of({"heads.weights={law=\"optimal\"}"});
  const double least = theory.figures.mse.value;
  const std::vector<double>& best = theory.plan->head_weights;
  EXPECT_NEAR(best[0] + best[1] + best[2], 1, 1e-14);
  for (std::size_t h = 0; h < 3; ++h) {
    Theory moved = theory;
    std::vector<double> a = best;
    a[h] += 1e-3;
    a[(h + 1) % 3] -= 1e-3;
    set_head_weights(moved, a);
    EXPECT_LT(least, moved.figures.mse.value) << h;
  }
  EXPECT_EQ(first_order_of({"heads.weights={law=\"optimal\"}", "heads.count=1"}).plan->head_weights,
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
  EXPECT_EQ(refusal({}, TheorySource::first_order), "accepted");
  const std::string narrow =
      refusal({"data.n=30", "heads.kernel.bandwidth=0.1"}, TheorySource::first_order);
  EXPECT_TRUE(narrow.starts_with("first order in 1/n: the remainder of the variance of head "))
      << narrow;
  EXPECT_NE(narrow.find(" % of it (allowed: 10 %) - "), std::string::npos) << narrow;
  // Also without noise, where it is a warning of the same size.
  EXPECT_NE(refusal({"data.n=30", "heads.kernel.bandwidth=0.1", "data.noise.sd=0"},
                    TheorySource::first_order),
            "accepted");
  EXPECT_EQ(
      refusal({"data.noise.sd=0", "data.regression={law=\"zero\"}"}, TheorySource::first_order),
      "accepted");
  // And where numbers leave their range.
  EXPECT_NE(refusal({"queries.points=[[900, 0, 0]]"}, TheorySource::first_order), "accepted");
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
  // Negative control: with a signal the bias adds to it.
  const ErrorTerms<Remainder> biased = first_order_of().figures;
  EXPECT_GT(biased.mse.remainder,
            biased.variance_term.remainder + biased.covariance_term.remainder);
}

/// A query where the second order of noise passes through zero, though first order is far off.
const std::vector<std::string> few_points = {
    "data.regression={ law = \"linear\", coefficients = [1, 0, 0] }",
    "data.noise.sd=0.1",
    "heads.count=1",
    "heads.dim=3",
    "heads.weights={ law = \"uniform\" }",
    "queries.points=[[0.5, 0, 0]]"};

std::vector<std::string> few_points_and(const std::string& set) {
  std::vector<std::string> sets = few_points;
  sets.push_back(set);
  return sets;
}

/// Largest distance of the simulated variance, bias and MSE beyond `allowance` remainders, in
/// standard errors; NaN is infinite.
double largest_beyond(const Theory& theory, const std::vector<std::string>& sets,
                      double allowance) {
  std::vector<std::string> many = sets;
  many.push_back("run.replicates=400000");
  const ConditionEstimates simulated =
      run(parse_scenario(text, "theory.toml", many), {.threads = 1}).conditions.at(0).estimates;
  double largest = 0;
  const auto look = [&](const Estimate& figure, const Remainder& closed) {
    const double z =
        (std::abs(figure.value - closed.value) - allowance * closed.remainder) / figure.mcse;
    largest = z <= largest ? largest : std::isnan(z) ? INFINITY : z;
  };
  for (std::size_t q = 0; q < simulated.queries.size(); ++q) {
    look(simulated.queries[q].mse, theory.figures.queries[q].mse);
    look(simulated.queries[q].head_bias[0], theory.figures.queries[q].head_bias[0]);
    look(simulated.queries[q].head_covariance[0], theory.figures.queries[q].head_covariance[0]);
  }
  return largest;
}

TEST(Theory, RefusesFewPointsThoughTheNoiseAloneSaysNothing) {
  for (const char* n : {"2", "5", "20"}) {
    for (const TheorySource source : {TheorySource::first_order, TheorySource::automatic}) {
      const std::string why = refusal(few_points_and(std::string("data.n=") + n), source);
      EXPECT_NE(why.find("the remainder of "), std::string::npos) << n << why;
      EXPECT_NE(why.find("simulate with headlab run"), std::string::npos) << n << why;
    }
  }
  const FirstOrder at = first_order(theory_model(condition_of(few_points_and("data.n=20")))).at(0);
  EXPECT_GT(at.covariance_remainder(0, 0), 0.1 * at.covariance(0, 0));
  // The control: noise alone has next to no second order here.
  const FirstOrder noise =
      first_order(theory_model(condition_of({few_points[1], few_points[2], few_points[3],
                                             few_points[4], few_points[5], "data.n=20",
                                             "data.regression={ law = \"zero\" }"})))
          .at(0);
  EXPECT_LT(std::abs(noise.next_covariance(0, 0)), 0.01 * noise.covariance(0, 0));
}

TEST(Theory, IsWithinItsRemaindersWhereItIsNotRefused) {
  const std::vector<std::string> sets = few_points_and("data.n=50");
  const Theory theory = compute_theory(condition_of(sets), TheorySource::automatic, 1);
  EXPECT_EQ(theory.source, "first_order");
  EXPECT_GT(theory.figures.mse.remainder, 0);
  EXPECT_GT(theory.figures.queries[0].head_bias[0].remainder, 0);
  EXPECT_LT(largest_beyond(theory, sets, 1), 4);
  EXPECT_GT(largest_beyond(theory, sets, 0), 8);  // the control
}

/// Weights that nearly cancel leave the variance of one head, and the remainders of many.
TEST(Theory, RefusesAnErrorThatIsLeftOfLargerOnes) {
  std::vector<std::string> sets = few_points_and("data.n=400");
  sets[2] = "heads.count=2";
  sets[4] = "heads.weights={ law = \"explicit\", values = [20, -19] }";
  sets.push_back("heads.subspaces={ law = \"aligned\" }");
  const std::string why = refusal(sets, TheorySource::automatic);
  EXPECT_TRUE(why.starts_with("first order in 1/n: the remainder of the MSE at query 0 is "))
      << why;
  sets[4] = "heads.weights={ law = \"explicit\", values = [0.5, 0.5] }";
  EXPECT_EQ(refusal(sets, TheorySource::automatic), "accepted");  // the control
}

TEST(Theory, NamesTheAssumptionThatFails) {
  EXPECT_EQ(refusal({"data.fixed_design=true"}, TheorySource::first_order),
            "--set data.fixed_design=true: data.fixed_design: first order is over training sets "
            "that each draw their own design - use --source exact");
  EXPECT_EQ(refusal({"data.fixed_design=true", "data.design.law=\"sphere\""}, TheorySource::exact),
            "accepted");
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
