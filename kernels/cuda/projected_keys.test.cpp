// SPDX-License-Identifier: Apache-2.0
// Keys that the kernels project where they weigh them, and keys that are read from memory, compared
// with the reference. Their digits: split_products.test.cpp.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/cuda/launch_plan.h"
#include "kernels/testing/agreement_fixture.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

using ProjectedKeys = test::Agreement;

const GaussianKernel gaussian = {.bandwidth = 2.5};

bool projects(const Plan& plan, const LaunchLimits& limits = {}) {
  return plan_launch(plan, limits).projects;
}

TEST_F(ProjectedKeys, ProjectsKeysWhereItPays) {
  const test::Shape shape = {.n = 100, .d = 32, .heads = 8, .k = 16, .queries = 64};
  for (const Estimator estimator : {Estimator::plain, Estimator::conditional}) {
    for (const int k : {5, 8, 16, 32}) {
      test::Shape of_k = shape;
      of_k.k = k;
      EXPECT_TRUE(projects(test::make_plan(of_k, gaussian, estimator))) << k;
    }
    test::Shape other = shape;
    other.k = 4;
    EXPECT_FALSE(projects(test::make_plan(other, gaussian, estimator))) << "on the CUDA cores";
    other = shape;
    other.queries = 2000;
    EXPECT_FALSE(projects(test::make_plan(other, gaussian, estimator))) << "groups of queries";
    other = shape;
    other.d = 500;
    EXPECT_FALSE(projects(test::make_plan(other, gaussian, estimator))) << "shared memory";
    EXPECT_FALSE(projects(test::make_plan(shape, gaussian, estimator), {.stores_keys = true}));
    Plan changed = test::make_plan(shape, gaussian, estimator);
    changed.mechanism.merge.stride = 2;
    EXPECT_TRUE(projects(changed)) << "tokens are points";
    changed.mechanism.levels.weights = {1, 0.5};
    EXPECT_FALSE(projects(changed)) << "means of keys";
    other = shape;
    other.d = 5;
    other.k = 5;
    EXPECT_FALSE(projects(test::make_plan(other, gaussian, estimator))) << "short points";
  }
  test::Shape many = shape;
  many.heads = 12;
  EXPECT_TRUE(projects(test::make_plan(many, gaussian, Estimator::plain)));
  EXPECT_FALSE(projects(test::make_plan(many, gaussian))) << "kernel values in shared memory";
}

TEST_F(ProjectedKeys, ProjectedAndReadKeysOfManyTilesAreEquivalentToReference) {
  // Several panels of keys, groups of heads and of queries.
  const std::vector<test::Shape> shapes = {{.n = 1030, .d = 32, .heads = 5, .k = 6, .queries = 3},
                                           {.n = 70, .d = 32, .heads = 9, .k = 16, .queries = 20},
                                           {.n = 20, .d = 33, .heads = 2, .k = 32, .queries = 260},
                                           {.n = 30, .d = 64, .heads = 3, .k = 64, .queries = 130},
                                           {.n = 70, .d = 40, .heads = 8, .k = 32, .queries = 20}};
  for (const test::Shape& shape : shapes) {
    for (const Estimator estimator : {Estimator::conditional, Estimator::plain}) {
      const Plan plan = test::make_plan(
          shape, GaussianKernel{.bandwidth = std::sqrt(static_cast<double>(shape.k))}, estimator);
      for (const bool reads : {false, true}) {
        options_.limits.stores_keys = reads;
        expect_statistics(plan, 1);
        EXPECT_EQ(repaired(), 0u) << "k " << shape.k;
      }
    }
  }
}

/// Heads on the first coordinates, and a last one of which a part of the points has 10^6.
Plan with_wide_points(const KernelLaw& kernel, Estimator estimator) {
  constexpr int d = 20;
  Plan plan =
      test::make_plan({.n = 150, .d = d, .heads = 2, .k = 12, .queries = 5}, kernel, estimator);
  std::ranges::fill(plan.projections, 0.0);
  for (std::size_t h = 0; h < 2; ++h) {
    for (std::size_t j = 0; j < 12; ++j) {
      plan.projections[(h * d + (j + h) % 13) * 12 + j] = j % 2 == 0 ? 1 : -1;
    }
  }
  MixtureDesign design = {.weights = {0.9, 0.1}, .means = {std::vector<double>(d), {}}};
  design.means[1] = design.means[0];
  design.means[1].back() = 1e6;
  plan.design = design.sampler(plan.table);
  const std::vector<double> slope = [] {
    std::vector<double> all(d, 0.3);
    all.back() = 0;
    return all;
  }();
  plan.regression =
      CosinesRegression{.amplitude = {1}, .frequency = {slope}, .phase = {0.2}}.function(plan.table,
                                                                                         d);
  return plan;
}

