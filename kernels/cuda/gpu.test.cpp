// SPDX-License-Identifier: Apache-2.0
// The CUDA backend on a GPU, beside the reference. Every case shows as skipped where there is none.
//
// A device that falls off the bus cannot be provoked without harm to others who use it. What
// follows from it for a process, an error that stays with the context, can: see
// AFaultIsAnErrorThatNamesTheDevice, which needs a process of its own.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/parity.h"
#include "kernels/cuda/runtime.h"
#include "kernels/reference/backend.h"
#include "kernels/reference/training_set.h"
#include "kernels/testing/learning_agreement.h"
#include "kernels/testing/test_plans.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

using nlohmann::json;
using test::all_kernels;
using test::one_replicate;

constexpr Estimator estimators[] = {Estimator::conditional, Estimator::plain};
constexpr MomentMode modes[] = {MomentMode::pairwise, MomentMode::aggregate};

std::string text_of(const Plan& plan) {
  return "n " + std::to_string(plan.n) + " d " + std::to_string(plan.d) + " H " +
         std::to_string(plan.heads) + " k " + std::to_string(plan.k) + " Q " +
         std::to_string(plan.queries) + " design " + std::to_string(plan.design.index()) +
         " regression " + std::to_string(plan.regression.index()) + " noise " +
         std::to_string(plan.noise.index()) + " kernel " + std::to_string(plan.kernel.index()) +
         (plan.estimator == Estimator::plain ? " plain" : " conditional") +
         (plan.moments == MomentMode::pairwise ? " pairwise" : " aggregate");
}

std::vector<Moments> run(const Plan& plan, const Block& block, const Options& options = {}) {
  std::vector<Moments> out(block.nodes());
  make_cuda_backend(options)->worker(plan)->run(block, out);
  return out;
}

/// True where two results are the same bits; NaN is never the same.
::testing::AssertionResult same_bits(const std::vector<Moments>& a, const std::vector<Moments>& b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << "not as many nodes";
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(a[i].count == b[i].count && a[i].windows == b[i].windows && a[i].mean == b[i].mean &&
          a[i].comoment == b[i].comoment)) {
      return ::testing::AssertionFailure() << "node " << i << " differs";
    }
  }
  return ::testing::AssertionSuccess();
}

class GpuBackend : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      devices_ = usable_devices();
    } catch (const Unavailable& missing) {
      GTEST_SKIP() << missing.what();
    }
  }
  void TearDown() override {
    if (compared_ > 0) {
      RecordProperty("compared", compared_);
      RecordProperty("largest_relative_error", std::to_string(1e6 * largest_error_) + "e-6");
    }
  }

  /// Compares the statistics of one replicate with the reference, and keeps the largest error
  /// relative to the largest statistic of its kind.
  void compare(const Plan& plan, std::uint64_t replicate, const Options& options = {}) {
    const std::vector<double> statistics =
        one_replicate(*make_cuda_backend(options), plan, replicate).mean;
    std::vector<double> expected;
    EXPECT_TRUE(
        test::close_to_reference(plan, replicate, statistics, test::cuda_rounding(plan), &expected))
        << text_of(plan);
    const MomentLayout layout = plan.layout();
    double scale[2] = {};
    auto kind = [&](std::size_t i) { return i % layout.per_query() >= layout.noise_offset(); };
    for (std::size_t i = 0; i < expected.size(); ++i) {
      scale[kind(i)] = std::max(scale[kind(i)], std::abs(expected[i]));
    }
    for (std::size_t i = 0; i < expected.size() && scale[kind(i)] > 0; ++i) {
      const double error = std::abs(statistics[i] - expected[i]) / scale[kind(i)];
      if (!(error <= largest_error_)) largest_error_ = std::isnan(error) ? HUGE_VAL : error;
    }
    ++compared_;
  }

  std::vector<DeviceInfo> devices_;

 private:
  int compared_ = 0;
  double largest_error_ = 0;
};

// ---- Parity ----

