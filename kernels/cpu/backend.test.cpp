// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/backend.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include <gtest/gtest.h>

#include "kernels/cpu/backend.h"
#include "kernels/cpu/worker.h"
#include "kernels/testing/agreement_fixture.h"

namespace headlab {
namespace {

using test::on_every_target;
using test::one_replicate;
using CpuAgreement = test::Agreement;

TEST(Cpu, Exp2IsWithinItsBoundOverTheWholeRange) {
  on_every_target([] {
    std::vector<float> t;
    for (float x = 0; x > -127.5f; x -= 1.9e-4f) t.push_back(x);
    for (float x = 1e-30f; x < 1; x *= 1.7f) {
      t.push_back(x);
      t.push_back(-x);
    }
    std::vector<float> power(t.size(), std::numeric_limits<float>::quiet_NaN());
    exp2_cpu(t.data(), 0, true, power.data(), t.size());
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
    const double bound = simd == "AVX-512" || simd == "AVX2" ? 1.05 : 1.25;
    EXPECT_TRUE(worst <= bound) << worst;
    EXPECT_TRUE(worst > 0.5) << "no error at all is no measurement";

    const float ends[] = {-std::numeric_limits<float>::infinity(), -1e30f, -127.0f};
    float zeros[] = {1, 1, 1};
    exp2_cpu(ends, 0, true, zeros, 3);
    for (const float zero : zeros) EXPECT_EQ(zero, 0.0f);
  });
}

// Asked for its targets or its name, Highway would go back to the fastest.
TEST(Cpu, StaysOnTheTargetThatWasChosen) {
  const Plan plan =
      test::make_plan({.n = 1100, .heads = 5, .queries = 7}, GaussianKernel{.bandwidth = 0.5});
  std::vector<std::vector<double>> of_targets;
  for (const std::int64_t target : cpu_targets()) {
    use_cpu_simd(cpu_simd_name(target));
    const auto backend = make_cpu_backend();
    of_targets.push_back(one_replicate(*backend, plan, 3).mean);
    EXPECT_EQ(backend->simd(), cpu_simd_name(target));
    EXPECT_FALSE(cpu_targets().empty());
    EXPECT_EQ(one_replicate(*backend, plan, 3).mean, of_targets.back());
    EXPECT_EQ(one_replicate(*make_cpu_backend(), plan, 3).mean, of_targets.back());
  }
  use_cpu_target(0);
  // Sums of other lanes have other bits: it is the targets that ran.
  for (std::size_t i = 1; i < of_targets.size(); ++i) EXPECT_NE(of_targets[i], of_targets[i - 1]);
  EXPECT_EQ(one_replicate(*make_cpu_backend(), plan, 3).mean, of_targets.front());
  EXPECT_THROW(use_cpu_simd("none"), std::invalid_argument);
}

TEST(Cpu, AWholeNumberInTheExponentOnlyMovesTheResult) {
  on_every_target([] {
    std::vector<float> t;
    for (float x = -60; x <= 60; x += 0.013f) t.push_back(x);
    std::vector<float> power(t.size());
    exp2_cpu(t.data(), 0, true, power.data(), t.size());
    for (const float whole : {-64.0f, -1.0f, 30.0f, 67.0f}) {
      for (const bool clamp : {false, true}) {
        std::vector<float> moved(t.size());
        exp2_cpu(t.data(), whole, clamp, moved.data(), t.size());
        for (std::size_t i = 0; i < t.size(); ++i) {
          ASSERT_EQ(moved[i], std::ldexp(power[i], static_cast<int>(whole))) << t[i];
        }
      }
    }
  });
}

TEST(Cpu, LargeExponentsKeepTheirFractions) {
  on_every_target([] {
    // Those of softmax, relative to their bound.
    for (const float whole : {-0x1p17f, -100003.0f, -4096.0f}) {
      std::vector<float> t;
      for (float x = -40; x <= 40; x += 0x1p-6f) t.push_back(x - whole);
      std::vector<float> power(t.size());
      exp2_cpu(t.data(), whole, true, power.data(), t.size());
      for (std::size_t i = 0; i < t.size(); ++i) {
        const double exact = std::exp2(static_cast<double>(t[i]) + static_cast<double>(whole));
        ASSERT_TRUE(std::abs(power[i] - exact) <= 0x1p-22 * exact) << t[i];
      }
    }
  });
}

TEST_F(CpuAgreement, TrainingSetsOfSeveralTilesAreEquivalentToReference) {
  // The second pass over the ensemble, and windows that are repaired, draw their noise again.
  const test::Shape wide = {.n = 5000, .d = 40, .heads = 17, .k = 33, .queries = 2};
  const test::Shape many = {.n = 40000, .d = 2, .heads = 30, .k = 1, .queries = 2};
  struct Case {
    test::Shape shape;
    KernelLaw kernel;
    MomentMode moments;
  };
  for (const Case& c : {Case{wide, GaussianKernel{.bandwidth = 4}, MomentMode::pairwise},
                        Case{wide, SoftmaxKernel{.temperature = 4}, MomentMode::pairwise},
                        Case{many, GaussianKernel{.bandwidth = 0.5}, MomentMode::aggregate},
                        Case{many, EpanechnikovKernel{.bandwidth = 1e-5}, MomentMode::aggregate},
                        Case{many, LaplaceKernel{.bandwidth = 1e-4}, MomentMode::aggregate}}) {
    expect_agreement(test::make_plan(c.shape, c.kernel, Estimator::conditional, c.moments), 3);
  }
}

TEST(Cpu, WeightsBelowTheSmallestNormalNumberAreZero) {
  // Each of two heads gives one of two points the weight 1 and the other one 2^-130.
  const double far = 0.5 * std::sqrt(2 * 130 * std::log(2.0));
  for (const int queries : {1, 4}) {
    Plan plan = test::make_plan({.n = 200, .d = 2, .heads = 2, .k = 1, .queries = queries},
                                GaussianKernel{.bandwidth = 0.5});
    plan.design = FileDesign{.rows = {{0, far}, {far, 0}}}.sampler(plan.table);
    plan.projections = {1, 0, 0, 1};
    plan.query_points.assign(plan.query_points.size(), 0.0);
    const std::size_t covariance = plan.layout().noise_offset() + 1;
    on_every_target([&] {
      const std::vector<double> found = one_replicate(*make_cpu_backend(), plan, 2).mean;
      for (std::size_t q = 0; q < static_cast<std::size_t>(queries); ++q) {
        const double* statistics = &found[q * plan.layout().per_query()];
        EXPECT_EQ(statistics[covariance], 0.0) << queries;
        EXPECT_GT(statistics[covariance - 1], 0.0) << queries;
      }
    });
  }
}

TEST(Cpu, SquaresOfManySmallWeightsAreNotLost) {
  // All weights are about 2^-63.1, their sum is above 2^-40, their squares are below 2^-126.
  Plan plan = test::make_plan({.n = 10'000'000, .d = 1, .heads = 1, .k = 1, .queries = 1},
                              GaussianKernel{.bandwidth = 1e5});
  plan.query_points = {1e5 * std::sqrt(2 * 63.1 * std::log(2.0))};
  plan.noise = NormalNoise{.sd = 1}.sampler(plan.table, 1);

  const Moments found = one_replicate(*make_cpu_backend(), plan, 2);

  // sum w^2 / (sum w)^2 = (1 + cv^2) / n, where w varies as exp(9.4 X 1e-5).
  const double n = static_cast<double>(plan.n);
  EXPECT_NEAR(n * found.mean.at(1), 1.0, 1e-3);
}

TEST(Cpu, LargeNoiseStaysFinite) {
  const auto backend = make_cpu_backend();
  for (const MomentMode mode : {MomentMode::pairwise, MomentMode::aggregate}) {
    Plan plan = test::make_plan({.n = 2000, .k = 1}, SoftmaxKernel{.temperature = 1},
                                Estimator::conditional, mode);
    plan.design = StudentDesign{.dim = 6, .df = 3}.sampler(plan.table);
    test::vary_noise(plan, 1e5);
    for (std::uint64_t replicate = 0; replicate < 30; ++replicate) {
      for (const double value : one_replicate(*backend, plan, replicate).mean) {
        ASSERT_TRUE(std::isfinite(value)) << replicate;
      }
    }
  }
}

TEST(Cpu, TiesAreNotNarrowWindowsHoweverTheyAreSummed) {
  // Two equal points in a window of two: an effective sample of exactly 2.
  const auto backend = make_cpu_backend();
  const FileDesign file{.rows = {{1, 2, 3, 0, 0, 0}}};
  for (const MomentMode mode : {MomentMode::pairwise, MomentMode::aggregate}) {
    for (const Estimator estimator : {Estimator::conditional, Estimator::plain}) {
      Plan plan = test::make_plan({.n = 2, .heads = 20, .k = 1, .queries = 5},
                                  SoftmaxKernel{.temperature = 1}, estimator, mode);
      plan.design = file.sampler(plan.table);
      std::vector<Moments> out(1);
      backend->worker(plan)->run({.first = 0, .count = 64, .node = 64}, out);
      EXPECT_EQ(out[0].windows, WindowCounts{});
    }
  }
}

TEST(Cpu, MemoryDoesNotGrowWithTheTrainingSet) {
  const auto backend = make_cpu_backend();
  auto bytes = [&](std::uint64_t n, int heads) {
    return backend->worker_bytes(test::make_plan({.n = n, .heads = heads}, GaussianKernel{}));
  };
  EXPECT_EQ(bytes(10'000'000, 3), bytes(1'000'000, 3));
  EXPECT_LT(bytes(10'000'000, 3), 20u << 20);
  EXPECT_LT(bytes(100, 3), bytes(10'000, 3));
  EXPECT_LT(bytes(10'000, 3), bytes(10'000, 30));
}

/// Expects the numbers of the reference to within an error, of which `relative` is a part of each.
void expect_near_reference(const Plan& plan, std::uint64_t replicate, double error,
                           double relative = 0) {
  const Moments fast = one_replicate(*make_cpu_backend(), plan, replicate);
  const Moments exact = one_replicate(*make_reference_backend(), plan, replicate);
  for (std::size_t i = 0; i < exact.mean.size(); ++i) {
    EXPECT_NEAR(fast.mean[i], exact.mean[i], error + relative * std::abs(exact.mean[i]))
        << "replicate " << replicate << ", statistic " << i;
  }
}

TEST(Cpu, SoftmaxKeepsItsDigitsWhereKeysAreFarOut) {
  // Exponents of 10^4 leave weights 10^-3 of themselves uncertain. From distances they would be
  // differences of squares of 10^8, of which float32 knows the tens.
  Plan plan = test::make_plan({.n = 500}, SoftmaxKernel{.temperature = 1});
  plan.design = NormalDesign{.dim = 6, .mean = std::vector(6, 1e4)}.sampler(plan.table);
  expect_near_reference(plan, 0, 0.02);
}

TEST(Cpu, SoftmaxKeepsTheFractionsOfLargeExponents) {
  // Keys that all but coincide: weights differ by less than 2. In float32 an exponent of 10^6 (of
  // 2) is known to 2^-5, a weight to 2.2 %, the noise, its square, to 4.4 %.
  on_every_target([&] {
    for (const double query : {9e4, 187150.4206, 7e5}) {
      Plan plan = test::make_plan({.n = 64, .d = 1, .heads = 1, .k = 1, .queries = 1},
                                  SoftmaxKernel{.temperature = 1});
      plan.design =
          NormalDesign{.dim = 1, .mean = {1}, .covariance = {{1e-12}}}.sampler(plan.table);
      plan.query_points = {query};
      expect_near_reference(plan, 0, 0, 0.044);
    }
  });
}

TEST(Cpu, SoftmaxFindsTheLargestOfHugeExponents) {
  // One key decides: the value there is the estimate, on both.
  Plan plan = test::make_plan({.n = 200}, SoftmaxKernel{.temperature = 1e-3});
  plan.design = StudentDesign{.dim = 6, .df = 0.5}.sampler(plan.table);
  plan.regression = StepRegression{.direction = {1, 0, 1, 0, 0, 0}}.function(plan.table, 6);
  for (std::uint64_t replicate = 0; replicate < 20; ++replicate) {
    expect_near_reference(plan, replicate, 1e-4);
  }
}

}  // namespace
}  // namespace headlab
