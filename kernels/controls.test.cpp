// SPDX-License-Identifier: Apache-2.0
// Exact controls, and their statistics on every backend against the reference.
#include "kernels/controls.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/kernel_laws.h"
#include "kernels/reference/backend.h"
#include "kernels/testing/agreement_fixture.h"

namespace headlab {
namespace {

constexpr std::uint64_t compared_replicate = 2;

/// Controls with unequal coefficients, or without any, whose scales are near the kernel sums of the
/// replicate compared; `factor` in them is a fault.
std::shared_ptr<Controls> some_controls(const Plan& plan, bool coefficients, double factor = 1) {
  const auto queries = static_cast<std::size_t>(plan.queries);
  const auto heads = static_cast<std::size_t>(plan.heads);
  const std::size_t pairs = heads * (heads + 1) / 2;
  const TrainingSet tokens = tokens_of(plan, draw_training_set(plan, compared_replicate));
  auto controls = std::make_shared<Controls>();
  ControlMeans& means = controls->means;
  means = {.log_scale = std::vector<double>(queries * heads),
           .estimate = std::vector<double>(queries * heads),
           .of_estimates = std::vector<double>(queries * heads * estimate_controls),
           .of_noise = std::vector<double>(queries * pairs * noise_controls)};
  for (std::size_t at = 0; at < means.log_scale.size(); ++at) {
    double& log_scale = means.log_scale[at];
    WindowCounts windows;
    nw_weights(plan, tokens, static_cast<int>(at % heads), static_cast<int>(at / heads), windows,
               &log_scale);
    if (!std::isfinite(log_scale)) log_scale = 0;
    log_scale += std::log(factor) + std::sin(static_cast<double>(at / heads));
    means.estimate[at] = 0.1 * std::cos(static_cast<double>(at / heads));
  }
  if (!coefficients) return controls;
  for (std::size_t i = 0; i < queries * heads * estimate_controls; ++i) {
    controls->of_estimates.push_back(std::cos(static_cast<double>(i)));
  }
  for (std::size_t i = 0; i < queries * pairs * noise_controls; ++i) {
    controls->of_noise.push_back(std::sin(static_cast<double>(i)));
  }
  return controls;
}

class ControlAgreement : public test::Agreement {
 protected:
  /// Compares what controls are made of, and what they leave, with the reference; a scale that is
  /// one in a hundred off is seen.
  void check(Plan plan) {
    SCOPED_TRACE(test::text_of(plan));
    for (const bool coefficients : {false, true}) {
      SCOPED_TRACE(coefficients ? "controlled" : "sums");
      plan.controls = some_controls(plan, coefficients);
      const Moments found = expect_statistics(plan, compared_replicate);
      Plan other = plan;
      other.controls = some_controls(plan, coefficients, 1.01);
      EXPECT_TRUE(is_far(other, compared_replicate, found.mean) ||
                  found.mean == compute(other, compared_replicate).mean);
    }
  }
};

TEST_F(ControlAgreement, EveryKernelHasTheSumsOfTheReference) {
  for (const KernelLaw& kernel : test::all_kernels(0.8)) {
    // Far queries have windows that are summed again.
    for (const double far : {1.0, 4.0, 12.0}) {
      SCOPED_TRACE(far);
      Plan plan = test::make_plan({}, kernel);
      for (double& x : plan.query_points) x *= far;
      // Softmax and distances measure keys from a centre that is not the origin.
      for (double& x : plan.query_points) x += 0.3;
      on_every_path([&] { check(plan); });
    }
  }
}

TEST_F(ControlAgreement, EveryWidthOfHeadsHasTheSumsOfTheReference) {
  for (const int k : {1, 2, 3, 4, 8, 16, 40, 70}) {
    for (const int queries : {2, 5}) {
      for (const int heads : {2, 10}) {
        for (const KernelLaw& kernel : {KernelLaw(GaussianKernel{.bandwidth = k > 8 ? 4.0 : 1.2}),
                                        KernelLaw(SoftmaxKernel{.temperature = k > 8 ? 4.0 : 1}),
                                        KernelLaw(LaplaceKernel{.bandwidth = k > 8 ? 4.0 : 1.2})}) {
          Plan plan = test::make_plan(
              {.n = 150, .d = k + 2, .heads = heads, .k = k, .queries = queries}, kernel);
          for (double& x : plan.query_points) x += 0.2;
          if (k == 2) test::vary_noise(plan);
          check(plan);
        }
      }
    }
  }
  // Products would lose the digits, and exponents have few.
  Plan narrow = test::make_plan({.n = 70, .k = 3}, GaussianKernel{.bandwidth = 0.01});
  for (const bool coefficients : {false, true}) {
    narrow.controls = some_controls(narrow, coefficients);
    expect_statistics(narrow, compared_replicate);
  }
}

#if defined(HEADLAB_EMULATE_CUDA) || defined(HEADLAB_TEST_GPU)
/// The largest mean over replicates of the relative error of a kernel sum, which is what all
/// replicates share.
class SharedRounding : public ControlAgreement {
 protected:
  double of(int heads, int k) {
    Plan plan = test::make_plan({.n = 1000, .d = k, .heads = heads, .k = k, .queries = 4},
                                GaussianKernel{.bandwidth = 0.8 * std::sqrt(k)});
    plan.controls = some_controls(plan, false);
    const MomentLayout layout = plan.layout();
    constexpr std::uint64_t replicates = 4;
    std::vector<double> errors(layout.statistics());
    for (std::uint64_t r = 0; r < replicates; ++r) {
      const Moments exact = test::one_replicate(*make_reference_backend(), plan, r);
      const Moments found = compute(plan, r);
      for (std::size_t i = 0; i < errors.size(); ++i) {
        errors[i] += (found.mean[i] / exact.mean[i] - 1) / replicates;
      }
    }
    double largest = 0;
    for (std::size_t i = 0; i < errors.size(); ++i) {
      if (i % layout.per_query() < layout.control_offset()) continue;
      if (!(std::abs(errors[i]) <= largest)) largest = std::abs(errors[i]);
    }
    return largest;
  }
};

TEST_F(SharedRounding, OfKernelSumsIsSmall) {
  // What the pilot of controls takes for float32 without asking, of kernel values above e^-8.
  constexpr double of_float32 = 1e-6;
  // Sums on the tensor cores, of 512 keys, four at a time and in two parts, which grow evenly: each
  // time 7 2^-24 are lost at most, see cuda_tolerance.h.
  constexpr double on_tensor_cores = 2 * 512 / 4 * 7 * test::eps32 / 2;
  for (const int k : {2, 4, 8, 16, 64}) EXPECT_LE(of(2, k), of_float32) << k;
  EXPECT_LE(of(10, 4), of_float32 + on_tensor_cores);
  // Negative control: without the lower parts of split numbers.
  options_.no_lower_parts = true;
  EXPECT_GT(of(2, 16), of_float32);
}
#endif

TEST_F(ControlAgreement, HeadsThatSeeDifferentTokensHaveSumsOfTheirOwn) {
  for (const KernelLaw& kernel :
       {KernelLaw(GaussianKernel{.bandwidth = 1.2}), KernelLaw(SoftmaxKernel{.temperature = 1})}) {
    Plan plan = test::make_plan({.n = 150, .k = 3}, kernel);
    for (std::uint64_t h = 0; h < 3; ++h) {
      plan.mechanism.seen.push_back(seen_tokens(plan.n, 90 - 20 * h, h, 2));
    }
    check(plan);
  }
}

TEST_F(ControlAgreement, HeadsThatAreAlikeCountAsOne) {
  Plan plan = test::make_plan({}, GaussianKernel{.bandwidth = 1});
  const auto size = static_cast<std::ptrdiff_t>(plan.d * plan.k);
  std::copy_n(plan.projections.begin(), size, plan.projections.begin() + 2 * size);
  auto controls = some_controls(plan, true);
  for (int q = 0; q < plan.queries; ++q) {
    for (const std::uint32_t like : {0u, 1u, 0u}) controls->alike.push_back(like);
  }
  plan.controls = controls;
  const Moments found = expect_statistics(plan);
  // They have the same bits, by which the pilot knows them.
  const MomentLayout layout = plan.layout();
  for (std::size_t q = 0; q < static_cast<std::size_t>(plan.queries); ++q) {
    const double* of_query = &found.mean[q * layout.per_query()];
    EXPECT_EQ(of_query[0], of_query[2]);
    const double* noise = of_query + layout.noise_offset();
    EXPECT_EQ(noise[layout.pair(0, 0)], noise[layout.pair(2, 2)]);
    EXPECT_EQ(noise[layout.pair(0, 0)], noise[layout.pair(0, 2)]);
    const double* controlled = of_query + layout.controlled_noise_offset();
    EXPECT_EQ(controlled[layout.pair(0, 0)], controlled[layout.pair(0, 2)]);
    EXPECT_NE(controlled[layout.pair(0, 0)], controlled[layout.pair(0, 1)]);
  }
}

TEST_F(ControlAgreement, StatisticsWithoutControlsKeepTheirBits) {
  const Plan plain = test::make_plan({}, GaussianKernel{.bandwidth = 1});
  Plan plan = plain;
  plan.controls = some_controls(plan, true);
  const MomentLayout layout = plan.layout();
  const std::size_t kept = plain.layout().per_query();
  const std::size_t pairs = plain.layout().pairs();
  const auto tested = backend();
  const auto reference = make_reference_backend();
  for (const Backend* one : {tested.get(), reference.get()}) {
    SCOPED_TRACE(one->name());
    std::vector<Moments> with(1), without(1);
    const Block block{.first = 0, .count = 64, .node = 64};
    one->worker(plan)->run(block, with);
    one->worker(plain)->run(block, without);
    ASSERT_EQ(with[0].mean.size(), layout.statistics());
    ASSERT_EQ(with[0].comoment.size(), layout.comoments());
    for (std::size_t q = 0; q < static_cast<std::size_t>(plan.queries); ++q) {
      for (std::size_t i = 0; i < kept; ++i) {
        EXPECT_EQ(with[0].mean[q * layout.per_query() + i], without[0].mean[q * kept + i]);
      }
      for (std::size_t i = 0; i < pairs; ++i) {
        EXPECT_EQ(with[0].comoment[q * layout.comoments_per_query() + i],
                  without[0].comoment[q * pairs + i]);
      }
    }
  }
}

#if defined(HEADLAB_EMULATE_CUDA)
TEST_F(ControlAgreement, AnyBatchAndOrderOfThreadsGivesTheSameBits) {
  for (const double bandwidth : {1.0, 0.05}) {
    Plan plan = test::make_plan({.n = 70}, GaussianKernel{.bandwidth = bandwidth});
    plan.controls = some_controls(plan, true);
    expect_bits_of_any_batch_and_order(plan, {.first = 16, .count = 29}, {1, 3, 8});
  }
}
#endif

TEST_F(ControlAgreement, TheLastComomentIsThatOfTheControlledEnsemble) {
  Plan plan = test::make_plan({}, GaussianKernel{.bandwidth = 1});
  plan.controls = some_controls(plan, true);
  const MomentLayout layout = plan.layout();
  constexpr int count = 32;
  std::vector<Moments> node(1), single(count);
  const auto tested = backend();
  tested->worker(plan)->run({.first = 0, .count = count, .node = count}, node);
  tested->worker(plan)->run({.first = 0, .count = count, .node = 1}, single);
  for (std::size_t q = 0; q < static_cast<std::size_t>(plan.queries); ++q) {
    const std::size_t at = q * layout.per_query() + layout.controlled_ensemble();
    double mean = 0, square = 0;
    for (const Moments& one : single) mean += one.mean[at] / count;
    for (const Moments& one : single) square += (one.mean[at] - mean) * (one.mean[at] - mean);
    EXPECT_NEAR(node[0].comoment[(q + 1) * layout.comoments_per_query() - 1], square,
                1e-12 * square);
    EXPECT_GT(square, 0);
  }
}

TEST(Controls, AStatisticLessCoefficientsTimesControls) {
  Plan plan = test::make_plan({.heads = 2, .queries = 1}, GaussianKernel{.bandwidth = 1});
  auto controls = std::make_shared<Controls>();
  controls->means = {.log_scale = {std::log(2.0), std::log(4.0)}, .estimate = {1, 2}};
  const auto fill = [](std::vector<double>& numbers, std::size_t size, double phase) {
    for (std::size_t i = 0; i < size; ++i) {
      numbers.push_back(std::cos(static_cast<double>(i) + phase));
    }
  };
  fill(controls->means.of_estimates, 2 * estimate_controls, 0.1);
  fill(controls->of_estimates, 2 * estimate_controls, 0.2);
  fill(controls->means.of_noise, 3 * noise_controls, 0.3);
  fill(controls->of_noise, 3 * noise_controls, 0.4);
  plan.controls = controls;
  plan.head_weights = {0.25, 0.75};
  const MomentLayout layout = plan.layout();
  // mu, S_11, S_12, S_22, alignment, and room for what is set.
  std::vector<double> statistics = {3, 5, 0.1, 0.2, 0.3, 0.9, 0, 0, 0, 0, 0, 0};
  ASSERT_EQ(statistics.size(), layout.per_query());
  std::vector<double> sums = {std::log(3.0), std::log(2.0)};
  set_controlled(*controls, layout, 0, sums, plan.head_weights, statistics.data());

  const double d[] = {1.5, 0.5}, g[] = {2 * 1.5, 3 * 0.5};
  const auto less = [](double y, const std::vector<double>& values, const double* means,
                       const double* coefficients) {
    for (std::size_t c = 0; c < values.size(); ++c) y -= coefficients[c] * (values[c] - means[c]);
    return y;
  };
  std::vector<double> expected;
  for (std::size_t h : {0u, 1u}) {
    std::vector<double> values = {d[h], g[h]};
    for (const double t : control_tilts) values.push_back(std::exp(-t * d[h]));
    for (const double t : control_tilts) values.push_back(g[h] * std::exp(-t * d[h]));
    expected.push_back(less(statistics[h], values,
                            &controls->means.of_estimates[h * estimate_controls],
                            &controls->of_estimates[h * estimate_controls]));
  }
  std::size_t pair = 0;
  for (const auto& [h, l] : {std::pair(0, 0), std::pair(0, 1), std::pair(1, 1)}) {
    const double p = statistics[2 + pair] * d[h] * d[l];
    std::vector<double> values = {d[h], d[l], p, g[h] * g[l]};
    for (const double t : control_tilts) values.push_back(std::exp(-t * d[h]));
    for (const double t : control_tilts) values.push_back(std::exp(-t * d[l]));
    for (const double t : control_tilts) {
      values.push_back(p * std::exp(-t * (h == l ? d[h] : d[h] + d[l])));
    }
    expected.push_back(less(statistics[2 + pair], values,
                            &controls->means.of_noise[pair * noise_controls],
                            &controls->of_noise[pair * noise_controls]));
    ++pair;
  }
  expected.push_back(0.25 * expected[0] + 0.75 * expected[1]);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(statistics[layout.control_offset() + i], expected[i], 1e-12) << i;
  }
}

TEST(Controls, AControlWithoutCoefficientMayBeInfinite) {
  const double coefficients[] = {0.0, 2.0};
  EXPECT_EQ(controlled<2>(5, coefficients, {{INFINITY, 1}}), 3);
  EXPECT_EQ(controlled<2>(5, coefficients, {{NAN, 1}}), 3);
}

}  // namespace
}  // namespace headlab
