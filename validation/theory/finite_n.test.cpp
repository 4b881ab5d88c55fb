// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/finite_n.h"

#include <cmath>
#include <cstdlib>

#include <Eigen/Dense>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/run/run.h"
#include "engine/scenario/scenario.h"
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

/// What a scenario says besides its heads. JSON arrays are TOML arrays.
struct Setting {
  std::string kernel;
  std::string design = "law = \"normal\"";
  std::string regression = "{ law = \"zero\" }";
  std::string noise = "{ law = \"normal\", sd = 1.0 }";
  int n = 10;
  int replicates = 8;
};

Scenario scenario(const Setting& setting, const json& matrices, const json& x) {
  const std::string dim = std::to_string(x.size());
  const std::string design =
      setting.design +
      (setting.design.find("mixture") == std::string::npos ? ", dim = " + dim : "");
  return parse_scenario(
      "[scenario]\nname = \"known\"\n[data]\nn = " + std::to_string(setting.n) + "\ndesign = { " +
          design + " }\nregression = " + setting.regression + "\nnoise = " + setting.noise +
          "\n[heads]\ncount = " + std::to_string(matrices.size()) +
          "\ndim = " + std::to_string(matrices[0][0].size()) +
          "\nsubspaces = { law = \"explicit\", matrices = " + matrices.dump() + " }\nkernel = { " +
          setting.kernel + " }\n[queries]\nlaw = \"points\"\npoints = [" + x.dump() +
          "]\n[run]\nseed = 1\nreplicates = " + std::to_string(setting.replicates) + "\n",
      "known.toml");
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
  return "law = \"gaussian\", bandwidth = " + json(bandwidth).dump();
}

TheoryModel noise_model(const Plane& plane, double bandwidth, int n) {
  return model_of(scenario({.kernel = gaussian(bandwidth), .n = n}, plane.matrices, plane.x));
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
      const std::string kernel =
          c.contains("bandwidth") ? gaussian(c["bandwidth"])
                                  : "law = \"softmax\", temperature = " + c["temperature"].dump();
      const TheoryModel model = model_of(
          scenario({.kernel = kernel,
                    .regression = "{ law = \"cosines\", amplitude = " + c["amplitude"].dump() +
                                  ", frequency = " + c["frequency"].dump() +
                                  ", phase = " + c["phase"].dump() + " }",
                    .noise = "{ law = \"normal\", sd = " + c["noise_sd"].dump() + " }",
                    .n = c["n"]},
                   c["W"], c["x"]));

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
  Setting setting;
  Plane plane;
};

const std::vector<HardCase>& hard_cases() {
  static const std::vector<HardCase> cases = {
      {"small bandwidth", Setting{.kernel = gaussian(0.05), .n = 50}, Plane(0.5, 0.5, 0.2)},
      {"far query", Setting{.kernel = gaussian(0.3), .n = 25}, Plane(0.5, 4, 2)},
      {"two points", Setting{.kernel = gaussian(0.4), .n = 2}, Plane(0.5, 0.5, 0.2)},
      {"nearly aligned", Setting{.kernel = gaussian(0.3), .n = 25}, Plane(0.999, 0.5, 0.52)},
      {"nearer", Setting{.kernel = gaussian(0.3), .n = 25}, Plane(0.999999, 0.5, 0.5003)},
      {"long softmax tilt", Setting{.kernel = "law = \"softmax\", temperature = 0.5", .n = 25},
       Plane(0.5, 4, 1)},
      {"correlated design, heteroscedastic noise, linear regression",
       Setting{
           .kernel = gaussian(0.5),
           .design = "law = \"normal\", mean = [0.5, -0.2], covariance = [[1.0, 0.6], [0.6, 2.0]]",
           .regression = "{ law = \"linear\", coefficients = [1.0, -0.5] }",
           .noise = "{ law = \"heteroscedastic\", sd = 0.5, slope = 1.0, direction = [1.0, 0.0] }",
           .n = 15},
       Plane(0.5, 0.5, 0.2)},
      {"mixture design, bumps",
       Setting{.kernel = gaussian(0.5),
               .design =
                   "law = \"mixture\", weights = [0.4, 0.6], means = [[1.0, 0.0], [-1.0, 1.0]], "
                   "covariances = [[[0.5, 0.2], [0.2, 0.3]], [[0.2, 0.0], [0.0, 0.4]]]",
               .regression =
                   "{ law = \"bumps\", heights = [2.0], centres = [[0.5, 0.5]], widths = [0.7] }",
               .n = 15},
       Plane(-0.3, 0.5, 0.2)},
  };
  return cases;
}

TEST(FiniteN, AgreesWithSimulationInHardCases) {
  for (const HardCase& hard : hard_cases()) {
    SCOPED_TRACE(hard.name);
    Setting setting = hard.setting;
    setting.replicates = 20000;
    const Scenario condition = scenario(setting, hard.plane.matrices, hard.plane.x);
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
  const auto refusal = [](const std::string& kernel, const char* design) -> std::string {
    return refusal_line([&] {
      finite_n(model_of(scenario({.kernel = kernel, .design = design, .n = 2},
                                 {{{1.0}, {0.0}}, {{0.6}, {0.8}}}, {0.5, 0.3})));
    });
  };
  const std::string expected =
      "exact finite-n theory of head 0: an integral needs more than 495000 points, the kernel is "
      "narrow for so few keys - take a larger bandwidth or n, use headlab theory --source "
      "first_order, or simulate with headlab run";
  for (const char* design :
       {"law = \"normal\"",
        "law = \"normal\", mean = [0.5, -0.2], covariance = [[1, 0], [0, 2]]"}) {
    EXPECT_EQ(refusal("law = \"gaussian\", bandwidth = 1e-6", design), expected);
    EXPECT_EQ(refusal("law = \"gaussian\", bandwidth = 1e-4", design), expected);
    EXPECT_EQ(refusal("law = \"gaussian\", bandwidth = 2e-3", design), expected);
  }
}

TEST(FiniteN, RefusesOrthogonalPlanesWhoseRegressionIsNoSumOfCosines) {
  const json planes = {{{1, 0}, {0, 1}, {0, 0}, {0, 0}}, {{0, 0}, {0, 0}, {1, 0}, {0, 1}}};
  Setting setting{.kernel = "law = \"gaussian\", bandwidth = 0.5"};
  const auto obstacle = [&] {
    const Scenario known = scenario(setting, planes, {0, 0, 0, 0});
    return finite_n_obstacle(theory_model(known.conditions.at(0)), 0, 1).value_or("");
  };
  EXPECT_EQ(obstacle(), "");
  setting.regression = "{ law = \"additive\", amplitude = [1, 1, 1, 1], frequency = [1, 1, 1, 1] }";
  EXPECT_EQ(obstacle(), "");
  setting.regression =
      "{ law = \"bumps\", heights = [0.3], centres = [[0, 0, 0, 0]], widths = [2.0] }";
  EXPECT_NE(obstacle().find("needs a regression that is zero or a sum of up to"),
            std::string::npos);
}

TEST(FiniteN, RefusesTablesThatMemoryDoesNotHold) {
  const TheoryModel model =
      model_of(scenario({.kernel = "law = \"gaussian\", bandwidth = 0.05", .n = 2},
                        {{{1.0}, {0.0}}, {{0.6}, {0.8}}}, {0.5, 0.3}));
  const test::PlayedMachine small{{"HEADLAB_MEMORY_LIMIT", "1000000"}};
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "of memory for the tables of exact finite-n theory",
                      refusal_line([&] { finite_n_head(model, 0, 0); }));
}

}  // namespace
}  // namespace headlab
