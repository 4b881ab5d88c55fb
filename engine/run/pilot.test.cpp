// SPDX-License-Identifier: Apache-2.0
#include "engine/run/pilot.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "engine/moments/estimates.h"
#include "engine/run/run.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/setup_laws.h"
#include "engine/testing/refusal.h"
#include "kernels/laws.h"
#include "kernels/reference/backend.h"
#include "kernels/reference/training_set.h"
#include "kernels/testing/tolerances.h"

namespace headlab {
namespace {

Eigen::VectorXd as_vector(const std::vector<double>& a) {
  return Eigen::Map<const Eigen::VectorXd>(a.data(), static_cast<Eigen::Index>(a.size()));
}

std::string refusal(const Eigen::MatrixXd& m) {
  return refusal_line<ParameterError>([&] { optimal_weights(m); });
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
  EXPECT_EQ(refusal(m), "accepted");
}

TEST(OptimalWeights, RefusesWhatIsNoError) {
  EXPECT_EQ(refusal(Eigen::MatrixXd::Zero(2, 2)),
            "a head has no error at all, so there is nothing to weigh - use weights = { law = "
            "\"uniform\" }");
  Eigen::MatrixXd m = Eigen::MatrixXd::Identity(2, 2);
  m(0, 1) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(refusal(m), "accepted");
}

/// Two orthogonal heads, of which only the first sees what m depends on.
Condition uneven_heads() {
  Condition condition;
  NormalDesign design;
  design.dim = 2;
  condition.design = design;
  condition.regression = LinearRegression{.coefficients = {1, 0}};
  condition.noise = NormalNoise{.sd = 0.3};
  condition.n = 20;
  condition.heads = 2;
  condition.k = 1;
  condition.subspaces = OrthogonalSubspaces{};
  condition.kernel = GaussianKernel{.bandwidth = 0.5};
  OptimalWeights weights;
  weights.replicates = 400;
  condition.weights = weights;
  condition.queries = PointQueries{.points = {{1, 0}, {-1, 0.5}}};
  condition.seed = 3;
  condition.replicates = 10;
  condition.moments = MomentMode::aggregate;
  condition.estimator = Estimator::plain;
  return condition;
}

std::vector<double> weights_of(const Condition& condition, int threads = 1) {
  Preparation found;
  EXPECT_TRUE(find_weights(condition, found, {.backend = "reference", .threads = threads}));
  return found.head_weights.value();
}

TEST(FindWeights, SolvesForTheMeanOverTheQueries) {
  const Condition condition = uneven_heads();
  const std::vector<double> a = weights_of(condition);
  EXPECT_NEAR(a[0] + a[1], 1, 4 * eps);
  EXPECT_GT(a[0], 0.7);

  // The same from the estimates of the pilot, in closed form for two heads:
  // a_1 = (M_22 - M_12)/(M_11 + M_22 - 2 M_12).
  const auto backend = make_reference_backend();
  const Plan plan = pilot_plan(condition);
  const ConditionEstimates pilot =
      estimate(simulate(plan, *backend, 1, 400), plan.head_weights, plan.truth);
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

TEST(FindWeights, DoesNotDependOnTheRun) {
  const std::vector<double> a = weights_of(uneven_heads());
  Condition other = uneven_heads();
  other.seed = 4;
  other.replicates = 11;
  other.moments = MomentMode::pairwise;
  EXPECT_EQ(weights_of(other, 2), a);
  std::get<OptimalWeights>(other.weights.own()).seed = 1;
  EXPECT_NE(weights_of(other), a);
}

TEST(FindWeights, FindsNothingForOtherWeights) {
  Condition condition = uneven_heads();
  Preparation found;
  condition.weights = ExplicitWeights{.weights = {3, 4}};
  EXPECT_TRUE(find_weights(condition, found, {.backend = "reference", .threads = 1}));
  EXPECT_FALSE(found.head_weights);
  EXPECT_EQ(make_plan(condition, found).head_weights, (std::vector<double>{3, 4}));
}

TEST(FindWeights, AreThoseOfThePlan) {
  const Condition condition = uneven_heads();
  EXPECT_THROW(make_plan(condition), ParameterError);
  EXPECT_EQ(make_plan(condition, {.head_weights = {{0.25, 0.75}}}).head_weights,
            (std::vector<double>{0.25, 0.75}));
}

TEST(FindWeights, OneHeadNeedsNoPilot) {
  Condition condition = uneven_heads();
  condition.heads = 1;
  EXPECT_EQ(weights_of(condition), std::vector<double>{1});
}

TEST(FindWeights, RefusesAlignedHeads) {
  Condition condition = uneven_heads();
  condition.subspaces = AlignedSubspaces{};
  condition.parameters = parse_toml("[heads]\nweights = { law = \"optimal\" }\n", "aligned.toml");
  EXPECT_EQ(refusal_line([&] { weights_of(condition); }),
            "aligned.toml:2:11: heads.weights: law \"optimal\": some heads estimate the same "
            "(aligned subspaces?), so no weights are best - use weights = { law = "
            "\"uniform\" }");
}

TEST(PilotPlan, DrawsFromStreamsOfItsOwn) {
  Condition condition = uneven_heads();
  std::get<OptimalWeights>(condition.weights.own()).seed = 8;
  const Plan plan = pilot_plan(condition);
  EXPECT_EQ(plan.seed, 8u);
  EXPECT_EQ(plan.streams.design, Purpose::pilot_design);
  EXPECT_EQ(plan.streams.design_choice, Purpose::pilot_design_choice);
  EXPECT_EQ(plan.streams.noise, Purpose::pilot_noise);
  EXPECT_EQ(plan.estimator, Estimator::conditional);
  EXPECT_EQ(plan.moments, MomentMode::pairwise);
}

TEST(PilotPlan, KeepsTheDesignOfTheRunWhereItIsFixed) {
  Condition condition = uneven_heads();
  condition.fixed_design = true;
  condition.design_seed = 6;
  const TrainingSet of_pilot = draw_training_set(pilot_plan(condition), 0);
  condition.weights = UniformWeights{};
  const TrainingSet of_run = draw_training_set(make_plan(condition), 0);
  EXPECT_EQ(of_pilot.x, of_run.x);
  EXPECT_NE(of_pilot.noise, of_run.noise);
}

}  // namespace
}  // namespace headlab
