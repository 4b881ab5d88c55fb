// SPDX-License-Identifier: Apache-2.0
#include "engine/moments/layer_estimates.h"

#include <cmath>
#include <memory>

#include <gtest/gtest.h>

#include "engine/run/simulate.h"
#include "kernels/backends.h"
#include "kernels/stack/layers.h"
#include "kernels/stack/worker.h"
#include "kernels/testing/test_plans.h"

namespace headlab {
namespace {

Plan layers_plan(double skip) {
  Stack stack;
  stack.layers = 3;
  stack.skip = skip;
  stack.temperature = 2;
  stack.maps = GaussianMaps{.k = 4, .value_dim = 4};
  return test::stack_plan(stack, 6, 4, 9);
}

TEST(layer_estimates, are_means_over_replicates_with_their_errors) {
  const Plan plan = layers_plan(0);
  const auto backend = make_backend("reference");
  const LayerEstimates e = estimate_layers(simulate(plan, *backend, 1, 200), plan.n);
  ASSERT_EQ(e.rows.size(), 4u);
  // The same by hand: below 256 replicates a node is one of them, and the jackknife of a mean is
  // sd/sqrt(R).
  std::vector<double> values;
  double residual = 0;
  double total = 0;
  for (std::uint64_t r = 0; r < 200; ++r) {
    const auto row = stack_metrics(*plan.stack, {plan.seed, r}, stack_tokens(plan, r)).at(2);
    values.push_back(row.log_residual);
    residual += row.residual_squared;
    total += row.residual_squared + 6 * row.mean_squared;
  }
  double mean = 0;
  for (const double x : values) mean += x / 200;
  double square = 0;
  for (const double x : values) square += (x - mean) * (x - mean);
  const Estimate got = e.rows[2].metrics[layer_metric("log_residual")];
  EXPECT_NEAR(got.value, mean, 1e-12);
  EXPECT_NEAR(got.mcse, std::sqrt(square / 199 / 200), 1e-12);
  const Estimate share = e.rows[2].metrics[layer_metric("residual_share_of_means")];
  EXPECT_NEAR(share.value, residual / total, 1e-12);
  EXPECT_GT(share.mcse, 0);
  EXPECT_LT(share.mcse, share.value);
  // A logarithm of means would be another number.
  EXPECT_GT(std::log(residual / 200) / 2 - mean, 3 * got.mcse);
}

TEST(layer_estimates, do_not_depend_on_threads_or_on_who_is_simulated_too) {
  const Plan a = layers_plan(0);
  const Plan b = layers_plan(1);
  const Plan* const both[] = {&a, &b};
  const auto backend = make_backend("cpu");
  const auto together = simulate(both, *backend, 2, 300);
  const auto one = jackknifed_layers(simulate(b, *backend, 1, 300), b.n);
  const auto two = jackknifed_layers(together[1], b.n);
  const std::size_t m = layer_metric("cosine");
  EXPECT_EQ(one.rows[3].metrics[m].value, two.rows[3].metrics[m].value);
  EXPECT_EQ(one.rows[3].metrics[m].leave_one_out, two.rows[3].metrics[m].leave_one_out);
  // Pairs share tokens and weights: the difference is better known than either.
  const auto without = jackknifed_layers(together[0], a.n);
  const std::size_t e = layer_metric("entropy");
  const Jackknifed difference = without.rows[1].metrics[e] - two.rows[1].metrics[e];
  const Estimate paired = difference.figure(counts_of_layers(together[0]).node_counts);
  EXPECT_EQ(paired.value, 0);
  EXPECT_EQ(paired.mcse, 0);
}

TEST(layer_estimates, of_undefined_metrics_are_nan_and_of_one_replicate_have_no_error) {
  Plan plan = layers_plan(0);
  Stack stack = *plan.stack;
  stack.tokens = Eigen::MatrixXd::Constant(6, 4, 1);
  plan.stack = std::make_shared<const Stack>(stack);
  const auto backend = make_backend("cpu");
  const LayerEstimates e = estimate_layers(simulate(plan, *backend, 1, 20), plan.n);
  EXPECT_TRUE(std::isnan(e.rows[1].metrics[layer_metric("log_residual")].value));
  EXPECT_TRUE(std::isnan(e.rows[1].metrics[layer_metric("log_residual")].mcse));
  EXPECT_EQ(e.rows[1].collapsed, 20u);
  EXPECT_EQ(e.rows[1].metrics[layer_metric("cosine")].value, 1);
  EXPECT_EQ(e.rows[1].metrics[layer_metric("cosine")].mcse, 0);
  const LayerEstimates one = estimate_layers(simulate(plan, *backend, 1, 1), plan.n);
  EXPECT_EQ(one.rows[1].metrics[layer_metric("cosine")].value, 1);
  EXPECT_TRUE(std::isnan(one.rows[1].metrics[layer_metric("cosine")].mcse));
}

}  // namespace
}  // namespace headlab
