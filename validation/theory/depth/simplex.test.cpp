// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/depth/simplex.h"

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include <Eigen/Core>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/testing/refusal.h"
#include "kernels/stack/layers.h"
#include "validation/theory/depth/testing/known_answers.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;
using nlohmann::json;

/// The stack of a case: tokens `simplex`, maps `scaled_identity` or diagonal `explicit` ones.
SimplexStack simplex_stack(const json& scenario) {
  const json& design = scenario["tokens"]["design"];
  const json& heads = scenario["heads"];
  const json& layers = scenario["layers"];
  SimplexStack stack;
  stack.n = scenario["tokens"]["n"];
  stack.rho = design["rho"];
  stack.mu = design["mu"];
  stack.temperature = heads["kernel"]["temperature"];
  if (heads["maps"]["law"] == "scaled_identity") {
    stack.query_key = heads["maps"]["query_key"].get<std::vector<double>>();
    stack.value = heads["maps"]["value"].get<std::vector<double>>();
  } else {
    const auto mean = static_cast<std::size_t>(stack.n - 1);
    stack.query_key = {heads["maps"]["query_key"][0][0][0]};
    stack.value = {heads["maps"]["value"][0][0][0]};
    stack.mean_value = {heads["maps"]["value"][0][mean][mean]};
  }
  stack.layers = layers["count"];
  stack.skip = layers["skip"];
  stack.branch = layers["branch"];
  stack.memory = layers.value("memory", 0.0);
  if (layers["norm"]["law"] != "none") {
    stack.norm.place =
        layers["norm"]["place"] == "pre" ? SimplexNorm::Place::pre : SimplexNorm::Place::post;
    stack.norm.dim = design["dim"];
  }
  return stack;
}

/// Name and layer of the first metric that is not as expected, empty where all are.
std::string first_difference(const std::vector<SimplexLayer>& layers, const json& known) {
  const json& expected = known["expected"]["layers"];
  if (layers.size() != expected.size()) return "layers";
  std::size_t compared = 0;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    for (const SimplexMetric& metric : simplex_metrics()) {
      if (!expected[l].contains(metric.name)) continue;
      ++compared;
      const SimplexLayer::Metric got = layers[l].*metric.value;
      if (!got || !within(*got, expected[l][metric.name], known["tolerance"])) {
        return std::string(metric.name) + " of layer " + std::to_string(l);
      }
    }
  }
  std::size_t listed = 0;
  for (const json& layer : expected) listed += layer.size();
  return compared == listed ? "" : "a metric without a closed form";
}

TEST(Simplex, AgreesWithTheKnownAnswers) {
  for (const char* kind : {"simplex", "simplex_split_values", "log_residual_without_skip"}) {
    for (const json& known : depth_cases(kind)) {
      SimplexStack stack = simplex_stack(known["scenario"]);
      EXPECT_EQ(first_difference(simplex_layers(stack), known), "") << known["scenario"];
      // Negative control.
      stack.value[0] *= 1 + 1e-6;
      EXPECT_NE(first_difference(simplex_layers(stack), known), "");
    }
  }
}

TEST(Simplex, GoesFarBelowTheSmallestNumber) {
  const SimplexLayer last =
      simplex_layers(
          {.n = 4, .rho = 0.3, .mu = 0.5, .query_key = {1.0}, .value = {1.0}, .layers = 12})
          .back();
  // The order of convergence is three.
  EXPECT_LT(*last.log_residual, -500000);
  EXPECT_EQ(*last.residual_squared, 0);
  EXPECT_EQ(*last.residual_share, 0);
  EXPECT_EQ(*last.cosine, 1);
  EXPECT_NEAR(*last.self_weight, 0.25, 1e-15);
}

