// SPDX-License-Identifier: Apache-2.0
// What the CUDA backend chooses for a plan, and its agreement with the reference where that depends
// on the choice, on a GPU and on the host. For every backend: agreement.test.cpp.
#include "kernels/cuda/backend.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "kernels/testing/agreement_fixture.h"
#include "kernels/testing/mechanisms.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

using CudaAgreement = test::Agreement;

TEST_F(Cuda, ChoosesEveryMicrokernelSomewhere) {
  auto microkernel = [](int k, int queries, const KernelLaw& kernel) {
    const Plan plan = test::make_plan({.n = 100, .d = 70, .heads = 2, .k = k, .queries = queries},
                                      kernel, Estimator::plain);
    return plan_launch(plan).microkernel;
  };
  const GaussianKernel wide{.bandwidth = 2};
  const EpanechnikovKernel window{.bandwidth = 2};
  EXPECT_EQ(microkernel(1, 7, wide), Microkernel::dots1);
  EXPECT_EQ(microkernel(2, 7, wide), Microkernel::dots2);
  EXPECT_EQ(microkernel(3, 7, wide), Microkernel::dots3);
  EXPECT_EQ(microkernel(4, 7, wide), Microkernel::dots4);
  EXPECT_EQ(microkernel(1, 7, window), Microkernel::distances1);
  EXPECT_EQ(microkernel(2, 7, window), Microkernel::distances2);
  EXPECT_EQ(microkernel(3, 7, window), Microkernel::shifted4);
  EXPECT_EQ(microkernel(3, 7, EpanechnikovKernel{.bandwidth = 0.1}), Microkernel::distances4);
  EXPECT_EQ(microkernel(1, 7, SoftmaxKernel{}), Microkernel::shifted1);
  EXPECT_EQ(microkernel(2, 7, SoftmaxKernel{}), Microkernel::shifted2);
  EXPECT_EQ(microkernel(3, 7, SoftmaxKernel{}), Microkernel::shifted4);
  EXPECT_EQ(microkernel(5, 7, wide), Microkernel::tensor8);
  EXPECT_EQ(microkernel(8, 7, window), Microkernel::tensor8);
  EXPECT_EQ(microkernel(8, 7, EpanechnikovKernel{.bandwidth = 0.1}), Microkernel::distances8);
  EXPECT_EQ(microkernel(9, 7, wide), Microkernel::tensor16);
  EXPECT_EQ(microkernel(32, 7, wide), Microkernel::tensor32);
  EXPECT_EQ(microkernel(64, 7, SoftmaxKernel{}), Microkernel::tensor64);
  EXPECT_EQ(microkernel(65, 7, wide), Microkernel::any);
  EXPECT_EQ(microkernel(16, 7, window), Microkernel::tensor16);
  EXPECT_EQ(microkernel(16, 7, EpanechnikovKernel{.bandwidth = 0.1}), Microkernel::any);
  EXPECT_EQ(microkernel(4, 2, wide), Microkernel::any);
  // Sums without the shifts would overflow.
  EXPECT_EQ(microkernel(2, 7, GaussianKernel{.bandwidth = 0.15}), Microkernel::distances2);
  EXPECT_EQ(microkernel(4, 7, GaussianKernel{.bandwidth = 0.15}), Microkernel::shifted4);
  EXPECT_EQ(microkernel(4, 7, GaussianKernel{.bandwidth = 0.01}), Microkernel::distances4)
      << "products would lose the digits of so small a bandwidth";
}

