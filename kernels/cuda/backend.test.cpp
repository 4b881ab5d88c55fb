// SPDX-License-Identifier: Apache-2.0
// Agreement of the CUDA backend, executed on the host, with the reference.
#include "kernels/cuda/backend.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/launch_plan.h"
#include "kernels/cuda/runtime.h"
#include "kernels/cuda/worker.h"
#include "kernels/reference/backend.h"
#include "kernels/reference/training_set.h"
#include "kernels/testing/cuda_agreement.h"
#include "kernels/testing/emulated_backend.h"
#include "kernels/testing/test_plans.h"

namespace headlab::emulated_cuda {
namespace {

using test::all_kernels;
using test::one_replicate;

TEST_F(Cuda, DrawsTheBitsOfTheReferenceForEveryDesign) {
  const MixtureDesign mixture{.weights = {0.3, 0.7}, .means = {{0, 1, 2}, {3, 4, 5}}};
  const FileDesign file{.rows = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}};
  const std::vector<DesignLaw> laws = {NormalDesign{.dim = 5},
                                       NormalDesign{.dim = 5, .ar1 = 0.6},
                                       mixture,
                                       UniformDesign{.dim = 5},
                                       StudentDesign{.dim = 5, .df = 2.5},
                                       SphereDesign{.dim = 5},
                                       file};
  for (const DesignLaw& law : laws) {
    Plan plan;
    plan.n = 77;
    plan.seed = (1ull << 52) + 3;
    std::visit(
        [&](const auto& design) {
          plan.d = design.dimension();
          plan.design = design.sampler(plan.table);
        },
        law);
    plan.kernel = GaussianKernel{};
    plan.projections.assign(static_cast<std::size_t>(plan.d), 0.0);
    plan.query_points.assign(static_cast<std::size_t>(plan.d), 0.0);
    plan.head_weights = {1};
    plan.truth = {0};
    const std::vector<double> reference = draw_training_set(plan, 41).x;
    Options options;
    options.batch_replicates = 1;

    const std::vector<float> drawn = draw_design(plan, 41, options);

    ASSERT_EQ(drawn.size(), reference.size());
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      ASSERT_EQ(static_cast<double>(drawn[i]), reference[i]) << law.index() << " at " << i;
    }
  }
}

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

TEST_F(Cuda, StatisticsAreEquivalentToReference) {
  const std::vector<test::Shape> shapes = {
      {.n = 1, .d = 2, .heads = 1, .k = 1, .queries = 1},
      {.n = 31, .d = 3, .heads = 3, .k = 1, .queries = 7},
      {.n = 33, .d = 8, .heads = 1, .k = 5, .queries = 7},
      {.n = 33, .d = 8, .heads = 4, .k = 4, .queries = 3},
      {.n = 1000, .d = 6, .heads = 3, .k = 2, .queries = 7},
      {.n = 150, .d = 16, .heads = 8, .k = 8, .queries = 7},
      {.n = 100, .d = 16, .heads = 3, .k = 16, .queries = 7},
      {.n = 65, .d = 40, .heads = 17, .k = 33, .queries = 7},
      {.n = 100, .d = 30, .heads = 17, .k = 30, .queries = 1},
      {.n = 64, .d = 80, .heads = 2, .k = 70, .queries = 3},
  };
  for (const test::Shape& shape : shapes) {
    for (const KernelLaw& kernel : all_kernels(shape.k > 10 ? 4.0 : 0.7)) {
      // Laws without an edge have weight everywhere here: no query takes the fallback.
      const bool smooth = std::holds_alternative<GaussianKernel>(kernel) ||
                          std::holds_alternative<LaplaceKernel>(kernel) ||
                          std::holds_alternative<SoftmaxKernel>(kernel);
      for (const Estimator estimator : {Estimator::conditional, Estimator::plain}) {
        for (const MomentMode mode : {MomentMode::pairwise, MomentMode::aggregate}) {
          // The plain estimator takes the same kernels in both modes: one law is enough.
          if (estimator == Estimator::plain && mode == MomentMode::aggregate &&
              !std::holds_alternative<GaussianKernel>(kernel)) {
            continue;
          }
          const Plan plan = test::make_plan(shape, kernel, estimator, mode);
          std::atomic<std::uint64_t> fallback = 0;
          Options options = small_options();
          options.fallback_queries = &fallback;
          const auto backend = make_cuda_backend(options);
          EXPECT_TRUE(
              close_to_reference(plan, 2, one_replicate(*backend, plan, 2).mean, {}, fallback))
              << "n " << shape.n << " H " << shape.heads << " k " << shape.k << " Q "
              << shape.queries << " kernel " << kernel.index() << " estimator "
              << static_cast<int>(estimator) << " moments " << static_cast<int>(mode);
          if (smooth) {
            EXPECT_EQ(fallback, 0u) << "kernel " << kernel.index() << " k " << shape.k;
          }
        }
      }
    }
  }
}

