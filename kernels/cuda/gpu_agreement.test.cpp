// SPDX-License-Identifier: Apache-2.0
// Agreement of the CUDA backend on a GPU with the reference.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/worker.h"
#include "kernels/reference/backend.h"
#include "kernels/testing/gpu_fixture.h"
#include "kernels/testing/learning_agreement.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

using test::all_kernels;
using test::one_replicate;

std::vector<DesignLaw> all_designs(int d) {
  const auto size = static_cast<std::size_t>(d);
  MixtureDesign mixture{.weights = {0.3, 0.7}};
  std::vector<std::vector<double>> rows;
  for (std::size_t i = 0; i < 2; ++i)
    mixture.means.emplace_back(size, 1.5 * static_cast<double>(i));
  for (std::size_t i = 0; i < 40; ++i) {
    rows.emplace_back();
    for (std::size_t c = 0; c < size; ++c) {
      rows.back().push_back(std::sin(1.7 * static_cast<double>(i * size + c)));
    }
  }
  return {NormalDesign{.dim = d},  NormalDesign{.dim = d, .ar1 = 0.6}, mixture,
          UniformDesign{.dim = d}, StudentDesign{.dim = d, .df = 3},   SphereDesign{.dim = d},
          FileDesign{.rows = rows}};
}

std::vector<RegressionLaw> all_regressions(int d) {
  const auto size = static_cast<std::size_t>(d);
  const std::vector<double> ones(size, 1.0);
  std::vector<double> slopes, unit(size, 1 / std::sqrt(static_cast<double>(d)));
  for (std::size_t c = 0; c < size; ++c) slopes.push_back(0.2 * static_cast<double>(c) - 0.3);
  return {ZeroRegression{},
          LinearRegression{.coefficients = slopes},
          CosinesRegression{.amplitude = {1, 0.5}, .frequency = {slopes, unit}, .phase = {0.1, 2}},
          RandomCosinesRegression{.terms = 16, .length_scale = 2},
          AdditiveRegression{.amplitude = slopes, .frequency = ones},
          SingleIndexRegression{.direction = unit, .frequency = 1.5},
          BumpsRegression{.heights = {1, -2}, .centres = {slopes, unit}, .widths = {1, 2}},
          StepRegression{.direction = unit, .threshold = 0.1}};
}

std::vector<NoiseLaw> all_noises(int d) {
  return {NormalNoise{.sd = 0.5}, StudentNoise{.df = 5, .sd = 0.5}, LaplaceNoise{.sd = 0.5},
          HeteroscedasticNoise{.sd = 0.4,
                               .slope = 1.5,
                               .direction = std::vector<double>(static_cast<std::size_t>(d), 0.4)}};
}

TEST_F(GpuBackend, DrawsTheBitsOfTheReferenceForEveryDesign) {
  for (const DesignLaw& law : all_designs(5)) {
    Plan plan;
    plan.n = 1000;
    plan.seed = (1ull << 52) + 3;
    plan.d = 5;
    std::visit([&](const auto& design) { plan.design = design.sampler(plan.table); }, law);
    plan.kernel = GaussianKernel{};
    plan.projections.assign(5, 0.0);
    plan.query_points.assign(5, 0.0);
    plan.head_weights = {1};
    plan.truth = {0};
    for (const std::uint64_t replicate : {0ull, 41ull, (1ull << 33) + 7}) {
      const std::vector<double> expected = draw_training_set(plan, replicate).x;
      const std::vector<float> drawn = draw_design(plan, replicate, {});
      ASSERT_EQ(drawn.size(), expected.size());
      for (std::size_t i = 0; i < drawn.size(); ++i) {
        ASSERT_EQ(static_cast<double>(drawn[i]), expected[i])
            << "law " << law.index() << " replicate " << replicate << " at " << i;
      }
    }
  }
}

TEST_F(GpuBackend, EveryLawIsEquivalentToReference) {
  constexpr int d = 6;
  const auto regressions = all_regressions(d);
  const auto noises = all_noises(d);
  std::size_t turn = 0;
  for (const DesignLaw& design : all_designs(d)) {
    for (const KernelLaw& kernel : all_kernels(0.7)) {
      // Every design meets every kernel; the regressions and noises take turns, so that each meets
      // all of these, and every one of them each estimator and mode.
      for (const Estimator estimator : estimators) {
        for (const MomentMode mode : modes) {
          Plan plan = test::make_plan({.n = 200, .d = d, .heads = 3, .k = 2, .queries = 4}, kernel,
                                      estimator, mode);
          std::visit([&](const auto& law) { plan.design = law.sampler(plan.table); }, design);
          if (std::holds_alternative<FileDesign>(design) && turn % 2 == 0) {
            std::vector<double> values;
            for (std::size_t i = 0; i < 40; ++i) {
              values.push_back(std::cos(static_cast<double>(i)));
            }
            plan.regression = FileRegression{.values = values}.function(plan.table, d);
          } else {
            std::visit([&](const auto& law) { plan.regression = law.function(plan.table, d); },
                       regressions[turn % regressions.size()]);
          }
          std::visit([&](const auto& law) { plan.noise = law.sampler(plan.table, d); },
                     noises[turn / 3 % noises.size()]);
          compare(plan, 2);
          ++turn;
        }
      }
    }
  }
}

