// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/backend.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/kernel_laws.h"
#include "kernels/testing/agreement.h"
#include "kernels/testing/known_cases.h"
#include "kernels/testing/test_plans.h"

namespace headlab {
namespace {

using nlohmann::json;

/// True when every |a_i - b_i| <= tolerance; NaN is never close.
bool close(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  bool all = a.size() == b.size();
  for (std::size_t i = 0; all && i < a.size(); ++i) all = std::abs(a[i] - b[i]) <= tolerance;
  return all;
}

struct FixedDesignCase {
  Plan plan;
  TrainingSet sample;
  std::vector<double> expected;  ///< statistics: conditional means, then covariances h <= l
};

FixedDesignCase fixed_design_case(const json& known) {
  FixedDesignCase c;
  Plan& plan = c.plan;
  plan.n = known["n"];
  plan.d = known["d"];
  plan.heads = known["H"];
  plan.k = known["k"];
  plan.queries = 1;
  plan.kernel = GaussianKernel{.bandwidth = known["bandwidth"]};
  plan.head_weights.assign(static_cast<std::size_t>(plan.heads), 1.0 / plan.heads);
  for (const auto& w : known["W"]) {
    for (const auto& row : w) {
      for (const double value : row) plan.projections.push_back(value);
    }
  }
  plan.query_points = known["x"].get<std::vector<double>>();
  const CosinesRegression m{
      .amplitude = known["amplitude"], .frequency = known["frequency"], .phase = known["phase"]};
  const CosineSum function = m.function(plan.table, plan.d);
  for (const auto& row : known["X"]) {
    const auto x = row.get<std::vector<double>>();
    c.sample.x.insert(c.sample.x.end(), x.begin(), x.end());
    c.sample.regression.push_back(function(plan.table.exact(), x.data(), 1, 0));
    c.sample.noise_sd.push_back(known["noise_sd"]);
  }
  c.expected = known["conditional_mean"].get<std::vector<double>>();
  for (std::size_t h = 0; h < static_cast<std::size_t>(plan.heads); ++h) {
    for (std::size_t l = h; l < static_cast<std::size_t>(plan.heads); ++l) {
      c.expected.push_back(known["conditional_covariance"][h][l]);
    }
  }
  return c;
}

TEST(Reference, ReproducesTheKnownFixedDesigns) {
  const json cases = test::known("fixed_design");
  ASSERT_EQ(cases.size(), 2u);
  for (const json& known : cases) {
    FixedDesignCase c = fixed_design_case(known);
    WindowCounts windows;

    auto statistics = reference_statistics(c.plan, c.sample, windows);
    statistics.resize(c.expected.size());  // without the alignment, which is not among the answers

    EXPECT_TRUE(close(statistics, c.expected, 1e-12));
    // Negative control: a bandwidth wrong by one part in 10^9 is seen.
    c.plan.kernel = GaussianKernel{.bandwidth = known["bandwidth"].get<double>() * (1 + 1e-9)};
    statistics = reference_statistics(c.plan, c.sample, windows);
    statistics.resize(c.expected.size());
    EXPECT_FALSE(close(statistics, c.expected, 1e-12));
  }
}

/// Three keys on a line at the given places, one head, query 0.
Plan line_plan(const KernelLaw& kernel) {
  Plan plan;
  plan.n = 3;
  plan.kernel = kernel;
  plan.projections = {1.0};
  plan.head_weights = {1.0};
  plan.query_points = {0.0};
  return plan;
}
TrainingSet line_sample(double a, double b, double c) {
  return {.x = {a, b, c}, .regression = {1, 2, 4}, .noise_sd = {1, 1, 1}, .noise = {0, 0, 0}};
}

TEST(Reference, WeighsByHand) {
  WindowCounts windows;
  const double third = 1.0 / 3;
  EXPECT_TRUE(close(
      nw_weights(line_plan(GaussianKernel{.bandwidth = 2}), line_sample(1, -1, 1), 0, 0, windows),
      {third, third, third}, 1e-15));
  // 1 - r^2/b^2 = 3/4, 0, 0
  EXPECT_TRUE(close(nw_weights(line_plan(EpanechnikovKernel{.bandwidth = 2}), line_sample(1, 2, 3),
                               0, 0, windows),
                    {1, 0, 0}, 0));
  const double e = std::exp(-1.0);
  EXPECT_TRUE(close(
      nw_weights(line_plan(LaplaceKernel{.bandwidth = 1}), line_sample(0, 1, -1), 0, 0, windows),
      {1 / (1 + 2 * e), e / (1 + 2 * e), e / (1 + 2 * e)}, 1e-15));
  EXPECT_EQ(windows.empty, 0u);
}

TEST(Reference, GivesAnEmptyWindowToTheNearestKeyAndCountsIt) {
  WindowCounts windows;

  const auto weights = nw_weights(line_plan(EpanechnikovKernel{.bandwidth = 0.5}),
                                  line_sample(3, -1, 2), 0, 0, windows);

  EXPECT_EQ(weights, (std::vector<double>{0, 1, 0}));
  EXPECT_EQ(windows.empty, 1u);
  EXPECT_EQ(windows.narrow, 1u);
}

TEST(Reference, CountsAGaussianWindowBelowTheSmallestFloatAsEmptyAndStaysExact) {
  WindowCounts windows;

  // log K = -5000 and less: the two nearest keys still share the weight.
  const auto weights = nw_weights(line_plan(GaussianKernel{.bandwidth = 0.01}),
                                  line_sample(1, -1, 2), 0, 0, windows);

  EXPECT_TRUE(close(weights, {0.5, 0.5, 0}, 1e-12));
  EXPECT_EQ(windows.empty, 1u);
}

TEST(Reference, SoftmaxIsTheSoftmaxOfTheDotProducts) {
  const double t = 0.7;
  Plan plan = test::make_plan({.n = 20}, SoftmaxKernel{.temperature = t});
  const TrainingSet sample = draw_training_set(plan, 3);
  WindowCounts windows;

  const auto weights = nw_weights(plan, sample, 1, 2, windows);

  std::vector<double> softmax(20, 0.0);
  double sum = 0;
  for (std::size_t i = 0; i < 20; ++i) {
    double dot = 0;
    for (int j = 0; j < plan.k; ++j) {
      double q = 0;
      double key = 0;
      for (int c = 0; c < plan.d; ++c) {
        const double w = plan.projections[static_cast<std::size_t>((6 + c) * plan.k + j)];
        q += w * plan.query_points[static_cast<std::size_t>(2 * 6 + c)];
        key += w * sample.x[i * 6 + static_cast<std::size_t>(c)];
      }
      dot += q * key;
    }
    softmax[i] = std::exp(dot / t);
    sum += softmax[i];
  }
  for (double& value : softmax) value /= sum;
  EXPECT_TRUE(close(weights, softmax, 1e-14));
  EXPECT_EQ(windows.empty, 0u);
}

TEST(Reference, AggregateAgreesWithPairwise) {
  Plan pairwise = test::make_plan({}, GaussianKernel{.bandwidth = 0.8});
  Plan aggregate = pairwise;
  aggregate.moments = MomentMode::aggregate;
  const TrainingSet sample = draw_training_set(pairwise, 0);
  WindowCounts windows;

  const auto full = reference_statistics(pairwise, sample, windows);
  const auto short_form = reference_statistics(aggregate, sample, windows);

  const MomentLayout layout = pairwise.layout();
  const auto& a = pairwise.head_weights;
  double mean = 0;
  double variance = 0;
  for (std::size_t h = 0; h < 3; ++h) {
    mean += a[h] * full[h];
    for (std::size_t l = h; l < 3; ++l) {
      variance += (h == l ? 1 : 2) * a[h] * a[l] * full[layout.noise_offset() + layout.pair(h, l)];
    }
  }
  EXPECT_NEAR(short_form[3], mean, 1e-14);
  EXPECT_NEAR(short_form[aggregate.layout().noise_offset() + 3], variance, 1e-15);
}

TEST(Reference, DrawsOneDesignForAllReplicatesWhereItIsFixed) {
  Plan plan = test::make_plan({}, GaussianKernel{.bandwidth = 0.8});
  EXPECT_NE(draw_training_set(plan, 0).x, draw_training_set(plan, 1).x);

  plan.fixed_design_seed = 4;

  EXPECT_EQ(draw_training_set(plan, 0).x, draw_training_set(plan, 1).x);
  EXPECT_NE(draw_training_set(plan, 0).noise, draw_training_set(plan, 1).noise);
}

TEST(Reference, GivesAPlanTheSameBitsAloneAndWithOthers) {
  for (const Estimator estimator : {Estimator::conditional, Estimator::plain}) {
    Plan a = test::make_plan({.n = 20}, GaussianKernel{.bandwidth = 0.5}, estimator);
    Plan b = a;
    b.kernel = SoftmaxKernel{.temperature = 0.7};
    b.moments = MomentMode::aggregate;
    Plan c = a;
    c.queries = 2;
    c.query_points.resize(2 * static_cast<std::size_t>(c.d));
    c.truth.resize(2);
    test::expect_same_bits_together(*make_reference_backend(), {a, b, c},
                                    {.first = 16, .count = 20});
  }
}

}  // namespace
}  // namespace headlab