TEST_F(Cuda, KeysBeyondTheRangeOfFloat16AreEquivalentToReference) {
  // Some points of a Cauchy design lie beyond 65504 units of the kernel. They have no weight,
  // except with softmax, which takes the fallback.
  for (const int k : {8, 16, 64}) {
    for (const KernelLaw& kernel :
         {KernelLaw(GaussianKernel{.bandwidth = 2}), KernelLaw(LaplaceKernel{.bandwidth = 2}),
          KernelLaw(SoftmaxKernel{.temperature = 40})}) {
      for (const Estimator estimator : {Estimator::conditional, Estimator::plain}) {
        Plan plan = test::make_plan({.n = 150, .d = 70, .heads = 2, .k = k, .queries = 5}, kernel,
                                    estimator);
        plan.design = StudentDesign{.dim = 70, .df = 0.3}.sampler(plan.table);
        for (double& x : plan.query_points) x *= 0.1;
        ASSERT_TRUE(plan_launch(plan).on_tensor_cores()) << k;
        const bool distances = norm_coefficient_of(kernel) != 0.0;
        std::atomic<std::uint64_t> fallback = 0;
        Options options = small_options();
        options.fallback_queries = &fallback;
        const auto statistics = one_replicate(*make_cuda_backend(options), plan, 1).mean;
        EXPECT_TRUE(close_to_reference(plan, 1, statistics)) << k << ' ' << kernel.index();
        if (!distances) {
          EXPECT_EQ(fallback, 5u) << k;
        }
      }
    }
  }
}

TEST_F(Cuda, ManyHeadsQueriesAndKeysAreEquivalentToReference) {
  // Several tiles of pairs, groups of heads and of queries, panels of keys; the last shape has more
  // pairs than fit a thread block, and takes the fallback.
  const std::vector<test::Shape> shapes = {
      {.n = 70, .d = 6, .heads = 33, .k = 1, .queries = 5},
      {.n = 100, .d = 20, .heads = 20, .k = 8, .queries = 9},
      {.n = 20, .d = 4, .heads = 90, .k = 1, .queries = 2},
      {.n = 300, .d = 4, .heads = 2, .k = 2, .queries = 150},
      {.n = 9000, .d = 2, .heads = 1, .k = 1, .queries = 1},
      {.n = 9000, .d = 2, .heads = 2, .k = 1, .queries = 3},
      {.n = 5, .d = 3, .heads = 184, .k = 1, .queries = 1},
  };
  for (const test::Shape& shape : shapes) {
    for (const MomentMode mode : {MomentMode::pairwise, MomentMode::aggregate}) {
      const Plan plan =
          test::make_plan(shape, GaussianKernel{.bandwidth = 1.5}, Estimator::conditional, mode);
      const bool many_pairs = shape.heads == 184 && mode == MomentMode::pairwise;
      EXPECT_EQ(plan_launch(plan).fallback_only, many_pairs);
      EXPECT_TRUE(close_to_reference(
          plan, 0, one_replicate(*make_cuda_backend(small_options()), plan, 0).mean))
          << "n " << shape.n << " H " << shape.heads << " k " << shape.k << " Q " << shape.queries
          << " moments " << static_cast<int>(mode);
    }
  }
}

TEST_F(Cuda, ComponentsAreWithinAHundredthOfTheirStandardErrors) {
  constexpr std::uint64_t replicates = 64;
  for (const int k : {2, 4, 16}) {
    Plan plan = test::make_plan({.n = 200, .d = 20, .heads = 3, .k = k, .queries = 4},
                                GaussianKernel{.bandwidth = k > 4 ? 2.5 : 0.8});
    const MomentLayout layout = plan.layout();
    const Block block = {.first = 0, .count = replicates};
    auto all = [&](const Backend& backend) {
      std::vector<Moments> leaves(block.nodes());
      backend.worker(plan)->run(block, leaves);
      return merge_siblings(layout, leaves);
    };
    const Moments exact = all(*make_reference_backend());
    /// Largest error of a head's mean in standard errors, and of a variance in its own.
    auto worst = [&](const Moments& moments) {
      double largest = 0;
      for (std::size_t q = 0; q < static_cast<std::size_t>(layout.queries); ++q) {
        for (std::size_t h = 0; h < static_cast<std::size_t>(layout.heads); ++h) {
          const std::size_t pair = q * layout.pairs() + layout.pair(h, h);
          const double variance = exact.comoment[pair] / (replicates - 1);
          const std::size_t at = q * layout.per_query() + h;
          const double of_mean = std::abs(moments.mean[at] - exact.mean[at]) /
                                 std::sqrt(variance / static_cast<double>(replicates));
          const double of_variance = std::abs(moments.comoment[pair] - exact.comoment[pair]) /
                                     (exact.comoment[pair] * std::sqrt(2.0 / replicates));
          largest = std::max({largest, of_mean, of_variance});
          if (!(of_mean >= 0) || !(of_variance >= 0)) return HUGE_VAL;
        }
      }
      return largest;
    };
    EXPECT_LE(worst(all(*make_cuda_backend(small_options()))), 0.01) << k;

    std::get<GaussianKernel>(plan.kernel).bandwidth *= 1.01;
    EXPECT_GT(worst(all(*make_cuda_backend(small_options()))), 0.01) << "one percent is seen";
  }
}

