// SPDX-License-Identifier: Apache-2.0
// Drawn stacks against exact expectations and an independent simulation.
#include "kernels/stack/maps.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/draws.h"
#include "kernels/stack/layers.h"
#include "kernels/stack/testing/known_stack.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;
using nlohmann::json;

/// Mean and squared standard error of a metric.
struct MetricMean {
  double mean = 0;
  double squares = 0;
  std::uint64_t count = 0;
  void add(double x) {
    ++count;
    const double difference = x - mean;
    mean += difference / static_cast<double>(count);
    squares += difference * (x - mean);
  }
  double variance_of_mean() const {
    const auto r = static_cast<double>(count);
    return squares / (r * (r - 1));
  }
};

/// z of every metric that a case lists.
std::vector<double> z_scores(const json& known, std::uint64_t replicates, double value = 1) {
  const json& scenario = known["scenario"];
  Stack stack = known_stack(scenario);
  std::get<GaussianMaps>(stack.maps).value *= value;
  const json& expected = known["expected"]["layers"];
  std::vector<std::map<std::string, MetricMean>> means(expected.size());
  for (std::uint64_t r = 0; r < replicates; ++r) {
    const StackDraws draws = {11, r};
    const bool given = scenario["tokens"]["design"]["law"] == "points";
    const MatrixXd x =
        given ? known_tokens(scenario)
              : MatrixXd(normal_matrix(draws, Purpose::design, 0, scenario["tokens"]["n"],
                                       scenario["tokens"]["design"]["dim"], 1));
    const auto rows = stack_metrics(stack, draws, x);
    for (std::size_t l = 0; l < rows.size(); ++l) {
      for (const auto& item : expected[l].items()) {
        means[l][item.key()].add(metric_named(rows[l], item.key()));
      }
    }
  }
  std::vector<double> z;
  for (std::size_t l = 1; l < means.size(); ++l) {  // row 0 is the design's
    for (const auto& [name, mean] : means[l]) {
      const double se = known["se"].is_object() ? known["se"]["layers"][l][name].get<double>() : 0;
      // Where one replicate in thousands has all the variance, that of the
      // known answer is better.
      const double of_known = se * se * 10000 / static_cast<double>(replicates);
      const double variance = std::max(mean.variance_of_mean(), of_known);
      z.push_back((mean.mean - expected[l][name].get<double>()) / std::sqrt(variance + se * se));
    }
  }
  return z;
}

double root_mean_square(const std::vector<double>& z) {
  double sum = 0;
  for (const double x : z) sum += x * x;
  return std::sqrt(sum / static_cast<double>(z.size()));
}

TEST(stack_draws, agree_with_known_expectations) {
  std::vector<double> all;
  const std::map<std::string, std::uint64_t> replicates = {
      {"fixed_attention", 1500}, {"independent_logits", 150}, {"gaussian_stack_monte_carlo", 200}};
  for (const auto& [kind, count] : replicates) {
    for (const json& known : known_depth_cases(kind)) {
      for (const double z : z_scores(known, count)) {
        EXPECT_LE(std::abs(z), 4.5) << kind << known["scenario"]["layers"];
        all.push_back(z);
      }
    }
  }
  EXPECT_GT(all.size(), 150u);
  EXPECT_GE(root_mean_square(all), 0.7);
  EXPECT_LE(root_mean_square(all), 1.35);
}

TEST(stack_draws, negative_control_another_variance_of_the_maps_is_seen) {
  EXPECT_GT(root_mean_square(z_scores(known_depth_cases("fixed_attention").at(0), 2000, 1.1)), 2);
}

