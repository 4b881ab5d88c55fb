// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/scenario/testing/known_world.h"
#include "kernels/plan.h"
#include "kernels/testing/known_cases.h"
#include "validation/theory/mechanisms/finite_n_tokens.h"
#include "validation/theory/mechanisms/token_model.h"
#include "validation/theory/theory.h"

namespace headlab {
namespace {

using nlohmann::json;

std::vector<json> known_mechanisms(const std::string& kind = "") {
  return test::known_cases("mechanisms", kind);
}

Condition known_condition(const json& known) {
  World world = test::known_world(known);
  world.run = "replicates = 8";
  return world.condition();
}

/// The largest of some differences; NaN stays.
struct LargestDifference {
  double value = 0;

  void add(double found, const json& wanted) {
    if (wanted.is_null()) return;
    const double difference = std::abs(found - wanted.get<double>());
    value = difference <= value ? value : difference;
  }
};

double difference_of_theory(const json& scenario, const json& expected) {
  Theory theory = compute_theory(known_condition(scenario), TheorySource::exact, 2);
  LargestDifference largest;
  const HeadTheory& at = theory.heads.at(0);
  for (Eigen::Index h = 0; h < at.bias.size(); ++h) {
    const auto i = static_cast<std::size_t>(h);
    largest.add(at.bias(h), expected["bias"][i]);
    for (Eigen::Index l = 0; l < at.bias.size(); ++l) {
      largest.add(at.covariance(h, l), expected["covariance"][i][static_cast<std::size_t>(l)]);
    }
  }
  if (expected.contains("mse")) largest.add(theory.figures.mse.value, expected["mse"]);
  for (const json& weighted : expected.value("mse_by_weights", json::array())) {
    set_head_weights(theory, weighted["weights"].get<std::vector<double>>());
    largest.add(theory.figures.mse.value, weighted["mse"]);
  }
  return largest.value;
}

TEST(TheoryOfMechanisms, GivesTheKnownExactFigures) {
  const std::vector<std::string> kinds = {"windows",
                                          "one_head_sees_all",
                                          "copies_see_disjoint_parts",
                                          "ar1",
                                          "ar1_noise_alone",
                                          "merge",
                                          "levels",
                                          "top",
                                          "ties",
                                          "ratio",
                                          "transform",
                                          "late_fusion",
                                          "early_fusion"};
  int count = 0, altered = 0;
  for (const json& known : known_mechanisms()) {
    const std::string kind = known["kind"];
    if (std::ranges::find(kinds, kind) == kinds.end()) continue;
    const json& scenario = known["scenario"];
    EXPECT_LE(difference_of_theory(scenario, known["expected"]), known["tolerance"].get<double>())
        << kind << " " << scenario.dump();
    ++count;
    // The control: plain heads on independent points have other figures.
    if (!scenario.contains("mechanism") && !scenario.contains("sequence")) continue;
    json plain = scenario;
    plain.erase("mechanism");
    plain.erase("sequence");
    altered += difference_of_theory(plain, known["expected"]) > 1e-5;
  }
  EXPECT_EQ(count, 42);
  // All but the plain heads of `levels`, and two heads that weigh all tokens alike.
  EXPECT_EQ(altered, 27);
}

TEST(TheoryOfMechanisms, GivesTheKnownMomentsOfFilteredKeys) {
  int count = 0;
  for (const json& known : known_mechanisms("levels_moments")) {
    const json& expected = known["expected"];
    const FilteredKeyMoments moments =
        filtered_key_moments(known["input"]["levels"].get<std::vector<double>>());
    LargestDifference largest, control;
    largest.add(moments.variance, expected["variance_of_filtered_key"]);
    largest.add(moments.covariance, expected["covariance_with_key"]);
    largest.add(moments.price_exponent, expected["price_exponent"]);
    control.add(filtered_key_moments({0.9, 0.1}).variance, expected["variance_of_filtered_key"]);
    EXPECT_LE(largest.value, known["tolerance"].get<double>()) << known.dump();
    EXPECT_GT(control.value, 1e-3) << known.dump();
    ++count;
  }
  EXPECT_EQ(count, 5);
}

TheoryModel known_model(const json& scenario) {
  const Condition condition = known_condition(scenario);
  return token_model(condition, make_plan(condition));
}

TEST(TheoryOfMechanisms, KeepsTheKnownNumberOfWeights) {
  int count = 0;
  for (const json& known : known_mechanisms("ratio")) {
    const TheoryModel model = known_model(known["scenario"]);
    const ScalarHead head = scalar_head(model, model.queries[0], 0);
    const DesignOf design = [&](const SigmaRange& range, const Resolution& resolution,
                                const LevelRange& levels) {
      return scalar_design(model, 0, head, range, resolution, levels);
    };
    const double expected = known["expected"]["mean_number_kept"];
    EXPECT_NEAR(ratio_moments(model.n, model.keep.ratio, head, design, {26, 25000}).mean_kept,
                expected, 1e-7);
    EXPECT_GT(std::abs(ratio_moments(model.n, 0.5, head, design, {18, 25000}).mean_kept - expected),
              1);
    ++count;
  }
  EXPECT_EQ(count, 3);
}

TEST(TheoryOfMechanisms, GivesTheKnownMeanWeightsOfASequence) {
  int count = 0;
  for (const json& known : known_mechanisms("ar1_noise_alone")) {
    const TheoryModel model = known_model(known["scenario"]);
    const Eigen::VectorXd weights = sequence_moments(model, 0, 0, {26, 25000}).weights;
    const json& expected = known["expected"]["mean_weight_of_each_point"];
    LargestDifference largest, control;
    for (Eigen::Index i = 0; i < weights.size(); ++i) {
      largest.add(weights(i), expected[static_cast<std::size_t>(i)]);
      control.add(1 / static_cast<double>(weights.size()), expected[static_cast<std::size_t>(i)]);
    }
    EXPECT_LE(largest.value, 1e-9);
    EXPECT_GT(control.value, 1e-4);
    ++count;
  }
  EXPECT_EQ(count, 2);
}

}  // namespace
}  // namespace headlab
