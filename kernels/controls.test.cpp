// SPDX-License-Identifier: Apache-2.0
#include "kernels/controls.h"

#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "kernels/backends.h"
#include "kernels/kernel_laws.h"
#include "kernels/testing/agreement.h"
#include "kernels/testing/every_target.h"
#include "kernels/testing/test_plans.h"

namespace headlab {
namespace {

/// Controls whose d_h is W_h itself; with `coefficients` unequal ones.
std::shared_ptr<Controls> unit_controls(const Plan& plan, bool coefficients = false) {
  const auto queries = static_cast<std::size_t>(plan.queries);
  const auto heads = static_cast<std::size_t>(plan.heads);
  const std::size_t pairs = heads * (heads + 1) / 2;
  auto controls = std::make_shared<Controls>();
  controls->means = {.log_scale = std::vector<double>(queries * heads),
                     .estimate = std::vector<double>(queries * heads),
                     .of_estimates = std::vector<double>(queries * heads * estimate_controls),
                     .of_noise = std::vector<double>(queries * pairs * noise_controls)};
  if (!coefficients) return controls;
  for (std::size_t i = 0; i < queries * heads * estimate_controls; ++i) {
    controls->of_estimates.push_back(0.01 * std::cos(static_cast<double>(i)));
  }
  for (std::size_t i = 0; i < queries * pairs * noise_controls; ++i) {
    controls->of_noise.push_back(0.001 * std::sin(static_cast<double>(i)));
  }
  return controls;
}

/// Checks log d_h of the chosen backend against the reference, to the rounding of float32
/// exponents; sums of no weight are 0 on both.
void check_sums(const Backend& backend, Plan plan) {
  plan.controls = unit_controls(plan);
  const MomentLayout layout = plan.layout();
  const std::uint64_t replicate = 3;
  const Moments one = test::one_replicate(backend, plan, replicate);
  const Moments exact = test::one_replicate(*make_backend("reference"), plan, replicate);
  const double exponent = test::largest_exponent(plan, draw_training_set(plan, replicate));
  for (std::size_t q = 0; q < static_cast<std::size_t>(plan.queries); ++q) {
    for (std::size_t h = 0; h < static_cast<std::size_t>(plan.heads); ++h) {
      const std::size_t at = q * layout.per_query() + layout.control_offset() + h;
      if (exact.mean[at] == 0) {
        EXPECT_EQ(one.mean[at], 0) << "query " << q << " head " << h;
        continue;
      }
      EXPECT_NEAR(std::log(one.mean[at]), std::log(exact.mean[at]),
                  test::eps32 * (16 + 8 * exponent))
          << "query " << q << " head " << h;
    }
  }
}

TEST(Controls, SumsOfWeightsAreThoseOfTheReference) {
  for (const KernelLaw& kernel : test::all_kernels(0.8)) {
    SCOPED_TRACE(kernel.index());
    // Far queries have windows that are summed again.
    for (const double far : {1.0, 4.0, 12.0}) {
      SCOPED_TRACE(far);
      Plan plan = test::make_plan({}, kernel);
      for (double& x : plan.query_points) x *= far;
      test::on_every_target([&] { check_sums(*make_backend("cpu"), plan); });
    }
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
  EXPECT_EQ(controlled<2>(5, coefficients, {INFINITY, 1}), 3);
  EXPECT_EQ(controlled<2>(5, coefficients, {NAN, 1}), 3);
}

TEST(Controls, StatisticsWithoutControlsKeepTheirBits) {
  const Plan plain = test::make_plan({}, GaussianKernel{.bandwidth = 1});
  Plan plan = plain;
  plan.controls = unit_controls(plan, true);
  const MomentLayout layout = plan.layout();
  const std::size_t kept = plain.layout().per_query();
  const std::size_t pairs = plain.layout().pairs();
  for (const char* name : {"reference", "cpu"}) {
    SCOPED_TRACE(name);
    const auto backend = make_backend(name);
    std::vector<Moments> with(1), without(1);
    const Block block{.first = 0, .count = 64, .node = 64};
    backend->worker(plan)->run(block, with);
    backend->worker(plain)->run(block, without);
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

TEST(Controls, TheLastComomentIsThatOfTheControlledEnsemble) {
  Plan plan = test::make_plan({}, GaussianKernel{.bandwidth = 1});
  plan.controls = unit_controls(plan, true);
  const MomentLayout layout = plan.layout();
  const auto backend = make_backend("cpu");
  constexpr int count = 32;
  std::vector<Moments> node(1), single(count);
  backend->worker(plan)->run({.first = 0, .count = count, .node = count}, node);
  backend->worker(plan)->run({.first = 0, .count = count, .node = 1}, single);
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

}  // namespace
}  // namespace headlab