/// The same stack on tokens of norm.dim features.
std::vector<LayerMetrics> defined_layers(const SimplexStack& simplex) {
  const int dim = simplex.norm.dim;
  const auto scaled_identity = [&](double scale) -> MatrixXd {
    return scale * MatrixXd::Identity(dim, dim);
  };
  ExplicitMaps maps;
  for (std::size_t h = 0; h < simplex.value.size(); ++h) {
    maps.query_key.push_back(scaled_identity(simplex.query_key[h]));
    maps.value.push_back(scaled_identity(simplex.value[h]));
    if (!simplex.mean_value.empty()) {
      maps.value[h](simplex.n - 1, simplex.n - 1) = simplex.mean_value[h];
    }
  }
  Stack stack = {.layers = simplex.layers,
                 .heads = static_cast<int>(simplex.value.size()),
                 .temperature = simplex.temperature,
                 .maps = maps,
                 .alternating = simplex.alternating,
                 .skip = simplex.skip,
                 .branch = simplex.branch,
                 .memory = simplex.memory,
                 .spectra = true};
  if (simplex.norm.place != SimplexNorm::Place::none) {
    const bool pre = simplex.norm.place == SimplexNorm::Place::pre;
    stack.norm = {.kind = NormKind::rms,
                  .place = pre ? NormPlace::pre : NormPlace::post,
                  .epsilon = simplex.norm.epsilon,
                  .gain = Eigen::RowVectorXd::Constant(dim, simplex.norm.gain),
                  .bias = simplex.norm.bias * Eigen::RowVectorXd::Unit(dim, simplex.n - 1)};
  }
  return stack_metrics(stack, {}, simplex_tokens(simplex.n, dim, simplex.rho, simplex.mu));
}

/// Name and layer of the first metric that is not that of the definition, empty where all are.
std::string definition_difference(const std::vector<SimplexLayer>& layers,
                                  const std::vector<LayerMetrics>& defined) {
  if (layers.size() != defined.size()) return "layers";
  for (std::size_t l = 0; l < layers.size(); ++l) {
    for (const SimplexMetric& metric : simplex_metrics()) {
      const SimplexLayer::Metric got = layers[l].*metric.value;
      const double expected = metric_named(defined[l], metric.name);
      if (!got && std::isnan(expected)) continue;
      if (!got || !within(*got, expected, 1e-11, 1e-11)) {
        return std::string(metric.name) + " of layer " + std::to_string(l);
      }
    }
  }
  return "";
}

TEST(Simplex, IsTheDefinitionUnderEverySwitch) {
  using Place = SimplexNorm::Place;
  const SimplexStack base = {.n = 4,
                             .rho = 2,
                             .mu = 0.7,
                             .temperature = 1.4,
                             .query_key = {1.5, 0.3, -0.8},
                             .value = {0.7, -0.4, 0.5},
                             .layers = 4,
                             .skip = 0.6,
                             .branch = 0.9,
                             .norm = {.dim = 7}};
  std::vector<SimplexStack> stacks(9, base);
  stacks[1].memory = 0.4;
  stacks[2].mean_value = {0.2, 0.9, -1.5};
  stacks[3].norm = {Place::pre, 7, 0.3, 1.7, 0.4};
  stacks[4].norm = {Place::post, 7, 0.2, -0.8, -0.9};
  stacks[5].alternating = true;
  stacks[5].memory = 0.5;
  stacks[6].query_key = {-3, -0.2, -1};
  stacks[7].skip = -0.2;
  stacks[8].branch = -2;
  stacks[8].norm = {Place::pre, 7};
  for (SimplexStack& stack : stacks) {
    const auto at = &stack - stacks.data();
    const std::vector<LayerMetrics> defined = defined_layers(stack);
    EXPECT_EQ(definition_difference(simplex_layers(stack), defined), "") << at;
    // Negative control.
    SimplexStack other = stack;
    other.rho *= 1 + 1e-8;
    EXPECT_NE(definition_difference(simplex_layers(other), defined), "") << at;
  }
}

