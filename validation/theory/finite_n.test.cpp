// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/finite_n.h"

#include <cmath>
#include <cstdlib>

#include <Eigen/Dense>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/run/run.h"
#include "engine/scenario/testing/known_world.h"
#include "engine/scenario/world.h"
#include "engine/testing/refusal.h"
#include "kernels/testing/known_cases.h"
#include "kernels/testing/played_machine.h"
#include "validation/theory/exact/scalar_finite_n.h"

namespace headlab {
namespace {

using nlohmann::json;

/// Passes only if the error is at most the tolerance, so that NaN fails.
testing::AssertionResult close(double value, double expected, double tolerance) {
  const bool passes = std::abs(value - expected) <= tolerance;
  return (passes ? testing::AssertionSuccess() : testing::AssertionFailure())
         << value << " against " << expected;
}

/// A plane of standard normal points with noise alone.
World noise_world(const std::string& kernel, int n) {
  return {.n = std::to_string(n),
          .design = R"({ law = "normal", dim = 2 })",
          .noise = R"({ law = "normal", sd = 1.0 })",
          .kernel = kernel};
}

/// Heads of these matrices in a world, seen from x. JSON arrays are TOML arrays.
Scenario scenario(World world, const json& matrices, const json& x, int replicates = 8) {
  world.heads = "count = " + std::to_string(matrices.size()) +
                "\ndim = " + std::to_string(matrices[0][0].size()) +
                "\nsubspaces = { law = \"explicit\", matrices = " + matrices.dump() + " }";
  world.queries = "law = \"points\"\npoints = [" + x.dump() + "]";
  world.run = "seed = 1\nreplicates = " + std::to_string(replicates);
  return parse_scenario(world.text(), "known.toml");
}

TheoryModel model_of(const Scenario& scenario) {
  return theory_model(scenario.conditions.at(0));
}

/// Two heads of dimension one in the plane, seen from a query with given projections.
struct Plane {
  json matrices;
  json x;

