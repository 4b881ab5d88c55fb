// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/scenario/scenario.h"
#include "kernels/testing/paths.h"
#include "validation/theory/mechanisms/keep.h"
#include "validation/theory/mechanisms/levels.h"
#include "validation/theory/mechanisms/sequence.h"
#include "validation/theory/mechanisms/testing/limits.h"
#include "validation/theory/mechanisms/token_model.h"
#include "validation/theory/mechanisms/transform.h"
#include "validation/theory/theory.h"

namespace headlab {
namespace {

using nlohmann::json;

json known_mechanisms() {
  const auto folder = std::filesystem::path(test::known_answers()).parent_path();
  return json::parse(std::ifstream(folder / "known-answers-mechanisms.json"))["cases"];
}

/// JSON as TOML on one line.
std::string toml_of(const json& value) {
  if (!value.is_object()) return value.dump();
  std::string text;
  for (const auto& [key, member] : value.items()) {
    text += (text.empty() ? "" : ", ") + key + " = " + toml_of(member);
  }
  return "{ " + text + " }";
}

Condition known_condition(const json& known) {
  const std::string text =
      "[scenario]\nname = \"known\"\n[data]\nn = " + known["n"].dump() +
      "\ndesign = { law = \"normal\", dim = " + known["d"].dump() +
      " }\nsequence = " + toml_of(known.value("sequence", json{{"law", "independent"}})) +
      "\nregression = " + toml_of(known["regression"]) +
      "\nnoise = { law = \"normal\", sd = " + known["noise_sd"].dump() +
      " }\n[heads]\ncount = " + known["H"].dump() + "\ndim = " + known["k"].dump() +
      "\nsubspaces = { law = \"explicit\", matrices = " + known["W"].dump() +
      " }\nkernel = " + toml_of(known["kernel"]) +
      "\nmechanism = " + toml_of(known.value("mechanism", json::object())) +
      "\n[queries]\nlaw = \"points\"\npoints = [" + known["x"].dump() +
      "]\n[run]\nreplicates = 8\n";
  return parse_scenario(text, "known.toml").conditions.at(0);
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

TEST(TheoryOfMechanisms, GivesTheKnownFormulas) {
  int count = 0;
  for (const json& known : known_mechanisms()) {
    const std::string kind = known["kind"];
    const json input = known.value("input", json::object());
    const json& expected = known["expected"];
    LargestDifference largest, control;
    if (kind == "mix_cosine") {
      largest.add(mixed_cosine(input["H"], input["mix"]), expected["cosine_of_every_pair"]);
      control.add(mixed_cosine(input["H"], -input["mix"].get<double>()),
                  expected["cosine_of_every_pair"]);
    } else if (kind == "block_variance") {
      const double phi = input["correlation"];
      largest.add(block_mean_variance(input["stride"], phi), expected["variance_of_the_mean"]);
      control.add(block_mean_variance(input["stride"].get<int>() + 1, phi),
                  expected["variance_of_the_mean"]);
      EXPECT_NEAR(merge_price(input["stride"], phi, 1),
                  std::exp(1 / expected["variance_of_the_mean"].get<double>() - 1), 1e-9);
    } else if (kind == "levels_moments") {
      const auto levels = input["levels"].get<std::vector<double>>();
      const FilteredKeyMoments moments = filtered_key_moments(levels);
      largest.add(moments.variance, expected["variance_of_filtered_key"]);
      largest.add(moments.covariance, expected["covariance_with_key"]);
      largest.add(moments.price_exponent, expected["price_exponent"]);
      control.add(filtered_key_moments({0.9, 0.1}).variance, expected["variance_of_filtered_key"]);
    } else if (kind == "fraction_limit_softmax") {
      const FractionLimit limit = softmax_fraction_limit(input["norm_of_a"], input["fraction"]);
      largest.add(limit.mass, expected["mass"]);
      largest.add(limit.n_sum_w2, expected["n_sum_w2"]);
      largest.add(limit.mean, expected["mean_u"]);
      control.add(softmax_fraction_limit(input["norm_of_a"], 0.5).mass, expected["mass"]);
    } else if (kind == "fraction_limit_gaussian") {
      const GaussianFractionLimit limit =
          gaussian_fraction_limit(input["q"], input["bandwidth"], input["fraction"]);
      largest.add(limit.radius, expected["radius"]);
      largest.add(limit.mass, expected["mass"]);
      largest.add(limit.n_sum_w2, expected["n_sum_w2"]);
      largest.add(limit.mean, expected["mean_u"]);
      control.add(gaussian_fraction_limit(input["q"], input["bandwidth"], 0.5).mass,
                  expected["mass"]);
    } else if (kind == "ar1_signal_leading") {
      const SequenceSignal signal =
          sequence_signal(input["correlation"], input["q"], input["bandwidth"]);
      largest.add(signal.variance, expected["n_variance"]);
      largest.add(signal.independent, expected["of_independent_points"]);
      largest.add(signal.variance / signal.independent, expected["ratio"]);
      control.add(signal.independent, expected["n_variance"]);
    } else if (kind == "union_of_orthogonal_heads") {
      largest.add(mean_union(input["n"], input["top"], input["H"]), expected["mean_size"]);
      control.add(mean_union(input["n"], input["top"], 1), expected["mean_size"]);
    } else {
      continue;
    }
    EXPECT_LE(largest.value, known["tolerance"].get<double>()) << known.dump();
    EXPECT_GT(control.value, 1e-3) << known.dump();
    ++count;
  }
  EXPECT_EQ(count, 20);
}

TheoryModel known_model(const json& scenario) {
  const Condition condition = known_condition(scenario);
  return token_model(condition, make_plan(condition));
}

TEST(TheoryOfMechanisms, KeepsTheKnownNumberOfWeights) {
  int count = 0;
  for (const json& known : known_mechanisms()) {
    if (known["kind"] != "ratio") continue;
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
  for (const json& known : known_mechanisms()) {
    if (known["kind"] != "ar1_noise_alone") continue;
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