TEST_F(GpuBackend, EverySizeIsEquivalentToReference) {
  std::size_t turn = 0;
  for (const std::uint64_t n : {1u, 31u, 33u, 1000u}) {
    for (const int queries : {1, 7}) {
      for (const int heads : {1, 3, 17}) {
        for (const int k : {1, 2, 5, 8, 16, 33, 64}) {
          const auto kernels = all_kernels(k > 10 ? 4.0 : 0.7);
          for (const Estimator estimator : estimators) {
            for (const MomentMode mode : modes) {
              compare(
                  test::make_plan({.n = n, .d = k + 3, .heads = heads, .k = k, .queries = queries},
                                  kernels[turn++ % kernels.size()], estimator, mode),
                  2);
            }
          }
        }
      }
    }
  }
}

TEST_F(GpuBackend, TheShapesOfTheBenchmarksAreEquivalentToReference) {
  for (const int k : {1, 2, 4, 8, 16, 32, 64}) {
    for (const Estimator estimator : estimators) {
      for (const MomentMode mode : modes) {
        // The reference takes most of the time: one of the four at full size.
        const bool full = k < 16 && estimator == Estimator::conditional;
        // Of eight heads both modes take the same kernels: keys that are projected where they are
        // weighed, and keys that are read.
        Options options;
        options.limits.stores_keys = mode == MomentMode::aggregate;
        compare(test::make_plan({.n = full && mode == MomentMode::pairwise ? 4096u : 500u,
                                 .d = std::max(32, k),
                                 .heads = 8,
                                 .k = k,
                                 .queries = 64},
                                GaussianKernel{.bandwidth = 0.8 * std::sqrt(k)}, estimator, mode),
                1, options);
      }
    }
  }
}

TEST_F(GpuBackend, ManyHeadsAndOddDimensionsAreEquivalentToReference) {
  for (const test::Shape& shape :
       {test::Shape{.n = 300, .d = 12, .heads = 40, .k = 3, .queries = 5},
        test::Shape{.n = 300, .d = 12, .heads = 65, .k = 4, .queries = 3},
        test::Shape{.n = 20000, .d = 6, .heads = 2, .k = 2, .queries = 3},
        test::Shape{.n = 64, .d = 130, .heads = 2, .k = 129, .queries = 70}}) {
    for (const Estimator estimator : estimators) {
      for (const MomentMode mode : modes) {
        compare(test::make_plan(shape, GaussianKernel{.bandwidth = shape.k > 10 ? 8.0 : 1.4},
                                estimator, mode),
                0);
      }
    }
  }
}

TEST_F(GpuBackend, QueriesFarFromOneAnotherAreEquivalentToReference) {
  // Products of query and key would lose the digits. Points and queries stand in two places.
  for (const auto& [k, form] : {std::pair(3, Microkernel::distances4),
                                {8, Microkernel::distances8},
                                {16, Microkernel::any}}) {
    for (const int heads : {3, 8, 17}) {
      for (const Estimator estimator : estimators) {
        for (const MomentMode mode : modes) {
          const auto d = static_cast<std::size_t>(k) + 2;
          Plan plan =
              test::make_plan({.n = 300, .d = k + 2, .heads = heads, .k = k, .queries = 6},
                              GaussianKernel{.bandwidth = k > 8 ? 2.5 : 1}, estimator, mode);
          const std::vector<double> far(d, 60.0);
          plan.design = MixtureDesign{.weights = std::vector{0.5, 0.5},
                                      .means = std::vector{std::vector<double>(d), far}}
                            .sampler(plan.table);
          for (std::size_t i = 0; i < 3 * d; ++i) plan.query_points[i] += 60;
          ASSERT_EQ(plan_launch(plan).microkernel, form);
          compare(plan, 2);
        }
      }
    }
  }
}

/// Few and small cases, for sanitizers.
TEST_F(GpuBackend, EveryKernelOnAFewPointsIsEquivalentToReference) {
  Options options;
  options.batch_replicates = 8;
  std::size_t turn = 0;
  for (const int k : {2, 4, 8, 16, 32, 64, 70}) {
    const auto kernels = all_kernels(k > 10 ? 4.0 : 0.7);
    for (const Estimator estimator : estimators) {
      for (const MomentMode mode : modes) {
        const int heads = mode == MomentMode::aggregate ? 17 : 3;
        options.limits.stores_keys = heads == 17;
        Plan plan = test::make_plan({.n = 100, .d = k + 3, .heads = heads, .k = k, .queries = 7},
                                    kernels[turn++ % kernels.size()], estimator, mode);
        const std::vector<double> direction(static_cast<std::size_t>(plan.d), 0.2);
        plan.noise = HeteroscedasticNoise{.sd = 0.4, .slope = 1.5, .direction = direction}.sampler(
            plan.table, plan.d);
        compare(plan, 2, options);
      }
    }
  }
  options.limits.stores_keys = false;
  // So narrow that every query takes the fallback.
  compare(test::make_plan({.n = 100}, GaussianKernel{.bandwidth = 1e-3}), 2, options);
}