TEST(stack_draws, are_functions_of_their_place) {
  const StackDraws draws = {5, 9};
  const MatrixXd w = normal_matrix(draws, Purpose::query_weights, 4, 3, 5, 2);
  // Entry (2, 1) is coordinate 11 of point 4: word 3 of quad 4 * 4 + 2.
  const Words words = philox(5, subsequence(Purpose::query_weights, 9), 18);
  EXPECT_EQ(w(2, 1), 2 * static_cast<double>(normal_pair(words.w[2], words.w[3]).second));

  Stack stack;
  stack.heads = 2;
  stack.maps = GaussianMaps{.query_key = 4, .k = 3, .value_dim = 2};
  stack.temperature = 2;
  auto maps_of = [&](int layer, HeadRange heads) {
    LayerMaps maps;
    draw_maps(stack, draws, layer, heads, heads, 5, maps);
    return maps;
  };
  const LayerMaps maps = maps_of(1, {0, 2});
  EXPECT_EQ(maps.query.bottomRows(5),
            normal_matrix(draws, Purpose::query_weights, 3, 5, 3, std::sqrt(4.0 / 5) / 2));
  EXPECT_EQ(maps.key.topRows(5),
            normal_matrix(draws, Purpose::key_weights, 2, 5, 3, std::sqrt(4.0 / 5)));
  EXPECT_EQ(maps.output.bottomRows(2),
            normal_matrix(draws, Purpose::output_weights, 3, 2, 5, 1 / std::sqrt(4.0)));
  EXPECT_EQ(maps_of(1, {1, 1}).value, maps.value.bottomRows(5));
  EXPECT_NE(maps_of(0, {0, 2}).key, maps.key);
  stack.shared_weights = true;
  EXPECT_EQ(maps_of(0, {0, 2}).key, maps_of(1, {0, 2}).key);
  stack.averaged = true;
  EXPECT_EQ(maps_of(0, {0, 2}).value.rows(), 5);
}

TEST(stack_draws, logits_of_heads_have_the_correlation_asked_for) {
  Stack stack;
  stack.heads = 2;
  stack.kernel = AttentionKernel::independent_logits;
  stack.logit_sd = 2;
  for (const double correlation : {0.0, 0.5, 1.0}) {
    stack.logit_correlation = correlation;
    const MatrixXd a = independent_logits(stack, {1, 0}, 0, 0, 60);
    const MatrixXd b = independent_logits(stack, {1, 0}, 0, 1, 60);
    const double count = 3600;
    const double se = 4 * std::sqrt((1 + correlation * correlation) / count);
    EXPECT_NEAR(a.squaredNorm() / count, 4, 4 * 4 * std::sqrt(2 / count));
    EXPECT_NEAR(a.cwiseProduct(b).sum() / count, 4 * correlation, 4 * se);
  }
}

TEST(stack_draws, pruned_maps_approach_their_target) {
  Stack stack;
  stack.layers = 2;
  stack.skip = 1;
  const MatrixXd x = normal_matrix({1, 0}, Purpose::design, 0, 5, 3, 1);
  double before = HUGE_VAL;
  for (const int samples : {4, 10, 16}) {
    stack.maps =
        GaussianMaps{.query_key = 0.2, .value = 0.2, .k = 3, .value_dim = 3, .samples = samples};
    const auto rows = stack_metrics(stack, {1, 0}, x);
    EXPECT_EQ(rows[0].target_distance, 0);
    EXPECT_GT(rows[2].target_distance, 0);
    EXPECT_LT(rows[2].target_distance, before / 4);
    before = rows[2].target_distance;
  }
  EXPECT_LT(before, 0.01);
}

TEST(stack_draws, small_residuals_shrink_like_their_cube) {
  for (const json& known : known_depth_cases("cubic_energy")) {
    const MatrixXd x = matrix_from(known["inputs"]["X"]);
    Stack stack;
    const auto d = static_cast<int>(x.cols());
    stack.maps = GaussianMaps{.k = d, .value_dim = d};
    stack.temperature = std::sqrt(d);
    MetricMean energy;
    for (std::uint64_t r = 0; r < 6000; ++r) {
      StackState state(stack, {1, r}, x);
      state.advance();
      const CentredTokens& tokens = state.tokens();
      energy.add(std::exp(2 * tokens.exponent) * tokens.residual.squaredNorm() /
                 static_cast<double>(x.rows()));
    }
    const double expected = known["expected"]["residual_squared_over_n"];
    const double tolerance = known["tolerance"]["relative"].get<double>() * expected;
    EXPECT_NEAR(energy.mean, expected, tolerance + 4 * std::sqrt(energy.variance_of_mean()));
    EXPECT_LT(4 * std::sqrt(energy.variance_of_mean()), expected / 3);
  }
}

}  // namespace
}  // namespace headlab
