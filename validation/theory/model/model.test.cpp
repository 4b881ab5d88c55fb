// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/model/model.h"

#include <cmath>

#include <gtest/gtest.h>

#include "engine/scenario/condition.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/subspaces.h"
#include "engine/testing/refusal.h"
#include "kernels/laws.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

const std::string some_regression =
    "{ law = \"cosines\", amplitude = [1.0, 0.5], frequency = [[1.5, 0.2], [-0.4, 2.0]], phase = "
    "[0.3, 1.1] }";

struct Laws {
  std::string design = "{ law = \"normal\", dim = 2 }";
  std::string regression = some_regression;
  std::string noise = "{ law = \"normal\", sd = 0.5 }";
  std::string kernel = "{ law = \"gaussian\", bandwidth = 0.5 }";
};

Condition condition_of(const Laws& laws) {
  return parse_scenario(
             "[scenario]\nname = \"model\"\n[data]\nn = 30\ndesign = " + laws.design +
                 "\nregression = " + laws.regression + "\nnoise = " + laws.noise +
                 "\n[heads]\ncount = 2\ndim = 1\nsubspaces = { law = \"haar\" }\nkernel = " +
                 laws.kernel +
                 "\nweights = { law = \"explicit\", values = [0.7, 0.4] }\n[queries]\nlaw = "
                 "\"points\"\npoints = [[0.3, -0.7], [1.2, 0.4]]\n[run]\nseed = 1\n"
                 "replicates = 10\n",
             "model.toml")
      .conditions.at(0);
}

std::string refusal(const Laws& laws) {
  return refusal_line([&] { theory_model(condition_of(laws)); });
}

TEST(TheoryModel, ReadsEveryClosedRegressionAsThePlanDoes) {
  const std::vector<std::string> regressions = {
      "{ law = \"zero\" }",
      "{ law = \"linear\", coefficients = [0.6, -1.2] }",
      some_regression,
      "{ law = \"random_cosines\", length_scale = 0.7, seed = 3 }",
      "{ law = \"random_cosines\", length_scale = 0.7, smoothness = 2.5, terms = 9 }",
      "{ law = \"additive\", amplitude = [1.0, 0.4], frequency = [2.0, 1.0], phase = [0.2, 0.5] }",
      "{ law = \"single_index\", direction = [0.8, 0.6], frequency = 3.0 }",
      "{ law = \"bumps\", heights = [0.3, 2.0], centres = [[0, 0], [1, -1]], widths = [2.0, 0.4] "
      "}"};
  for (const std::string& regression : regressions) {
    const TheoryModel model = theory_model(condition_of({.regression = regression}));
    EXPECT_EQ(model.zero_regression, regression == regressions[0]);
    for (std::size_t q = 0; q < 2; ++q) {
      const GaussianLaw point{model.queries[q], MatrixXd::Zero(2, 2)};
      const FunctionMoments m = model.regression->moments(point);
      EXPECT_NEAR(m.mean, model.truth[q], 1e-13) << regression;
      EXPECT_NEAR(m.mean_square, model.truth[q] * model.truth[q], 1e-13) << regression;
      // Negative control: the function at another point.
      const GaussianLaw other{model.queries[1 - q], MatrixXd::Zero(2, 2)};
      if (!model.zero_regression) {
        EXPECT_FALSE(std::abs(model.regression->moments(other).mean - model.truth[q]) <= 1e-3)
            << regression;
      }
    }
  }
}

TEST(TheoryModel, ReadsHeadsAndQueriesAsThePlanDoes) {
  const Condition condition = condition_of({});
  const TheoryModel model = theory_model(condition);
  EXPECT_EQ(model.n, 30u);
  const auto frames = subspace_bases(condition);
  ASSERT_EQ(model.projections.size(), 2u);
  for (std::size_t h = 0; h < 2; ++h) EXPECT_EQ(model.projections[h], frames[h]);
  EXPECT_EQ(model.head_weights, (VectorXd(2) << 0.7, 0.4).finished());
  EXPECT_EQ(model.queries[1], (VectorXd(2) << 1.2, 0.4).finished());
  EXPECT_EQ(std::get<GaussianKernel>(*model.kernel).bandwidth, 0.5);
}

