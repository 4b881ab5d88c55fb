// SPDX-License-Identifier: Apache-2.0
// The digits of products that are split into numbers of float16, on a GPU and on the host: plans of
// so few keys that nothing averages their errors, whose tolerance is then near what the products
// lose.
#include <cstdint>
#include <string>
#include <utility>

#include "kernels/testing/agreement_fixture.h"
#include "kernels/testing/mechanisms.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

class SplitProducts : public test::Agreement {
 protected:
  /// Compares some replicates with the reference. The control: without the lower parts of queries
  /// and projections they differ.
  void expect_digits(const Plan& plan, const LaunchLimits& limits) {
    ASSERT_TRUE(plan_launch(plan, limits).on_tensor_cores());
    options_.batch_replicates = 1;
    options_.limits = limits;
    bool seen = false;
    for (std::uint64_t replicate = 0; replicate < 2; ++replicate) {
      expect_statistics(plan, replicate);
      options_.no_lower_parts = true;
      seen = seen || is_far(plan, replicate, compute(plan, replicate).mean);
      options_.no_lower_parts = false;
    }
    EXPECT_TRUE(seen) << "the lower parts are not needed";
  }
};

TEST_F(SplitProducts, KeepTheDigitsOfFewKeys) {
  for (const auto& [k, d] : {std::pair(5, 32), {8, 46}, {12, 33}, {16, 16}, {30, 70}, {64, 70}}) {
    for (const KernelLaw& kernel : {KernelLaw(GaussianKernel{.bandwidth = 1.5}),
                                    KernelLaw(SoftmaxKernel{.temperature = 2})}) {
      for (const Estimator estimator : {Estimator::conditional, Estimator::plain}) {
        for (const bool reads : {false, true}) {
          SCOPED_TRACE("k " + std::to_string(k) + " kernel " + std::to_string(kernel.index()) +
                       " estimator " + std::to_string(static_cast<int>(estimator)) +
                       (reads ? " read" : " projected"));
          const Plan plan = test::make_plan({.n = 3, .d = d, .heads = 3, .k = k, .queries = 20},
                                            kernel, estimator);
          const LaunchLimits limits = {.stores_keys = reads};
          ASSERT_EQ(plan_launch(plan, limits).projects, !reads);
          expect_digits(plan, limits);
        }
      }
    }
  }
}

TEST_F(SplitProducts, KeepTheDigitsInEverySum) {
  // Pairs of 2, 4 and 8 heads in registers and of more on the tensor cores, and the second pass of
  // the aggregate moments; with noise that varies too.
  for (const bool varies : {false, true}) {
    for (const auto& [heads, mode] : {std::pair(2, MomentMode::pairwise),
                                      {4, MomentMode::pairwise},
                                      {8, MomentMode::pairwise},
                                      {12, MomentMode::pairwise},
                                      {18, MomentMode::aggregate}}) {
      SCOPED_TRACE(std::to_string(heads) + " heads" + (varies ? ", noise varies" : ""));
      Plan plan = test::make_plan({.n = 3, .d = 20, .heads = heads, .k = 8, .queries = 20},
                                  GaussianKernel{.bandwidth = 1.5}, Estimator::conditional, mode);
      if (varies) test::vary_noise(plan);
      const LaunchPlan launch = plan_launch(plan);
      ASSERT_EQ(launch.register_heads, heads <= 8 ? heads : 0);
      ASSERT_EQ(launch.totals.ensemble, mode == MomentMode::aggregate);
      expect_digits(plan, {});
    }
  }
  // Squares that are bounded need many keys, of which few are near.
  const Plan many = test::make_plan({.n = 1100, .d = 20, .heads = 3, .k = 16, .queries = 20},
                                    GaussianKernel{.bandwidth = 0.7}, Estimator::plain);
  ASSERT_TRUE(plan_launch(many).bounds_squares);
  expect_digits(many, {});
}

TEST_F(SplitProducts, KeepTheDigitsWithEveryStage) {
  for (const test::NamedStage& stage : test::all_stages()) {
    for (const KernelLaw& kernel : {KernelLaw(GaussianKernel{.bandwidth = 1.5}),
                                    KernelLaw(SoftmaxKernel{.temperature = 2})}) {
      SCOPED_TRACE(stage.name + ", kernel " + std::to_string(kernel.index()));
      Plan plan = test::make_plan({.n = 12, .d = 20, .heads = 2, .k = 8, .queries = 20}, kernel);
      stage.set(plan);
      // Stage `keep` has no products on the tensor cores.
      if (plan.mechanism.keep.off()) expect_digits(plan, {});
    }
  }
}

}  // namespace
}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