SimplexLayer first_layer(SimplexStack stack) {
  stack.layers = 1;
  return simplex_layers(stack).at(1);
}

TEST(Simplex, KeepsTheDigitsOfHardAttention) {
  // g = 2000 and far beyond, of both signs.
  for (const double rho : {1500.0, 1e200}) {
    const SimplexLayer hard = first_layer({.n = 4, .rho = rho, .query_key = {1.0}, .value = {1.0}});
    EXPECT_EQ(*hard.dobrushin, 1);
    EXPECT_EQ(*hard.entropy, 0);
    EXPECT_EQ(*hard.self_weight, 1);
    const SimplexLayer away =
        first_layer({.n = 4, .rho = rho, .query_key = {-1.0}, .value = {1.0}});
    EXPECT_NEAR(*away.dobrushin, 1.0 / 3, 1e-15);
    EXPECT_NEAR(*away.entropy, std::log(3.0), 1e-15);
    EXPECT_EQ(*away.self_weight, 0);
  }
  // log(e^g + n - 1) - g e^g/(e^g + n - 1) has no digit of this entropy, 3 e^-g (1 + g).
  const double g = 40;
  const SimplexLayer sharp = first_layer({.n = 4, .rho = 30, .query_key = {1.0}, .value = {1.0}});
  EXPECT_NEAR(*sharp.entropy / (3 * std::exp(-g) * (1 + g)), 1, 1e-13);
  // Soft attention: phi = g/n of both signs.
  for (const double sign : {1.0, -1.0}) {
    const SimplexLayer soft =
        first_layer({.n = 4, .rho = 3e-200, .query_key = {sign}, .value = {1.0}});
    EXPECT_NEAR(*soft.dobrushin / 1e-200, 1, 1e-12);
    EXPECT_NEAR(*soft.entropy, std::log(4.0), 1e-15);
  }
}

TEST(Simplex, HasNoMetricWhereNoneIsDefined) {
  // Equal tokens; tokens of 0; a skip that cancels the branch.
  const SimplexLayer equal =
      first_layer({.n = 3, .rho = 0, .mu = 2, .query_key = {1.0}, .value = {1.0}});
  EXPECT_FALSE(equal.log_residual);
  EXPECT_EQ(*equal.residual_squared, 0);
  EXPECT_EQ(*equal.residual_share, 0);
  EXPECT_EQ(*equal.cosine, 1);
  EXPECT_EQ(*equal.participation, 1);
  EXPECT_EQ(*equal.effective_rank, 1);
  EXPECT_NEAR(*equal.entropy, std::log(3.0), 1e-15);
  const SimplexLayer zero =
      first_layer({.n = 3, .rho = 0, .mu = 0, .query_key = {1.0}, .value = {1.0}});
  EXPECT_FALSE(zero.cosine || zero.residual_share || zero.participation || zero.stable_rank);
  EXPECT_EQ(*zero.diameter, 0);
  const SimplexLayer cancelled =
      first_layer({.n = 3, .query_key = {1.0}, .value = {1.0}, .skip = -1, .branch = 1});
  EXPECT_FALSE(cancelled.rollout_dobrushin || cancelled.sink_fidelity);
  EXPECT_TRUE(cancelled.log_residual);
  EXPECT_EQ(*cancelled.mean_squared, 0);
  // Before layer 1 there is no attention.
  const SimplexLayer before = simplex_layers({.query_key = {1.0}, .value = {1.0}}).at(0);
  EXPECT_FALSE(before.entropy || before.dobrushin || before.residual_factor || before.self_weight ||
               before.second_eigenvalue);
  EXPECT_EQ(*before.rollout_dobrushin, 1);
  EXPECT_EQ(*before.sink_fidelity, 0);
}

