// SPDX-License-Identifier: Apache-2.0
// Agreement of every backend with the reference. agreement_fixture.h says which one it is here.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/testing/agreement_fixture.h"
#include "kernels/testing/all_laws.h"
#include "kernels/testing/learning_agreement.h"

namespace headlab {
namespace {

using test::Agreement;
using test::all_kernels;
using test::all_laws;
using test::text_of;

void set_design(Plan& plan, const DesignLaw& design) {
  std::visit([&](const auto& law) { plan.design = law.sampler(plan.table); }, design);
}

bool is_finite(const Moments& moments) {
  return std::ranges::all_of(moments.mean, [](double value) { return std::isfinite(value); });
}

TEST_F(Agreement, DrawsTheBitsOfTheReferenceForEveryDesign) {
  for (const DesignLaw& law : all_laws<DesignLaw>(5)) {
    Plan plan = test::make_plan({.n = 1000, .d = 5}, GaussianKernel{});
    plan.seed = (1ull << 52) + 3;
    set_design(plan, law);
    std::ranges::fill(plan.query_points, 0.0);
    for (const std::uint64_t replicate : {0ull, 41ull, (1ull << 33) + 7}) {
      const std::vector<double> expected = draw_training_set(plan, replicate).x;
      in_every_way([&] {
        EXPECT_TRUE(std::ranges::equal(design(plan, replicate), expected)) << text_of(plan);
      });
    }
  }
}

TEST_F(Agreement, EveryLawIsEquivalentToReference) {
  constexpr int d = 6;
  const auto regressions = all_laws<RegressionLaw>(d);
  const auto noises = all_laws<NoiseLaw>(d);
  on_every_path([&] {
    std::size_t turn = 0;
    for (const DesignLaw& design : all_laws<DesignLaw>(d)) {
      for (const KernelLaw& kernel : all_kernels(0.7)) {
        // Every design meets every kernel; the regressions and noises take turns, so that each
        // meets all of these, and every one of them each estimator and mode.
        for (const Estimator estimator : test::estimators) {
          for (const MomentMode mode : test::modes) {
            Plan plan = test::make_plan({.n = 200, .d = d, .heads = 3, .k = 2, .queries = 4},
                                        kernel, estimator, mode);
            set_design(plan, design);
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
            expect_statistics(plan);
            ++turn;
          }
        }
      }
    }
  });
}

TEST_F(Agreement, EveryKernelAtManyShapesIsEquivalentToReference) {
  const std::vector<test::Shape> shapes = {
      {.n = 1, .d = 2, .heads = 1, .k = 1, .queries = 1},
      {.n = 31, .d = 3, .heads = 3, .k = 1, .queries = 7},
      {.n = 33, .d = 8, .heads = 2, .k = 5, .queries = 4},
      {.n = 33, .d = 8, .heads = 1, .k = 5, .queries = 7},
      {.n = 33, .d = 8, .heads = 4, .k = 4, .queries = 3},
      {.n = 1000, .d = 6, .heads = 5, .k = 2, .queries = 3},
      {.n = 1000, .d = 6, .heads = 3, .k = 2, .queries = 7},
      {.n = 150, .d = 16, .heads = 8, .k = 8, .queries = 7},
      {.n = 100, .d = 16, .heads = 3, .k = 16, .queries = 7},
      {.n = 65, .d = 40, .heads = 17, .k = 33, .queries = 7},
      {.n = 100, .d = 30, .heads = 17, .k = 30, .queries = 1},
      {.n = 64, .d = 80, .heads = 2, .k = 70, .queries = 3},
  };
  in_every_way([&] {
    for (const test::Shape& shape : shapes) {
      for (const KernelLaw& kernel : all_kernels(shape.k > 10 ? 4.0 : 0.7)) {
        // Laws without an edge have weight everywhere here: no query is repaired.
        const bool smooth = !std::holds_alternative<EpanechnikovKernel>(kernel) &&
                            !std::holds_alternative<TriangularKernel>(kernel);
        for (const Estimator estimator : test::estimators) {
          for (const MomentMode mode : test::modes) {
            const Plan plan = test::make_plan(shape, kernel, estimator, mode);
            expect_statistics(plan);
            EXPECT_TRUE(!smooth || repairs_all(plan) || repaired() == 0) << text_of(plan);
          }
        }
      }
    }
  });
}

TEST_F(Agreement, ManyHeadsQueriesAndKeysAreEquivalentToReference) {
  // Several tiles of pairs, groups of heads and of queries, panels of keys; 184 heads have more
  // pairs than fit a thread block of a GPU.
  for (const test::Shape& shape :
       {test::Shape{.n = 70, .d = 6, .heads = 33, .k = 1, .queries = 5},
        test::Shape{.n = 100, .d = 20, .heads = 20, .k = 8, .queries = 9},
        test::Shape{.n = 20, .d = 4, .heads = 90, .k = 1, .queries = 2},
        test::Shape{.n = 300, .d = 4, .heads = 2, .k = 2, .queries = 150},
        test::Shape{.n = 9000, .d = 2, .heads = 1, .k = 1, .queries = 1},
        test::Shape{.n = 9000, .d = 2, .heads = 2, .k = 1, .queries = 3},
        test::Shape{.n = 5, .d = 3, .heads = 184, .k = 1, .queries = 1},
        test::Shape{.n = 300, .d = 12, .heads = 40, .k = 3, .queries = 5},
        test::Shape{.n = 300, .d = 12, .heads = 65, .k = 4, .queries = 3},
        test::Shape{.n = 20000, .d = 6, .heads = 2, .k = 2, .queries = 3},
        test::Shape{.n = 64, .d = 130, .heads = 2, .k = 129, .queries = 70}}) {
    for (const Estimator estimator : test::estimators) {
      for (const MomentMode mode : test::modes) {
        expect_statistics(
            test::make_plan(shape, GaussianKernel{.bandwidth = shape.k > 10 ? 8.0 : 1.5}, estimator,
                            mode),
            0);
      }
    }
  }
}

TEST_F(Agreement, QueriesWithProjectionsOfTheirOwnAreEquivalentToReference) {
  for (const int k : {2, 8, 16}) {
    const Plan shared = test::make_plan({.n = 300, .d = 20, .heads = 3, .k = k, .queries = 4},
                                        SoftmaxKernel{.temperature = k > 10 ? 4 : 0.7});
    Plan plan = shared;
    const auto others = test::make_plan({.d = 20, .heads = 6, .k = k}, *plan.kernel).projections;
    plan.query_projections.assign(others.begin() + 3 * 20 * k, others.end());
    on_every_path([&] {
      const Moments found = expect_statistics(plan);
      // Negative control: the keys' projections for the queries too.
      EXPECT_TRUE(is_far(shared, 2, found.mean)) << k;
    });
  }
}

TEST_F(Agreement, QueriesFarFromOneAnotherAreEquivalentToReference) {
  // Products of query and key would lose the digits. Points and queries stand in two places.
  for (const int k : {3, 8, 16}) {
    for (const int heads : {3, 8, 17}) {
      for (const Estimator estimator : test::estimators) {
        for (const MomentMode mode : test::modes) {
          const auto d = static_cast<std::size_t>(k) + 2;
          Plan plan =
              test::make_plan({.n = 300, .d = k + 2, .heads = heads, .k = k, .queries = 6},
                              GaussianKernel{.bandwidth = k > 8 ? 2.5 : 1}, estimator, mode);
          const std::vector<double> far(d, 60.0);
          plan.design = MixtureDesign{.weights = std::vector{0.5, 0.5},
                                      .means = std::vector{std::vector<double>(d), far}}
                            .sampler(plan.table);
          for (std::size_t i = 0; i < 3 * d; ++i) plan.query_points[i] += 60;
          expect_statistics(plan);
        }
      }
    }
  }
}

TEST_F(Agreement, NarrowWindowsAreEquivalentToReference) {
  // Most weights and nearly all of their products are below 2^-126.
  const KernelLaw kernels[] = {GaussianKernel{.bandwidth = 0.01}, LaplaceKernel{.bandwidth = 0.01}};
  for (const KernelLaw& kernel : kernels) {
    const Plan plan = test::make_plan({.n = 1100, .heads = 5, .queries = 7}, kernel);
    on_every_path([&] { expect_statistics(plan); });
  }
}

TEST_F(Agreement, TheComparisonSeesABandwidthOffByOnePercent) {
  Plan plan = test::make_plan({.n = 1000}, GaussianKernel{.bandwidth = 0.7});
  const std::vector<double> statistics = expect_statistics(plan).mean;
  plan.kernel = GaussianKernel{.bandwidth = 0.707};
  EXPECT_TRUE(is_far(plan, 2, statistics));
  EXPECT_TRUE(is_far(plan, 2, std::vector<double>(statistics.size(), std::nan(""))));
}

TEST_F(Agreement, NoiseThatVariesIsEquivalentToReference) {
  for (const int heads : {3, 17}) {
    for (const Estimator estimator : test::estimators) {
      for (const MomentMode mode : test::modes) {
        Plan plan = test::make_plan({.n = 700, .heads = heads}, GaussianKernel{.bandwidth = 0.7},
                                    estimator, mode);
        test::vary_noise(plan);
        on_every_path([&] { expect_statistics(plan, 0); });
      }
    }
  }
}

TEST_F(Agreement, NoiseHasTheSameDigitsInAnyUnit) {
  for (const auto& [heads, mode] :
       {std::pair(3, MomentMode::pairwise), std::pair(3, MomentMode::aggregate),
        std::pair(30, MomentMode::aggregate)}) {
    Plan plan = test::make_plan({.n = 300, .heads = heads, .k = 1},
                                GaussianKernel{.bandwidth = 0.3}, Estimator::conditional, mode);
    const auto noise_of = [&](double sd) {
      test::vary_noise(plan, sd);
      return compute(plan, 2).mean;
    };
    const std::vector<double> ordinary = noise_of(1);
    const std::vector<double> small = noise_of(0x1p-66);
    const std::vector<double> large = noise_of(0x1p+66);
    const MomentLayout layout = plan.layout();
    for (std::size_t i = 0; i < ordinary.size(); ++i) {
      const std::size_t at = i % layout.per_query();
      const bool is_noise = at >= layout.noise_offset() &&
                            (!layout.has_alignment() || at < layout.alignment_offset());
      EXPECT_EQ(small[i], is_noise ? ordinary[i] * 0x1p-132 : ordinary[i]) << at;
      EXPECT_EQ(large[i], is_noise ? ordinary[i] * 0x1p+132 : ordinary[i]) << at;
      EXPECT_TRUE(!is_noise || small[i] > 0) << at;
    }
  }
}

TEST_F(Agreement, OneDesignForAllReplicatesWhereItIsFixed) {
  Plan plan = test::make_plan({.n = 50}, GaussianKernel{.bandwidth = 0.7});
  plan.fixed_design_seed = 9;
  std::vector<Moments> nodes(2);
  backend()->worker(plan)->run({.first = 0, .count = 16}, nodes);
  for (const Moments& node : nodes) {
    for (const double comoment : node.comoment) EXPECT_EQ(comoment, 0.0);
    EXPECT_EQ(node.mean, expect_agreement(plan, 3).mean);
  }
}

TEST_F(Agreement, EmptyAndNarrowWindowsAreTreatedAndCountedAsInTheReference) {
  for (const double scale : {1e-6, 1e-3, 0.02}) {
    for (const KernelLaw& kernel : all_kernels(scale)) {
      for (const int queries : {2, 6}) {
        // On a GPU the squares of many keys are bounded.
        for (const bool bounded : {false, true}) {
          const Plan plan =
              test::make_plan({.n = bounded ? 1100u : 90u,
                               .d = 4,
                               .heads = 3,
                               .k = bounded ? 1 : 3,
                               .queries = queries},
                              kernel, bounded ? Estimator::plain : Estimator::conditional);
          on_every_path(
              [&] { EXPECT_TRUE(is_finite(expect_agreement(plan, 1))) << text_of(plan); });
        }
      }
    }
  }
}

TEST_F(Agreement, FarAndHeavyTailedPointsGiveNoNaN) {
  for (const double scale : {1e-6, 1.0, 1e6}) {
    for (const KernelLaw& kernel : all_kernels(scale)) {
      for (const int k : {2, 5, 9, 30}) {
        Plan plan = test::make_plan({.n = 200, .d = 32, .k = k}, kernel);
        plan.design = StudentDesign{.dim = 32, .df = 0.02}.sampler(plan.table);
        for (double& x : plan.query_points) x *= 1e6;
        on_every_path([&] {
          ASSERT_TRUE(is_finite(compute(plan, 0))) << "scale " << scale << ' ' << text_of(plan);
        });
      }
    }
  }
}

TEST_F(Agreement, GradientsAreEquivalentToReferenceWithTheSameBitsAgain) {
  std::vector<test::FitShape> shapes = test::fit_shapes();
  // Three tiles of coordinates of a point and of a head, of keys and of queries.
  shapes.push_back({.n = 150, .d = 70, .heads = 1, .k = 66, .queries = 70});
  for (test::FitShape shape : shapes) {
    for (const KernelLaw& kernel : test::learnable_kernels(shape)) {
      for (const bool separate : {false, true}) {
        if (separate && norm_coefficient_of(kernel) != 0) continue;
        shape.separate = separate;
        const test::FitCase c = test::make_fit_case(shape, kernel);
        const test::FitReference reference = test::reference_answer(c, fit_rounding);
        in_every_way_of_fits([&] {
          SCOPED_TRACE("n = " + std::to_string(shape.n) + ", k = " + std::to_string(shape.k));
          const auto backend = this->backend();
          test::FitAnswer given = answer(c, *backend->head_gradients(kernel, 1));
          const test::FitAnswer again = answer(c, *backend->head_gradients(kernel, 1));
          double largest = 0;
          const auto close = close_to(reference, given, &largest);
          record_fit(separate, close ? largest : HUGE_VAL);
          EXPECT_TRUE(close) << "separate = " << separate;
          EXPECT_EQ(given.f, again.f);
          EXPECT_EQ(given.gradient.keys, again.gradient.keys);
          EXPECT_EQ(given.gradient.queries, again.gradient.queries);

          // Negative control: a gradient of the wrong sign, unless it is nothing but rounding: with
          // two points, one of them left out, the other has weight 1.
          if (shape.n == 2) return;
          for (double& number : given.gradient.keys) number *= -1;
          EXPECT_FALSE(close_to(reference, given));
        });
      }
    }
  }
}

TEST_F(Agreement, GradientsStandFarQueriesAndNarrowWindows) {
  test::FitCase c = test::make_fit_case({.n = 100}, GaussianKernel{.bandwidth = 0.004});
  c.queries[2 * 5] = 40;  // of the third query, which is not a point: exponents below -1e8
  const test::FitAnswer given = answer(c, *backend()->head_gradients(c.kernel, 1));
  for (const double f : given.f) EXPECT_TRUE(std::isfinite(f));
  for (const double g : given.gradient.keys) EXPECT_TRUE(std::isfinite(g));
}

}  // namespace
}  // namespace headlab
