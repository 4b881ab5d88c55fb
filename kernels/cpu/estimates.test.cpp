// SPDX-License-Identifier: Apache-2.0
// Estimates from points that are given.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/worker.h"
#include "kernels/kernel_laws.h"
#include "kernels/reference/ensemble.h"
#include "kernels/testing/every_target.h"
#include "kernels/testing/test_plans.h"

namespace headlab {
namespace {

using test::on_every_target;

/// Points of a plan's size, and the estimates of its heads from them.
struct GivenJob {
  Plan plan;
  std::vector<float> x;
  std::vector<float> y;

  GivenJob(const test::Shape& shape, const KernelLaw& kernel)
      : plan(test::make_plan(shape, kernel, Estimator::plain)) {
    std::mt19937_64 random(3);
    std::normal_distribution<double> normal;
    for (std::uint64_t i = 0; i < shape.n * static_cast<std::uint64_t>(shape.d); ++i) {
      x.push_back(static_cast<float>(normal(random)));
    }
    for (std::uint64_t i = 0; i < shape.n; ++i) {
      y.push_back(static_cast<float>(5 + normal(random)));
    }
    // Heads of any matrices, not of orthonormal columns alone.
    for (double& w : plan.projections) w *= 1.5;
  }

  std::vector<float> estimates(int threads = 1, std::uint64_t* empty = nullptr) const {
    std::vector<float> to(static_cast<std::size_t>(plan.heads * plan.queries), NAN);
    const std::uint64_t count = estimate_heads_cpu(plan, {x, y}, threads, to);
    if (empty != nullptr) *empty = count;
    return to;
  }

  /// By the definition in float64, [H][Q].
  std::vector<double> definition(std::uint64_t* empty = nullptr) const {
    const std::vector<double> zero(y.size());
    WindowCounts windows;
    const std::vector<double> statistics = reference_statistics(
        plan, {{x.begin(), x.end()}, {y.begin(), y.end()}, zero, zero}, windows);
    if (empty != nullptr) *empty = windows.empty;
    std::vector<double> to;
    for (int h = 0; h < plan.heads; ++h) {
      for (int q = 0; q < plan.queries; ++q) {
        to.push_back(statistics[static_cast<std::size_t>(q) * plan.layout().per_query() +
                                static_cast<std::size_t>(h)]);
      }
    }
    return to;
  }

  /// Largest error of estimates relative to the largest |Y|.
  double error(const std::vector<float>& estimates) const {
    const std::vector<double> exact = definition();
    double error = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const double one = std::abs(static_cast<double>(estimates[i]) - exact[i]);
      error = one <= error ? error : one;  // NaN stays
    }
    return error / static_cast<double>(*std::ranges::max_element(y));
  }
};

const KernelLaw every_kernel[] = {GaussianKernel{.bandwidth = 0.9}, LaplaceKernel{.bandwidth = 0.9},
                                  EpanechnikovKernel{.bandwidth = 3},
                                  TriangularKernel{.bandwidth = 3},
                                  SoftmaxKernel{.temperature = 1.5}};

TEST(CpuEstimates, AreThoseOfTheDefinition) {
  const test::Shape shapes[] = {{.n = 333, .d = 7, .heads = 3, .k = 2, .queries = 11},
                                {.n = 1, .d = 1, .heads = 1, .k = 1, .queries = 1},
                                {.n = 9000, .d = 3, .heads = 2, .k = 3, .queries = 2}};
  for (const KernelLaw& kernel : every_kernel) {
    for (const test::Shape& shape : shapes) {
      const GivenJob job(shape, kernel);
      on_every_target([&] { EXPECT_LT(job.error(job.estimates()), 2e-6) << shape.n; });
    }
  }
}

TEST(CpuEstimates, OfAnotherBandwidthAreNot) {
  GivenJob job({.n = 333, .d = 7, .heads = 3, .k = 2, .queries = 11},
               GaussianKernel{.bandwidth = 0.9});
  const std::vector<float> estimates = job.estimates();
  job.plan.kernel = GaussianKernel{.bandwidth = 0.901};
  EXPECT_GT(job.error(estimates), 2e-6);
}

TEST(CpuEstimates, OfManyKeysComeSlabBySlab) {
  const GivenJob job({.n = 9001, .d = 64, .heads = 8, .k = 64, .queries = 1},
                     GaussianKernel{.bandwidth = 12});
  EXPECT_LT(job.error(job.estimates()), 2e-6);
}

TEST(CpuEstimates, HaveTheSameBitsForAnyThreads) {
  for (const int queries : {13, 600}) {
    const GivenJob job({.n = 600, .d = 7, .heads = 5, .k = 2, .queries = queries},
                       GaussianKernel{.bandwidth = 0.3});
    const std::vector<float> alone = job.estimates();
    EXPECT_LT(job.error(alone), 2e-6);
    for (const int threads : {2, 3, 5, 70}) EXPECT_EQ(job.estimates(threads), alone);
  }
}

TEST(CpuEstimates, NumbersThatAreNotFiniteOrTooLargeAreFound) {
  on_every_target([] {
    for (const float wrong : {NAN, INFINITY, -INFINITY, 2e30f, -2e30f}) {
      for (const std::size_t place : {0u, 5u, 31u, 32u, 68u}) {
        std::vector<float> numbers(69, -1e30f);
        EXPECT_EQ(first_immoderate(numbers), 69u);
        numbers[place] = wrong;
        EXPECT_EQ(first_immoderate(numbers), place);
      }
    }
  });
}

TEST(CpuEstimates, FarFromAllKeysAreTheNearestValue) {
  GivenJob job({.n = 100, .d = 2, .heads = 2, .k = 1, .queries = 3},
               GaussianKernel{.bandwidth = 0.01});
  std::fill(job.plan.query_points.begin(), job.plan.query_points.end(), 50.0);
  std::uint64_t empty = 0;
  std::uint64_t expected = 0;
  const std::vector<float> estimates = job.estimates(2, &empty);
  EXPECT_LT(job.error(estimates), 2e-6);
  job.definition(&expected);
  EXPECT_EQ(empty, 6u);
  EXPECT_EQ(expected, 6u);
}

}  // namespace
}  // namespace headlab