  Plane(double cosine, double q0, double q1) {
    const double sine = std::sqrt((1 - cosine) * (1 + cosine));
    matrices = {{{1.0}, {0.0}}, {{cosine}, {sine}}};
    x = {q0, (q1 - cosine * q0) / sine};
  }
};

std::string gaussian(double bandwidth) {
  return "{ law = \"gaussian\", bandwidth = " + json(bandwidth).dump() + " }";
}

TheoryModel noise_model(const Plane& plane, double bandwidth, int n) {
  return model_of(scenario(noise_world(gaussian(bandwidth), n), plane.matrices, plane.x));
}

TEST(FiniteN, GivesTheKnownVariancesOfNoiseAlone) {
  for (const json& c : test::known("finite_n_noise")) {
    const Plane plane(c["cos_angle"], c["query_projection"][0], c["query_projection"][1]);
    TheoryModel model = noise_model(plane, c["bandwidth"], c["n"]);

    const FiniteN exact = finite_n(model).at(0);

    EXPECT_TRUE(close(exact.covariance(0, 0), c["V"][0], 1e-12));
    EXPECT_TRUE(close(exact.covariance(1, 1), c["V"][1], 1e-12));
    EXPECT_TRUE(close(exact.covariance(0, 1), c["C"], 1e-12));
    EXPECT_TRUE(close(exact.normalisation_error, 0, 1e-12));
    EXPECT_EQ(exact.bias(0), 0);

    // Negative control: one point more.
    model.n += 1;
    EXPECT_FALSE(close(finite_n(model).at(0).covariance(0, 1), c["C"], 1e-5));
  }
}

TEST(FiniteN, GivesTheKnownBiasesAndCovariancesOfSignalAndNoise) {
  std::size_t cases = 0;
  for (const char* key : {"finite_n", "softmax_finite_n"}) {
    for (const json& c : test::known(key)) {
      World world = test::known_world(c);
      world.run = "seed = 1\nreplicates = 8";
      const TheoryModel model = theory_model(world.condition());

      const FiniteN exact = finite_n(model, 2).at(0);

      for (Eigen::Index h = 0; h < exact.bias.size(); ++h) {
        const auto i = static_cast<std::size_t>(h);
        EXPECT_TRUE(close(exact.bias(h), c["bias"][i], 1e-10));
        for (Eigen::Index l = 0; l < exact.bias.size(); ++l) {
          const double known = c["covariance"][i][static_cast<std::size_t>(l)];
          EXPECT_TRUE(close(exact.covariance(h, l), known, 1e-10)) << key << h << l;
          EXPECT_TRUE(close(exact.change(h, l), 0, 1e-7));
        }
      }
      ++cases;
      // Negative control: the first-order formula's neighbour, the noise alone.
      TheoryModel noise_alone = model;
      noise_alone.zero_regression = true;
      noise_alone.truth = {0};
      EXPECT_FALSE(
          close(finite_n(noise_alone).at(0).covariance(0, 1), c["covariance"][0][1], 1e-4));
    }
  }
  EXPECT_EQ(cases, 4u);
}

TEST(FiniteN, HasTheSameBitsForAnyNumberOfThreads) {
  const TheoryModel model = noise_model(Plane(0.5, 0.2, 0.1), 0.5, 10);
  const FiniteN one = finite_n(model, 1).at(0);
  const FiniteN three = finite_n(model, 3).at(0);
  EXPECT_EQ(one.covariance, three.covariance);
  EXPECT_EQ(one.change, three.change);
}

TEST(FiniteN, IsTheNoiseVarianceAtOnePoint) {
  const FiniteN exact = finite_n(noise_model(Plane(0.5, 0.2, 0.1), 0.5, 1)).at(0);
  EXPECT_TRUE(close(exact.covariance(0, 0), 1, 1e-9));
  EXPECT_TRUE(close(exact.covariance(0, 1), 1, 1e-7));
}

TEST(FiniteN, TendsToTheVarianceAsHeadsAlign) {
  const double variance = finite_n(noise_model(Plane(0, 0.5, 0.5), 0.3, 25)).at(0).covariance(0, 0);
  // The double integral at an angle of 1.4e-5, and the short cut for identical heads.
  const double near =
      finite_n(noise_model(Plane(1 - 1e-10, 0.5, 0.5), 0.3, 25)).at(0).covariance(0, 1);
  EXPECT_TRUE(close(near, variance, 1e-9));
  TheoryModel aligned = noise_model(Plane(0, 0.5, 0.5), 0.3, 25);
  aligned.projections[1] = -aligned.projections[0];
  EXPECT_TRUE(close(finite_n(aligned).at(0).covariance(0, 1), variance, 1e-15));
  // Negative control: an angle of 0.045.
  EXPECT_FALSE(close(finite_n(noise_model(Plane(0.999, 0.5, 0.5), 0.3, 25)).at(0).covariance(0, 1),
                     variance, 1e-5));
}

TEST(FiniteNCertificate, CatchesAFixedRange) {
  const TheoryModel model = noise_model(Plane(0, 2.5, 0), 0.3, 10);
  const ScalarHead head = scalar_head(model, model.queries[0], 0);
  const Resolution resolution = {26, 50000};
  SigmaRange range = sigma_range(head, model.n, resolution);
  EXPECT_TRUE(
      close(scalar_head_moments(model, model.n, 0, head, range, resolution).normalisation_error, 0,
            1e-11));

  range.from = -26;
  range.to = 30;

  const HeadMoments cut = scalar_head_moments(model, model.n, 0, head, range, resolution);
  EXPECT_TRUE(close(cut.normalisation_error, -3e-3, 1e-3));
}

TEST(FiniteNCertificate, CatchesADroppedSecondTerm) {
  // The first term alone, for responses that are all one, is E sum_i w_hi w_li: noise alone.
  const TheoryModel model = noise_model(Plane(0.5, 0.2, 0.1), 0.5, 10);
  const Resolution resolution = {26, 50000};
  const PairMoments pair = scalar_pair_moments(model, PairTokens(model, 0, 1), 0,
                                               scalar_head(model, model.queries[0], 0),
                                               scalar_head(model, model.queries[0], 1), resolution);
  EXPECT_TRUE(close(pair.normalisation_error, 0, 1e-11));
  EXPECT_FALSE(close(pair.product - 1, 0, 0.5));
}

TEST(FiniteN, RefusesWithTheCertificateWhatItCannotResolve) {
  const TheoryModel model = noise_model(Plane(0.5, 2.5, 0.2), 0.01, 2);
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "weights sum to one within",
                      refusal_line([&] { finite_n(model).at(0); }));
}

/// A case where quadrature is hard, and its simulation.
struct HardCase {
  const char* name;
  World world;
  Plane plane;
};

const std::vector<HardCase>& hard_cases() {
  static const std::vector<HardCase> cases = {
      {"small bandwidth", noise_world(gaussian(0.05), 50), Plane(0.5, 0.5, 0.2)},
      {"far query", noise_world(gaussian(0.3), 25), Plane(0.5, 4, 2)},
      {"two points", noise_world(gaussian(0.4), 2), Plane(0.5, 0.5, 0.2)},
      {"nearly aligned", noise_world(gaussian(0.3), 25), Plane(0.999, 0.5, 0.52)},
      {"nearer", noise_world(gaussian(0.3), 25), Plane(0.999999, 0.5, 0.5003)},
      {"long softmax tilt", noise_world(R"({ law = "softmax", temperature = 0.5 })", 25),
       Plane(0.5, 4, 1)},
      {"correlated design, heteroscedastic noise, linear regression",
       World{
           .n = "15",
           .design =
               R"({ law = "normal", dim = 2, mean = [0.5, -0.2], covariance = [[1.0, 0.6], [0.6, 2.0]] })",
           .regression = R"({ law = "linear", coefficients = [1.0, -0.5] })",
           .noise = R"({ law = "heteroscedastic", sd = 0.5, slope = 1.0, direction = [1.0, 0.0] })",
           .kernel = gaussian(0.5)},
       Plane(0.5, 0.5, 0.2)},
      {"mixture design, bumps",
       World{.n = "15",
             .design =
                 "{ law = \"mixture\", weights = [0.4, 0.6], means = [[1.0, 0.0], [-1.0, 1.0]], "
                 "covariances = [[[0.5, 0.2], [0.2, 0.3]], [[0.2, 0.0], [0.0, 0.4]]] }",
             .regression =
                 R"({ law = "bumps", heights = [2.0], centres = [[0.5, 0.5]], widths = [0.7] })",
             .noise = R"({ law = "normal", sd = 1.0 })",
             .kernel = gaussian(0.5)},
       Plane(-0.3, 0.5, 0.2)},
  };
  return cases;
}

TEST(FiniteN, AgreesWithSimulationInHardCases) {
  for (const HardCase& hard : hard_cases()) {
    SCOPED_TRACE(hard.name);
    const Scenario condition = scenario(hard.world, hard.plane.matrices, hard.plane.x, 20000);
    const QueryEstimates simulated =
        run(condition, {.backend = "cpu", .threads = 1}).conditions.at(0).estimates.queries.at(0);

    const FiniteN exact = finite_n(model_of(condition)).at(0);

    for (std::size_t h = 0; h < 2; ++h) {
      const auto i = static_cast<Eigen::Index>(h);
      const Estimate& bias = simulated.head_bias[h];
      EXPECT_TRUE(close(bias.value, exact.bias(i), 4 * bias.mcse));
      for (std::size_t l = h; l < 2; ++l) {
        const Estimate& figure = simulated.head_covariance[h * 2 + l];
        const double value = exact.covariance(i, static_cast<Eigen::Index>(l));
        EXPECT_TRUE(close(figure.value, value, 4 * figure.mcse)) << h << l;
        // Negative control: ten percent more.
        EXPECT_FALSE(close(figure.value, 1.1 * value, 4 * figure.mcse)) << h << l;
      }
    }
  }
}

/// A narrow kernel's grids grow as 1/b^2: they are refused before they are laid.
TEST(FiniteN, RefusesKernelsTooNarrowForTheirGrids) {
  const auto refusal = [](double bandwidth, const char* design) {
    return refusal_line([&] {
      World world = noise_world(gaussian(bandwidth), 2);
      world.design = design;
      finite_n(model_of(scenario(world, {{{1.0}, {0.0}}, {{0.6}, {0.8}}}, {0.5, 0.3})));
    });
  };
  const std::string expected =
      "exact finite-n theory of head 0: an integral needs more than 495000 points, the kernel is "
      "narrow for so few keys - take a larger bandwidth or n, use headlab theory --source "
      "first_order, or simulate with headlab run";
  for (const char* design :
       {R"({ law = "normal", dim = 2 })",
        R"({ law = "normal", dim = 2, mean = [0.5, -0.2], covariance = [[1, 0], [0, 2]] })"}) {
    for (const double bandwidth : {1e-6, 1e-4, 2e-3}) {
      EXPECT_EQ(refusal(bandwidth, design), expected) << bandwidth;
    }
  }
}

TEST(FiniteN, RefusesOrthogonalPlanesWhoseRegressionIsNoSumOfCosines) {
  const json planes = {{{1, 0}, {0, 1}, {0, 0}, {0, 0}}, {{0, 0}, {0, 0}, {1, 0}, {0, 1}}};
  World world = noise_world(gaussian(0.5), 10);
  world.design = R"({ law = "normal", dim = 4 })";
  const auto obstacle = [&] {
    const Scenario known = scenario(world, planes, {0, 0, 0, 0});
    return finite_n_obstacle(theory_model(known.conditions.at(0)), 0, 1).value_or("");
  };
  EXPECT_EQ(obstacle(), "");
  world.regression = "{ law = \"additive\", amplitude = [1, 1, 1, 1], frequency = [1, 1, 1, 1] }";
  EXPECT_EQ(obstacle(), "");
  world.regression =
      "{ law = \"bumps\", heights = [0.3], centres = [[0, 0, 0, 0]], widths = [2.0] }";
  EXPECT_NE(obstacle().find("needs a regression that is zero or a sum of up to"),
            std::string::npos);
}

TEST(FiniteN, RefusesTablesThatMemoryDoesNotHold) {
  const TheoryModel model = model_of(
      scenario(noise_world(gaussian(0.05), 2), {{{1.0}, {0.0}}, {{0.6}, {0.8}}}, {0.5, 0.3}));
  const test::PlayedMachine small{{"HEADLAB_MEMORY_LIMIT", "1000000"}};
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "of memory for the tables of exact finite-n theory",
                      refusal_line([&] { finite_n_head(model, 0, 0); }));
}

}  // namespace
}  // namespace headlab
