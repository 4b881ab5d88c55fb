// SPDX-License-Identifier: Apache-2.0
// Stages of a mechanism of the CUDA backend on a GPU against the reference.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/worker.h"
#include "kernels/reference/backend.h"
#include "kernels/reference/training_set.h"
#include "kernels/testing/gpu_fixture.h"
#include "kernels/testing/mechanisms.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

class GpuMechanism : public GpuBackend {
 protected:
  /// Compares the statistics and window counts of one replicate with the reference.
  void compare_windows(const Plan& plan, const std::string& what, const Options& options = {}) {
    SCOPED_TRACE(what);
    compare(plan, 2, options);
    EXPECT_EQ(test::one_replicate(*make_cuda_backend(options), plan, 2).windows,
              test::one_replicate(*make_reference_backend(), plan, 2).windows)
        << text_of(plan);
  }
};

TEST_F(GpuMechanism, EveryStageIsEquivalentToReference) {
  for (const test::NamedStage& stage : test::all_stages()) {
    for (const KernelLaw& kernel : test::all_kernels(0.6)) {
      if (!test::has_stage(kernel, stage)) continue;
      for (const Estimator estimator : estimators) {
        for (const MomentMode mode : modes) {
          Plan plan = test::make_plan({.n = 200}, kernel, estimator, mode);
          stage.set(plan);
          compare_windows(plan, stage.name);
        }
      }
    }
  }
}

TEST_F(GpuMechanism, EveryPairOfStagesIsEquivalentToReference) {
  const std::vector<test::NamedStage> stages = test::all_stages();
  for (const test::NamedStage& first : stages) {
    for (const test::NamedStage& second : stages) {
      if (!test::go_together(first, second)) continue;
      for (const KernelLaw& kernel : test::all_kernels(0.6)) {
        if (!test::has_stage(kernel, first) || !test::has_stage(kernel, second)) continue;
        Plan plan = test::make_plan({.n = 97}, kernel);
        first.set(plan);
        second.set(plan);
        compare_windows(plan, first.name + " and " + second.name);
      }
    }
  }
}

TEST_F(GpuMechanism, EveryMicrokernelHasEveryStageWithTheSameBitsForAnyBatch) {
  for (const test::NamedStage& stage : test::all_stages()) {
    for (const int k : {1, 3, 4, 8, 16, 40}) {
      for (const KernelLaw& kernel : {KernelLaw(GaussianKernel{.bandwidth = k > 8 ? 4.0 : 1.2}),
                                      KernelLaw(SoftmaxKernel{.temperature = k > 8 ? 4.0 : 1})}) {
        Plan plan =
            test::make_plan({.n = 70, .d = k + 2, .heads = 2, .k = k, .queries = 5}, kernel);
        stage.set(plan);
        compare_windows(plan, stage.name);
        const Block block = {.first = 16, .count = 9};
        Options options;
        options.batch_replicates = 4;
        EXPECT_TRUE(same_bits(run(plan, block, options), run(plan, block))) << text_of(plan);
      }
    }
  }
}

TEST_F(GpuMechanism, ASequenceHasTheBitsOfTheReferenceAndEveryStage) {
  for (const std::uint64_t n : {7u, 33u, 1000u}) {
    Plan plan = test::make_plan({.n = n}, GaussianKernel{.bandwidth = 0.6});
    std::ranges::fill(plan.query_points, 0.0);
    plan.ar1 = Ar1(0.8);
    EXPECT_TRUE(std::ranges::equal(draw_design(plan, 4, {}), draw_training_set(plan, 4).x)) << n;
  }
  for (const test::NamedStage& stage : test::all_stages()) {
    Plan plan = test::make_plan({.n = 110}, GaussianKernel{.bandwidth = 0.6});
    plan.ar1 = Ar1(0.8);
    stage.set(plan);
    compare_windows(plan, "ar1 and " + stage.name);
  }
}

/// Equal points have to have keys of equal bits, or the tokens do not tie.
TEST_F(GpuMechanism, EqualPointsTieWhereverTheyStand) {
  constexpr std::uint64_t n = 300;
  for (const int k : {1, 3, 8, 17}) {
    const int d = k + 5;
    std::vector<std::vector<double>> rows;
    for (std::uint64_t i = 0; i < n; ++i) {
      rows.emplace_back();
      // Seven different points.
      for (int c = 0; c < d; ++c) {
        rows.back().push_back(std::sin(static_cast<double>(i % 7) * 1.3 + 0.7 * c));
      }
    }
    for (const std::uint64_t top : {1u, 60u, 140u}) {
      Plan plan = test::make_plan({.n = n, .d = d, .k = k}, GaussianKernel{.bandwidth = 1});
      FileDesign::Sampler sampler = FileDesign{.rows = rows}.sampler(plan.table);
      sampler.successive = n;
      plan.design = sampler;
      plan.mechanism.keep = {.rule = Keep::Rule::top, .top = {top, top, top}};
      compare_windows(plan, "top " + std::to_string(top));
    }
  }
}

/// Few and small cases, for sanitizers.
TEST_F(GpuMechanism, EveryStageOnAFewPointsIsEquivalentToReference) {
  for (const test::NamedStage& stage : test::all_stages()) {
    Plan plan = test::make_plan({.n = 100, .queries = 3}, GaussianKernel{.bandwidth = 1.2});
    plan.ar1 = Ar1(0.5);
    stage.set(plan);
    Options options;
    options.batch_replicates = 8;
    compare_windows(plan, stage.name, options);
  }
}

TEST_F(GpuMechanism, TheComparisonSeesEveryStage) {
  const Plan plain = test::make_plan({.n = 97}, GaussianKernel{.bandwidth = 0.6});
  const std::vector<double> statistics = test::one_replicate(*make_cuda_backend(), plain, 2).mean;
  for (const test::NamedStage& stage : test::all_stages()) {
    Plan plan = plain;
    stage.set(plan);
    EXPECT_TRUE(far_from_reference(plan, 2, statistics)) << stage.name;
  }
}

}  // namespace
}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
