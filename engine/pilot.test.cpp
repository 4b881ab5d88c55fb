// SPDX-License-Identifier: Apache-2.0
#include "engine/pilot.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/error.h"
#include "engine/estimates.h"
#include "engine/run.h"
#include "kernels/reference/backend.h"
#include "kernels/reference/training_set.h"

namespace headlab {
namespace {

constexpr double eps = std::numeric_limits<double>::epsilon();

Eigen::VectorXd as_vector(const std::vector<double>& a) {
  return Eigen::Map<const Eigen::VectorXd>(a.data(), static_cast<Eigen::Index>(a.size()));
}

std::string refusal(const Eigen::MatrixXd& m) {
  try {
    optimal_weights(m);
  } catch (const ParameterError& error) {
    return error.what();
  }
  return "";
}

TEST(OptimalWeights, AtHandValues) {
  Eigen::MatrixXd m(2, 2);
  m << 1, 0, 0, 4;
  auto a = optimal_weights(m);
  EXPECT_NEAR(a[0], 0.8, 4 * eps);
  EXPECT_NEAR(a[1], 0.2, 4 * eps);
  // M^-1 1 is proportional to (4 - 1.5, 1 - 1.5): a negative weight.
  m << 1, 1.5, 1.5, 4;
  a = optimal_weights(m);
  EXPECT_NEAR(a[0], 1.25, 16 * eps);
  EXPECT_NEAR(a[1], -0.25, 16 * eps);
}

TEST(OptimalWeights, NoOtherWeightsOfSumOneDoBetter) {
  Eigen::MatrixXd root(4, 4);
  root << 1, 0.2, 0, 0.5, 0.3, 1, -0.2, 0, 0, 0.9, 1, 0.1, 2, 0, 0, 1;
  const Eigen::MatrixXd m = root * root.transpose();
  const Eigen::VectorXd a = as_vector(optimal_weights(m));
  EXPECT_NEAR(a.sum(), 1, 8 * eps);
  const double least = a.dot(m * a);
  EXPECT_LT(least, m.mean());  // uniform weights
  for (int h = 1; h < 4; ++h) {
    Eigen::VectorXd other = a;
    other(0) += 1e-3;
    other(h) -= 1e-3;
    EXPECT_LT(least, other.dot(m * other)) << h;
  }
}

TEST(OptimalWeights, HeadsOfVeryDifferentErrorAreNoSingularity) {
  Eigen::MatrixXd m(2, 2);
  m << 1e-12, 0, 0, 1e6;
  const auto a = optimal_weights(m);
  EXPECT_NEAR(a[0], 1, eps);
  EXPECT_NEAR(a[1] / 1e-18, 1, 1e-12);
}

TEST(OptimalWeights, RefusesHeadsThatEstimateTheSame) {
  const std::string same =
      "some heads estimate the same (aligned subspaces?), so no weights are best - use weights = { "
      "law = \"uniform\" }";
  EXPECT_EQ(refusal(Eigen::MatrixXd::Constant(3, 3, 0.7)), same);
  Eigen::MatrixXd m = Eigen::MatrixXd::Identity(3, 3);
  m(0, 1) = m(1, 0) = 1 - 1e-8;
  EXPECT_EQ(refusal(m), same);
  m(0, 1) = m(1, 0) = 1 - 1e-5;
  EXPECT_EQ(refusal(m), "");
}

TEST(OptimalWeights, RefusesWhatIsNoError) {
  EXPECT_EQ(refusal(Eigen::MatrixXd::Zero(2, 2)),
            "a head has no error at all, so there is nothing to weigh - use weights = { law = "
            "\"uniform\" }");
  Eigen::MatrixXd m = Eigen::MatrixXd::Identity(2, 2);
  m(0, 1) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(refusal(m), "");
}

/// Two orthogonal heads, of which only the first sees what m depends on.
Scenario uneven_heads() {
  Scenario scenario;
  NormalDesign design;
  design.dim = 2;
  scenario.design = design;
  scenario.regression = LinearRegression{.coefficients = {1, 0}};
  scenario.noise = NormalNoise{.sd = 0.3};
  scenario.n = 20;
  scenario.heads = 2;
  scenario.k = 1;
  scenario.subspaces = OrthogonalSubspaces{};
  scenario.kernel = GaussianKernel{.bandwidth = 0.5};
  OptimalWeights weights;
  weights.replicates = 400;
  scenario.weights = weights;
  scenario.queries = PointQueries{.points = {{1, 0}, {-1, 0.5}}};
  scenario.seed = 3;
  scenario.replicates = 10;
  scenario.moments = MomentMode::aggregate;
  scenario.estimator = Estimator::plain;
  return scenario;
}

std::vector<double> resolved(Scenario scenario, int threads = 1) {
  const auto backend = make_reference_backend();
  resolve_weights(scenario, *backend, threads);
  return std::get<OptimalWeights>(scenario.weights).resolved.value();
}

TEST(ResolveWeights, SolvesForTheMeanOverTheQueries) {
  const Scenario scenario = uneven_heads();
  const std::vector<double> a = resolved(scenario);
  EXPECT_NEAR(a[0] + a[1], 1, 4 * eps);
  EXPECT_GT(a[0], 0.7);

  // The same from the estimates of the pilot, in closed form for two heads:
  // a_1 = (M_22 - M_12)/(M_11 + M_22 - 2 M_12).
  const auto backend = make_reference_backend();
  const Plan plan = pilot_plan(scenario);
  const Estimates pilot = estimate(simulate(plan, *backend, 1, 400), plan.head_weights, plan.truth);
  double m[2][2] = {};
  for (const QueryEstimates& query : pilot.queries) {
    for (std::size_t h = 0; h < 2; ++h) {
      for (std::size_t l = 0; l < 2; ++l) {
        m[h][l] += query.head_covariance[2 * h + l].value +
                   query.head_bias[h].value * query.head_bias[l].value;
      }
    }
  }
  EXPECT_NEAR(a[0], (m[1][1] - m[0][1]) / (m[0][0] + m[1][1] - 2 * m[0][1]), 64 * eps);
}

TEST(ResolveWeights, DoesNotDependOnTheRun) {
  const std::vector<double> a = resolved(uneven_heads());
  Scenario other = uneven_heads();
  other.seed = 4;
  other.replicates = 11;
  other.moments = MomentMode::pairwise;
  EXPECT_EQ(resolved(other, 2), a);
  std::get<OptimalWeights>(other.weights).seed = 1;
  EXPECT_NE(resolved(other), a);
}

TEST(ResolveWeights, LeavesOtherWeightsAlone) {
  const auto backend = make_reference_backend();
  Scenario scenario = uneven_heads();
  scenario.weights = ExplicitWeights{.weights = {3, 4}};
  resolve_weights(scenario, *backend, 1);
  EXPECT_EQ(std::get<ExplicitWeights>(scenario.weights).weights, (std::vector<double>{3, 4}));
  OptimalWeights done;
  done.resolved = {0.25, 0.75};
  scenario.weights = done;
  resolve_weights(scenario, *backend, 1);
  EXPECT_EQ(make_plan(scenario).head_weights, (std::vector<double>{0.25, 0.75}));
}

TEST(ResolveWeights, OneHeadNeedsNoPilot) {
  Scenario scenario = uneven_heads();
  scenario.heads = 1;
  EXPECT_EQ(resolved(scenario), std::vector<double>{1});
}

TEST(ResolveWeights, RefusesAlignedHeads) {
  Scenario scenario = uneven_heads();
  scenario.subspaces = AlignedSubspaces{};
  scenario.parameters = parse_toml("[heads]\nweights = { law = \"optimal\" }\n", "aligned.toml");
  try {
    resolved(scenario);
    FAIL();
  } catch (const Refused& error) {
    EXPECT_STREQ(error.what(),
                 "aligned.toml:2:11: heads.weights: law \"optimal\": some heads estimate the same "
                 "(aligned subspaces?), so no weights are best - use weights = { law = "
                 "\"uniform\" }");
  }
}

TEST(PilotPlan, DrawsFromStreamsOfItsOwn) {
  Scenario scenario = uneven_heads();
  std::get<OptimalWeights>(scenario.weights).seed = 8;
  const Plan plan = pilot_plan(scenario);
  EXPECT_EQ(plan.seed, 8u);
  EXPECT_EQ(plan.streams.design, Purpose::pilot_design);
  EXPECT_EQ(plan.streams.design_choice, Purpose::pilot_design_choice);
  EXPECT_EQ(plan.streams.noise, Purpose::pilot_noise);
  EXPECT_EQ(plan.estimator, Estimator::conditional);
  EXPECT_EQ(plan.moments, MomentMode::pairwise);
}

TEST(PilotPlan, KeepsTheDesignOfTheRunWhereItIsFixed) {
  Scenario scenario = uneven_heads();
  scenario.fixed_design = true;
  scenario.design_seed = 6;
  const Sample of_pilot = draw_sample(pilot_plan(scenario), 0);
  scenario.weights = UniformWeights{};
  const Sample of_run = draw_sample(make_plan(scenario), 0);
  EXPECT_EQ(of_pilot.x, of_run.x);
  EXPECT_NE(of_pilot.noise, of_run.noise);
}

}  // namespace
}  // namespace headlab
