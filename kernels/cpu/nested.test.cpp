// SPDX-License-Identifier: Apache-2.0
// Studies of allocations on the cpu backend: heads made of the columns of smaller heads, and
// weights that are kept for the noise of the ensemble.
#include <cstddef>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/every_target.h"
#include "kernels/parity.h"
#include "kernels/reference/reference.h"
#include "kernels/test_plans.h"

namespace headlab {
namespace {

using test::all_kernels;
using test::on_every_target;
using test::one_replicate;

constexpr int budget = 8;

/// Columns [budget][d] of an orthonormal frame in d = budget dimensions: unit vectors, or others.
std::vector<std::vector<double>> frame(bool units) {
  const auto d = static_cast<std::size_t>(budget);
  const Plan turned = test::make_plan({.d = budget, .heads = 1, .k = budget}, GaussianKernel{});
  std::vector<std::vector<double>> columns(d, std::vector<double>(d));
  for (std::size_t j = 0; j < d; ++j) {
    for (std::size_t c = 0; c < d; ++c) {
      columns[j][c] = units ? (c == j ? 1.0 : 0.0) : turned.projections[c * d + j];
    }
  }
  return columns;
}

struct Nested {
  std::uint64_t n = 300;
  int queries = 7;
  bool units = true;
  Estimator estimator = Estimator::conditional;
  MomentMode moments = MomentMode::aggregate;
};

/// budget/k heads of dimension k, each on columns of the frame that are its own.
Plan nested_plan(const Nested& nested, int k, const KernelLaw& kernel) {
  const int heads = budget / k;
  Plan plan = test::make_plan(
      {.n = nested.n, .d = budget, .heads = budget, .k = 1, .queries = nested.queries}, kernel,
      nested.estimator, nested.moments);
  plan.heads = heads;
  plan.k = k;
  plan.head_weights.assign(static_cast<std::size_t>(heads), 1.0 / heads);
  plan.projections.clear();
  const auto columns = frame(nested.units);
  for (int h = 0; h < heads; ++h) {
    for (std::size_t c = 0; c < static_cast<std::size_t>(budget); ++c) {
      for (int j = 0; j < k; ++j) {
        plan.projections.push_back(columns[static_cast<std::size_t>(h * k + j)][c]);
      }
    }
  }
  return plan;
}

std::vector<Plan> nested_plans(const Nested& nested, const KernelLaw& kernel) {
  std::vector<Plan> all;
  for (const int k : {1, 2, 4, 8}) all.push_back(nested_plan(nested, k, kernel));
  return all;
}

std::vector<Moments> moments_of(const Backend& backend, Plans plans) {
  const Block block = {.first = 0, .count = 9};
  std::vector<Moments> moments(plans.size() * block.nodes());
  backend.worker(plans)->run(block, moments);
  return moments;
}

/// Moments of plans simulated together are those of each alone, bit by bit.
void expect_same_bits_together(const Backend& backend, const std::vector<Plan>& all) {
  std::vector<const Plan*> plans;
  for (const Plan& plan : all) {
    ASSERT_TRUE(shares_draws(all[0], plan));
    plans.push_back(&plan);
  }
  const std::vector<Moments> together = moments_of(backend, plans);
  const std::size_t nodes = together.size() / plans.size();
  for (std::size_t p = 0; p < plans.size(); ++p) {
    const std::vector<Moments> alone = moments_of(backend, Plans(&plans[p], 1));
    for (std::size_t i = 0; i < nodes; ++i) {
      EXPECT_EQ(together[p * nodes + i].mean, alone[i].mean) << "plan " << p;
      EXPECT_EQ(together[p * nodes + i].comoment, alone[i].comoment) << "plan " << p;
      EXPECT_EQ(together[p * nodes + i].windows, alone[i].windows) << "plan " << p;
    }
  }
}

::testing::AssertionResult close_to_reference(const Plan& plan, const Backend& backend) {
  return test::close_to_reference(plan, 1, one_replicate(backend, plan, 1).mean,
                                  {.constant = 8 + 64 + 4, .of_exponent = 8});
}

TEST(Nested, PlansHaveTheBitsTogetherThatTheyHaveAlone) {
  const auto backend = make_cpu_backend();
  on_every_target([&] {
    for (const bool units : {true, false}) {
      for (const Estimator estimator : {Estimator::conditional, Estimator::plain}) {
        for (const MomentMode moments : {MomentMode::pairwise, MomentMode::aggregate}) {
          // One block of keys and more than one; all windows wide, and some to be repaired.
          for (const std::uint64_t n : {300, 2100}) {
            const Nested nested = {
                .n = n, .units = units, .estimator = estimator, .moments = moments};
            std::vector<Plan> all = nested_plans(nested, GaussianKernel{.bandwidth = 0.7});
            for (const Plan& other : nested_plans(nested, GaussianKernel{.bandwidth = 0.04})) {
              all.push_back(other);
            }
            for (const Plan& other : nested_plans(nested, SoftmaxKernel{.temperature = 0.5})) {
              all.push_back(other);
            }
            // Five of eight heads: only some queries are repaired, and more for all eight.
            all.push_back(
                nested_plan(nested, 1, GaussianKernel{.bandwidth = 0.6 / static_cast<double>(n)}));
            all.push_back(all.back());
            all.back().heads = 5;
            all.back().head_weights.resize(5);
            all.back().projections.resize(5 * budget);
            all.push_back(nested_plan(nested, 1, LaplaceKernel{.bandwidth = 0.3}));
            all.push_back(nested_plan(nested, 4, EpanechnikovKernel{.bandwidth = 0.5}));
            expect_same_bits_together(*backend, all);
          }
        }
      }
    }
  });
}

TEST(Nested, PlansAreEquivalentToReference) {
  const auto backend = make_cpu_backend();
  const HeteroscedasticNoise varying = {
      .sd = 0.4, .slope = 1.5, .direction = {1, -1, 0, 0.5, 0, 0, 0, 0}};
  on_every_target([&] {
    for (const bool units : {true, false}) {
      for (const double width : {0.04, 0.7}) {
        for (const KernelLaw& kernel : all_kernels(width)) {
          for (const bool constant : {true, false}) {
            for (Plan plan : nested_plans({.units = units}, kernel)) {
              if (!constant) plan.noise = varying.sampler(plan.table, plan.d);
              EXPECT_TRUE(close_to_reference(plan, *backend))
                  << "k " << plan.k << " kernel " << kernel.index() << " width " << width
                  << " units " << units << " constant " << constant;
            }
          }
        }
      }
    }
  });
}

TEST(Nested, TheComparisonSeesAColumnOfAnotherHead) {
  const auto backend = make_cpu_backend();
  const Plan plan = nested_plan({}, 2, GaussianKernel{.bandwidth = 0.7});
  Plan wrong = plan;
  // The second column of the first head becomes that of the second.
  for (std::size_t c = 0; c < static_cast<std::size_t>(budget); ++c) {
    wrong.projections[2 * c + 1] = plan.projections[2 * (budget + c) + 1];
  }
  const std::vector<double> statistics = one_replicate(*backend, wrong, 1).mean;
  EXPECT_FALSE(
      test::close_to_reference(plan, 1, statistics, {.constant = 8 + 64 + 4, .of_exponent = 8}));
}

TEST(Nested, WeightsThatAreKeptAndThoseComputedAgainGiveTheSameBits) {
  // Beside many wide heads a chunk does not hold all points, and weights cannot be kept.
  const auto backend = make_cpu_backend();
  const HeteroscedasticNoise varying = {
      .sd = 0.4, .slope = 1.5, .direction = {1, -1, 0, 0.5, 0, 0, 0, 0}};
  for (const bool constant : {true, false}) {
    for (const double bandwidth : {0.004, 0.5}) {
      const KernelLaw kernel = GaussianKernel{.bandwidth = bandwidth};
      Plan plan = nested_plan({.n = 5000}, 1, kernel);
      if (!constant) plan.noise = varying.sampler(plan.table, plan.d);
      Plan wide = plan;
      const test::Shape shape = {.n = 5000, .d = budget, .heads = 120, .k = 8, .queries = 1};
      const Plan many = test::make_plan(shape, kernel);
      wide.heads = many.heads;
      wide.k = many.k;
      wide.queries = many.queries;
      wide.projections = many.projections;
      wide.head_weights = many.head_weights;
      wide.query_points.resize(static_cast<std::size_t>(budget));
      wide.truth.resize(1);
      expect_same_bits_together(*backend, {plan, wide});
    }
  }
}

}  // namespace
}  // namespace headlab
