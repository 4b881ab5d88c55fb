// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/draws.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <utility>
#include <variant>

#include <gtest/gtest.h>

#include "kernels/cpu/tile_dot.h"
#include "kernels/law/regression/random_cosines.h"
#include "kernels/laws.h"
#include "kernels/reference/training_set.h"
#include "kernels/testing/all_laws.h"
#include "kernels/testing/every_target.h"
#include "kernels/testing/test_plans.h"

namespace headlab {
namespace {

using test::all_laws;
using test::on_every_target;

TEST(CpuDraws, DrawsTheBitsOfTheScalarFunctionsFarOutToo) {
  constexpr std::uint64_t quads = 3;
  // Tiles whose counters end just below, cross, and begin just above a multiple of 2^32.
  constexpr std::uint64_t crossing = (1ull << 32) / quads;
  const std::uint64_t firsts[] = {0,        crossing - 31,        crossing - 32, crossing - 16,
                                  crossing, (5ull << 32) / quads, 1ull << 40};
  const std::uint64_t seeds[] = {0, 1, (1ull << 32) - 1, 1ull << 63, ~0ull};
  const std::uint64_t streams[] = {0, subsequence(Purpose::pilot_noise, (1ull << 40) - 1)};
  on_every_target([&] {
    for (const std::uint64_t seed : seeds) {
      for (const std::uint64_t stream : streams) {
        for (const std::uint64_t first : firsts) {
          Tile normals[4 * quads];
          Tile uniforms[4 * quads];
          draw_base_cpu(BaseDraw::normal, seed, stream, first, quads, normals);
          draw_base_cpu(BaseDraw::uniform, seed, stream, first, quads, uniforms);
          for (std::size_t i = 0; i < tile_points; ++i) {
            for (std::uint64_t quad = 0; quad < quads; ++quad) {
              const Words words = philox(seed, stream, (first + i) * quads + quad);
              for (std::size_t j = 0; j < 4; ++j) {
                const NormalPair pair = normal_pair(words.w[j / 2 * 2], words.w[j / 2 * 2 + 1]);
                ASSERT_EQ(math::to_bits(normals[4 * quad + j].v[i]),
                          math::to_bits(j % 2 == 0 ? pair.first : pair.second))
                    << first << " + " << i << " quad " << quad;
                ASSERT_EQ(math::to_bits(uniforms[4 * quad + j].v[i]),
                          math::to_bits(uniform_symmetric(words.w[j])))
                    << first << " + " << i << " quad " << quad;
              }
            }
          }
        }
      }
    }
  });
}

TEST(CpuDraws, NormalPairsHaveTheBitsOfTheScalarFunctionAtEveryEdge) {
  // Around every power of two and three quarters of it, from above and below: the quarter turns and
  // their halves among them. Around 2/3 2^-k, where the logarithm changes its exponent. Then many.
  std::vector<std::uint32_t> words;
  for (int k = 0; k < 32; ++k) {
    for (const std::uint64_t edge : {1ull << k, 3ull << k >> 1, (1ull << 33) / 3 >> k}) {
      for (int step = -600; step <= 600; ++step) {
        const auto word = static_cast<std::uint32_t>(edge) + static_cast<std::uint32_t>(step);
        words.push_back(word);
        words.push_back(~word);
      }
    }
  }
  for (std::uint64_t i = 0; i < 100000; ++i) words.push_back(philox(1, 2, i).w[0]);
  const std::uint32_t others[] = {0,           1,           0x1fffffffu, 0x20000000u,
                                  0x40000000u, 0x9fffffffu, 0xe0000000u, 0xffffffffu};
  on_every_target([&] {
    for (std::size_t start = 0; start < words.size(); start += tile_points) {
      alignas(Tile) std::uint32_t a[tile_points] = {};
      alignas(Tile) std::uint32_t b[tile_points] = {};
      std::copy_n(&words[start], std::min(tile_points, words.size() - start), a);
      for (std::size_t i = 0; i < tile_points; ++i) b[i] = others[(start / tile_points + i) % 8];
      for (const auto& [x, y] : {std::pair(a, b), std::pair(b, a), std::pair(a, a)}) {
        Tile first(std::numeric_limits<float>::quiet_NaN());
        Tile second = first;
        normal_pair_cpu(x, y, first, second);
        for (std::size_t i = 0; i < tile_points; ++i) {
          const NormalPair pair = normal_pair(x[i], y[i]);
          ASSERT_EQ(math::to_bits(first.v[i]), math::to_bits(pair.first)) << x[i] << " " << y[i];
          ASSERT_EQ(math::to_bits(second.v[i]), math::to_bits(pair.second)) << x[i] << " " << y[i];
        }
      }
    }
  });
}

TEST(CpuDraws, DrawsTheBitsOfEveryNoise) {
  constexpr std::uint64_t replicate = (1ull << 40) - 1;
  Plan plan = test::make_plan({}, GaussianKernel{.bandwidth = 0.7});
  plan.seed = ~0ull - 5;
  on_every_target([&] {
    for (const NoiseLaw& law : all_laws<NoiseLaw>(plan.d)) {
      std::visit([&](const auto& noise) { plan.noise = noise.sampler(plan.table, plan.d); }, law);
      for (const std::uint64_t first : {0ull, (1ull << 32) - 32, (1ull << 32) - 7}) {
        const Tile drawn = draw_noise_cpu(plan, replicate, first);
        for (std::size_t i = 0; i < tile_points; ++i) {
          const Words words =
              philox(plan.seed, subsequence(plan.streams.noise, replicate), first + i);
          const float unit =
              std::visit([&](const auto& noise) { return noise.unit(words); }, *plan.noise);
          ASSERT_EQ(math::to_bits(drawn.v[i]), math::to_bits(unit)) << law.index() << " at " << i;
        }
      }
    }
  });
}

TEST(CpuDraws, CosinesOfATileHaveTheBitsOfThoseOfAPoint) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (const int terms : {1, 3, 4, 5, 8, 11}) {
    for (const int d : {1, 2, 7}) {
      Table table;
      const auto m = RandomCosinesRegression{.terms = terms, .length_scale = 2}.function(table, d);
      std::vector<Tile> x(static_cast<std::size_t>(d));
      for (Tile& coordinate : x) {
        for (float& value : coordinate.v) value = normal(random);
      }
      const Tile found = m(table.rounded(), x.data(), 1, TileRows{});
      for (std::size_t i = 0; i < tile_points; ++i) {
        EXPECT_EQ(found.v[i], m(table.rounded(), &x[0].v[i], tile_points, 0)) << terms << " " << d;
      }
    }
  }
}

struct Points {
  std::vector<float> x;
  std::vector<double> regression, noise_sd, y;
};

Points points_of(const Plan& plan, std::uint64_t replicate, std::uint64_t first, std::size_t count,
                 SequenceState& sequence) {
  Points points{std::vector<float>(count * static_cast<std::size_t>(plan.d)),
                std::vector<double>(count), std::vector<double>(count), std::vector<double>(count)};
  draw_training_points(plan, replicate, first,
                       {points.x, points.regression, points.noise_sd, points.y}, sequence);
  return points;
}

Points points_of(const Plan& plan, std::uint64_t replicate, std::uint64_t first,
                 std::size_t count) {
  SequenceState sequence;
  return points_of(plan, replicate, first, count, sequence);
}

/// The number of values whose bits are not those that draw_training_set() gives.
std::size_t differing_bits(const Plan& plan, const TrainingSet& sample, std::uint64_t first,
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
  const TrainingSet sample = draw_training_set(plan, 41);
  on_every_target([&] {
    const auto n = static_cast<std::size_t>(plan.n);
    EXPECT_EQ(differing_bits(plan, sample, 0, points_of(plan, 41, 0, n)), 0u);
    Points part = points_of(plan, 41, 45, 551);
    EXPECT_EQ(differing_bits(plan, sample, 45, part), 0u);
    // The controls: another replicate, another place, one bit.
    EXPECT_GT(differing_bits(plan, sample, 0, points_of(plan, 42, 0, n)), n / 2);
    EXPECT_GT(differing_bits(plan, sample, 44, part), 0u);
    part.x[17] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(part.x[17]) ^ 1u);
    EXPECT_EQ(differing_bits(plan, sample, 45, part), 1u);
  });
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

TEST(Points, HaveTheBitsOfTheReferenceForEveryDesign) {
  const CosinesRegression cosines{
      .amplitude = {1, 0.3}, .frequency = {{1, 0.2, 0.1}, {0, 2, 1}}, .phase = {0.3, 0}};
  for (const DesignLaw& design : all_laws<DesignLaw>(3)) {
    SCOPED_TRACE(design.index());
    expect_bits_of_the_reference(plan_of(design, cosines, heteroscedastic));
  }
}

TEST(Points, HaveTheBitsOfTheReferenceForEveryNoise) {
  const BumpsRegression bumps{.heights = {1.5}, .centres = {{0.2, 0, 1}}, .widths = {0.8}};
  for (const NoiseLaw& noise : all_laws<NoiseLaw>(3)) {
    SCOPED_TRACE(noise.index());
    expect_bits_of_the_reference(plan_of(NormalDesign{.dim = 3}, bumps, noise));
  }
}

TEST(Points, TakeTheRegressionOfTheirRowOfAFile) {
  std::vector<std::vector<double>> rows;
  std::vector<double> values;
  for (int i = 0; i < 1000; ++i) {
    rows.push_back({0.1 * i, 1.0 / (i + 1), -0.3 * i});
    values.push_back(std::sqrt(i));
  }
  expect_bits_of_the_reference(
      plan_of(FileDesign{.rows = rows}, FileRegression{.values = values}, heteroscedastic));
}

TEST(Points, OfASequenceResumeWhereTheLastPartEnded) {
  Plan plan = plan_of(NormalDesign{.dim = 3}, ZeroRegression{}, heteroscedastic);
  plan.ar1 = Ar1(0.9);
  const TrainingSet sample = draw_training_set(plan, 41);
  on_every_target([&] {
    constexpr std::uint64_t half = 10 * tile_points;
    SequenceState sequence;
    points_of(plan, 41, 0, half, sequence);
    EXPECT_EQ(sequence.next, half);
    const SequenceState before = sequence;
    const Points rest = points_of(plan, 41, half, plan.n - half, sequence);
    EXPECT_EQ(differing_bits(plan, sample, half, rest), 0u);
    // From point 0, from a place behind the part, and from another replicate: the same bits.
    SequenceState none, behind = sequence, other = {40, half, before.last};
    for (SequenceState* from : {&none, &behind, &other}) {
      const Points part = points_of(plan, 41, half, half, *from);
      EXPECT_EQ(differing_bits(plan, sample, half, part), 0u);
    }
    // The control: the last point before the part is the one in the state, not drawn again.
    SequenceState wrong = before;
    wrong.last[0] += 1;
    EXPECT_GT(differing_bits(plan, sample, half, points_of(plan, 41, half, half, wrong)), 0u);
  });
}

TEST(Points, ShareAFixedDesignButNoNoise) {
  Plan plan = plan_of(NormalDesign{.dim = 3}, ZeroRegression{}, NormalNoise{.sd = 1});
  plan.fixed_design_seed = 9;
  const Points first = points_of(plan, 0, 0, 50);
  const Points second = points_of(plan, 1, 0, 50);
  EXPECT_EQ(first.x, second.x);
  EXPECT_NE(first.y, second.y);
  EXPECT_EQ(differing_bits(plan, draw_training_set(plan, 1), 0, second), 0u);
}

}  // namespace
}  // namespace headlab