TEST(Simplex, TokensOfZeroBecomeTheBiasOfANorm) {
  const SimplexNorm norm = {.place = SimplexNorm::Place::post, .dim = 5, .bias = -0.5};
  const SimplexLayer biased =
      first_layer({.n = 3, .rho = 0, .query_key = {1.0}, .value = {1.0}, .norm = norm});
  EXPECT_FALSE(biased.log_residual);
  EXPECT_NEAR(*biased.mean_squared, 0.25, 1e-15);
}

TEST(Simplex, MemoryOneKeepsTheFirstScores) {
  const auto layers = simplex_layers(
      {.n = 4, .rho = 0.3, .query_key = {1.0}, .value = {1.0}, .layers = 5, .memory = 1});
  for (std::size_t l = 2; l < layers.size(); ++l) {
    EXPECT_EQ(*layers[l].dobrushin, *layers[1].dobrushin);
  }
}

TEST(Simplex, StaysFiniteThroughThousandsOfLayers) {
  for (const double skip : {0.0, 1.0}) {
    for (const SimplexLayer& layer : simplex_layers({.n = 8,
                                     .rho = 0.5,
                                     .mu = 0.2,
                                     .query_key = {1.0, -2.0},
                                     .value = {1.0, 0.4},
                                     .layers = 4096,
                                     .skip = skip,
                                     .memory = 0.5})) {
      for (const SimplexMetric& metric : simplex_metrics()) {
        EXPECT_FALSE(std::isnan((layer.*metric.value).value_or(0))) << metric.name;
      }
      ASSERT_TRUE(layer.log_residual && std::isfinite(*layer.log_residual));
    }
  }
}

TEST(Simplex, ThresholdParts) {
  // From 1.01 times the threshold the share tends to .49699, from .99 times it to 0.
  const double threshold = 0.8 * std::log1p(5 / 0.3);  // where w phi = 1
  SimplexStack stack = {.n = 5,
                        .rho = 1.01 * threshold,
                        .mu = 0.3,
                        .query_key = {1.0},
                        .value = {1.3},
                        .layers = 200};
  const SimplexLayer above = simplex_layers(stack).back();
  EXPECT_NEAR(*above.residual_share, 0.49699, 5e-6);
  EXPECT_NEAR(*above.participation, 3.177, 5e-4);
  stack.rho = 0.99 * threshold;
  stack.layers = 40;
  EXPECT_LT(*simplex_layers(stack).back().residual_share, 1e-300);
}

std::string message_of(const std::function<void(SimplexStack&)>& change) {
  SimplexStack stack = {.query_key = {1.0}, .value = {1.0}, .norm = {SimplexNorm::Place::pre, 4}};
  change(stack);
  return refusal_line([&] { simplex_layers(stack); });
}

TEST(Simplex, RefusesWhatIsOutOfRange) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(message_of([](SimplexStack&) {}), "accepted");
  EXPECT_EQ(message_of([](SimplexStack& s) { s.n = 1; }), "simplex: n must be at least 2");
  const std::vector<std::function<void(SimplexStack&)>> changes = {
      [](SimplexStack& s) { s.layers = -1; },
      [&](SimplexStack& s) { s.rho = nan; },
      [](SimplexStack& s) { s.mu = -1; },
      [](SimplexStack& s) { s.temperature = 0; },
      [](SimplexStack& s) { s.value = {}; },
      [&](SimplexStack& s) { s.value = {nan}; },
      [&](SimplexStack& s) { s.skip = nan; },
      [&](SimplexStack& s) { s.memory = nan; },
      [](SimplexStack& s) { s.memory = 1.01; },
      [](SimplexStack& s) { s.norm.dim = 0; },
      [](SimplexStack& s) { s.norm.epsilon = -1; },
      [&](SimplexStack& s) { s.norm.bias = nan; },
      [](SimplexStack& s) {
        s.mean_value = {1, 2};
      }};
  for (std::size_t i = 0; i < changes.size(); ++i)
    EXPECT_NE(message_of(changes[i]), "accepted") << i;
}
}  // namespace
}  // namespace headlab