TEST_F(Cuda, ChoosesWhatTheAgreementSuiteIsMadeFor) {
  // Queries far from one another.
  const MixtureDesign apart{.weights = {0.5, 0.5},
                            .means = {std::vector<double>(18), std::vector<double>(18, 60.0)}};
  for (const auto& [k, form] : {std::pair(3, Microkernel::distances4),
                                {8, Microkernel::distances8},
                                {16, Microkernel::any}}) {
    Plan plan = test::make_plan({.n = 300, .d = 18, .k = k, .queries = 6},
                                GaussianKernel{.bandwidth = k > 8 ? 2.5 : 1});
    plan.design = apart.sampler(plan.table);
    for (std::size_t i = 0; i < 3 * 18; ++i) plan.query_points[i] += 60;
    EXPECT_EQ(plan_launch(plan).microkernel, form);
  }
  const auto launch = [](const test::Shape& shape, Estimator estimator, MomentMode mode,
                         const LaunchLimits& limits = {}) {
    return plan_launch(test::make_plan(shape, GaussianKernel{.bandwidth = 1.5}, estimator, mode),
                       limits);
  };
  using enum Estimator;
  using enum MomentMode;
  // Pairs of heads that fit a thread block, and more.
  EXPECT_FALSE(launch({.n = 20, .d = 4, .heads = 90, .k = 1}, conditional, pairwise).fallback_only);
  EXPECT_TRUE(launch({.n = 5, .d = 3, .heads = 184, .k = 1}, conditional, pairwise).fallback_only);
  EXPECT_FALSE(
      launch({.n = 5, .d = 3, .heads = 184, .k = 1}, conditional, aggregate).fallback_only);
  // Squares that are bounded.
  EXPECT_TRUE(launch({.n = 1100, .d = 4, .k = 1}, plain, pairwise).bounds_squares);
  EXPECT_FALSE(launch({.n = 90, .d = 4, .k = 3}, conditional, pairwise).bounds_squares);
  EXPECT_TRUE(launch({}, conditional, pairwise, {.shared_bytes = 0}).fallback_only);
}

TEST_F(CudaAgreement, KeysBeyondTheRangeOfFloat16AreEquivalentToReference) {
  // Some points of a Cauchy design lie beyond 65504 units of the kernel. They have no weight,
  // except with softmax, which takes the fallback.
  for (const int k : {8, 16, 64}) {
    for (const KernelLaw& kernel :
         {KernelLaw(GaussianKernel{.bandwidth = 2}), KernelLaw(LaplaceKernel{.bandwidth = 2}),
          KernelLaw(SoftmaxKernel{.temperature = 40})}) {
      for (const Estimator estimator : test::estimators) {
        Plan plan = test::make_plan({.n = 150, .d = 70, .heads = 2, .k = k, .queries = 5}, kernel,
                                    estimator);
        plan.design = StudentDesign{.dim = 70, .df = 0.3}.sampler(plan.table);
        for (double& x : plan.query_points) x *= 0.1;
        ASSERT_TRUE(plan_launch(plan).on_tensor_cores()) << k;
        expect_statistics(plan, 1);
        if (norm_coefficient_of(kernel) == 0.0) {
          EXPECT_EQ(repaired(), 5u) << k;
        }
      }
    }
  }
}

TEST_F(CudaAgreement, TheFallbackTakesSumsThatUnderflowCouldChange) {
  // Sums of kernel values are safe from 2^-40 on, and where squares are needed from n 2^-60 =
  // 1.125 2^-40 on.
  struct Case {
    Estimator estimator;
    std::uint64_t n;
    double sum;
    std::uint64_t fallback;
  };
  constexpr std::uint64_t many = 9u << 17;
  for (const Case& c : {Case{Estimator::plain, 1u << 14, 0x1.1p-40, 0},
                        Case{Estimator::conditional, 1u << 14, 0x1.1p-40, 0},
                        Case{Estimator::conditional, many, 0x1.1p-40, 1}}) {
    Plan plan = test::make_plan({.n = c.n, .d = 1, .heads = 1, .k = 1, .queries = 1},
                                GaussianKernel{.bandwidth = 1e5}, c.estimator);
    plan.query_points = {1e5 * std::sqrt(2 * std::log(static_cast<double>(plan.n) / c.sum))};
    plan.noise = NormalNoise{.sd = 1}.sampler(plan.table, 1);
    const Moments found = compute(plan, 2);
    EXPECT_EQ(repaired(), c.fallback) << "sum " << c.sum;
    // sum w^2 / (sum w)^2 = (1 + cv^2) / n, where w varies as exp(9.1 X 1e-5).
    if (c.estimator == Estimator::plain) continue;
    EXPECT_NEAR(static_cast<double>(plan.n) * found.mean.at(1), 1.0, 1e-3);
  }
}

