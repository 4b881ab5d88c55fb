// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/sample_points.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "kernels/cpu/cpu.h"
#include "kernels/reference/training_set.h"

namespace headlab {
namespace {

struct Points {
  std::vector<float> x;
  std::vector<double> regression, noise_sd, y;
};

Points points_of(const Plan& plan, std::uint64_t replicate, std::uint64_t first,
                 std::size_t count) {
  Points points{std::vector<float>(count * static_cast<std::size_t>(plan.d)),
                std::vector<double>(count), std::vector<double>(count), std::vector<double>(count)};
  sample_points(plan, replicate, first, {points.x, points.regression, points.noise_sd, points.y});
  return points;
}

/// The number of values whose bits are not those that draw_sample() gives.
std::size_t differing_bits(const Plan& plan, const Sample& sample, std::uint64_t first,
                           const Points& points) {
  const auto same = [](double a, double b) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
  };
  const auto d = static_cast<std::size_t>(plan.d);
  const auto begin = static_cast<std::size_t>(first);
  std::size_t differing = 0;
  for (std::size_t i = 0; i < points.x.size(); ++i) {
    differing += same(static_cast<double>(points.x[i]), sample.x[begin * d + i]) ? 0 : 1;
  }
  for (std::size_t i = 0; i < points.y.size(); ++i) {
    const double y = sample.regression[begin + i] + sample.noise[begin + i];
    differing += same(points.regression[i], sample.regression[begin + i]) ? 0 : 1;
    differing += same(points.noise_sd[i], sample.noise_sd[begin + i]) ? 0 : 1;
    differing += same(points.y[i], y) ? 0 : 1;
  }
  return differing;
}

/// Checks a whole set and a part that begins and ends within tiles, on every SIMD target.
void expect_bits_of_the_reference(const Plan& plan) {
  const Sample sample = draw_sample(plan, 41);
  for (const std::int64_t target : cpu_targets()) {
    SCOPED_TRACE(cpu_simd_name(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    const auto n = static_cast<std::size_t>(plan.n);
    EXPECT_EQ(differing_bits(plan, sample, 0, points_of(plan, 41, 0, n)), 0u);
    Points part = points_of(plan, 41, 45, 551);
    EXPECT_EQ(differing_bits(plan, sample, 45, part), 0u);
    // The controls: another replicate, another place, one bit.
    EXPECT_GT(differing_bits(plan, sample, 0, points_of(plan, 42, 0, n)), n / 2);
    EXPECT_GT(differing_bits(plan, sample, 44, part), 0u);
    part.x[17] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(part.x[17]) ^ 1u);
    EXPECT_EQ(differing_bits(plan, sample, 45, part), 1u);
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

/// n is more than is drawn at once, and no multiple of a tile.
Plan plan_of(const DesignLaw& design, const RegressionLaw& regression, const NoiseLaw& noise) {
  Plan plan;
  plan.n = 700;
  plan.seed = (1ull << 52) + 3;
  std::visit(
      [&](const auto& law) {
        plan.d = law.dimension();
        plan.design = law.sampler(plan.table);
      },
      design);
  plan.regression = std::visit(
      [&](const auto& law) { return RegressionFunction(law.function(plan.table, plan.d)); },
      regression);
  plan.noise = std::visit(
      [&](const auto& law) { return NoiseSampler(law.sampler(plan.table, plan.d)); }, noise);
  return plan;
}

const NoiseLaw heteroscedastic =
    HeteroscedasticNoise{.sd = 0.5, .slope = 2, .direction = {1, -1, 0.5}};

TEST(SamplePoints, HaveTheBitsOfTheReferenceForEveryDesign) {
  const std::vector<DesignLaw> designs = {
      NormalDesign{.dim = 3},
      NormalDesign{.dim = 3, .ar1 = 0.6},
      MixtureDesign{.weights = {0.3, 0.7}, .means = {{0, 1, 2}, {3, 4, 5}}},
      UniformDesign{.dim = 3},
      StudentDesign{.dim = 3, .df = 2.5},
      SphereDesign{.dim = 3}};
  const CosinesRegression cosines{
      .amplitude = {1, 0.3}, .frequency = {{1, 0.2, 0.1}, {0, 2, 1}}, .phase = {0.3, 0}};
  for (const DesignLaw& design : designs) {
    SCOPED_TRACE(design.index());
    expect_bits_of_the_reference(plan_of(design, cosines, heteroscedastic));
  }
}

TEST(SamplePoints, HaveTheBitsOfTheReferenceForEveryNoise) {
  const std::vector<NoiseLaw> noises = {NormalNoise{.sd = 0.3}, StudentNoise{.df = 3, .sd = 0.7},
                                        LaplaceNoise{.sd = 2}, heteroscedastic};
  const BumpsRegression bumps{.heights = {1.5}, .centres = {{0.2, 0, 1}}, .widths = {0.8}};
  for (const NoiseLaw& noise : noises) {
    SCOPED_TRACE(noise.index());
    expect_bits_of_the_reference(plan_of(NormalDesign{.dim = 3}, bumps, noise));
  }
}

TEST(SamplePoints, TakeTheRegressionOfTheirRowOfAFile) {
  std::vector<std::vector<double>> rows;
  std::vector<double> values;
  for (int i = 0; i < 1000; ++i) {
    rows.push_back({0.1 * i, 1.0 / (i + 1), -0.3 * i});
    values.push_back(std::sqrt(i));
  }
  expect_bits_of_the_reference(
      plan_of(FileDesign{.rows = rows}, FileRegression{.values = values}, heteroscedastic));
}

TEST(SamplePoints, ShareAFixedDesignButNoNoise) {
  Plan plan = plan_of(NormalDesign{.dim = 3}, ZeroRegression{}, NormalNoise{.sd = 1});
  plan.fixed_design_seed = 9;
  const Points first = points_of(plan, 0, 0, 50);
  const Points second = points_of(plan, 1, 0, 50);
  EXPECT_EQ(first.x, second.x);
  EXPECT_NE(first.y, second.y);
  EXPECT_EQ(differing_bits(plan, draw_sample(plan, 1), 0, second), 0u);
}

}  // namespace
}  // namespace headlab