TEST_F(Cuda, TheFallbackIsEquivalentToReference) {
  // No shared memory for a tile: every query takes the fallback.
  Options options = small_options();
  options.limits.shared_bytes = 0;
  std::atomic<std::uint64_t> fallback = 0;
  options.fallback_queries = &fallback;
  for (const KernelLaw& kernel : all_kernels(0.7)) {
    for (const MomentMode mode : {MomentMode::pairwise, MomentMode::aggregate}) {
      const Plan plan =
          test::make_plan({.n = 200, .heads = 3}, kernel, Estimator::conditional, mode);
      ASSERT_TRUE(plan_launch(plan, options.limits).fallback_only);
      EXPECT_TRUE(close_to_reference(
          plan, 1, one_replicate(*make_cuda_backend(options), plan, 1).mean, options.limits))
          << kernel.index();
    }
  }
  EXPECT_GT(fallback, 0u);
}

TEST_F(Cuda, TheFallbackTakesSumsThatUnderflowCouldChange) {
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
    std::atomic<std::uint64_t> fallback = 0;
    Options options = small_options();
    options.fallback_queries = &fallback;
    const Moments found = one_replicate(*make_cuda_backend(options), plan, 2);
    EXPECT_EQ(fallback, c.fallback) << "sum " << c.sum;
    // sum w^2 / (sum w)^2 = (1 + cv^2) / n, where w varies as exp(9.1 X 1e-5).
    if (c.estimator == Estimator::plain) continue;
    EXPECT_NEAR(static_cast<double>(plan.n) * found.mean.at(1), 1.0, 1e-3);
  }
}

TEST_F(Cuda, QueriesWithProjectionsOfTheirOwnAreEquivalentToReference) {
  Options fallback_only = small_options();
  fallback_only.limits.shared_bytes = 0;
  for (const int k : {2, 8, 16}) {
    const test::Shape shape = {.n = 300, .d = 20, .heads = 3, .k = k, .queries = 4};
    Plan plan = test::make_plan(shape, SoftmaxKernel{.temperature = k > 10 ? 4 : 0.7});
    const Plan shared = plan;
    const auto half = 3 * 20 * k;
    plan.query_projections =
        test::make_plan({.d = 20, .heads = 6, .k = k}, plan.kernel).projections;
    plan.query_projections.erase(plan.query_projections.begin(),
                                 plan.query_projections.begin() + half);
    for (const Options& options : {small_options(), fallback_only}) {
      ASSERT_EQ(plan_launch(plan, options.limits).fallback_only, options.limits.shared_bytes == 0);
      const auto statistics = one_replicate(*make_cuda_backend(options), plan, 2).mean;
      EXPECT_TRUE(close_to_reference(plan, 2, statistics, options.limits)) << k;
      // Negative control: the keys' projections for the queries too.
      EXPECT_TRUE(far_from_reference(shared, 2, statistics)) << k;
    }
  }
}

TEST_F(Cuda, TheComparisonSeesABandwidthOffByOnePercent) {
  Plan plan = test::make_plan({.n = 1000}, GaussianKernel{.bandwidth = 0.7});
  const auto statistics = one_replicate(*make_cuda_backend(small_options()), plan, 2).mean;

  plan.kernel = GaussianKernel{.bandwidth = 0.707};

  EXPECT_TRUE(far_from_reference(plan, 2, statistics));
  EXPECT_TRUE(far_from_reference(plan, 2, std::vector<double>(statistics.size(), std::nan(""))));
}

TEST_F(Cuda, NoiseThatVariesIsEquivalentToReference) {
  for (const int heads : {3, 17}) {
    for (const Estimator estimator : {Estimator::conditional, Estimator::plain}) {
      for (const MomentMode mode : {MomentMode::pairwise, MomentMode::aggregate}) {
        Plan plan = test::make_plan({.n = 300, .heads = heads}, GaussianKernel{.bandwidth = 0.7},
                                    estimator, mode);
        plan.noise =
            HeteroscedasticNoise{.sd = 0.4, .slope = 1.5, .direction = {1, -1, 0, 0.5, 0, 0}}
                .sampler(plan.table, plan.d);
        EXPECT_TRUE(close_to_reference(
            plan, 0, one_replicate(*make_cuda_backend(small_options()), plan, 0).mean))
            << heads;
      }
    }
  }
}

