// SPDX-License-Identifier: Apache-2.0
#include "engine/moments/jackknife.h"

#include <gtest/gtest.h>

#include "engine/moments/estimates.h"
#include "engine/run/run.h"
#include "engine/testing/hand_made_result.h"

namespace headlab {
namespace {

/// Two conditions on the same draws: bandwidths 0.4 and `bandwidth`.
RunResult two_bandwidths(const std::string& bandwidth, const std::string& seed) {
  return run(hand_made::plane(
      {"data.n=40", "heads.subspaces={ law = \"equiangular\", angle = 1.0 }",
       "queries.points=[[0.5, 0.5], [0, 1]]", "run.replicates=512", "run.seed=" + seed},
      "[sweep]\n\"heads.kernel.bandwidth\" = [0.4, " + bandwidth + "]"));
}

JackknifedEstimates sampled(const ConditionResult& condition) {
  return jackknifed_estimates(condition.tree, condition.plan.head_weights, condition.plan.truth);
}

TEST(Jackknife, SamplesCarryTheSameFiguresAsEstimates) {
  const RunResult result = two_bandwidths("0.5", "1");
  const ConditionResult& condition = result.conditions[0];
  const JackknifedEstimates samples = sampled(condition);
  const std::vector<double>& counts = samples.node_counts;
  const ConditionEstimates& figures = condition.estimates;
  auto expect_equal = [&](const Jackknifed& sample, const Estimate& figure) {
    EXPECT_EQ(sample.figure(counts).value, figure.value);
    EXPECT_EQ(sample.figure(counts).mcse, figure.mcse);
    EXPECT_GT(figure.mcse, 0);
  };
  expect_equal(samples.mse, figures.mse);
  expect_equal(samples.output_correlation, figures.output_correlation);
  expect_equal(samples.queries[1].head_covariance[1], figures.queries[1].head_covariance[1]);
  // A ratio of samples is the ratio's own figure.
  expect_equal(samples.head_covariance_mean / samples.head_variance_mean,
               figures.output_correlation);
}

TEST(Jackknife, ADifferenceOnTheSameDrawsKnowsTheyAreTheSame) {
  const RunResult result = two_bandwidths("0.41", "1");
  const JackknifedEstimates a = sampled(result.conditions[0]);
  const JackknifedEstimates b = sampled(result.conditions[1]);
  const double paired = (a.mse - b.mse).figure(a.node_counts).mcse;
  const double apart =
      std::hypot(a.mse.figure(a.node_counts).mcse, b.mse.figure(b.node_counts).mcse);
  EXPECT_GT(paired, 0);
  EXPECT_LT(paired, 0.1 * apart);
  // Other draws are not paired: the same arithmetic then finds what independence gives.
  const JackknifedEstimates other = sampled(two_bandwidths("0.41", "2").conditions[1]);
  const double unpaired = (a.mse - other.mse).figure(a.node_counts).mcse;
  EXPECT_GT(unpaired, 0.7 * apart);
  EXPECT_LT(unpaired, 1.3 * apart);
}

TEST(Jackknife, ConstantsHaveNoError) {
  const Jackknifed three = 3;
  const std::vector<double> counts = {8, 8};
  EXPECT_EQ(three.figure(counts).mcse, 0);
  const Jackknifed a(2, {1, 3});
  EXPECT_EQ((a + three).value, 5);
  EXPECT_EQ((three / a).leave_one_out, (std::vector<double>{3, 1}));
  EXPECT_EQ((a - a).figure(counts).mcse, 0);
  EXPECT_GT(log(a).figure(counts).mcse, 0);
}

}  // namespace
}  // namespace headlab
