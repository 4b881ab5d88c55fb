// SPDX-License-Identifier: Apache-2.0
// The least effective sample size of a replicate, by cpu and by the definition.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/backend.h"
#include "kernels/kernel_laws.h"
#include "kernels/reference/backend.h"
#include "kernels/testing/test_plans.h"

namespace headlab {
namespace {

/// Replicate of plan p, simulated with the others.
Moments moments_of_replicate(const Backend& backend, Plans plans, std::size_t p,
                             std::uint64_t replicate) {
  std::vector<Moments> out(plans.size());
  backend.worker(plans)->run({.first = replicate, .count = 1, .node = 1}, out);
  return out[p];
}

std::shared_ptr<const Extremes> extremes_of_replicate(const Backend& backend, Plans plans,
                                                      std::size_t p, std::uint64_t replicate) {
  return moments_of_replicate(backend, plans, p, replicate).extremes;
}

struct Setting {
  std::string what;
  Plan plan;
  bool known;
};

std::vector<Setting> settings() {
  const GaussianKernel wide{.bandwidth = 1};
  const auto plan = [](const KernelLaw& kernel, Estimator estimator, MomentMode moments,
                       const test::Shape& shape = {}) {
    return test::make_plan(shape, kernel, estimator, moments);
  };
  using enum Estimator;
  using enum MomentMode;
  std::vector<Setting> all = {
      {"pairwise", plan(wide, conditional, pairwise), true},
      {"aggregate", plan(wide, conditional, aggregate), true},
      {"many heads", plan(wide, conditional, aggregate, {.heads = 31}), true},
      {"many heads, repaired",
       plan(GaussianKernel{.bandwidth = 0.02}, conditional, aggregate, {.heads = 31}), true},
      {"many heads, pairwise", plan(wide, conditional, pairwise, {.heads = 31}), true},
      {"softmax", plan(SoftmaxKernel{.temperature = 0.3}, conditional, pairwise), true},
      {"repaired windows", plan(GaussianKernel{.bandwidth = 0.02}, conditional, pairwise), true},
      {"no weight", plan(EpanechnikovKernel{.bandwidth = 0.05}, conditional, aggregate), true},
      {"plain", plan(wide, plain, pairwise), false},
  };
  Plan uneven = plan(wide, conditional, aggregate);
  test::vary_noise(uneven);
  all.push_back({"uneven noise", uneven, false});
  uneven.moments = pairwise;
  all.push_back({"uneven noise, pairwise", uneven, true});
  return all;
}

TEST(SampleSizes, OfCpuAreThoseOfTheReference) {
  const auto cpu = make_cpu_backend();
  const auto reference = make_reference_backend();
  for (const auto& [what, plan, known] : settings()) {
    const Plan* const one = &plan;
    for (const std::uint64_t replicate : {0u, 9u}) {
      SCOPED_TRACE(what + ", replicate " + std::to_string(replicate));
      const auto exact = extremes_of_replicate(*reference, Plans(&one, 1), 0, replicate);
      const auto fast = extremes_of_replicate(*cpu, Plans(&one, 1), 0, replicate);
      const double size = exact->min_sample_size->all().at(0).key;
      EXPECT_GE(size, 1 - 1e-12);
      EXPECT_NEAR(fast->max_error.all().at(0).key, exact->max_error.all().at(0).key, 1e-4);
      ASSERT_EQ(fast->min_sample_size.has_value(), known);
      if (!known) continue;
      EXPECT_NEAR(fast->min_sample_size->all().at(0).key, size, 2e-5 * size);
      const auto other = extremes_of_replicate(*reference, Plans(&one, 1), 0, replicate + 1);
      if (size > 1.001) {
        EXPECT_GT(std::abs(other->min_sample_size->all().at(0).key - size), 2e-5 * size);
      }
    }
  }
}

TEST(SampleSizes, DependOnThePlanAlone) {
  const auto cpu = make_cpu_backend();
  const std::vector<Setting> all = settings();
  for (const Setting& first : all) {
    std::vector<const Plan*> plans;
    std::vector<std::string> names;
    for (const Setting& other : all) {
      if (!shares_draws(first.plan, other.plan)) continue;
      plans.push_back(&other.plan);
      names.push_back(other.what);
    }
    EXPECT_GE(plans.size(), first.what == "plain" ? 1u : 2u) << first.what;
    for (std::size_t p = 0; p < plans.size(); ++p) {
      const Moments alone = moments_of_replicate(*cpu, Plans(&plans[p], 1), 0, 4);
      const Moments together = moments_of_replicate(*cpu, plans, p, 4);
      EXPECT_EQ(alone.mean, together.mean) << names[p];
      EXPECT_EQ(alone.extremes->max_error, together.extremes->max_error) << names[p];
      EXPECT_EQ(alone.extremes->min_sample_size, together.extremes->min_sample_size) << names[p];
    }
  }
}

}  // namespace
}  // namespace headlab