TEST_F(GpuBackend, TheComparisonSeesABandwidthOffByOnePercent) {
  Plan plan = test::make_plan({.n = 1000}, GaussianKernel{.bandwidth = 0.7});
  const auto statistics = one_replicate(*make_cuda_backend(), plan, 2).mean;
  EXPECT_TRUE(close_to_reference(plan, 2, statistics));
  plan.kernel = GaussianKernel{.bandwidth = 0.707};
  EXPECT_TRUE(far_from_reference(plan, 2, statistics));
  EXPECT_TRUE(far_from_reference(plan, 2, std::vector<double>(statistics.size(), std::nan(""))));
}

TEST_F(GpuBackend, EmptyAndNarrowWindowsAreCountedAsInTheReference) {
  for (const double scale : {1e-6, 1e-3, 0.02}) {
    for (const KernelLaw& kernel : all_kernels(scale)) {
      for (const int queries : {2, 6}) {
        const Plan plan =
            test::make_plan({.n = 90, .d = 4, .heads = 3, .k = 3, .queries = queries}, kernel);
        const Moments fast = one_replicate(*make_cuda_backend(), plan, 1);
        EXPECT_EQ(fast.windows, one_replicate(*make_reference_backend(), plan, 1).windows)
            << "scale " << scale << ' ' << text_of(plan);
        for (const double value : fast.mean) EXPECT_TRUE(std::isfinite(value)) << text_of(plan);
      }
    }
  }
}

TEST_F(GpuBackend, FarAndHeavyTailedPointsGiveNoNaN) {
  for (const double scale : {1e-6, 1.0, 1e6}) {
    for (const KernelLaw& kernel : all_kernels(scale)) {
      for (const int k : {2, 5, 9, 30}) {
        Plan plan = test::make_plan({.n = 200, .d = 32, .k = k}, kernel);
        plan.design = StudentDesign{.dim = 32, .df = 0.02}.sampler(plan.table);
        for (double& x : plan.query_points) x *= 1e6;
        for (const double value : one_replicate(*make_cuda_backend(), plan, 0).mean) {
          ASSERT_TRUE(std::isfinite(value)) << "scale " << scale << ' ' << text_of(plan);
        }
      }
    }
  }
}

TEST_F(GpuBackend, LearnedHeadsAreEquivalentToReferenceWithTheSameBitsAgain) {
  std::vector<test::FitShape> shapes = test::fit_shapes();
  // Three tiles of coordinates of a point and of a head, of keys and of queries.
  shapes.push_back({.n = 150, .d = 70, .heads = 1, .k = 66, .queries = 70});
  for (test::FitShape shape : shapes) {
    for (const KernelLaw& kernel : test::learnable_kernels(shape)) {
      for (const bool separate : {false, true}) {
        if (separate && norm_coefficient_of(kernel) != 0) continue;
        shape.separate = separate;
        const test::FitCase c = test::make_fit_case(shape, kernel);
        const test::FitReference reference = test::reference_answer(c, test::cuda_fit_rounding());
        // Few blocks of threads, so that each has several tiles of keys, and as many as it gets.
        for (const std::int64_t blocks : {std::int64_t{8}, Options{}.fit_blocks}) {
          Options options;
          options.fit_blocks = blocks;
          const auto backend = make_cuda_backend(options);
          test::FitAnswer given = answer(c, *backend->head_gradients(kernel, 1));
          const test::FitAnswer again = answer(c, *backend->head_gradients(kernel, 1));
          double largest = 0;
          const auto close = close_to(reference, given, &largest);
          record({.form = "fit",
                  .keys = separate ? "matrices of their own" : "one matrix",
                  .sums = "estimates and gradients",
                  .passes = "two"},
                 {.compared = 1, .over_tolerance = close ? largest : HUGE_VAL});
          EXPECT_TRUE(close) << "n = " << shape.n << ", k = " << shape.k
                             << ", separate = " << separate << ", blocks = " << blocks;
          EXPECT_EQ(given.f, again.f);
          EXPECT_EQ(given.gradient.keys, again.gradient.keys);
          EXPECT_EQ(given.gradient.queries, again.gradient.queries);

          // Negative control. With two points, one of them left out, the gradient is nothing but
          // rounding.
          if (shape.n == 2) continue;
          for (double& number : given.gradient.keys) number *= -1;
          EXPECT_FALSE(close_to(reference, given));
        }
      }
    }
  }
}

}  // namespace
}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