TEST_F(ProjectedKeys, KeysOfPointsWithoutFloat16AreProjectedInFloat32) {
  for (const KernelLaw& kernel :
       {KernelLaw(GaussianKernel{.bandwidth = 2}), KernelLaw(LaplaceKernel{.bandwidth = 2}),
        KernelLaw(SoftmaxKernel{.temperature = 10})}) {
    for (const Estimator estimator : {Estimator::conditional, Estimator::plain}) {
      const Plan plan = with_wide_points(kernel, estimator);
      ASSERT_TRUE(projects(plan));
      expect_statistics(plan, 3);
      EXPECT_EQ(repaired(), 0u) << kernel.index() << ": these keys are near the queries";
    }
  }
}

TEST_F(ProjectedKeys, ColumnsOfDifferentSizeKeepTheirDigits) {
  constexpr std::size_t d = 20, k = 12, rows = 60;
  for (const Estimator estimator : {Estimator::conditional, Estimator::plain}) {
    Plan plan =
        test::make_plan({.n = 150, .d = d, .heads = 2, .k = k, .queries = 5}, gaussian, estimator);
    FileDesign design;
    std::vector<std::vector<double>> points(rows, std::vector<double>(d));
    std::vector<double> slope(d);
    for (std::size_t c = 0; c < d; ++c) {
      const double size = c % 2 == 0 ? 0x1p+7 : 0x1p-7;
      for (std::size_t h = 0; h < 2; ++h) {
        for (std::size_t j = 0; j < k; ++j) plan.projections[(h * d + c) * k + j] /= size;
      }
      for (std::size_t q = 0; q < 5; ++q) plan.query_points[q * d + c] *= size;
      for (std::size_t i = 0; i < rows; ++i) {
        points[i][c] = size * std::sin(static_cast<double>(1 + i * d + c));
      }
      slope[c] = 0.3 / size;
    }
    design.rows = points;
    plan.design = design.sampler(plan.table);
    plan.regression =
        CosinesRegression{.amplitude = {1}, .frequency = {slope}, .phase = {0.2}}.function(
            plan.table, d);
    ASSERT_TRUE(projects(plan));
    expect_statistics(plan, 3);
    EXPECT_EQ(repaired(), 0u);
  }
}

TEST_F(ProjectedKeys, TheFallbackProjectsTheReplicatesThatNeedIt) {
  // So few keys that some replicates have a query far from all of them.
  constexpr std::uint64_t replicates = 24;
  const Plan plan = test::make_plan({.n = 12, .d = 32, .heads = 3, .k = 6, .queries = 7},
                                    GaussianKernel{.bandwidth = 0.3});
  ASSERT_TRUE(projects(plan));
  std::uint64_t with_fallback = 0;
  for (std::uint64_t replicate = 0; replicate < replicates; ++replicate) {
    expect_statistics(plan, replicate);
    with_fallback += repaired() > 0 ? 1 : 0;
  }
  EXPECT_GT(with_fallback, 0u);
  EXPECT_LT(with_fallback, replicates);

  // The same bits in batches of which some replicates are projected.
  const Block block = {.first = 0, .count = replicates, .node = 1};
  Options one = test_options();
  one.batch_replicates = 1;
  EXPECT_TRUE(same_bits(run(plan, block), run(plan, block, one)));
}

TEST_F(ProjectedKeys, BitsOfProjectedKeysDoNotDependOnTheOrderOfThreads) {
  const Block block = {.first = 0, .count = 2, .node = 1};
  for (const Estimator estimator : {Estimator::conditional, Estimator::plain}) {
    for (const Plan& plan : {test::make_plan({.n = 130, .d = 20, .heads = 3, .k = 16, .queries = 5},
                                             gaussian, estimator),
                             test::make_plan({.n = 130, .d = 40, .heads = 3, .k = 32, .queries = 5},
                                             gaussian, estimator),
                             with_wide_points(gaussian, estimator)}) {
      ASSERT_TRUE(projects(plan));
      expect_bits_of_any_batch_and_order(plan, block, {1});
    }
  }
}

}  // namespace
}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
