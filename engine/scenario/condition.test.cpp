// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/files/error.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/setup_laws.h"
#include "engine/scenario/subspaces.h"
#include "kernels/laws.h"
#include "kernels/plan.h"
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
Condition small() {
  Condition condition;
  condition.n = 10;
  condition.design = normal_design(2);
  condition.subspaces = AlignedSubspaces{};
  condition.weights = UniformWeights{};
  condition.queries = PointQueries{.points = {{0.5, -2}}};
  return condition;
}

double truth(const RegressionLaw& regression) {
  Condition condition = small();
  condition.regression = regression;
  const Plan plan = make_plan(condition);
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
  Condition condition = small();
  condition.design = normal_design(1);
  condition.queries = PointQueries{.points = {{0.7}}};
  condition.regression =
      RandomCosinesRegression{.terms = 1, .length_scale = 0.5, .smoothness = {}, .seed = 9};
  const Words of_w = philox(9, subsequence(Purpose::random_cosines, 0), 0);
  const Words of_phase = philox(9, subsequence(Purpose::random_cosines, 1), 0);
  const double w = static_cast<double>(normal_pair(of_w.w[0], of_w.w[1]).first) / 0.5;
  const double phase = 2 * std::numbers::pi * static_cast<double>(uniform_open(of_phase.w[0]));
  EXPECT_NEAR(make_plan(condition).truth[0], std::sqrt(2) * std::cos(w * 0.7 + phase), 32 * eps);
}

TEST(MakePlan, CosinesAreInRadiansFarFromTheOrigin) {
  Condition condition = small();
  condition.design = normal_design(1);
  condition.regression = CosinesRegression{.amplitude = {1}, .frequency = {{1}}, .phase = {}};
  std::vector<std::vector<double>> points;
  for (double x = -100; x < 100; x += 0.37) points.push_back({x});
  condition.queries = PointQueries{.points = points};
  const Plan plan = make_plan(condition);
  ASSERT_EQ(plan.truth.size(), points.size());
  for (std::size_t q = 0; q < points.size(); ++q) {
    const double x = points[q][0];
    // The argument is rounded in turns, in the frequency and in the product.
    EXPECT_NEAR(plan.truth[q], std::cos(x), (3 * std::abs(x) + 4) * eps) << x;
  }
}

TEST(MakePlan, ProjectionsStandHeadByHeadAndRowByRow) {
  Condition condition = small();
  condition.design = normal_design(3);
  condition.queries = PointQueries{.points = {{0, 0, 0}}};
  condition.heads = 2;
  condition.k = 2;
  ExplicitSubspaces subspaces;
  subspaces.matrices = {{{0, 1}, {0.6, 0}, {0.8, 0}}, {{0, 0}, {0, -1}, {1, 0}}};
  condition.subspaces = subspaces;
  const Plan plan = make_plan(condition);
  EXPECT_EQ(plan.projections, (std::vector<double>{0, 1, 0.6, 0, 0.8, 0, 0, 0, 0, -1, 1, 0}));
  EXPECT_EQ(plan.head_weights, (std::vector<double>{0.5, 0.5}));
  const auto bases = subspace_bases(condition);
  ASSERT_EQ(bases.size(), 2u);
  EXPECT_EQ(bases[1](1, 1), -1);
}

