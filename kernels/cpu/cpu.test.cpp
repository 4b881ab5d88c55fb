// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cpu.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/every_target.h"
#include "kernels/cpu/tile_dot.h"
#include "kernels/law/regression/random_cosines.h"
#include "kernels/parity.h"
#include "kernels/reference/reference.h"
#include "kernels/test_plans.h"

namespace headlab {
namespace {

using test::all_kernels;
using test::on_every_target;
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
    const double bound = simd == "AVX-512" ? 1.3 : simd == "AVX2" ? 1.05 : 1.25;
    EXPECT_TRUE(worst <= bound) << worst;
    EXPECT_TRUE(worst > 0.5) << "no error at all is no measurement";

    const float ends[] = {-std::numeric_limits<float>::infinity(), -1e30f, -127.0f};
    float zeros[] = {1, 1, 1};
    exp2_cpu(ends, 0, true, zeros, 3);
    for (const float zero : zeros) EXPECT_EQ(zero, 0.0f);
  });
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

TEST(Cpu, DrawsTheBitsOfTheScalarFunctionsFarOutToo) {
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

TEST(Cpu, NormalPairsHaveTheBitsOfTheScalarFunctionAtEveryEdge) {
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

TEST(Cpu, DrawsTheBitsOfEveryNoise) {
  constexpr std::uint64_t replicate = (1ull << 40) - 1;
  Plan plan = test::make_plan({}, GaussianKernel{.bandwidth = 0.7});
  plan.seed = ~0ull - 5;
  on_every_target([&] {
    for (const NoiseLaw& law :
         {NoiseLaw(NormalNoise{}), NoiseLaw(HeteroscedasticNoise{.direction = {1, 0, 0, 0, 0, 0}}),
          NoiseLaw(LaplaceNoise{}), NoiseLaw(StudentNoise{})}) {
      std::visit([&](const auto& noise) { plan.noise = noise.sampler(plan.table, plan.d); }, law);
      for (const std::uint64_t first : {0ull, (1ull << 32) - 32, (1ull << 32) - 7}) {
        const Tile drawn = draw_noise_cpu(plan, replicate, first);
        for (std::size_t i = 0; i < tile_points; ++i) {
          const Words words =
              philox(plan.seed, subsequence(plan.streams.noise, replicate), first + i);
          const float unit =
              std::visit([&](const auto& noise) { return noise.unit(words); }, plan.noise);
          ASSERT_EQ(math::to_bits(drawn.v[i]), math::to_bits(unit)) << law.index() << " at " << i;
        }
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

TEST(Cpu, QueriesWithProjectionsOfTheirOwnAreEquivalentToReference) {
  const auto backend = make_cpu_backend();
  const test::Shape shape = {.n = 300, .d = 6, .heads = 3, .k = 2, .queries = 4};
  on_every_target([&] {
    Plan plan = test::make_plan(shape, SoftmaxKernel{.temperature = 0.7});
    const Plan shared = plan;
    plan.query_projections = test::make_plan({.d = 6, .heads = 6, .k = 2}, plan.kernel).projections;
    plan.query_projections.erase(plan.query_projections.begin(),
                                 plan.query_projections.begin() + 3 * 6 * 2);
    const std::vector<double> statistics = one_replicate(*backend, plan, 2).mean;
    EXPECT_TRUE(close_to_reference(plan, 2, statistics));
    // Negative control: the keys' projections for the queries too.
    EXPECT_FALSE(close_to_reference(shared, 2, statistics));
  });
}

TEST(Cpu, TrainingSetsOfSeveralChunksAreEquivalentToReference) {
  const auto backend = make_cpu_backend();
  // The second pass over the ensemble, and windows that are repaired, draw their chunks again.
  const test::Shape wide = {.n = 5000, .d = 40, .heads = 17, .k = 33, .queries = 2};
  const test::Shape many = {.n = 40000, .d = 2, .heads = 30, .k = 1, .queries = 2};
  struct Case {
    test::Shape shape;
    KernelLaw kernel;
    MomentMode moments;
  };
  const std::vector<Case> cases = {
      {wide, GaussianKernel{.bandwidth = 4}, MomentMode::pairwise},
      {wide, SoftmaxKernel{.temperature = 4}, MomentMode::pairwise},
      {many, GaussianKernel{.bandwidth = 0.5}, MomentMode::aggregate},
      {many, EpanechnikovKernel{.bandwidth = 1e-5}, MomentMode::aggregate},
      {many, LaplaceKernel{.bandwidth = 1e-4}, MomentMode::aggregate},
  };
  for (const Case& c : cases) {
    const Plan plan = test::make_plan(c.shape, c.kernel, Estimator::conditional, c.moments);
    const Moments found = one_replicate(*backend, plan, 3);
    EXPECT_TRUE(close_to_reference(plan, 3, found.mean)) << "n " << c.shape.n;
    EXPECT_EQ(found.windows, one_replicate(*make_reference_backend(), plan, 3).windows);
  }
}

/// Moments of plans simulated together are those of each alone, bit by bit.
void expect_same_bits_together(const Backend& backend, const std::vector<Plan>& all) {
  std::vector<const Plan*> plans;
  for (const Plan& plan : all) {
    EXPECT_TRUE(shares_draws(all[0], plan));
    plans.push_back(&plan);
  }
  const Block block = {.first = 0, .count = 19};
  std::vector<Moments> together(plans.size() * block.nodes());
  backend.worker(plans)->run(block, together);
  for (std::size_t p = 0; p < plans.size(); ++p) {
    std::vector<Moments> alone(block.nodes());
    backend.worker(*plans[p])->run(block, alone);
    for (std::size_t i = 0; i < alone.size(); ++i) {
      EXPECT_EQ(together[p * block.nodes() + i].mean, alone[i].mean) << "plan " << p;
      EXPECT_EQ(together[p * block.nodes() + i].comoment, alone[i].comoment) << "plan " << p;
      EXPECT_EQ(together[p * block.nodes() + i].windows, alone[i].windows) << "plan " << p;
    }
  }
}

TEST(Cpu, ConditionsHaveTheBitsTogetherThatTheyHaveAlone) {
  const auto backend = make_cpu_backend();
  for (const Estimator estimator : {Estimator::conditional, Estimator::plain}) {
    const test::Shape shape = {.n = 300, .d = 6, .heads = 4, .k = 2, .queries = 7};
    std::vector<Plan> all;
    all.push_back(test::make_plan(shape, GaussianKernel{.bandwidth = 0.7}, estimator));
    Plan fewer = all[0];  // two of the same heads, and their own weights
    fewer.heads = 2;
    fewer.projections.erase(fewer.projections.begin() + 12, fewer.projections.begin() + 36);
    fewer.head_weights = {0.3, -0.4};
    all.push_back(fewer);
    Plan narrow = all[0];  // windows to be repaired
    narrow.kernel = GaussianKernel{.bandwidth = 0.02};
    all.push_back(narrow);
    Plan aggregate = all[0];
    aggregate.moments = MomentMode::aggregate;
    all.push_back(aggregate);
    Plan elsewhere = all[0];
    elsewhere.query_points.assign(elsewhere.query_points.size(), 0.25);
    all.push_back(elsewhere);
    Plan softmax = all[0];
    softmax.kernel = SoftmaxKernel{.temperature = 0.5};
    all.push_back(softmax);
    Plan taller = test::make_plan({.n = 300, .d = 6, .heads = 2, .k = 3, .queries = 4},
                                  GaussianKernel{.bandwidth = 0.9}, estimator);
    taller.table = all[0].table;
    taller.regression = all[0].regression;
    all.push_back(taller);

    expect_same_bits_together(*backend, all);
  }
}

/// Statistics of each of these queries have the bits that they have without the others.
void expect_same_bits_alone(const Plan& plan, std::initializer_list<std::size_t> queries) {
  const auto d = static_cast<std::size_t>(plan.d);
  const std::size_t size = plan.layout().per_query();
  on_every_target([&] {
    const auto backend = make_cpu_backend();
    const std::vector<double> all = one_replicate(*backend, plan, 3).mean;
    for (const std::size_t q : queries) {
      Plan alone = plan;
      alone.queries = 1;
      alone.query_points.assign(&plan.query_points[d * q], &plan.query_points[d * q] + d);
      alone.truth = {plan.truth[q]};
      const std::vector<double> own(&all[q * size], &all[q * size] + size);
      EXPECT_EQ(one_replicate(*backend, alone, 3).mean, own) << "query " << q;
    }
  });
}

TEST(Cpu, AQueryHasTheBitsAmongOthersThatItHasAlone) {
  // Queries are worked on some together, in whole tiles and in what is left of the last ones.
  const KernelLaw kernels[] = {GaussianKernel{.bandwidth = 0.7}, SoftmaxKernel{.temperature = 0.5},
                               LaplaceKernel{.bandwidth = 0.5}};
  for (const std::uint64_t n : {40, 96, 1100}) {
    for (const Estimator estimator : {Estimator::conditional, Estimator::plain}) {
      for (const KernelLaw& kernel : kernels) {
        expect_same_bits_alone(
            test::make_plan({.n = n, .heads = 5, .queries = 11}, kernel, estimator),
            {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
      }
    }
  }
}

TEST(Cpu, AQueryHasTheBitsThatItHasAloneInNarrowWindows) {
  // Most weights and nearly all of their products are below 2^-126.
  const KernelLaw kernels[] = {GaussianKernel{.bandwidth = 0.01}, LaplaceKernel{.bandwidth = 0.01}};
  for (const KernelLaw& kernel : kernels) {
    const Plan plan = test::make_plan({.n = 1100, .heads = 5, .queries = 7}, kernel);
    expect_same_bits_alone(plan, {0, 1, 2, 3, 4, 5, 6});
    on_every_target([&] {
      EXPECT_TRUE(close_to_reference(plan, 2, one_replicate(*make_cpu_backend(), plan, 2).mean));
    });
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

TEST(Cpu, NoiseHasTheSameDigitsInAnyUnit) {
  const auto backend = make_cpu_backend();
  for (const auto& [heads, mode] :
       {std::pair(3, MomentMode::pairwise), std::pair(3, MomentMode::aggregate),
        std::pair(30, MomentMode::aggregate)}) {
    const Plan plan =
        test::make_plan({.n = 300, .heads = heads, .k = 1}, GaussianKernel{.bandwidth = 0.3},
                        Estimator::conditional, mode);
    const auto noise_of = [&](double sd) {
      Plan scaled = plan;
      scaled.noise =
          HeteroscedasticNoise{.sd = sd, .slope = 0.7, .direction = {1, 0, 0, 0, 0, 0}}.sampler(
              scaled.table, scaled.d);
      return one_replicate(*backend, scaled, 2).mean;
    };
    const std::vector<double> ordinary = noise_of(1);
    const std::vector<double> small = noise_of(0x1p-66);
    const std::size_t size = plan.layout().per_query();
    for (std::size_t i = 0; i < ordinary.size(); ++i) {
      const std::size_t at = i % size;
      const std::size_t first = plan.layout().noise_offset();
      const bool is_noise =
          at >= first && (!plan.layout().has_alignment() || at < plan.layout().alignment_offset());
      EXPECT_EQ(small[i], is_noise ? ordinary[i] * 0x1p-132 : ordinary[i]) << at;
      EXPECT_TRUE(!is_noise || small[i] > 0) << at;
    }
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

TEST(Cpu, QueriesOfLaterBatchesHaveTheBitsTheyHaveAlone) {
  // Pairwise: so many pairs of heads that running sums of all queries are not kept at once.
  // Aggregate: so many heads that the noise of the ensemble takes a second pass.
  for (const MomentMode mode : {MomentMode::pairwise, MomentMode::aggregate}) {
    expect_same_bits_alone(
        test::make_plan({.n = 1100, .heads = 64, .k = 1, .queries = 133},
                        GaussianKernel{.bandwidth = 0.7}, Estimator::conditional, mode),
        {0, 5, 11, 126, 130, 132});
  }
}

TEST(Cpu, CosinesOfATileHaveTheBitsOfThoseOfAPoint) {
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

TEST(Cpu, HeadsOfTheSameKeysAndOtherQueriesAreNotOne) {
  const auto backend = make_cpu_backend();
  Plan plan = test::make_plan({.n = 200}, SoftmaxKernel{.temperature = 1});
  Plan turned = plan;
  turned.query_projections = plan.projections;
  for (double& w : turned.query_projections) w *= -0.5;
  expect_same_bits_together(*backend, {plan, turned});
}

TEST(Cpu, ManyHeadsHaveTheBitsTogetherThatTheyHaveAlone) {
  // Strips are shorter the more heads there are, and their ends must not show.
  const auto backend = make_cpu_backend();
  const HeteroscedasticNoise varying = {
      .sd = 0.4, .slope = 1.5, .direction = {1, -1, 0, 0.5, 0, 0}};
  for (const int heads : {20, 30}) {
    const test::Shape shape = {.n = 1100, .d = 6, .heads = heads, .k = 1, .queries = 3};
    for (const bool heavy : {false, true}) {
      const KernelLaw kernel = heavy ? KernelLaw(SoftmaxKernel{.temperature = 1})
                                     : KernelLaw(GaussianKernel{.bandwidth = 0.3});
      for (const bool constant : {true, false}) {
        Plan plan = test::make_plan(shape, kernel);
        if (heavy) plan.design = StudentDesign{.dim = 6, .df = 2}.sampler(plan.table);
        if (!constant) plan.noise = varying.sampler(plan.table, plan.d);
        std::vector<Plan> all(3, plan);
        all[1].moments = MomentMode::aggregate;
        std::visit(
            [](auto& law) {
              if constexpr (requires { law.bandwidth; }) {
                law.bandwidth *= 1.5;
              } else {
                law.temperature *= 1.5;
              }
            },
            all[2].kernel);
        expect_same_bits_together(*backend, all);
      }
    }
  }
}

TEST(Cpu, LargeNoiseStaysFinite) {
  const auto backend = make_cpu_backend();
  for (const MomentMode mode : {MomentMode::pairwise, MomentMode::aggregate}) {
    Plan plan = test::make_plan({.n = 2000, .k = 1}, SoftmaxKernel{.temperature = 1},
                                Estimator::conditional, mode);
    plan.design = StudentDesign{.dim = 6, .df = 3}.sampler(plan.table);
    plan.noise =
        HeteroscedasticNoise{.sd = 1e5, .slope = 0.5, .direction = {1, 0, 0, 0, 0, 0}}.sampler(
            plan.table, plan.d);
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

TEST(Cpu, SoftmaxKeepsItsDigitsWhereKeysAreFarOut) {
  // Exponents of 10^4 leave weights 10^-3 of themselves uncertain. From distances they would be
  // differences of squares of 10^8, of which float32 knows the tens.
  const auto backend = make_cpu_backend();
  const auto reference = make_reference_backend();
  Plan plan = test::make_plan({.n = 500}, SoftmaxKernel{.temperature = 1});
  plan.design = NormalDesign{.dim = 6, .mean = {1e4, 1e4, 1e4, 1e4, 1e4, 1e4}}.sampler(plan.table);
  const Moments fast = one_replicate(*backend, plan, 0);
  const Moments exact = one_replicate(*reference, plan, 0);
  for (std::size_t i = 0; i < exact.mean.size(); ++i) {
    EXPECT_NEAR(fast.mean[i], exact.mean[i], 0.02) << i;
  }
}

TEST(Cpu, SoftmaxFindsTheLargestOfHugeExponents) {
  // One key decides: the value there is the estimate, on both.
  const auto backend = make_cpu_backend();
  const auto reference = make_reference_backend();
  Plan plan = test::make_plan({.n = 200}, SoftmaxKernel{.temperature = 1e-3});
  plan.design = StudentDesign{.dim = 6, .df = 0.5}.sampler(plan.table);
  plan.regression = StepRegression{.direction = {1, 0, 1, 0, 0, 0}}.function(plan.table, 6);
  for (std::uint64_t replicate = 0; replicate < 20; ++replicate) {
    const Moments fast = one_replicate(*backend, plan, replicate);
    const Moments exact = one_replicate(*reference, plan, replicate);
    for (std::size_t i = 0; i < exact.mean.size(); ++i) {
      EXPECT_NEAR(fast.mean[i], exact.mean[i], 1e-4) << replicate << " " << i;
    }
  }
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