std::vector<DesignLaw> all_designs(int d) {
  const auto size = static_cast<std::size_t>(d);
  MixtureDesign mixture{.weights = {0.3, 0.7}};
  FileDesign file;
  for (std::size_t i = 0; i < 2; ++i)
    mixture.means.emplace_back(size, 1.5 * static_cast<double>(i));
  for (std::size_t i = 0; i < 40; ++i) {
    file.rows.emplace_back();
    for (std::size_t c = 0; c < size; ++c) {
      file.rows.back().push_back(std::sin(1.7 * static_cast<double>(i * size + c)));
    }
  }
  return {NormalDesign{.dim = d},
          NormalDesign{.dim = d, .ar1 = 0.6},
          mixture,
          UniformDesign{.dim = d},
          StudentDesign{.dim = d, .df = 3},
          SphereDesign{.dim = d},
          file};
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
    // The backend measures from the median of the queries, here 0: the points are left as drawn.
    plan.query_points.assign(5, 0.0);
    plan.head_weights = {1};
    plan.truth = {0};
    for (const std::uint64_t replicate : {0ull, 41ull, (1ull << 33) + 7}) {
      const std::vector<double> expected = draw_sample(plan, replicate).x;
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
            FileRegression values;
            for (std::size_t i = 0; i < 40; ++i) {
              values.values.push_back(std::cos(static_cast<double>(i)));
            }
            plan.regression = values.function(plan.table, d);
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
        compare(test::make_plan({.n = full && mode == MomentMode::pairwise ? 4096u : 500u,
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

/// Few and small: what a sanitizer is given.
TEST_F(GpuBackend, EveryKernelOnAFewPointsIsEquivalentToReference) {
  Options options;
  options.batch_replicates = 8;
  options.shape.slice_points = 128;
  std::size_t turn = 0;
  for (const int k : {2, 4, 8, 16, 32, 64, 70}) {
    const auto kernels = all_kernels(k > 10 ? 4.0 : 0.7);
    for (const Estimator estimator : estimators) {
      for (const MomentMode mode : modes) {
        const int heads = mode == MomentMode::aggregate ? 17 : 3;
        Plan plan = test::make_plan({.n = 100, .d = k + 3, .heads = heads, .k = k, .queries = 7},
                                    kernels[turn++ % kernels.size()], estimator, mode);
        const std::vector<double> direction(static_cast<std::size_t>(plan.d), 0.2);
        plan.noise = HeteroscedasticNoise{.sd = 0.4, .slope = 1.5, .direction = direction}.sampler(
            plan.table, plan.d);
        compare(plan, 2, options);
      }
    }
  }
  // So narrow that every query is done again by the path for unsafe sums.
  compare(test::make_plan({.n = 100}, GaussianKernel{.bandwidth = 1e-3}), 2, options);
}

TEST_F(GpuBackend, TheComparisonSeesABandwidthOffByOnePercent) {
  Plan plan = test::make_plan({.n = 1000}, GaussianKernel{.bandwidth = 0.7});
  const auto statistics = one_replicate(*make_cuda_backend(), plan, 2).mean;
  auto close = [&](const std::vector<double>& values) {
    return test::close_to_reference(plan, 2, values, test::cuda_rounding(plan));
  };
  EXPECT_TRUE(close(statistics));
  plan.kernel = GaussianKernel{.bandwidth = 0.707};
  EXPECT_FALSE(close(statistics));
  EXPECT_FALSE(close(std::vector<double>(statistics.size(), std::nan(""))));
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

// ---- Learned heads ----

TEST_F(GpuBackend, LearnedHeadsAreEquivalentToReferenceWithTheSameBitsAgain) {
  std::vector<test::FitShape> shapes = test::fit_shapes();
  // Three tiles of coordinates of a point and of a head, of keys and of queries.
  shapes.push_back({.n = 150, .d = 70, .heads = 1, .k = 66, .queries = 70});
  for (test::FitShape shape : shapes) {
    for (const KernelLaw& kernel : test::learnable_kernels(shape)) {
      for (const bool separate : {false, true}) {
        if (separate && norm_share_of(kernel) != 0) continue;
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
          EXPECT_TRUE(close_to(reference, given))
              << "n = " << shape.n << ", k = " << shape.k << ", separate = " << separate
              << ", blocks = " << blocks;
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

// ---- Bits ----

TEST_F(GpuBackend, BitsAreTheSameFromRunToRunAndForAnyBatch) {
  for (const int k : {2, 8, 16, 64}) {
    for (const Estimator estimator : estimators) {
      for (const MomentMode mode : modes) {
        const Plan plan =
            test::make_plan({.n = 700, .d = 70, .heads = 5, .k = k, .queries = 9},
                            GaussianKernel{.bandwidth = 0.8 * std::sqrt(k)}, estimator, mode);
        const Block block = {.first = 16, .count = 45};
        const auto expected = run(plan, block);
        EXPECT_TRUE(same_bits(run(plan, block), expected)) << text_of(plan);
        for (const std::int64_t batch : {1, 7}) {
          Options options;
          options.batch_replicates = batch;
          EXPECT_TRUE(same_bits(run(plan, block, options), expected))
              << "batch " << batch << ' ' << text_of(plan);
        }
      }
    }
  }
}

TEST_F(GpuBackend, WorkersSideBySideGiveTheBitsOfOne) {
  const Plan plan = test::make_plan({.n = 700, .d = 8, .heads = 5, .k = 4, .queries = 9},
                                    GaussianKernel{.bandwidth = 1.4});
  const Block block = {.first = 64, .count = 64};
  const auto expected = run(plan, block);
  const auto backend = make_cuda_backend();
  std::vector<std::vector<Moments>> results(4, std::vector<Moments>(block.nodes()));
  {
    std::vector<std::jthread> threads;
    for (auto& result : results) {
      threads.emplace_back([&backend, &plan, &block, &result] {
        const auto worker = backend->worker(plan);
        for (int again = 0; again < 3; ++again) worker->run(block, result);
      });
    }
  }
  for (const auto& result : results) EXPECT_TRUE(same_bits(result, expected));
}

TEST_F(GpuBackend, EveryDeviceGivesTheSameBits) {
  if (devices_.size() < 2) GTEST_SKIP() << "one GPU here, two are needed";
  const Plan plan = test::make_plan({.n = 700, .d = 20, .heads = 5, .k = 16, .queries = 9},
                                    GaussianKernel{.bandwidth = 3});
  const Block block = {.first = 64, .count = 64};
  const auto expected = run(plan, block);
  for (const DeviceInfo& device : devices_) {
    std::vector<Moments> out(block.nodes());
    const auto streams = std::make_shared<StreamPool>();
    make_worker(
        plan, device.number, {}, [](const std::string&) {}, streams)
        ->run(block, out);
    EXPECT_TRUE(same_bits(out, expected)) << "device " << device.number;
  }
}

TEST_F(GpuBackend, OutOfMemoryShrinksTheBatchAndSaysSo) {
  // 2^16 replicates of this size would need some 10^12 bytes.
  const Plan plan =
      test::make_plan({.n = 200000, .d = 16, .heads = 1, .k = 2, .queries = 1},
                      GaussianKernel{.bandwidth = 1}, Estimator::plain, MomentMode::pairwise);
  const Block block = {.first = 8, .count = 8};
  const auto expected = run(plan, block);
  Options options;
  options.batch_replicates = 1 << 16;
  const auto backend = make_cuda_backend(options);
  std::vector<Moments> out(block.nodes());
  backend->worker(plan)->run(block, out);
  EXPECT_TRUE(same_bits(out, expected));
  ASSERT_EQ(backend->notes().size(), 1u);
  EXPECT_NE(backend->notes()[0].find("going on with"), std::string::npos) << backend->notes()[0];
}

// ---- What is simulated ----

/// A figure of a run with its Monte Carlo standard error.
struct Estimated {
  double value = 0;
  double mcse = 0;
};

/// Of query 0: the bias of each component, the covariances of the pairs of the layout, the MSE of
/// the ensemble.
std::vector<double> figures_of(const Plan& plan, const Moments& moments) {
  const MomentLayout layout = plan.layout();
  const double replicates = static_cast<double>(moments.count);
  const std::size_t heads = layout.heads < 0 ? 0 : static_cast<std::size_t>(layout.heads);
  auto noise = [&](std::size_t pair) {
    return layout.conditional ? moments.mean[layout.noise_offset() + pair] : 0.0;
  };
  std::vector<double> figures;
  for (std::size_t g = 0; g < layout.components(); ++g) {
    figures.push_back(moments.mean[g] - plan.truth[0]);
  }
  for (std::size_t pair = 0; pair < layout.pairs(); ++pair) {
    figures.push_back(moments.comoment[pair] / (replicates - 1) + noise(pair));
  }
  double mean = 0, variance = 0;
  if (layout.pairwise()) {
    for (std::size_t h = 0; h < heads; ++h) {
      mean += plan.head_weights[h] * moments.mean[h];
      for (std::size_t l = h; l < heads; ++l) {
        const std::size_t pair = layout.pair(h, l);
        variance += (h == l ? 1 : 2) * plan.head_weights[h] * plan.head_weights[l] *
                    (moments.comoment[pair] / replicates + noise(pair));
      }
    }
  } else {
    mean = moments.mean[heads];
    variance = moments.comoment[heads] / replicates + noise(heads);
  }
  figures.push_back(variance + (mean - plan.truth[0]) * (mean - plan.truth[0]));
  return figures;
}

Moments merged(const MomentLayout& layout, const std::vector<Moments>& nodes,
               std::size_t without = SIZE_MAX) {
  Moments all;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (i == without) continue;
    if (all.count == 0) {
      all = nodes[i];
    } else {
      merge_moments(layout, all, nodes[i]);
    }
  }
  return all;
}

/// Figures with standard errors by leaving out one of equal nodes at a time.
std::vector<Estimated> estimated(const Plan& plan, const std::vector<Moments>& nodes) {
  const std::vector<double> all = figures_of(plan, merged(plan.layout(), nodes));
  const double count = static_cast<double>(nodes.size());
  std::vector<double> sum(all.size()), square(all.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto left = figures_of(plan, merged(plan.layout(), nodes, i));
    for (std::size_t f = 0; f < all.size(); ++f) {
      sum[f] += left[f] - all[f];
      square[f] += (left[f] - all[f]) * (left[f] - all[f]);
    }
  }
  std::vector<Estimated> figures;
  for (std::size_t f = 0; f < all.size(); ++f) {
    const double variance = (square[f] - sum[f] * sum[f] / count) * (count - 1) / count;
    figures.push_back({all[f], std::sqrt(variance)});
  }
  return figures;
}

TEST_F(GpuBackend, ComponentsAreThoseOfTheReference) {
  double largest_relative = 0, largest_in_mcse = 0;
  for (const int k : {2, 5, 16}) {
    for (const Estimator estimator : estimators) {
      for (const MomentMode mode : modes) {
        const Plan plan =
            test::make_plan({.n = 1000, .d = 16, .heads = 4, .k = k, .queries = 3},
                            GaussianKernel{.bandwidth = 0.6 * std::sqrt(k)}, estimator, mode);
        const Block block = {.first = 0, .count = 64};
        std::vector<Moments> reference(block.nodes());
        make_reference_backend()->worker(plan)->run(block, reference);
        const auto expected = estimated(plan, reference);
        const auto got = figures_of(plan, merged(plan.layout(), run(plan, block)));
        ASSERT_EQ(got.size(), expected.size());
        for (std::size_t f = 0; f < got.size(); ++f) {
          const double error = std::abs(got[f] - expected[f].value);
          const double bound =
              std::max(1e-5 * std::abs(expected[f].value), 0.01 * expected[f].mcse);
          EXPECT_TRUE(error <= bound)
              << "figure " << f << ' ' << text_of(plan) << ": " << got[f] << ", reference "
              << expected[f].value << " +- " << expected[f].mcse;
          largest_relative = std::max(largest_relative, error / std::abs(expected[f].value));
          largest_in_mcse = std::max(largest_in_mcse, error / expected[f].mcse);
        }
      }
    }
  }
  RecordProperty("largest_relative_error", std::to_string(1e6 * largest_relative) + "e-6");
  RecordProperty("largest_error_in_mcse", std::to_string(largest_in_mcse));
}

/// The file of known answers: where this was built, or where a carried program is told it is.
json known_answers() {
  const char* carried = std::getenv("HEADLAB_KNOWN_ANSWERS_FILE");
  std::ifstream file(carried != nullptr ? carried : HEADLAB_KNOWN_ANSWERS);
  if (!file) throw std::runtime_error("known-answers.json: set HEADLAB_KNOWN_ANSWERS_FILE to it");
  return json::parse(file);
}

struct KnownCase {
  Plan plan;
  std::vector<double> exact;       ///< in the order of figures_of, pairwise
  std::vector<std::size_t> which;  ///< of figures_of
};

Plan known_plan(const json& known, const std::vector<std::vector<std::vector<double>>>& matrices,
                const std::vector<double>& x, double noise_variance_factor) {
  Plan plan;
  plan.n = known["n"];
  plan.d = static_cast<int>(x.size());
  plan.heads = static_cast<int>(matrices.size());
  plan.k = static_cast<int>(matrices[0][0].size());
  plan.seed = 1;
  for (const auto& w : matrices) {
    for (const auto& row : w)
      plan.projections.insert(plan.projections.end(), row.begin(), row.end());
  }
  plan.head_weights.assign(matrices.size(), 1.0 / static_cast<double>(matrices.size()));
  plan.query_points = x;
  plan.design = NormalDesign{.dim = plan.d}.sampler(plan.table);
  plan.noise =
      NormalNoise{.sd = known["noise_sd"].get<double>() * std::sqrt(noise_variance_factor)}.sampler(
          plan.table, plan.d);
  if (known.contains("temperature")) {
    plan.kernel = SoftmaxKernel{.temperature = known["temperature"]};
  } else {
    plan.kernel = GaussianKernel{.bandwidth = known["bandwidth"]};
  }
  return plan;
}

/// Biases, covariances and the MSE of a case with signal.
KnownCase with_signal(const json& known, double noise_variance_factor) {
  KnownCase c;
  const auto x = known["x"].get<std::vector<double>>();
  c.plan = known_plan(known, known["W"], x, noise_variance_factor);
  const auto function =
      CosinesRegression{
          .amplitude = known["amplitude"], .frequency = known["frequency"], .phase = known["phase"]}
          .function(c.plan.table, c.plan.d);
  c.plan.regression = function;
  c.plan.truth = {function(c.plan.table.exact(), x.data(), 1, 0)};
  const auto heads = static_cast<std::size_t>(c.plan.heads);
  for (std::size_t h = 0; h < heads; ++h) c.exact.push_back(known["bias"][h]);
  for (std::size_t h = 0; h < heads; ++h) {
    for (std::size_t l = h; l < heads; ++l) c.exact.push_back(known["covariance"][h][l]);
  }
  c.exact.push_back(known["mse"]);
  for (std::size_t f = 0; f < c.exact.size(); ++f) c.which.push_back(f);
  return c;
}

/// Variances and covariance of noise alone: two heads of dimension one in the plane.
KnownCase of_noise(const json& known, double noise_variance_factor) {
  const double cosine = known["cos_angle"];
  const double sine = std::sqrt(1 - cosine * cosine);
  const double q0 = known["query_projection"][0];
  const double q1 = known["query_projection"][1];
  KnownCase c;
  c.plan = known_plan(known, {{{1.0}, {0.0}}, {{cosine}, {sine}}}, {q0, (q1 - cosine * q0) / sine},
                      noise_variance_factor);
  c.plan.regression = ZeroRegression{}.function(c.plan.table, 2);
  c.plan.truth = {0};
  c.exact = {known["V"][0], known["C"], known["V"][1]};
  c.which = {2, 3, 4};
  return c;
}

struct Judgement {
  std::size_t compared = 0;
  double largest_z = 0;
  double rms_z = 0;
  bool agrees = false;
};

/// Agreement: every |z| < 4.5 and a root mean square z between 0.7 and 1.35. NaN does not agree.
Judgement judge(const std::vector<double>& z) {
  Judgement judgement{.compared = z.size()};
  bool all_below = true;
  double square = 0;
  for (const double one : z) {
    all_below = all_below && std::abs(one) < 4.5;
    judgement.largest_z = std::max(judgement.largest_z, std::abs(one));
    square += one * one;
  }
  judgement.rms_z = std::sqrt(square / static_cast<double>(z.size()));
  judgement.agrees = all_below && judgement.rms_z > 0.7 && judgement.rms_z < 1.35;
  return judgement;
}

Judgement judge_known_answers(Estimator estimator, double noise_variance_factor,
                              double mcse_factor) {
  const json known = known_answers();
  std::vector<KnownCase> cases;
  for (const char* name : {"finite_n", "softmax_finite_n"}) {
    for (const json& c : known[name]) cases.push_back(with_signal(c, noise_variance_factor));
  }
  for (const json& c : known["finite_n_noise"]) cases.push_back(of_noise(c, noise_variance_factor));
  std::vector<double> z;
  for (KnownCase& c : cases) {
    c.plan.estimator = estimator;
    const auto figures = estimated(c.plan, run(c.plan, {.first = 0, .count = 32768, .node = 256}));
    for (std::size_t i = 0; i < c.exact.size(); ++i) {
      const Estimated& figure = figures[c.which[i]];
      z.push_back((figure.value - c.exact[i]) / (figure.mcse * mcse_factor));
    }
  }
  return judge(z);
}

TEST_F(GpuBackend, KnownAnswersAreReproducedWithinTheirStandardErrors) {
  for (const Estimator estimator : estimators) {
    const Judgement judgement = judge_known_answers(estimator, 1, 1);
    EXPECT_EQ(judgement.compared, 6u + 10u + 10u + 6u + 4u * 3u);
    EXPECT_TRUE(judgement.agrees) << "largest |z| " << judgement.largest_z << ", rms "
                                  << judgement.rms_z;
    const std::string name = estimator == Estimator::plain ? "plain" : "conditional";
    RecordProperty("largest_z_" + name, std::to_string(judgement.largest_z));
    RecordProperty("rms_z_" + name, std::to_string(judgement.rms_z));
    // Negative controls.
    EXPECT_FALSE(judge_known_answers(estimator, 1, 0.5).agrees);
    EXPECT_FALSE(judge_known_answers(estimator, 1.05, 1).agrees);
  }
}

// ---- Time, and what goes wrong ----

TEST_F(GpuBackend, TimesOfTheStepsAreMeasured) {
  const Plan plan = test::make_plan({.n = 4096, .d = 32, .heads = 8, .k = 4, .queries = 64},
                                    GaussianKernel{.bandwidth = 1.6});
  const KernelTimes times = time_kernels(plan, devices_[0].number, {}, 3);
  EXPECT_GT(times.replicates, 0);
  EXPECT_EQ(times.weights, static_cast<double>(times.replicates) * 4096 * 8 * 64);
  for (const double seconds : {times.draw, times.project, times.weigh, times.moments}) {
    EXPECT_TRUE(seconds > 0 && seconds < 1) << seconds;
  }
  EXPECT_GT(highest_clock(devices_[0].number), 1e8);
}

TEST_F(GpuBackend, AFaultIsAnErrorThatNamesTheDevice) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  // In a process of its own: after a fault a process can use the device no more.
  auto fault = [] {
    use_device(usable_devices().front().number);
    const Plan plan = test::make_plan({.n = 50}, GaussianKernel{.bandwidth = 0.7});
    try {
      const auto worker = make_cuda_backend()->worker(plan);
      std::vector<Moments> out(1);
      try {
        Stream stream;
        auto* nowhere = reinterpret_cast<float*>(std::uintptr_t{1} << 12);
        stream.multiply(nowhere, nowhere, nowhere, 64, 64, 4096);
        stream.synchronise();
      } catch (const DeviceError& error) {
        std::cerr << error.what() << '\n';
      }
      worker->run({.first = 0, .count = 8}, out);
    } catch (const DeviceError& error) {
      std::cerr << "afterwards: " << error.what() << std::endl;
      std::_Exit(3);
    }
    std::_Exit(4);
  };
  EXPECT_EXIT(fault(), ::testing::ExitedWithCode(3), "GPU");
}

}  // namespace
}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
