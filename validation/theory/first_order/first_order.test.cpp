// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/first_order/first_order.h"

#include <cmath>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/run/run.h"
#include "engine/scenario/testing/known_world.h"
#include "kernels/testing/known_cases.h"

namespace headlab {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using nlohmann::json;

/// Largest relative difference between biases and covariances and the known ones; NaN is infinite.
double distance(const HeadTheory& theory, const json& known) {
  double largest = 0;
  auto look = [&](double value, double expected) {
    const double difference = std::abs(value / expected - 1);
    largest = difference <= largest ? largest : std::isnan(difference) ? INFINITY : difference;
  };
  for (Index h = 0; h < theory.bias.size(); ++h) {
    const auto row = static_cast<std::size_t>(h);
    look(theory.bias(h), known["bias"][row]);
    for (Index l = 0; l < theory.bias.size(); ++l) {
      look(theory.covariance(h, l), known["covariance"][row][static_cast<std::size_t>(l)]);
    }
  }
  return largest;
}

TEST(FirstOrder, GivesTheKnownAnswers) {
  int cases = 0;
  for (const char* name : {"first_order", "softmax_first_order"}) {
    for (const json& known : test::known(name)) {
      World world = test::known_world(known);
      world.run = "replicates = 100";
      TheoryModel model = theory_model(world.condition());
      EXPECT_LE(distance(first_order(model).at(0), known), 1e-10) << name;
      // Negative controls: one point fewer, noise a little stronger.
      --model.n;
      EXPECT_FALSE(distance(first_order(model).at(0), known) <= 1e-10) << name;
      ++model.n;
      model.noise_sd *= 1 + 1e-6;
      EXPECT_FALSE(distance(first_order(model).at(0), known) <= 1e-10) << name;
      ++cases;
    }
  }
  EXPECT_GE(cases, 4);
}

const std::string seed_3 = "seed = 3\nreplicates = ";

World noise_alone(const std::string& n, const std::string& kernel) {
  return {.n = n,
          .design = "{ law = \"normal\", dim = 2 }",
          .noise = "{ law = \"normal\", sd = 1 }",
          .heads =
              "count = 2\ndim = 1\nsubspaces = { law = \"explicit\", matrices = [[[1], [0]], "
              "[[0.6], [0.8]]] }",
          .kernel = kernel,
          .points = "[[0.4, -0.2]]",
          .run = seed_3 + "100"};
}

TEST(FirstOrder, TheNextTermOfNoiseIsTheOneByHand) {
  // V = s2 nu_2/n [1 + (3 nu_2 - 1 - 2 nu_3/nu_2)/n], nu_p of one coordinate by hand.
  const double b = 0.5, q = 0.4, n = 200;
  auto mass = [&](double p) {
    const double a = p / (b * b);
    return std::exp(-q * q * a / (1 + a) / 2) / std::sqrt(1 + a);
  };
  const double nu_2 = mass(2) / std::pow(mass(1), 2);
  const double nu_3 = mass(3) / std::pow(mass(1), 3);
  const FirstOrder theory =
      first_order(
          theory_model(noise_alone("200", "{ law = \"gaussian\", bandwidth = 0.5 }").condition()))
          .at(0);
  EXPECT_NEAR(theory.covariance(0, 0), nu_2 / n, 1e-15);
  const double expected = nu_2 / n * (3 * nu_2 - 1 - 2 * nu_3 / nu_2) / n;
  EXPECT_NEAR(theory.next_covariance(0, 0), expected, 1e-12 * expected);
  EXPECT_NE(expected, theory.next_covariance(1, 1));
  EXPECT_EQ(theory.bias_remainder(0), 0);
}

QueryEstimates simulate_one(const World& text) {
  Scenario scenario;
  scenario.conditions = {text.condition()};
  return run(scenario, {.threads = 1}).conditions.at(0).estimates.queries.at(0);
}

/// Largest |z| of simulated head covariances, and biases where they have any, against closed ones
/// with a share of the next term added and `allowance` times the remainder allowed; NaN counts as
/// infinite.
double largest_z(const QueryEstimates& simulated, const FirstOrder& theory, double share,
                 double allowance = 0) {
  double largest = 0;
  const auto look = [&](const Estimate& figure, double closed, double remainder) {
    if (figure.mcse == 0 && figure.value == closed) return;
    const double z =
        (std::abs(figure.value - closed) - allowance * std::abs(remainder)) / figure.mcse;
    largest = z <= largest ? largest : std::isnan(z) ? INFINITY : z;
  };
  const Index heads = theory.bias.size();
  for (Index h = 0; h < heads; ++h) {
    look(simulated.head_bias[static_cast<std::size_t>(h)],
         theory.bias(h) + share * theory.next_bias(h), theory.bias_remainder(h));
    for (Index l = 0; l < heads; ++l) {
      look(simulated.head_covariance[static_cast<std::size_t>(h * heads + l)],
           theory.covariance(h, l) + share * theory.next_covariance(h, l),
           theory.covariance_remainder(h, l));
    }
  }
  return largest;
}

TEST(FirstOrder, TheNextTermTakesItToTheSimulation) {
  World gaussian = noise_alone("100", "{ law = \"gaussian\", bandwidth = 0.5 }");
  World softmax = noise_alone("60", "{ law = \"softmax\", temperature = 0.8 }");
  World uneven = gaussian;
  uneven.noise = "{ law = \"heteroscedastic\", sd = 0.5, slope = 2, direction = [1.0, 0.3] }";
  World signal = noise_alone("25", "{ law = \"gaussian\", bandwidth = 0.5 }");
  signal.regression =
      "{ law = \"cosines\", amplitude = [1.0], frequency = [[2.0, -0.7]], phase = [0.4] }";
  signal.noise = "{ law = \"normal\", sd = 0.05 }";
  World linear = signal;
  linear.regression = "{ law = \"linear\", coefficients = [1.0, 0.5] }";
  for (World& text : std::vector<World>{gaussian, softmax, uneven, signal, linear}) {
    text.run = seed_3 + (text.n == "25" ? "400000" : "60000");
    const QueryEstimates simulated = simulate_one(text);
    const FirstOrder theory = first_order(theory_model(text.condition())).at(0);
    EXPECT_LT(largest_z(simulated, theory, 1), 5) << text.kernel << text.noise;
    // Negative controls: without it, and with the opposite sign.
    EXPECT_GT(largest_z(simulated, theory, 0), 8) << text.kernel << text.noise;
    EXPECT_GT(largest_z(simulated, theory, -1), 8) << text.kernel << text.noise;
  }
}

TEST(FirstOrder, TheNextTermOfABiasTakesItToTheSimulation) {
  World text = noise_alone("30", "{ law = \"gaussian\", bandwidth = 0.4 }");
  text.regression = "{ law = \"linear\", coefficients = [1.0, 0.5] }";
  text.noise = "{ law = \"normal\", sd = 0.05 }";
  text.queries = "law = \"points\"\npoints = [[1.2, 0.5]]";
  text.run = seed_3 + "2000000";
  const QueryEstimates simulated = simulate_one(text);
  const FirstOrder theory = first_order(theory_model(text.condition())).at(0);
  const auto z = [&](double share) {
    const Estimate& figure = simulated.head_bias[0];
    return std::abs(figure.value - theory.bias(0) - share * theory.next_bias(0)) / figure.mcse;
  };
  EXPECT_LE(std::abs(simulated.head_bias[0].value - theory.bias(0)),
            theory.bias_remainder(0) + 4 * simulated.head_bias[0].mcse);
  EXPECT_LT(z(1), z(0) / 2);
  // Negative controls: without it, and with the opposite sign.
  EXPECT_GT(z(0), 8);
  EXPECT_GT(z(-1), 8);
}

TEST(FirstOrder, HoldsForCorrelatedAndMixtureDesigns) {
  // Large n, so that the remainder is small compared with the standard errors.
  World text = noise_alone("3000", "{ law = \"gaussian\", bandwidth = 0.5 }");
  text.regression =
      "{ law = \"cosines\", amplitude = [1.0], frequency = [[1.2, -0.7]], phase = [0.4] }";
  text.noise = "{ law = \"normal\", sd = 0.4 }";
  text.queries = "law = \"points\"\npoints = [[1.0, -0.6]]";
  text.run = seed_3 + "1500";
  for (const char* design :
       {"{ law = \"normal\", dim = 2, mean = [0.3, -0.2], covariance = [[1.8, 0.9], [0.9, 0.7]] }",
        "{ law = \"mixture\", weights = [0.4, 0.6], means = [[0.5, 1], [-1, 0]], covariances = "
        "[[[1, 0.3], [0.3, 0.5]], [[0.6, 0], [0, 1]]] }"}) {
    text.design = design;
    for (const char* kernel :
         {"{ law = \"gaussian\", bandwidth = 0.5 }", "{ law = \"softmax\", temperature = 1.0 }"}) {
      text.kernel = kernel;
      const QueryEstimates simulated = simulate_one(text);
      TheoryModel model = theory_model(text.condition());
      EXPECT_LT(largest_z(simulated, first_order(model).at(0), 0, 1), 4.5) << design << kernel;
      // Negative control: the standard design in the closed form alone.
      model.design = {{1.0}, {{VectorXd::Zero(2), MatrixXd::Identity(2, 2)}}};
      EXPECT_GT(largest_z(simulated, first_order(model).at(0), 0, 1), 8) << design << kernel;
    }
  }
}

TEST(FirstOrder, SharesOneComponentCutInTwo) {
  World text = noise_alone("50", "{ law = \"gaussian\", bandwidth = 0.5 }");
  const HeadTheory whole = first_order(theory_model(text.condition())).at(0);
  text.design = "{ law = \"mixture\", weights = [0.3, 0.7], means = [[0, 0], [0, 0]] }";
  const HeadTheory halves = first_order(theory_model(text.condition())).at(0);
  EXPECT_TRUE(halves.covariance.isApprox(whole.covariance, 1e-14));
  text.design = "{ law = \"mixture\", weights = [0.3, 0.7], means = [[0, 0], [0, 0.01]] }";
  EXPECT_FALSE(first_order(theory_model(text.condition()))
                   .at(0)
                   .covariance.isApprox(whole.covariance, 1e-6));
}

/// A design and its queries moved far away, with a linear regression, change m by a constant alone.
TEST(FirstOrder, AConstantInTheRegressionChangesNothing) {
  const auto at_mean = [](double mean) {
    TheoryModel model;
    model.n = 1000;
    model.design.weights = {1.0};
    model.design.components = {{VectorXd::Constant(2, mean), 1e-4 * MatrixXd::Identity(2, 2)}};
    const VectorXd coefficients{{100, 50}};
    model.regression = std::make_shared<PolynomialFunction>(0, coefficients);
    model.noise_sd = 0.1;
    model.kernel = GaussianKernel{.bandwidth = 0.005};
    model.projections = {MatrixXd{{1}, {0}}, MatrixXd{{0.6}, {0.8}}};
    model.head_weights = VectorXd::Constant(2, 0.5);
    model.queries = {VectorXd{{mean + 0.005, mean - 0.002}}};
    model.truth = {coefficients.dot(model.queries[0])};
    return first_order(model).at(0);
  };
  const HeadTheory near = at_mean(0);
  EXPECT_GT(near.covariance(0, 0), 1e-5);
  for (const double mean : {1e3, 1e5, 1e6}) {
    const HeadTheory far = at_mean(mean);
    for (Index h = 0; h < 2; ++h) {
      for (Index l = 0; l < 2; ++l) {
        // The query itself is rounded, by eps mean on a scale of 0.005.
        const double tolerance = 1e3 * 2.2e-16 * mean / 0.005 * near.covariance(0, 0);
        EXPECT_NEAR(far.covariance(h, l), near.covariance(h, l), tolerance) << mean;
        EXPECT_GE(std::abs(far.covariance_remainder(h, l)),
                  std::abs(near.covariance_remainder(h, l)) - tolerance);
      }
    }
  }
}

/// Where no variance is known apart from the squares, the remainder says what they lose.
TEST(FirstOrder, TheRemainderCountsRounding) {
  const auto relative = [](double height) {
    TheoryModel model;
    model.n = 1000;
    model.design.weights = {1.0};
    model.design.components = {{VectorXd::Zero(1), MatrixXd::Identity(1, 1)}};
    // Nearly constant, and of size `height`.
    model.regression = std::make_shared<CosineSumFunction>(
        VectorXd::Constant(1, height), MatrixXd::Constant(1, 1, 1e-6), VectorXd::Zero(1));
    model.noise_sd = 0.01;
    model.kernel = GaussianKernel{.bandwidth = 0.5};
    model.projections = {MatrixXd{{1}}};
    model.head_weights = VectorXd::Ones(1);
    model.queries = {VectorXd::Zero(1)};
    model.truth = {height};
    const HeadTheory theory = first_order(model).at(0);
    return std::abs(theory.covariance_remainder(0, 0) / theory.covariance(0, 0));
  };
  EXPECT_LT(relative(1), 0.1);
  EXPECT_GT(relative(1e6), 0.5);
}

}  // namespace
}  // namespace headlab
