// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/exact/radial_finite_n.h"

#include <cmath>
#include <complex>
#include <string>

#include <gtest/gtest.h>

#include "engine/files/error.h"
#include "engine/run/run.h"
#include "engine/scenario/scenario.h"
#include "validation/theory/finite_n.h"

namespace headlab {
namespace {

using Eigen::VectorXd;

Scenario scenario(int n, int k, const std::string& regression, const std::string& x,
                  const std::string& subspaces = "law = \"orthogonal\"") {
  return parse_scenario(
      "[scenario]\nname = \"radial\"\n[data]\nn = " + std::to_string(n) +
          "\ndesign = { law = \"normal\", dim = " + std::to_string(2 * k) + " }\nregression = { " +
          regression + " }\nnoise = { law = \"normal\", sd = 0.5 }\n[heads]\ncount = 2\ndim = " +
          std::to_string(k) + "\nsubspaces = { " + subspaces +
          " }\nkernel = { law = \"gaussian\", bandwidth = 0.6 }\n"
          "[queries]\nlaw = \"points\"\npoints = [" +
          x + "]\n[run]\nseed = 3\nreplicates = 20000\n",
      "radial.toml");
}

TEST(RadialFiniteN, WaveOfFrequencyZeroIsTheNoncentralChiDensity) {
  const Eigen::ArrayXd radius = Eigen::ArrayXd::LinSpaced(9, 0.5, 6);
  for (const int k : {2, 3, 5, 16}) {
    VectorXd q = VectorXd::Zero(k);
    q(1) = 2;
    const Eigen::ArrayXd density = radial_density(radial_head(k, 2, 1), radius);
    EXPECT_LE((radial_wave(VectorXd::Zero(k), q, radius) - density).abs().maxCoeff(), 1e-12);
    EXPECT_GT((radial_wave(VectorXd::Zero(k), q / 2, radius) - density).abs().maxCoeff(), 1e-3);
  }
}

TEST(RadialFiniteN, WavesIntegrateToTheCharacteristicFunction) {
  for (const int k : {1, 2, 3, 4, 9}) {
    VectorXd v = VectorXd::LinSpaced(k, -0.6, 0.9), q = VectorXd::LinSpaced(k, 1.2, -0.3);
    // For k = 1 the radius is signed.
    const Nodes radius = panel_nodes(k == 1 ? -14 : 0, 14, {}, [](double) { return 0.5; });
    const auto sum = (radial_wave(v, q, radius.points) * radius.weights).sum();
    EXPECT_LE(std::abs(sum - std::exp(-v.squaredNorm() / 2)), 1e-12) << k;
    EXPECT_GT(std::abs(sum - std::exp(-v.squaredNorm() / 2.1)), 1e-3) << k;
  }
}

TEST(RadialFiniteN, RulesOverAnglesAgreeWhereTheyMeet) {
  // J_v is smooth in r; at the reach of a rule another one takes over.
  for (const int k : {2, 3, 8}) {
    VectorXd v = VectorXd::Constant(k, 9.0), q = VectorXd::Constant(k, 0.1);
    const double size =
        std::abs(std::sqrt(std::complex<double>(q.squaredNorm() - v.squaredNorm(), -2 * q.dot(v))));
    for (const double reach : {1.5, 8.5, 28.0, 73.0}) {
      Eigen::ArrayXd either(2);
      either << reach / size * (1 - 1e-12), reach / size * (1 + 1e-12);
      const Eigen::ArrayXcd wave = radial_wave(v, q, either);
      // Relative to what would cancel: the wave of frequency zero.
      const double scale = radial_wave(VectorXd::Zero(k), q, either).abs().maxCoeff();
      EXPECT_LE(std::abs(wave(0) - wave(1)), 1e-10 * scale) << k << ' ' << reach;
    }
    EXPECT_THROW(radial_wave(100 * v, q, Eigen::ArrayXd::Constant(1, 5.0)), InvalidInput);
  }
}

TEST(RadialFiniteN, OneDimensionalHeadsAreThoseOfTheScalarForm) {
  const std::string cosines =
      "law = \"cosines\", amplitude = [1.0, 0.5], phase = [0.3, -0.4], "
      "frequency = [[1, 0.5], [0.2, 2]]";
  const Resolution resolution{36, 25000};
  for (const std::string x : {"[0.5, -0.3]", "[-1, 0.2]", "[0, 0]"}) {
    const TheoryModel model = theory_model(scenario(20, 1, cosines, x).conditions.at(0));
    RadialHeads heads(model, 0);
    const ScalarHead first = scalar_head(model, model.queries[0], 0);
    const ScalarHead second = scalar_head(model, model.queries[0], 1);
    const HeadMoments own = scalar_head_moments(
        model, model.n, model.truth[0], first, sigma_range(first, model.n, resolution), resolution);
    EXPECT_LE(std::abs(heads.head(0, resolution).mean - own.mean), 1e-9) << x;
    EXPECT_LE(std::abs(heads.head(0, resolution).square - own.square), 1e-9) << x;
    EXPECT_GT(std::abs(heads.head(1, resolution).square - own.square), 1e-4) << x;
    const PairMoments pair = scalar_pair_moments(model, PairTokens(model, 0, 1), model.truth[0],
                                                 first, second, resolution);
    EXPECT_LE(std::abs(heads.pair(0, 1, resolution).product - pair.product), 1e-9) << x;
    EXPECT_LE(std::abs(heads.pair(1, 0, resolution).product - pair.product), 1e-9) << x;
  }
}

TEST(RadialFiniteN, AgreesWithSimulation) {
  const std::string cosines = "law = \"cosines\", amplitude = [1.0, 0.5], phase = [0.3, -0.4], ";
  const struct {
    int n, k;
    std::string regression, x;
  } cases[] = {
      {20, 2, cosines + "frequency = [[1, 0.5, -1, 0.3], [0.2, 2, 0.4, 1]]", "[0.5, -0.3, 0.2, 1]"},
      {8, 3, cosines + "frequency = [[1, 0.5, -1, 0.3, 0, 0.5], [0.2, 1.5, 0.4, 1, 0.6, 0]]",
       "[0, 0, 0, 0.5, -1, 1]"},
      {2, 2, "law = \"zero\"", "[1, 0, 0, 0]"},
  };
  for (const auto& c : cases) {
    const Scenario condition = scenario(c.n, c.k, c.regression, c.x);
    const QueryEstimates simulated =
        run(condition, {.backend = "cpu", .threads = 1}).conditions.at(0).estimates.queries.at(0);
    const FiniteN exact = finite_n(theory_model(condition.conditions.at(0))).at(0);
    EXPECT_LE(std::abs(exact.normalisation_error), 1e-9);
    for (Eigen::Index h = 0; h < 2; ++h) {
      const Estimate& bias = simulated.head_bias[static_cast<std::size_t>(h)];
      EXPECT_LE(std::abs(bias.value - exact.bias(h)), 4 * bias.mcse);
      for (Eigen::Index l = h; l < 2; ++l) {
        const Estimate& figure = simulated.head_covariance[static_cast<std::size_t>(2 * h + l)];
        const double value = exact.covariance(h, l);
        EXPECT_LE(std::abs(figure.value - value), 4 * figure.mcse) << h << l;
        // Negative control: ten percent more.
        EXPECT_FALSE(std::abs(figure.value - 1.1 * value) <= 4 * figure.mcse) << h << l;
      }
    }
  }
}

TEST(RadialFiniteN, IsTheFloorForNoiseAloneOnOrthogonalSubspaces) {
  const Scenario two = scenario(10, 2, "law = \"zero\"", "[0.3, 0, 0, 0.2]");
  const FiniteN exact = finite_n(theory_model(two.conditions.at(0))).at(0);
  EXPECT_NEAR(exact.covariance(0, 1), 0.25 / 10, 1e-10);
  EXPECT_GT(exact.covariance(0, 0), 0.25 / 10 + 1e-3);
}

TEST(RadialFiniteN, NamesWhatStandsInTheWay) {
  const Scenario turned = scenario(10, 3, "law = \"zero\"", "[0.3, 0, 0, 0.2, 0, 0]",
                                   "law = \"principal_angles\", angles = [0.5, 1.0, 1.0]");
  TheoryModel model = theory_model(turned.conditions.at(0));
  EXPECT_EQ(finite_n_obstacle(model, 0, 0), std::nullopt);
  EXPECT_NE(finite_n_obstacle(model, 0, 1).value_or("").find("orthogonal"), std::string::npos);
  model.constant_noise = false;
  EXPECT_NE(finite_n_obstacle(model, 0, 0).value_or("").find("constant variance"),
            std::string::npos);
}

}  // namespace
}  // namespace headlab
