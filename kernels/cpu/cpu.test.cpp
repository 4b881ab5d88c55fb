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

#include "kernels/parity.h"
#include "kernels/reference/reference.h"
#include "kernels/test_plans.h"

namespace headlab {
namespace {

using test::all_kernels;
using test::one_replicate;

/// constant: m(X), the value less its centre, exp2 and the product with the value (about 8
/// together), and the float32 sums over a block, at most 64 additions in a lane and log2 16 across
/// the lanes. of_exponent: r^2 is a sum of k squares of rounded differences, scaled twice (2 + 2 +
/// k/2), and the projected key carries a sum of d products; both are bounded by the exponent of
/// absolute values.
constexpr test::Rounding cpu_rounding = {.constant = 8 + 64 + 4, .of_exponent = 8};

::testing::AssertionResult close_to_reference(const Plan& plan, std::uint64_t replicate,
                                              const std::vector<double>& statistics) {
  return test::close_to_reference(plan, replicate, statistics, cpu_rounding);
}

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
