// SPDX-License-Identifier: Apache-2.0
// Results of the cpu backend have the same bits whatever is computed with them.
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/backend.h"
#include "kernels/laws.h"
#include "kernels/testing/agreement.h"
#include "kernels/testing/every_target.h"
#include "kernels/testing/test_plans.h"

namespace headlab {
namespace {

using test::on_every_target;
using test::one_replicate;

constexpr Block nineteen = {.first = 0, .count = 19};

TEST(CpuBits, ConditionsHaveTheBitsTogetherThatTheyHaveAlone) {
  const auto backend = make_cpu_backend();
  for (const Estimator estimator : {Estimator::conditional, Estimator::plain}) {
    const test::Shape shape = {.n = 300, .d = 6, .heads = 4, .k = 2, .queries = 7};
    std::vector<Plan> all;
    all.push_back(test::make_plan(shape, GaussianKernel{.bandwidth = 0.7}, estimator));
    Plan fewer = all[0];  // two of the same heads, and their own weights
    fewer.heads = 2;
    fewer.projections.erase(fewer.projections.begin() + 12, fewer.projections.begin() + 36);
    fewer.head_weights = {0.3, -0.4};
    all.push_back(fewer);
    Plan narrow = all[0];  // windows to be repaired
    narrow.kernel = GaussianKernel{.bandwidth = 0.02};
    all.push_back(narrow);
    Plan aggregate = all[0];
    aggregate.moments = MomentMode::aggregate;
    all.push_back(aggregate);
    Plan elsewhere = all[0];
    elsewhere.query_points.assign(elsewhere.query_points.size(), 0.25);
    all.push_back(elsewhere);
    Plan softmax = all[0];
    softmax.kernel = SoftmaxKernel{.temperature = 0.5};
    all.push_back(softmax);
    Plan taller = test::make_plan({.n = 300, .d = 6, .heads = 2, .k = 3, .queries = 4},
                                  GaussianKernel{.bandwidth = 0.9}, estimator);
    taller.table = all[0].table;
    taller.regression = all[0].regression;
    all.push_back(taller);

    test::expect_same_bits_together(*backend, all, nineteen);
  }
}

TEST(CpuBits, HeadsOfTheSameKeysAndOtherQueriesAreNotOne) {
  const auto backend = make_cpu_backend();
  Plan plan = test::make_plan({.n = 200}, SoftmaxKernel{.temperature = 1});
  Plan turned = plan;
  turned.query_projections = plan.projections;
  for (double& w : turned.query_projections) w *= -0.5;
  test::expect_same_bits_together(*backend, {plan, turned}, nineteen);
}

TEST(CpuBits, ManyHeadsHaveTheBitsTogetherThatTheyHaveAlone) {
  // Panels are shorter the more heads there are, and their ends must not show.
  const auto backend = make_cpu_backend();
  const HeteroscedasticNoise varying = {
      .sd = 0.4, .slope = 1.5, .direction = {1, -1, 0, 0.5, 0, 0}};
  for (const int heads : {20, 30}) {
    const test::Shape shape = {.n = 1100, .d = 6, .heads = heads, .k = 1, .queries = 3};
    for (const bool heavy : {false, true}) {
      const KernelLaw kernel = heavy ? KernelLaw(SoftmaxKernel{.temperature = 1})
                                     : KernelLaw(GaussianKernel{.bandwidth = 0.3});
      for (const bool constant : {true, false}) {
        Plan plan = test::make_plan(shape, kernel);
        if (heavy) plan.design = StudentDesign{.dim = 6, .df = 2}.sampler(plan.table);
        if (!constant) plan.noise = varying.sampler(plan.table, plan.d);
        std::vector<Plan> all(3, plan);
        all[1].moments = MomentMode::aggregate;
        std::visit(
            [](auto& law) {
              if constexpr (requires { law.bandwidth; }) {
                law.bandwidth *= 1.5;
              } else {
                law.temperature *= 1.5;
              }
            },
            all[2].kernel.own());
        test::expect_same_bits_together(*backend, all, nineteen);
      }
    }
  }
}

/// Statistics of each of these queries have the bits that they have without the others.
void expect_same_bits_alone(const Plan& plan, std::initializer_list<std::size_t> queries) {
  const auto d = static_cast<std::size_t>(plan.d);
  const std::size_t size = plan.layout().per_query();
  on_every_target([&] {
    const auto backend = make_cpu_backend();
    const std::vector<double> all = one_replicate(*backend, plan, 3).mean;
    for (const std::size_t q : queries) {
      Plan alone = plan;
      alone.queries = 1;
      alone.query_points.assign(&plan.query_points[d * q], &plan.query_points[d * q] + d);
      alone.truth = {plan.truth[q]};
      const std::vector<double> own(&all[q * size], &all[q * size] + size);
      EXPECT_EQ(one_replicate(*backend, alone, 3).mean, own) << "query " << q;
    }
  });
}

TEST(CpuBits, AQueryHasTheBitsAmongOthersThatItHasAlone) {
  // Queries are worked on some together, in whole tiles and in what is left of the last ones.
  const KernelLaw kernels[] = {GaussianKernel{.bandwidth = 0.7}, SoftmaxKernel{.temperature = 0.5},
                               LaplaceKernel{.bandwidth = 0.5}};
  for (const std::uint64_t n : {40, 96, 1100}) {
    for (const Estimator estimator : {Estimator::conditional, Estimator::plain}) {
      for (const KernelLaw& kernel : kernels) {
        expect_same_bits_alone(
            test::make_plan({.n = n, .heads = 5, .queries = 11}, kernel, estimator),
            {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
      }
    }
  }
}

TEST(CpuBits, AQueryHasTheBitsThatItHasAloneInNarrowWindows) {
  // Most weights and nearly all of their products are below 2^-126.
  const KernelLaw kernels[] = {GaussianKernel{.bandwidth = 0.01}, LaplaceKernel{.bandwidth = 0.01}};
  for (const KernelLaw& kernel : kernels) {
    expect_same_bits_alone(test::make_plan({.n = 1100, .heads = 5, .queries = 7}, kernel),
                           {0, 1, 2, 3, 4, 5, 6});
  }
}

TEST(CpuBits, QueriesOfLaterBatchesHaveTheBitsTheyHaveAlone) {
  // Pairwise: so many pairs of heads that running sums of all queries are not kept at once.
  // Aggregate: so many heads that the noise of the ensemble takes a second pass.
  for (const MomentMode mode : {MomentMode::pairwise, MomentMode::aggregate}) {
    expect_same_bits_alone(
        test::make_plan({.n = 1100, .heads = 64, .k = 1, .queries = 133},
                        GaussianKernel{.bandwidth = 0.7}, Estimator::conditional, mode),
        {0, 5, 11, 126, 130, 132});
  }
}

TEST(CpuBits, MomentsDoNotDependOnTheBlock) {
  const auto backend = make_cpu_backend();
  const Plan plan = test::make_plan({}, GaussianKernel{.bandwidth = 0.7});
  std::vector<Moments> together(4);
  backend->worker(plan)->run({.first = 0, .count = 29}, together);

  for (std::uint64_t leaf = 0; leaf < 4; ++leaf) {
    std::vector<Moments> alone(1);
    backend->worker(plan)->run({.first = 8 * leaf, .count = leaf < 3 ? 8u : 5u}, alone);
    EXPECT_EQ(alone[0].count, together[leaf].count);
    EXPECT_EQ(alone[0].mean, together[leaf].mean);
    EXPECT_EQ(alone[0].comoment, together[leaf].comoment);
  }
}

}  // namespace
}  // namespace headlab
