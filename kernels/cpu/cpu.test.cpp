// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cpu.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "kernels/reference/reference.h"
#include "kernels/test_plans.h"

namespace headlab {
namespace {

constexpr double eps32 = 0x1p-24;

/// Runs `check` once for every SIMD target of this machine.
template <class Check>
void on_every_target(const Check& check) {
  for (const std::int64_t target : cpu_targets()) {
    SCOPED_TRACE(cpu_simd_name(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    check();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

/// Statistics of one replicate [layout.statistics()] with its window counts.
Moments one_replicate(const Backend& backend, const Plan& plan, std::uint64_t replicate) {
  std::vector<Moments> out(1);
  backend.worker(plan)->run({.first = replicate, .count = 1, .node = 1}, out);
  return out[0];
}

/// Largest |log weight| of a key at any query, of the projected distances and norms: what the
/// float32 exponents are as large as.
double largest_exponent(const Plan& plan, const Sample& sample) {
  double largest = 0;
  const auto d = static_cast<std::size_t>(plan.d);
  const auto k = static_cast<std::size_t>(plan.k);
  for (std::size_t h = 0; h < static_cast<std::size_t>(plan.heads); ++h) {
    for (std::size_t q = 0; q < static_cast<std::size_t>(plan.queries); ++q) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(plan.n); ++i) {
        double r2 = 0;
        for (std::size_t j = 0; j < k; ++j) {
          double length = 0;
          for (std::size_t c = 0; c < d; ++c) {
            length += std::abs(plan.projections[(h * d + c) * k + j]) *
                      (std::abs(plan.query_points[q * d + c]) + std::abs(sample.x[i * d + c]));
          }
          r2 += length * length;
        }
        const double scale = std::visit(
            [](const auto& law) {
              if constexpr (requires { law.temperature; }) {
                return law.temperature;
              } else {
                return law.bandwidth * law.bandwidth;
              }
            },
            plan.kernel);
        largest = std::max(largest, r2 / (2 * scale));
      }
    }
  }
  return largest;
}

/// How far the statistics of the cpu backend may lie from those of the reference, relative to the
/// scale of the statistic: eps32 (c1 + c2 max|exponent|).
///   c1: rounding that does not depend on the exponent. m(X), the value less its centre, exp2 and
///       the product with the value (about 8 together), and the float32 sums over a block, at most
///       64 additions in a lane and log2 16 across the lanes.
///   c2: rounding that the exponent multiplies. r^2 is a sum of k squares of rounded differences,
///       scaled twice (2 + 2 + k/2), and the projected key carries a sum of d products; both are
///       bounded here by max|exponent| of the absolute values.
constexpr double c1 = 8 + 64 + 4;
constexpr double c2 = 8;

::testing::AssertionResult close_to_reference(const Plan& plan, std::uint64_t replicate,
                                              const std::vector<double>& statistics) {
  const MomentLayout layout = plan.layout();
  const Sample sample = draw_sample(plan, replicate);
  WindowCounts windows;
  const auto expected = reference_statistics(plan, sample, windows);
  const double relative = eps32 * (c1 + c2 * largest_exponent(plan, sample));

  double largest_value = 0;
  double largest_variance = 0;
  for (std::size_t i = 0; i < sample.regression.size(); ++i) {
    largest_value =
        std::max(largest_value, std::abs(sample.regression[i]) + std::abs(sample.noise[i]) + 1);
    largest_variance = std::max(largest_variance, sample.noise_sd[i] * sample.noise_sd[i]);
  }
  double sum_of_weights = 0;
  for (const double a : plan.head_weights) sum_of_weights += std::abs(a);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::size_t s = i % layout.per_query();
    double scale = largest_value * std::max(1.0, sum_of_weights);
    if (s >= layout.noise_offset()) {
      scale = 2 * largest_variance * std::max(1.0, sum_of_weights * sum_of_weights);
    }
    if (layout.has_alignment() && s == layout.alignment_offset()) scale = 2;
    const double error = std::abs(statistics[i] - expected[i]);
    if (!(error <= relative * scale)) {
      return ::testing::AssertionFailure()
             << "statistic " << s << " of query " << i / layout.per_query() << ": " << statistics[i]
             << ", reference " << expected[i] << ", error " << error << " > " << relative * scale;
    }
  }
  return ::testing::AssertionSuccess();
}

/// Every registered kernel law, as wide as `scale` says.
template <std::size_t Index = 0>
std::vector<KernelLaw> all_kernels(double scale) {
  if constexpr (Index < std::variant_size_v<KernelLaw>) {
    std::variant_alternative_t<Index, KernelLaw> law;
    if constexpr (requires { law.temperature; }) {
      law.temperature = scale;
    } else {
      law.bandwidth = 2 * scale;
    }
    std::vector<KernelLaw> laws = all_kernels<Index + 1>(scale);
    laws.push_back(law);
    return laws;
  } else {
    return {};
  }
}

TEST(Cpu, Exp2IsWithinItsBoundOverTheWholeRange) {
  on_every_target([] {
    std::vector<float> t;
    for (float x = 0; x > -127.5f; x -= 1.9e-4f) t.push_back(x);
    for (float x = 1e-30f; x < 1; x *= 1.7f) {
      t.push_back(x);
      t.push_back(-x);
    }
    std::vector<float> power(t.size(), std::numeric_limits<float>::quiet_NaN());
    exp2_cpu(t.data(), power.data(), t.size());
    double worst = 0;
    for (std::size_t i = 0; i < t.size(); ++i) {
      const double exact = std::exp2(static_cast<double>(t[i]));
      if (t[i] >= -125) {
        const double ulp = std::ldexp(1.0, std::ilogb(exact) - 23);
        worst = std::max(worst, std::abs(power[i] - exact) / ulp);
      } else {
        EXPECT_TRUE(std::abs(power[i] - exact) <= 0x1p-125) << t[i];
      }
    }
    const std::string simd = make_cpu_backend()->simd();
    const bool fused = simd == "AVX-512" || simd == "AVX2";
    EXPECT_TRUE(worst <= (fused ? 1.05 : 1.25)) << worst;
    EXPECT_TRUE(worst > 0.5) << "no error at all is no measurement";

    const float ends[] = {-std::numeric_limits<float>::infinity(), -1e30f, -127.0f};
    float zeros[] = {1, 1, 1};
    exp2_cpu(ends, zeros, 3);
    for (const float zero : zeros) EXPECT_EQ(zero, 0.0f);
  });
}

TEST(Cpu, DrawsTheBitsOfTheReferenceForEveryDesign) {
  const MixtureDesign mixture{.weights = {0.3, 0.7}, .means = {{0, 1, 2}, {3, 4, 5}}};
  const FileDesign file{.rows = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}};
  const std::vector<DesignLaw> laws = {NormalDesign{.dim = 5},
                                       NormalDesign{.dim = 5, .ar1 = 0.6},
                                       mixture,
                                       UniformDesign{.dim = 5},
                                       StudentDesign{.dim = 5, .df = 2.5},
                                       SphereDesign{.dim = 5},
                                       file};
  on_every_target([&] {
    for (const DesignLaw& law : laws) {
      Plan plan;
      plan.n = 77;
      plan.seed = (1ull << 52) + 3;
      std::visit(
          [&](const auto& design) {
            SCOPED_TRACE(design.name);
            plan.d = design.dimension();
            plan.design = design.sampler(plan.table);
          },
          law);
      plan.projections.assign(static_cast<std::size_t>(plan.d), 0.0);
      const std::vector<double> reference = draw_sample(plan, 41).x;

      const std::vector<float> drawn = draw_design_cpu(plan, 41);

      ASSERT_EQ(drawn.size(), reference.size());
      for (std::size_t i = 0; i < drawn.size(); ++i) {
        ASSERT_EQ(static_cast<double>(drawn[i]), reference[i]) << law.index() << " at " << i;
      }
    }
  });
}

TEST(Cpu, StatisticsAreEquivalentToReference) {
  const auto backend = make_cpu_backend();
  const std::vector<test::Shape> shapes = {
      {.n = 1, .d = 2, .heads = 1, .k = 1, .queries = 1},
      {.n = 31, .d = 3, .heads = 3, .k = 1, .queries = 7},
      {.n = 33, .d = 8, .heads = 2, .k = 5, .queries = 4},
      {.n = 1000, .d = 6, .heads = 5, .k = 2, .queries = 3},
      {.n = 300, .d = 40, .heads = 17, .k = 33, .queries = 2},
  };
  on_every_target([&] {
    for (const test::Shape& shape : shapes) {
      for (const KernelLaw& kernel : all_kernels(shape.k > 10 ? 4.0 : 0.7)) {
        for (const Estimator estimator : {Estimator::conditional, Estimator::plain}) {
          for (const MomentMode mode : {MomentMode::pairwise, MomentMode::aggregate}) {
            const Plan plan = test::make_plan(shape, kernel, estimator, mode);
            EXPECT_TRUE(close_to_reference(plan, 2, one_replicate(*backend, plan, 2).mean))
                << "n " << shape.n << " H " << shape.heads << " k " << shape.k << " kernel "
                << kernel.index() << " estimator " << static_cast<int>(estimator) << " moments "
                << static_cast<int>(mode);
          }
        }
      }
    }
  });
}

TEST(Cpu, TheComparisonSeesABandwidthOffByOnePercent) {
  const auto backend = make_cpu_backend();
  Plan plan = test::make_plan({.n = 1000}, GaussianKernel{.bandwidth = 0.7});
  const auto statistics = one_replicate(*backend, plan, 2).mean;

  plan.kernel = GaussianKernel{.bandwidth = 0.707};

  EXPECT_FALSE(close_to_reference(plan, 2, statistics));
  EXPECT_FALSE(close_to_reference(plan, 2, std::vector<double>(statistics.size(), std::nan(""))));
}

TEST(Cpu, NoiseThatVariesIsEquivalentToReference) {
  const auto backend = make_cpu_backend();
  on_every_target([&] {
    for (const Estimator estimator : {Estimator::conditional, Estimator::plain}) {
      for (const MomentMode mode : {MomentMode::pairwise, MomentMode::aggregate}) {
        Plan plan = test::make_plan({.n = 700}, GaussianKernel{.bandwidth = 0.7}, estimator, mode);
        plan.noise =
            HeteroscedasticNoise{.sd = 0.4, .slope = 1.5, .direction = {1, -1, 0, 0.5, 0, 0}}
                .sampler(plan.table, plan.d);
        EXPECT_TRUE(close_to_reference(plan, 0, one_replicate(*backend, plan, 0).mean));
      }
    }
  });
}

TEST(Cpu, EmptyAndNarrowWindowsAreTreatedAndCountedAsInTheReference) {
  const auto cpu = make_cpu_backend();
  const auto reference = make_reference_backend();
  on_every_target([&] {
    for (const double scale : {1e-6, 1e-3, 0.02}) {
      for (const KernelLaw& kernel : all_kernels(scale)) {
        const Plan plan =
            test::make_plan({.n = 90, .d = 4, .heads = 3, .k = 3, .queries = 6}, kernel);
        const Moments fast = one_replicate(*cpu, plan, 1);
        const Moments exact = one_replicate(*reference, plan, 1);
        for (const double value : fast.mean) EXPECT_TRUE(std::isfinite(value));
        EXPECT_EQ(fast.windows, exact.windows) << "scale " << scale << " law " << kernel.index();
      }
    }
  });
}

TEST(Cpu, FarAndHeavyTailedPointsGiveNoNaN) {
  const auto backend = make_cpu_backend();
  on_every_target([&] {
    for (const double scale : {1e-6, 1.0, 1e6}) {
      for (const KernelLaw& kernel : all_kernels(scale)) {
        Plan plan = test::make_plan({.n = 200}, kernel);
        plan.design = StudentDesign{.dim = 6, .df = 0.02}.sampler(plan.table);
        for (double& x : plan.query_points) x *= 1e6;
        for (const double value : one_replicate(*backend, plan, 0).mean) {
          ASSERT_TRUE(std::isfinite(value)) << "scale " << scale << " law " << kernel.index();
        }
      }
    }
  });
}

TEST(Cpu, MomentsDoNotDependOnTheBlock) {
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