/// Few and small cases, for sanitizers.
TEST_F(CudaAgreement, EveryKernelOnAFewPointsIsEquivalentToReference) {
  options_.batch_replicates = 8;
  std::size_t turn = 0;
  for (const int k : {2, 4, 8, 16, 32, 64, 70}) {
    const auto kernels = test::all_kernels(k > 10 ? 4.0 : 0.7);
    for (const Estimator estimator : test::estimators) {
      for (const MomentMode mode : test::modes) {
        const int heads = mode == MomentMode::aggregate ? 17 : 3;
        options_.limits.stores_keys = heads == 17;
        Plan plan = test::make_plan({.n = 100, .d = k + 3, .heads = heads, .k = k, .queries = 7},
                                    kernels[turn++ % kernels.size()], estimator, mode);
        test::vary_noise(plan);
        expect_statistics(plan);
      }
    }
  }
  options_.limits.stores_keys = false;
  // So narrow that every query takes the fallback.
  expect_statistics(test::make_plan({.n = 100}, GaussianKernel{.bandwidth = 1e-3}));
}

TEST_F(CudaAgreement, EveryStageOnAFewPointsIsEquivalentToReference) {
  options_.batch_replicates = 8;
  for (const test::NamedStage& stage : test::all_stages()) {
    SCOPED_TRACE(stage.name);
    Plan plan = test::make_plan({.n = 100, .queries = 3}, GaussianKernel{.bandwidth = 1.2});
    plan.ar1 = Ar1(0.5);
    stage.set(plan);
    expect_agreement(plan);
  }
}

TEST_F(Cuda, AWorkerHasOnePlan) {
  const auto backend = make_cuda_backend();
  const Plan plan = test::make_plan({}, GaussianKernel{});
  const std::vector<const Plan*> plans(backend->plans_together() + 1, &plan);
  EXPECT_THROW(backend->worker(plans), std::logic_error);
  EXPECT_THROW(backend->worker_bytes(plans), std::logic_error);
}

#if defined(HEADLAB_EMULATE_CUDA)
TEST_F(Cuda, WithoutADeviceThereIsNoBackend) {
  control::set_devices(0);
  EXPECT_THROW(make_cuda_backend(), Unavailable);
}
#else
TEST_F(CudaAgreement, EverySizeIsEquivalentToReference) {
  std::size_t turn = 0;
  for (const std::uint64_t n : {1u, 31u, 33u, 1000u}) {
    for (const int queries : {1, 7}) {
      for (const int heads : {1, 3, 17}) {
        for (const int k : {1, 2, 5, 8, 16, 33, 64}) {
          const auto kernels = test::all_kernels(k > 10 ? 4.0 : 0.7);
          for (const Estimator estimator : test::estimators) {
            for (const MomentMode mode : test::modes) {
              expect_statistics(
                  test::make_plan({.n = n, .d = k + 3, .heads = heads, .k = k, .queries = queries},
                                  kernels[turn++ % kernels.size()], estimator, mode));
            }
          }
        }
      }
    }
  }
}

TEST_F(CudaAgreement, TheShapesOfTheBenchmarksAreEquivalentToReference) {
  for (const int k : {1, 2, 4, 8, 16, 32, 64}) {
    for (const Estimator estimator : test::estimators) {
      for (const MomentMode mode : test::modes) {
        // The reference takes most of the time: one of the four at full size.
        const bool full = k < 16 && estimator == Estimator::conditional;
        // Of eight heads both modes take the same kernels: keys that are projected where they are
        // weighed, and keys that are read.
        options_.limits.stores_keys = mode == MomentMode::aggregate;
        expect_statistics(
            test::make_plan({.n = full && mode == MomentMode::pairwise ? 4096u : 500u,
                             .d = std::max(32, k),
                             .heads = 8,
                             .k = k,
                             .queries = 64},
                            GaussianKernel{.bandwidth = 0.8 * std::sqrt(k)}, estimator, mode),
            1);
      }
    }
  }
}
#endif

}  // namespace
}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
