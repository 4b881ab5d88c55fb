// SPDX-License-Identifier: Apache-2.0
// Simulation against the exact finite-n theory. The answers come from quadrature, computed by a
// program that shares nothing with this one.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/run/run.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/testing/known_world.h"
#include "kernels/testing/known_cases.h"

namespace headlab {
namespace {

using nlohmann::json;

constexpr std::uint64_t replicates = 30000;

/// A simulated figure and the number it should be.
struct Comparison {
  Estimate figure;
  double exact;
};

/// What a case is simulated with; the last two are for negative controls.
struct Variant {
  std::string estimator = "conditional";
  double noise_variance_factor = 1;
  bool drop_covariance = false;
};

ConditionEstimates simulate(json known, const Variant& variant) {
  known["noise_sd"] = known["noise_sd"].get<double>() * std::sqrt(variant.noise_variance_factor);
  World world = test::known_world(known);
  world.run = "seed = 1\nreplicates = " + std::to_string(replicates) + "\nestimator = \"" +
              variant.estimator + "\"";
  return run(parse_scenario(world.text(), "known.toml"), {}).conditions.at(0).estimates;
}

/// Biases, covariances and the MSE of a case with signal (`finite_n`, `softmax_finite_n`).
void compare_with_signal(const json& known, const Variant& variant,
                         std::vector<Comparison>& comparisons) {
  const ConditionEstimates e = simulate(known, variant);
  const auto heads = known["H"].get<std::size_t>();
  for (std::size_t h = 0; h < heads; ++h) {
    comparisons.push_back({e.queries[0].head_bias[h], known["bias"][h]});
    for (std::size_t l = h; l < heads; ++l) {
      comparisons.push_back(
          {e.queries[0].head_covariance[h * heads + l], known["covariance"][h][l]});
    }
  }
  Estimate mse = e.mse;
  if (variant.drop_covariance) mse.value -= e.covariance_term.value;
  comparisons.push_back({mse, known["mse"]});
}

/// Variances and covariance of noise alone at one query (`finite_n_noise`): two heads of dimension
/// one in the plane.
void compare_noise(const json& known, const Variant& variant,
                   std::vector<Comparison>& comparisons) {
  const double c = known["cos_angle"];
  const double s = std::sqrt(1 - c * c);
  const double q0 = known["query_projection"][0];
  const double q1 = known["query_projection"][1];
  json two = known;
  two["W"] = {{{1.0}, {0.0}}, {{c}, {s}}};
  two["x"] = {q0, (q1 - c * q0) / s};
  const ConditionEstimates e = simulate(two, variant);
  const auto& covariance = e.queries[0].head_covariance;
  comparisons.push_back({covariance[0], known["V"][0]});
  comparisons.push_back({covariance[3], known["V"][1]});
  comparisons.push_back({covariance[1], known["C"]});
}

std::vector<Comparison> compare_all(const Variant& variant) {
  std::vector<Comparison> comparisons;
  for (const json& c : test::known("finite_n")) compare_with_signal(c, variant, comparisons);
  for (const json& c : test::known("softmax_finite_n"))
    compare_with_signal(c, variant, comparisons);
  for (const json& c : test::known("finite_n_noise")) compare_noise(c, variant, comparisons);
  return comparisons;
}

struct Judgement {
  double largest_z = 0;
  double rms_z = 0;
  bool agrees = false;
};

/// Agreement: every |z| < 4.5 and a root mean square z between 0.7 and 1.35, so that standard
/// errors neither too small nor too large pass. NaN does not agree.
Judgement judge(const std::vector<Comparison>& comparisons, double mcse_factor = 1) {
  Judgement judgement;
  bool all_below = true;
  double square = 0;
  for (const Comparison& c : comparisons) {
    const double z = (c.figure.value - c.exact) / (c.figure.mcse * mcse_factor);
    all_below = all_below && std::abs(z) < 4.5;
    judgement.largest_z = std::max(judgement.largest_z, std::abs(z));
    square += z * z;
  }
  judgement.rms_z = std::sqrt(square / static_cast<double>(comparisons.size()));
  judgement.agrees = all_below && judgement.rms_z > 0.7 && judgement.rms_z < 1.35;
  return judgement;
}

class KnownAnswers : public ::testing::TestWithParam<const char*> {};

TEST_P(KnownAnswers, AreReproducedWithinTheirStandardErrors) {
  const auto comparisons = compare_all({.estimator = GetParam()});
  EXPECT_EQ(comparisons.size(), 6u + 10u + 10u + 6u + 4u * 3u);

  const Judgement judgement = judge(comparisons);

  EXPECT_TRUE(judgement.agrees) << "largest |z| " << judgement.largest_z << ", rms "
                                << judgement.rms_z;
  RecordProperty("largest_z", std::to_string(judgement.largest_z));
  RecordProperty("rms_z", std::to_string(judgement.rms_z));
  // Negative control: half the standard error.
  EXPECT_FALSE(judge(comparisons, 0.5).agrees);
}

TEST_P(KnownAnswers, RefuteADroppedCovarianceTerm) {
  EXPECT_FALSE(judge(compare_all({.estimator = GetParam(), .drop_covariance = true})).agrees);
}

TEST_P(KnownAnswers, RefuteANoiseVarianceOffByFivePercent) {
  EXPECT_FALSE(judge(compare_all({.estimator = GetParam(), .noise_variance_factor = 1.05})).agrees);
}

INSTANTIATE_TEST_SUITE_P(Estimators, KnownAnswers, ::testing::Values("conditional", "plain"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace headlab