TEST(MakePlan, CopiesSizesAndChoices) {
  Condition condition = small();
  condition.n = 123;
  condition.seed = 77;
  condition.kernel = LaplaceKernel{.bandwidth = 0.3};
  condition.noise = LaplaceNoise{.sd = 0.4};
  condition.estimator = Estimator::plain;
  condition.moments = MomentMode::aggregate;
  condition.queries = PointQueries{.points = {{1, 2}, {3, 4}, {5, 6}}};
  condition.regression = LinearRegression{.coefficients = {1, 10}};
  const Plan plan = make_plan(condition);
  EXPECT_EQ(plan.n, 123u);
  EXPECT_EQ(plan.d, 2);
  EXPECT_EQ(plan.queries, 3);
  EXPECT_EQ(plan.seed, 77u);
  EXPECT_FALSE(plan.fixed_design_seed.has_value());
  EXPECT_EQ(plan.streams.design, Purpose::design);
  EXPECT_EQ(plan.streams.noise, Purpose::noise);
  EXPECT_EQ(std::get<LaplaceKernel>(*plan.kernel).bandwidth, 0.3);
  EXPECT_EQ(std::get<LaplaceNoise::Sampler>(*plan.noise).sd, 0.4);
  EXPECT_EQ(plan.estimator, Estimator::plain);
  EXPECT_EQ(plan.moments, MomentMode::aggregate);
  EXPECT_EQ(plan.query_points, (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(plan.truth, (std::vector<double>{21, 43, 65}));
  const MomentLayout layout{
      .queries = 3, .heads = 1, .mode = MomentMode::aggregate, .conditional = false};
  EXPECT_EQ(plan.layout(), layout);
  EXPECT_EQ(layout_of(condition), layout);

  condition.fixed_design = true;
  condition.design_seed = 5;
  EXPECT_EQ(make_plan(condition).fixed_design_seed, 5u);
}

TEST(MakePlan, LawsKeepTheirOwnPartsOfTheTable) {
  Condition condition = small();
  NormalDesign design = normal_design(2);
  design.mean = {100, 200};
  condition.design = design;
  condition.regression = LinearRegression{.coefficients = {1, 2}};
  condition.noise = HeteroscedasticNoise{.sd = 1, .slope = 1, .direction = {0, 4}};
  const Plan plan = make_plan(condition);
  const double x[] = {0.5, -2};
  EXPECT_EQ(plan.truth[0], -3.5);
  EXPECT_EQ(std::visit([&](const auto& noise) { return noise.scale(plan.table.exact(), x, 1); },
                       *plan.noise),
            9.0);
  const auto sampler = std::get<NormalDesign::Sampler>(*plan.design);
  EXPECT_EQ(plan.table.exact()[sampler.mean + 1], 200);
}

TEST(MakePlan, QueriesFromTheDesignAreFloats) {
  Condition condition = small();
  condition.queries = DesignQueries{.count = 20, .seed = 3};
  condition.regression = LinearRegression{.coefficients = {1, 0}};
  const Plan plan = make_plan(condition);
  ASSERT_EQ(plan.queries, 20);
  ASSERT_EQ(plan.query_points.size(), 40u);
  for (const double x : plan.query_points) {
    EXPECT_EQ(x, static_cast<double>(static_cast<float>(x)));
  }
  for (std::size_t q = 0; q < 20; ++q) EXPECT_EQ(plan.truth[q], plan.query_points[2 * q]);
  condition.seed = 1000;  // the run's seed is none of the queries' business
  EXPECT_EQ(make_plan(condition).query_points, plan.query_points);
}

/// A file of three rows in which the first two are one place.
Condition from_file() {
  Condition condition = small();
  condition.design = file_design({{0.1, 0.2}, {0.1, 0.2}, {3, 4}});
  condition.regression = FileRegression{.column = 2, .values = {10, 10, 30}};
  return condition;
}

TEST(MakePlan, TruthOfAFileIsItsColumn) {
  Condition condition = from_file();
  condition.queries = DesignQueries{.count = 30, .seed = 0};
  const Plan drawn = make_plan(condition);
  for (std::size_t q = 0; q < 30; ++q) {
    EXPECT_EQ(drawn.truth[q], drawn.query_points[2 * q] > 1 ? 30 : 10);
  }
  condition.queries = PointQueries{.points = {{3, 4}, {0.1, 0.2}}};
  EXPECT_EQ(make_plan(condition).truth, (std::vector<double>{30, 10}));
}

std::string refusal(const Condition& condition) {
  try {
    make_plan(condition);
  } catch (const InvalidInput& error) {
    return error.what();
  } catch (const ParameterError& error) {
    return "parameter " + error.key() + ": " + error.what();
  }
  return "";
}

TEST(MakePlan, TakesTheTruthThatIsGivenAtPoints) {
  Condition condition = from_file();
  condition.queries = PointQueries{.points = {{3, 5}, {3, 4}}, .truth = {7, -1}};
  EXPECT_EQ(make_plan(condition).truth, (std::vector<double>{7, -1}));
  // Without it the rows say it, where they can.
  condition.queries = PointQueries{.points = {{3, 4}}};
  EXPECT_NE(make_plan(condition).truth, (std::vector<double>{-1}));
}

TEST(MakePlan, RefusesQueriesAtWhichAFileSaysNothing) {
  Condition condition = from_file();
  condition.queries = PointQueries{.points = {{3, 4}, {3, 5}}};
  EXPECT_EQ(refusal(condition),
            "queries.points: points[1] is not a row of the design's data file, and regression law "
            "\"file\" is known only there - use queries.law = \"design\"");
  condition.regression = FileRegression{.column = 2, .values = {10, 11, 30}};
  condition.queries = PointQueries{.points = {{0.1, 0.2}}};
  EXPECT_EQ(refusal(condition),
            "queries.points: points[0] stands in the design's data file more than once, with "
            "different values of the regression - use queries.law = \"design\"");
  condition.design = normal_design(2);
  EXPECT_EQ(refusal(condition),
            "data.regression: law \"file\" is a column of the design's data file, so the design "
            "must have law \"file\" too");
}

TEST(MakePlan, RefusesWhatLawsRefuse) {
  Condition condition = small();
  condition.weights = OptimalWeights{};
  EXPECT_EQ(refusal(condition), "parameter : optimal weights need their pilot study first");
}

}  // namespace
}  // namespace headlab
