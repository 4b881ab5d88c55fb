// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/files/error.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/subspaces.h"
#include "kernels/testing/tolerances.h"

namespace headlab {
namespace {

NormalDesign normal_design(int dim) {
  NormalDesign design;
  design.dim = dim;
  return design;
}

FileDesign file_design(std::vector<std::vector<double>> rows) {
  FileDesign design;
  design.rows = std::move(rows);
  return design;
}

/// Two coordinates, one head, one query at (0.5, -2).
Scenario small() {
  Scenario scenario;
  scenario.n = 10;
  scenario.design = normal_design(2);
  scenario.subspaces = AlignedSubspaces{};
  scenario.weights = UniformWeights{};
  scenario.queries = PointQueries{.points = {{0.5, -2}}};
  return scenario;
}

double truth(const RegressionLaw& regression) {
  Scenario scenario = small();
  scenario.regression = regression;
  const Plan plan = make_plan(scenario);
  EXPECT_EQ(plan.truth.size(), 1u);
  return plan.truth[0];
}

TEST(MakePlan, TruthAtAHandPoint) {
  EXPECT_EQ(truth(ZeroRegression{}), 0);
  EXPECT_EQ(truth(LinearRegression{.coefficients = {3, 0.25}}), 1.0);
  // x1 + x2 = -1.5, 2 x1 = 1, in radians.
  EXPECT_NEAR(truth(CosinesRegression{
                  .amplitude = {2, -1}, .frequency = {{1, 1}, {2, 0}}, .phase = {0.1, 0}}),
              2 * std::cos(-1.4) - std::cos(1.0), 8 * eps);
  EXPECT_NEAR(
      truth(CosinesRegression{.amplitude = {1}, .frequency = {{std::numbers::pi, 0}}, .phase = {}}),
      0, 4 * eps);
  EXPECT_NEAR(
      truth(AdditiveRegression{.amplitude = {1, 0.5}, .frequency = {2, 3}, .phase = {0, 0.5}}),
      std::cos(1.0) + 0.5 * std::cos(-5.5), 8 * eps);
  EXPECT_NEAR(truth(SingleIndexRegression{.direction = {2, 1}, .frequency = 3}), std::cos(-3.0),
              8 * eps);
  // |x - (1, -1)|^2 = 1.25, |x|^2 = 4.25.
  EXPECT_NEAR(
      truth(BumpsRegression{.heights = {2, -1}, .centres = {{1, -1}, {0, 0}}, .widths = {0.5, 2}}),
      2 * std::exp(-1.25 / 0.5) - std::exp(-4.25 / 8), 8 * eps);
  EXPECT_EQ(truth(StepRegression{.direction = {1, 1}, .threshold = -1.6, .height = 7}), 7);
  EXPECT_EQ(truth(StepRegression{.direction = {1, 1}, .threshold = -1.5, .height = 7}), 0);
}

TEST(MakePlan, TruthOfRandomCosines) {
  // One term in one coordinate, from its own words.
  Scenario scenario = small();
  scenario.design = normal_design(1);
  scenario.queries = PointQueries{.points = {{0.7}}};
  scenario.regression =
      RandomCosinesRegression{.terms = 1, .length_scale = 0.5, .smoothness = {}, .seed = 9};
  const Words of_w = philox(9, subsequence(Purpose::random_cosines, 0), 0);
  const Words of_phase = philox(9, subsequence(Purpose::random_cosines, 1), 0);
  const double w = static_cast<double>(normal_pair(of_w.w[0], of_w.w[1]).first) / 0.5;
  const double phase = 2 * std::numbers::pi * static_cast<double>(uniform_open(of_phase.w[0]));
  EXPECT_NEAR(make_plan(scenario).truth[0], std::sqrt(2) * std::cos(w * 0.7 + phase), 32 * eps);
}

TEST(MakePlan, CosinesAreInRadiansFarFromTheOrigin) {
  Scenario scenario = small();
  scenario.design = normal_design(1);
  scenario.regression = CosinesRegression{.amplitude = {1}, .frequency = {{1}}, .phase = {}};
  std::vector<std::vector<double>> points;
  for (double x = -100; x < 100; x += 0.37) points.push_back({x});
  scenario.queries = PointQueries{.points = points};
  const Plan plan = make_plan(scenario);
  ASSERT_EQ(plan.truth.size(), points.size());
  for (std::size_t q = 0; q < points.size(); ++q) {
    const double x = points[q][0];
    // The argument is rounded in turns, in the frequency and in the product.
    EXPECT_NEAR(plan.truth[q], std::cos(x), (3 * std::abs(x) + 4) * eps) << x;
  }
}

TEST(MakePlan, ProjectionsStandHeadByHeadAndRowByRow) {
  Scenario scenario = small();
  scenario.design = normal_design(3);
  scenario.queries = PointQueries{.points = {{0, 0, 0}}};
  scenario.heads = 2;
  scenario.k = 2;
  ExplicitSubspaces subspaces;
  subspaces.matrices = {{{0, 1}, {0.6, 0}, {0.8, 0}}, {{0, 0}, {0, -1}, {1, 0}}};
  scenario.subspaces = subspaces;
  const Plan plan = make_plan(scenario);
  EXPECT_EQ(plan.projections, (std::vector<double>{0, 1, 0.6, 0, 0.8, 0, 0, 0, 0, -1, 1, 0}));
  EXPECT_EQ(plan.head_weights, (std::vector<double>{0.5, 0.5}));
  const auto frames = make_subspaces(scenario);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[1](1, 1), -1);
}

TEST(MakePlan, CopiesSizesAndChoices) {
  Scenario scenario = small();
  scenario.n = 123;
  scenario.seed = 77;
  scenario.kernel = LaplaceKernel{.bandwidth = 0.3};
  scenario.noise = LaplaceNoise{.sd = 0.4};
  scenario.estimator = Estimator::plain;
  scenario.moments = MomentMode::aggregate;
  scenario.queries = PointQueries{.points = {{1, 2}, {3, 4}, {5, 6}}};
  scenario.regression = LinearRegression{.coefficients = {1, 10}};
  const Plan plan = make_plan(scenario);
  EXPECT_EQ(plan.n, 123u);
  EXPECT_EQ(plan.d, 2);
  EXPECT_EQ(plan.queries, 3);
  EXPECT_EQ(plan.seed, 77u);
  EXPECT_FALSE(plan.fixed_design_seed.has_value());
  EXPECT_EQ(plan.streams.design, Purpose::design);
  EXPECT_EQ(plan.streams.noise, Purpose::noise);
  EXPECT_EQ(std::get<LaplaceKernel>(plan.kernel).bandwidth, 0.3);
  EXPECT_EQ(std::get<LaplaceNoise::Sampler>(plan.noise).sd, 0.4);
  EXPECT_EQ(plan.estimator, Estimator::plain);
  EXPECT_EQ(plan.moments, MomentMode::aggregate);
  EXPECT_EQ(plan.query_points, (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(plan.truth, (std::vector<double>{21, 43, 65}));

  scenario.fixed_design = true;
  scenario.design_seed = 5;
  EXPECT_EQ(make_plan(scenario).fixed_design_seed, 5u);
}

TEST(MakePlan, LawsKeepTheirOwnPartsOfTheTable) {
  Scenario scenario = small();
  NormalDesign design = normal_design(2);
  design.mean = {100, 200};
  scenario.design = design;
  scenario.regression = LinearRegression{.coefficients = {1, 2}};
  scenario.noise = HeteroscedasticNoise{.sd = 1, .slope = 1, .direction = {0, 4}};
  const Plan plan = make_plan(scenario);
  const double x[] = {0.5, -2};
  EXPECT_EQ(plan.truth[0], -3.5);
  EXPECT_EQ(std::visit([&](const auto& noise) { return noise.scale(plan.table.exact(), x, 1); },
                       plan.noise),
            9.0);
  const auto sampler = std::get<NormalDesign::Sampler>(plan.design);
  EXPECT_EQ(plan.table.exact()[sampler.mean + 1], 200);
}

TEST(MakePlan, QueriesFromTheDesignAreFloats) {
  Scenario scenario = small();
  scenario.queries = DesignQueries{.count = 20, .seed = 3};
  scenario.regression = LinearRegression{.coefficients = {1, 0}};
  const Plan plan = make_plan(scenario);
  ASSERT_EQ(plan.queries, 20);
  ASSERT_EQ(plan.query_points.size(), 40u);
  for (const double x : plan.query_points) {
    EXPECT_EQ(x, static_cast<double>(static_cast<float>(x)));
  }
  for (std::size_t q = 0; q < 20; ++q) EXPECT_EQ(plan.truth[q], plan.query_points[2 * q]);
  scenario.seed = 1000;  // the run's seed is none of the queries' business
  EXPECT_EQ(make_plan(scenario).query_points, plan.query_points);
}

/// A file of three rows in which the first two are one place.
Scenario from_file() {
  Scenario scenario = small();
  scenario.design = file_design({{0.1, 0.2}, {0.1, 0.2}, {3, 4}});
  scenario.regression = FileRegression{.column = 2, .values = {10, 10, 30}};
  return scenario;
}

TEST(MakePlan, TruthOfAFileIsItsColumn) {
  Scenario scenario = from_file();
  scenario.queries = DesignQueries{.count = 30, .seed = 0};
  const Plan drawn = make_plan(scenario);
  for (std::size_t q = 0; q < 30; ++q) {
    EXPECT_EQ(drawn.truth[q], drawn.query_points[2 * q] > 1 ? 30 : 10);
  }
  scenario.queries = PointQueries{.points = {{3, 4}, {0.1, 0.2}}};
  EXPECT_EQ(make_plan(scenario).truth, (std::vector<double>{30, 10}));
}

std::string refusal(const Scenario& scenario) {
  try {
    make_plan(scenario);
  } catch (const Refused& error) {
    return error.what();
  } catch (const ParameterError& error) {
    return "parameter " + error.key() + ": " + error.what();
  }
  return "";
}

TEST(MakePlan, RefusesQueriesAtWhichAFileSaysNothing) {
  Scenario scenario = from_file();
  scenario.queries = PointQueries{.points = {{3, 4}, {3, 5}}};
  EXPECT_EQ(refusal(scenario),
            "queries.points: point 2 is not a row of the design's data file, and regression law "
            "\"file\" is known only there - use queries.law = \"design\"");
  scenario.regression = FileRegression{.column = 2, .values = {10, 11, 30}};
  scenario.queries = PointQueries{.points = {{0.1, 0.2}}};
  EXPECT_EQ(refusal(scenario),
            "queries.points: point 1 stands in the design's data file more than once, with "
            "different values of the regression - use queries.law = \"design\"");
  scenario.design = normal_design(2);
  EXPECT_EQ(refusal(scenario),
            "data.regression: law \"file\" is a column of the design's data file, so the design "
            "must have law \"file\" too");
}

TEST(MakePlan, RefusesWhatLawsRefuse) {
  Scenario scenario = small();
  scenario.heads = 3;
  scenario.subspaces = OrthogonalSubspaces{};
  EXPECT_EQ(refusal(scenario), "parameter : needs H k <= d, here 3 x 1 > 2");
  scenario = small();
  scenario.weights = OptimalWeights{};
  EXPECT_EQ(refusal(scenario), "parameter : optimal weights need their pilot study first");
}

}  // namespace
}  // namespace headlab
