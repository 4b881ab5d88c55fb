// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/population/population_error.h"

#include <cmath>
#include <numbers>
#include <random>
#include <string>

#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <boost/math/special_functions/bessel.hpp>
#include <gtest/gtest.h>

#include "engine/files/error.h"
#include "engine/run/run.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/scenario.h"
#include "engine/testing/refusal.h"
#include "kernels/laws.h"
#include "validation/theory/exact/scalar_finite_n.h"
#include "validation/theory/model/panels.h"

namespace headlab {
namespace {

constexpr double digits = 30;

/// A case of the comparison with simulation, and with other theory.
struct Case {
  std::string regression;  ///< PHASES and SEED are replaced by those of a draw
  std::string kernel;
  int d, heads, k, n;
};

std::string replaced(std::string text, const std::string& word, const std::string& by) {
  const std::size_t at = text.find(word);
  return at == std::string::npos ? text : text.replace(at, word.size(), by);
}

Scenario scenario(const Case& c, int seed, int queries = 16, int replicates = 24) {
  std::mt19937 generator(static_cast<unsigned>(seed));
  std::uniform_real_distribution<double> angle(0, 2 * std::numbers::pi);
  std::string phases = "phase = [";
  for (int j = 0; j < c.d; ++j) phases += (j ? ", " : "") + std::to_string(angle(generator));
  const std::string regression = replaced(replaced(c.regression, "PHASES", phases + "]"), "SEED",
                                          "seed = " + std::to_string(seed));
  return parse_scenario(
      "[scenario]\nname = \"population\"\n[data]\nn = " + std::to_string(c.n) +
          "\ndesign = { law = \"normal\", dim = " + std::to_string(c.d) + " }\nregression = { " +
          regression + " }\nnoise = { law = \"normal\", sd = 0.7 }\n[heads]\ncount = " +
          std::to_string(c.heads) + "\ndim = " + std::to_string(c.k) +
          "\nsubspaces = { law = \"orthogonal\" }\nkernel = { " + c.kernel +
          " }\n[queries]\nlaw = \"design\"\ncount = " + std::to_string(queries) +
          "\nseed = " + std::to_string(seed) + "\n[run]\nseed = " + std::to_string(seed) +
          "\nreplicates = " + std::to_string(replicates) + "\n",
      "population.toml");
}

PopulationDomain domain_of(const Condition& condition, const TruthLaw& truth) {
  return {.softmax = std::holds_alternative<SoftmaxKernel>(*condition.kernel),
          .k = condition.k,
          .correlations = truth.correlations};
}

double width_of(const Condition& condition) {
  if (const auto* softmax = std::get_if<SoftmaxKernel>(&*condition.kernel))
    return softmax->temperature;
  return std::get<GaussianKernel>(*condition.kernel).bandwidth;
}

PopulationError theory(const Condition& condition) {
  const TruthLaw truth = truth_law(condition);
  const PopulationSetting setting = {width_of(condition), condition.n};
  const PopulationHead head = population_heads(domain_of(condition, truth), {&setting, 1}).at(0);
  const int d = std::get<NormalDesign>(*condition.design).dim;
  return population_error(
      head, {static_cast<double>(condition.heads), condition.k, d, condition.n, 0.7}, truth);
}

/// Mean and standard error over independent draws of truth, queries and training sets.
struct Spread {
  double sum = 0, squares = 0;
  int count = 0;
  void add(double x) {
    sum += x;
    squares += x * x;
    ++count;
  }
  double mean() const { return sum / count; }
  double error() const { return std::sqrt((squares / count - mean() * mean()) / (count - 1)); }
};

TEST(Zonal, FactorsAreThoseOfBesselFunctions) {
  for (const int k : {1, 2, 3, 6, 9}) {
    const double nu = 0.5 * k - 1;
    for (const double z : {1e-3, 0.3, 4.0, 60.0, 400.0}) {
      const ZonalFactors factors = zonal_factors(k, 8, z);
      const double first = boost::math::cyl_bessel_i(nu, z);
      EXPECT_LE(std::abs(factors.log_scaled -
                         (std::lgamma(nu + 1) + nu * std::log(2 / z) + std::log(first) - z)),
                5e-11)  // Debye's fifth term at order 60 is about 2e-11
          << k << ' ' << z;
      for (int j = 0; j < 8; ++j) {
        const double ratio =
            boost::math::cyl_bessel_i(nu + j + 1, z) / boost::math::cyl_bessel_i(nu + j, z);
        EXPECT_LE(std::abs(factors.ratios(j) / ratio - 1), 1e-12) << k << ' ' << z << ' ' << j;
        EXPECT_GT(std::abs(zonal_factors(k + 1, 8, z).ratios(j) / ratio - 1), 1e-5);
      }
    }
  }
}

TEST(Zonal, WavesAreBesselFunctionsWithTheirHarmonics) {
  for (const int k : {1, 2, 3, 8}) {
    const double nu = 0.5 * k - 1;
    for (const double x : {0.1, 2.0, 15.0}) {
      const Eigen::ArrayXd waves = zonal_waves(k, 6, x);
      const Eigen::ArrayXd ratios = harmonic_ratios(k, 6);
      double harmonics = 1;
      for (int j = 0; j < (k == 1 ? 2 : 6); ++j) {
        const double bessel = nu < 0 ? (j == 0 ? std::cos(x) : std::sin(x))
                                     : std::tgamma(nu + 1) * std::pow(2 / x, nu) *
                                           boost::math::cyl_bessel_j(nu + j, x);
        EXPECT_LE(std::abs(waves(j) - std::sqrt(harmonics) * bessel), 1e-13) << k << ' ' << x;
        harmonics *= ratios(j);
      }
    }
  }
}

TEST(Zonal, ConditionalCorrelationsAverageToThoseOfTheDesign) {
  const Nodes radius = panel_nodes(0, 12, {}, [](double) { return 1.0; });
  for (const int k : {1, 2, 5, 40}) {
    const double q = 0.8 * std::sqrt(k);
    const Nodes nodes = k < 40 ? radius : panel_nodes(0, 18, {}, [](double) { return 1.0; });
    const Eigen::VectorXd mass = nodes.weights * nodes.points.unaryExpr([&](double r) {
      return noncentral_chi_density(k, q, r);
    });
    EXPECT_LE(std::abs(mass.sum() - 1), 1e-9);
    for (const Correlation c : {Correlation{Correlation::Kind::gaussian, 0.9},
                                Correlation{Correlation::Kind::gaussian, 5.0},
                                Correlation{Correlation::Kind::wave, 1.5}}) {
      const double mean = mass.dot(conditional_correlation(c, k, q, nodes.points) * mass);
      // A wave's mean over directions of one coordinate of U_1 - U_2 ~ N(0, 2).
      const double expected =
          c.kind == Correlation::Kind::wave ? std::exp(-c.scale * c.scale) : c.mean(k);
      EXPECT_LE(std::abs(mean - expected), 1e-10) << k << ' ' << c.scale;
      // Negative control: about another query the mean is the same, the conditional one is not.
      const Eigen::MatrixXd moved = conditional_correlation(c, k, q + 0.2, nodes.points);
      EXPECT_GT((moved - conditional_correlation(c, k, q, nodes.points)).cwiseAbs().maxCoeff(),
                1e-4);
    }
  }
}

/// E sum w_i^2 at a query, by the tables of validation/theory/exact/scalar_finite_n.h, averaged
/// here.
double noise_by_older_theory(int k, double bandwidth, std::uint64_t n) {
  const Resolution resolution{digits, 25000};
  const auto at = [&](double q) {
    const ScalarHead head = radial_head(k, q, bandwidth);
    return noncentral_chi_density(k, 0, q) *
           noise_head_moments(n, 1, head, sigma_range(head, n, resolution), resolution).square;
  };
  return boost::math::quadrature::gauss_kronrod<double, 61>::integrate(at, 1e-9, std::sqrt(k) + 6.5,
                                                                       0);
}

TEST(PopulationHead, NoiseIsTheMeanOverQueriesOfTheExactTheory) {
  for (const auto& [k, b, n] :
       {std::tuple{1, 0.3, 30}, {1, 0.17, 1000}, {2, 0.5, 100}, {3, 0.6, 10}, {6, 1.2, 1000}}) {
    const PopulationSetting setting = {b, static_cast<std::uint64_t>(n)};
    const PopulationHead head = population_heads({.k = k, .correlations = {}}, {&setting, 1}).at(0);
    const double expected = noise_by_older_theory(k, b, setting.n);
    EXPECT_LE(std::abs(head.squares - expected), 1e-5 * expected) << k;
    EXPECT_GT(std::abs(head.squares - noise_by_older_theory(k, 1.01 * b, setting.n)),
              1e-5 * expected);
  }
}

TEST(PopulationHead, TendsToTheFirstOrder) {
  // Gamma = E Z(2a)/Z(a)^2 a dimension, Z(A) = E K.
  const double b = 1.5, a = 1 / (b * b);
  const double gamma = std::pow(1 + a, 1.5) / std::sqrt(1 + 3 * a);
  for (const int k : {1, 2, 4}) {
    const PopulationSetting setting = {b, 100'000'000};
    const Correlation c = {Correlation::Kind::gaussian, 2.0};
    const PopulationHead head =
        population_heads({.k = k, .correlations = {c}}, {&setting, 1}).at(0);
    EXPECT_LE(std::abs(1e8 * head.squares / std::pow(gamma, k) - 1), 1e-4) << k;
    EXPECT_GT(std::abs(1e8 * head.squares / std::pow(1.001 * gamma, k) - 1), 1e-4) << k;
    // U given q is N(q/(1+b^2), b^2/(1+b^2)) under the weights.
    const double spread = b * b / (1 + b * b), apart = spread * (1 + spread);
    const auto mean = [&](double variance) { return std::pow(1 + variance / 4, -0.5 * k); };
    EXPECT_LE(std::abs(head.to_query(0) - mean(apart)), 1e-6) << k;
    EXPECT_LE(std::abs(head.pairs(0) - mean(2 * spread)), 1e-6) << k;
    EXPECT_LE(std::abs(head.independent_sets(0) - mean(2 * spread)), 1e-6) << k;
    const double marginal = spread + (1 - spread) * (1 - spread);
    EXPECT_LE(std::abs(head.one_weight(0) - mean(1 + marginal)), 1e-6) << k;
    EXPECT_LE(std::abs(head.independent_point(0) - mean(1 + marginal)), 1e-6) << k;
  }
}

TEST(PopulationHead, WeightsSumToOneAtATrillionPoints) {
  for (const bool softmax : {false, true}) {
    for (const int k : {1, 4}) {
      std::vector<PopulationSetting> settings;
      for (const std::uint64_t n : {2ULL, 1000ULL, 1'000'000'000'000ULL}) {
        settings.push_back({softmax ? 0.8 : 0.4, n});
      }
      // A window as narrow as so many points allow.
      settings.push_back({softmax ? 0.5 : 0.01, 1'000'000'000'000});
      for (const PopulationHead& head :
           population_heads({.softmax = softmax, .k = k, .correlations = {}}, settings)) {
        EXPECT_LE(std::abs(head.normalisation_error), 1e-9) << k;
        EXPECT_GT(head.squares, 0);
        EXPECT_LE(head.squares, 1);
      }
    }
  }
}

TEST(PopulationHead, ManySettingsAreTheSameAsOne) {
  const std::vector<PopulationSetting> settings = {{0.4, 30}, {0.4, 100000}, {0.8, 30}};
  const PopulationDomain domain = {
      .k = 2, .correlations = {{Correlation::Kind::gaussian, 1.0}, {Correlation::Kind::wave, 2.0}}};
  const auto together = population_heads(domain, settings, 2);
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const PopulationHead alone = population_heads(domain, {&settings[i], 1}).at(0);
    EXPECT_LE(std::abs(together[i].squares - alone.squares), 1e-8);
    EXPECT_LE((together[i].pairs - alone.pairs).abs().maxCoeff(), 1e-8);
    EXPECT_LE((together[i].independent_sets - alone.independent_sets).abs().maxCoeff(), 1e-8);
  }
}

TEST(PopulationHead, RefusesAKernelThatIsTooNarrow) {
  const PopulationSetting setting = {1e-6, 100};
  EXPECT_THROW(population_heads({.k = 3, .correlations = {}}, {&setting, 1}), InvalidInput);
}

class AgainstSimulation : public testing::TestWithParam<Case> {};

TEST_P(AgainstSimulation, EveryFigureAgrees) {
  const Case& c = GetParam();
  constexpr int seeds = 160;
  Spread mse, bias, variance, covariance;
  for (int seed = 1; seed <= seeds; ++seed) {
    const ConditionEstimates estimates =
        run(scenario(c, seed), {.backend = "cpu", .threads = 1}).conditions.at(0).estimates;
    mse.add(estimates.mse.value);
    bias.add(estimates.bias_squared.value);
    variance.add(estimates.head_variance_mean.value);
    covariance.add(estimates.head_covariance_mean.value);
  }
  const PopulationError exact = theory(scenario(c, 1).conditions.at(0));
  const auto compare = [](const Spread& seen, double value, const char* what) {
    EXPECT_LE(std::abs(seen.mean() - value), 4 * seen.error())
        << what << ' ' << seen.mean() << " ± " << seen.error() << " against " << value;
    // Negative control: a figure off by eight standard errors is found out.
    EXPECT_FALSE(std::abs(seen.mean() - (value + 8 * seen.error())) <= 4 * seen.error());
    EXPECT_LE(8 * seen.error(), 0.5 * std::abs(value) + 0.03) << what << ": too blunt a comparison";
  };
  compare(mse, exact.mse, "mse");
  compare(bias, exact.squared_bias, "bias");
  compare(variance, exact.variance, "variance");
  if (c.heads > 1) compare(covariance, exact.covariance, "covariance");
}

const std::string stationary = "law = \"random_cosines\", terms = 8, length_scale = 2.0, SEED";
const std::string rough =
    "law = \"random_cosines\", terms = 8, length_scale = 3.0, smoothness = 0.5, SEED";
const std::string additive2 =
    "law = \"additive\", amplitude = [1.0, 0.8], frequency = [2, 1], PHASES";
const std::string additive6 =
    "law = \"additive\", amplitude = [1, 1, 1, 1, 1, 0.5], frequency = [2, 2, 1, 2, 2, 2], PHASES";
const std::string narrow = "law = \"gaussian\", bandwidth = 0.2";
const std::string wide = "law = \"gaussian\", bandwidth = 0.7";
const std::string softmax = "law = \"softmax\", temperature = 1.2";

INSTANTIATE_TEST_SUITE_P(
    PopulationError, AgainstSimulation,
    testing::Values(Case{stationary, narrow, 4, 4, 1, 30}, Case{stationary, narrow, 4, 2, 2, 300},
                    Case{stationary, wide, 6, 2, 3, 30}, Case{stationary, wide, 5, 2, 2, 30},
                    Case{stationary, narrow, 3, 1, 3, 1000}, Case{rough, wide, 4, 2, 2, 100},
                    Case{rough, narrow, 2, 1, 2, 300}, Case{additive2, narrow, 2, 2, 1, 100},
                    Case{additive6, wide, 6, 3, 2, 100}, Case{additive6, narrow, 6, 1, 5, 1000},
                    Case{additive6, wide, 6, 2, 3, 30}, Case{stationary, softmax, 4, 2, 2, 30},
                    Case{stationary, softmax, 4, 1, 3, 300}));

TEST(PopulationError, MatchesItsDecompositionForNoiseAlone) {
  const PopulationSetting setting = {0.5, 40};
  const PopulationHead head = population_heads({.k = 2, .correlations = {}}, {&setting, 1}).at(0);
  const PopulationError error = population_error(head, {3, 2, 6, 40, 2.0}, {});
  EXPECT_EQ(error.squared_bias, 0);
  EXPECT_DOUBLE_EQ(error.variance, 4 * head.squares);
  EXPECT_DOUBLE_EQ(error.covariance, 4.0 / 40);
  EXPECT_DOUBLE_EQ(error.mse, error.variance / 3 + error.covariance * 2 / 3);
}

TEST(TruthLaw, KeepsTheVarianceOfARoughTruth) {
  const Case c = {rough, wide, 4, 2, 2, 100};
  const TruthLaw law = truth_law(scenario(c, 1).conditions.at(0));
  EXPECT_LE(std::abs(law.variance() - 1), 1e-5);
  // The Matern correlation of smoothness 1/2 is exp(-r/l).
  for (const double r : {0.5, 2.0, 6.0}) {
    double sum = 0;
    for (const auto& scale : law.scales) {
      sum += scale.variance * std::exp(-std::pow(r / scale.length, 2) / 2);
    }
    EXPECT_LE(std::abs(sum - std::exp(-r / 3)), 1e-5) << r;
  }
}

TEST(TruthLaw, RefusesOtherLaws) {
  const Case c = {"law = \"linear\", coefficients = [1, 1]", wide, 2, 1, 1, 10};
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "data.regression",
                      refusal_line([&] { truth_law(scenario(c, 1).conditions.at(0)); }));
}

}  // namespace
}  // namespace headlab