TEST_F(Cuda, NoiseHasTheSameDigitsInAnyUnit) {
  for (const auto& [heads, mode] :
       {std::pair(3, MomentMode::pairwise), std::pair(3, MomentMode::aggregate),
        std::pair(17, MomentMode::aggregate)}) {
    const auto noise_of = [&](double sd) {
      Plan plan = test::make_plan({.n = 300, .heads = heads, .k = 1},
                                  GaussianKernel{.bandwidth = 0.3}, Estimator::conditional, mode);
      plan.noise =
          HeteroscedasticNoise{.sd = sd, .slope = 0.7, .direction = {1, 0, 0, 0, 0, 0}}.sampler(
              plan.table, plan.d);
      return one_replicate(*make_cuda_backend(small_options()), plan, 2).mean;
    };
    const MomentLayout layout =
        test::make_plan({.heads = heads}, GaussianKernel{}, Estimator::conditional, mode).layout();
    const std::vector<double> ordinary = noise_of(1);
    const std::vector<double> small = noise_of(0x1p-80);
    const std::vector<double> large = noise_of(0x1p+80);
    for (std::size_t i = 0; i < ordinary.size(); ++i) {
      const std::size_t at = i % layout.per_query();
      const bool is_noise = at >= layout.noise_offset() &&
                            (!layout.has_alignment() || at < layout.alignment_offset());
      EXPECT_EQ(small[i], is_noise ? ordinary[i] * 0x1p-160 : ordinary[i]) << at;
      EXPECT_EQ(large[i], is_noise ? ordinary[i] * 0x1p+160 : ordinary[i]) << at;
      EXPECT_TRUE(!is_noise || ordinary[i] > 0) << at;
    }
  }
}

TEST_F(Cuda, OneDesignForAllReplicatesWhereItIsFixed) {
  Plan plan = test::make_plan({.n = 50}, GaussianKernel{.bandwidth = 0.7});
  plan.fixed_design_seed = 9;
  const auto nodes = run(plan, {.first = 0, .count = 16}, small_options());
  for (const Moments& node : nodes) {
    for (const double comoment : node.comoment) EXPECT_EQ(comoment, 0.0);
    EXPECT_TRUE(close_to_reference(plan, 3, node.mean));
  }
}

TEST_F(Cuda, EmptyAndNarrowWindowsAreTreatedAndCountedAsInTheReference) {
  const auto reference = make_reference_backend();
  for (const double scale : {1e-6, 1e-3, 0.02}) {
    for (const KernelLaw& kernel : all_kernels(scale)) {
      for (const int queries : {2, 6}) {
        for (const bool bounded : {false, true}) {
          const Plan plan =
              test::make_plan({.n = bounded ? 1100u : 90u,
                               .d = 4,
                               .heads = 3,
                               .k = bounded ? 1 : 3,
                               .queries = queries},
                              kernel, bounded ? Estimator::plain : Estimator::conditional);
          ASSERT_EQ(plan_launch(plan).bounds_squares, bounded);
          const Moments fast = one_replicate(*make_cuda_backend(small_options()), plan, 1);
          const Moments exact = one_replicate(*reference, plan, 1);
          for (const double value : fast.mean) EXPECT_TRUE(std::isfinite(value));
          EXPECT_EQ(fast.windows, exact.windows) << "scale " << scale << " law " << kernel.index();
        }
      }
    }
  }
}

TEST_F(Cuda, FarAndHeavyTailedPointsGiveNoNaN) {
  for (const double scale : {1e-6, 1.0, 1e6}) {
    for (const KernelLaw& kernel : all_kernels(scale)) {
      for (const int k : {2, 9}) {
        Plan plan = test::make_plan({.n = 100, .d = 12, .k = k}, kernel);
        plan.design = StudentDesign{.dim = 12, .df = 0.02}.sampler(plan.table);
        for (double& x : plan.query_points) x *= 1e6;
        for (const double value :
             one_replicate(*make_cuda_backend(small_options()), plan, 0).mean) {
          ASSERT_TRUE(std::isfinite(value)) << "scale " << scale << " law " << kernel.index();
        }
      }
    }
  }
}

TEST_F(Cuda, WithoutADeviceThereIsNoBackend) {
  control::set_devices(0);
  EXPECT_THROW(make_cuda_backend(), Unavailable);
}

}  // namespace
}  // namespace headlab::emulated_cuda
