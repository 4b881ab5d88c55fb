// SPDX-License-Identifier: Apache-2.0
#include "kernels/stack/worker.h"

#include <cmath>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/backends.h"
#include "kernels/stack/layers.h"
#include "kernels/testing/test_plans.h"

namespace headlab {
namespace {

Plan stack_plan(double skip) {
  Stack stack;
  stack.layers = 2;
  stack.heads = 2;
  stack.skip = skip;
  stack.maps = GaussianMaps{.k = 2, .value_dim = 2};
  return test::stack_plan(stack, 5, 3, 4);
}

std::vector<Moments> run_block(const Backend& backend, Plans plans, const Block& block) {
  std::vector<Moments> out(plans.size() * block.nodes());
  backend.worker(plans)->run(block, out);
  return out;
}

bool same_bits(const Moments& a, const Moments& b) {
  auto same = [](const std::vector<double>& x, const std::vector<double>& y) {
    return x.size() == y.size() && std::memcmp(x.data(), y.data(), 8 * x.size()) == 0;
  };
  return a.count == b.count && same(a.mean, b.mean) && same(a.comoment, b.comoment);
}

TEST(stack_worker, gives_the_metrics_of_its_replicates) {
  const Plan plan = stack_plan(1);
  const Plan* const one = &plan;
  const auto backend = make_backend("reference");
  const Moments got = run_block(*backend, Plans(&one, 1), {.first = 6, .count = 1, .node = 1})[0];
  const auto rows = stack_metrics(*plan.stack, {plan.seed, 6}, stack_tokens(plan, 6));
  const MomentLayout layout = plan.layout();
  ASSERT_EQ(layout.queries, 3);
  EXPECT_EQ(got.mean[2 * layout.per_query()], rows[2].log_residual);
  EXPECT_EQ(got.mean[layout.per_query() + 1], rows[1].residual_squared);
  EXPECT_EQ(layout.comoments(), layout.statistics());
  EXPECT_NE(rows[1].residual_squared,
            stack_metrics(*plan.stack, {plan.seed, 7}, stack_tokens(plan, 7))[1].residual_squared);
}

TEST(stack_worker, gives_a_plan_the_bits_that_it_has_alone) {
  const Plan a = stack_plan(0);
  const Plan b = stack_plan(1);
  const Plan* const both[] = {&a, &b};
  ASSERT_TRUE(shares_draws(a, b));
  const Block block{.first = 256, .count = 20, .node = 8};
  for (const char* name : {"reference", "cpu"}) {
    const auto backend = make_backend(name);
    const auto together = run_block(*backend, both, block);
    for (std::size_t p = 0; p < 2; ++p) {
      const auto alone = run_block(*backend, Plans(&both[p], 1), block);
      for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(together[3 * p + i], alone[i]));
    }
    EXPECT_FALSE(same_bits(together[0], together[3]));
    // Leaves one by one have the bits of the block.
    const Block leaf{.first = 264, .count = 8, .node = 8};
    EXPECT_TRUE(same_bits(run_block(*backend, both, leaf)[0], together[1]));
  }
}

TEST(stack_worker, keeps_given_tokens_in_float64) {
  Plan plan = stack_plan(0);
  Stack stack = *plan.stack;
  stack.tokens = Eigen::MatrixXd::Constant(5, 3, 0.1);
  plan.stack = std::make_shared<const Stack>(stack);
  EXPECT_EQ(stack_tokens(plan, 3)(0, 0), 0.1);
}

TEST(stack_worker, refuses_a_mixture) {
  const Plan a = stack_plan(0);
  Plan b = a;
  b.stack = nullptr;
  const Plan* const both[] = {&a, &b};
  EXPECT_FALSE(shares_draws(a, b));
  EXPECT_THROW(make_stack_worker(both), std::invalid_argument);
}

TEST(stack_worker, undefined_metrics_have_one_nan) {
  const MomentLayout layout{
      .queries = 1, .heads = 2, .mode = MomentMode::separate, .conditional = false};
  EXPECT_EQ(layout.statistics(), 2u);
  std::vector<double> values = {1, 2, 3, 4, 5, 6};
  values[3] = -std::nan("7");
  Moments a;
  leaf_moments(layout, values, 3, a);
  Moments b;
  leaf_moments(layout, std::vector<double>{3, 5, 1, 7}, 2, b);
  merge_moments(layout, a, b);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(std::memcmp(&a.mean[1], &nan, 8), 0);
  EXPECT_EQ(std::memcmp(&a.comoment[1], &nan, 8), 0);
  EXPECT_DOUBLE_EQ(a.mean[0], 13.0 / 5);
  EXPECT_DOUBLE_EQ(a.comoment[0], 1 + 9 + 25 + 9 + 1 - 169.0 / 5);
}

}  // namespace
}  // namespace headlab