TEST(TheoryModel, ReadsDesigns) {
  TheoryModel model = theory_model(condition_of({}));
  EXPECT_TRUE(model.standard_design);
  EXPECT_EQ(model.design.components[0].covariance, MatrixXd::Identity(2, 2));

  model = theory_model(condition_of({.design = "{ law = \"normal\", dim = 2, ar1 = 0.5 }"}));
  EXPECT_FALSE(model.standard_design);
  const MatrixXd ar1 = (MatrixXd(2, 2) << 1, 0.5, 0.5, 1).finished();
  EXPECT_TRUE(model.design.components[0].covariance.isApprox(ar1, 1e-15));

  model = theory_model(
      condition_of({.design = "{ law = \"mixture\", weights = [0.25, 0.0, 0.75], means = [[0, 1], "
                              "[5, 5], [2, 3]], covariances = [[[1, 0], [0, 1]], [[1, 0], [0, 1]], "
                              "[[2, 0.5], [0.5, 1]]] }"}));
  EXPECT_FALSE(model.standard_design);
  ASSERT_EQ(model.design.weights, (std::vector<double>{0.25, 0.75}));
  EXPECT_EQ(model.design.components[1].mean, (VectorXd(2) << 2, 3).finished());
  const MatrixXd covariance = (MatrixXd(2, 2) << 2, 0.5, 0.5, 1).finished();
  EXPECT_TRUE(model.design.components[1].covariance.isApprox(covariance, 1e-15));
}

TEST(TheoryModel, ReadsNoise) {
  const GaussianLaw point{(VectorXd(2) << 1, -2).finished(), MatrixXd::Zero(2, 2)};
  for (const char* noise : {"{ law = \"normal\", sd = 0.5 }", "{ law = \"laplace\", sd = 0.5 }",
                            "{ law = \"student_t\", df = 4, sd = 0.5 }"}) {
    const TheoryModel model = theory_model(condition_of({.noise = noise}));
    EXPECT_TRUE(model.constant_noise);
    EXPECT_EQ(model.noise_sd, 0.5);
    EXPECT_EQ(model.noise_variance->moments(point).mean, 0.25);
  }
  const TheoryModel model = theory_model(
      condition_of({.noise = "{ law = \"heteroscedastic\", sd = 0.5, slope = 3, direction = "
                             "[1.0, 0.5] }"}));
  EXPECT_FALSE(model.constant_noise);
  EXPECT_NEAR(model.noise_variance->moments(point).mean, 0.25, 1e-15);  // direction.x = 0 there
  const GaussianLaw other{(VectorXd(2) << 2, 0).finished(), MatrixXd::Zero(2, 2)};
  EXPECT_NEAR(model.noise_variance->moments(other).mean, 0.25 * 49, 1e-13);
}

TEST(TheoryModel, NamesTheAssumptionThatFails) {
  const std::string way_out = " - simulate with headlab run, or use data.fixed_design = true";
  EXPECT_EQ(refusal({}), "accepted");
  EXPECT_EQ(refusal({.design = "{ law = \"sphere\", dim = 2 }"}),
            "model.toml:5:10: data.design: closed forms need a normal or mixture design; law "
            "\"sphere\" is neither" +
                way_out);
  EXPECT_EQ(refusal({.regression = "{ law = \"step\", direction = [1, 0] }"}),
            "model.toml:6:14: data.regression: closed forms need a regression whose Gaussian "
            "expectations are known (zero, linear, cosines, random_cosines, additive, "
            "single_index, bumps); law \"step\" is none of them" +
                way_out);
  EXPECT_EQ(refusal({.regression = "{ law = \"random_cosines\", length_scale = 1, terms = 2049 }"}),
            "model.toml:6:14: data.regression: closed forms take a number for each pair of terms, "
            "at most 2048 terms, here 2049" +
                way_out);
  EXPECT_EQ(refusal({.kernel = "{ law = \"laplace\", bandwidth = 0.5 }"}),
            "model.toml:12:10: heads.kernel: closed forms need a gaussian or softmax kernel; law "
            "\"laplace\" is neither" +
                way_out);
}

}  // namespace
}  // namespace headlab
