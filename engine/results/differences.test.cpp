// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/results/result.h"
#include "engine/run/run.h"
#include "engine/scenario/scenario.h"
#include "engine/testing/hand_made_result.h"

namespace headlab {
namespace {

Scenario difference_scenario(const std::string& sweep, const std::vector<std::string>& sets = {}) {
  return hand_made::plane(sets, "[sweep]\n" + sweep);
}

RunResult run_against(const Scenario& scenario, const std::string& against) {
  RunOptions options;
  options.references = references_against(scenario, against);
  return run(scenario, {.backend = "cpu"}, options);
}

/// Mean of the squared error over replicates and queries with the node `left_out` left out, from
/// the nodes of a plain estimator: bias² + variance, without the estimates in between.
double mean_square(const ConditionResult& one, std::size_t left_out) {
  const std::vector<Node> nodes = one.tree.jackknife_nodes();
  const MomentLayout layout = one.tree.layout();
  double square = 0, count = 0;
  for (std::size_t j = 0; j < nodes.size(); ++j) {
    if (j == left_out) continue;
    const Moments& moments = nodes[j].moments;
    const auto replicates = static_cast<double>(moments.count);
    count += replicates;
    for (int q = 0; q < layout.queries; ++q) {
      const auto at = static_cast<std::size_t>(q);
      const double* mean = &moments.mean[at * layout.per_query()];
      const double* comoment = &moments.comoment[at * layout.pairs()];
      double error = -one.plan.truth[at], spread = 0;
      for (std::size_t h = 0; h < 2; ++h) {
        error += 0.5 * mean[h];
        for (std::size_t l = h; l < 2; ++l) {
          spread += (h == l ? 0.25 : 0.5) * comoment[layout.pair(h, l)];
        }
      }
      square += (replicates * error * error + spread) / layout.queries;
    }
  }
  return square / count;
}

TEST(Differences, ArePairedAndEqualADirectComputation) {
  const Scenario scenario = difference_scenario("\"heads.kernel.bandwidth\" = [0.4, 0.5, 0.9]",
                                                {"run.estimator=\"plain\""});
  const RunResult result = run_against(scenario, "#1");
  EXPECT_EQ(result.difference_to, "condition #1");
  const ConditionResult& base = result.conditions[1];
  EXPECT_FALSE(base.difference->reference);
  EXPECT_FALSE(base.difference->paired);
  EXPECT_TRUE(std::isnan(base.difference->terms.mse.value));
  for (const std::size_t i : {0, 2}) {
    const ConditionResult& one = result.conditions[i];
    ASSERT_TRUE(one.difference);
    EXPECT_EQ(one.difference->reference, 1u);
    EXPECT_TRUE(one.difference->paired);
    const std::size_t nodes = base.tree.jackknife_nodes().size();
    const double full = mean_square(one, nodes) - mean_square(base, nodes);
    std::vector<double> without, counts;
    for (std::size_t j = 0; j < nodes; ++j) {
      without.push_back(mean_square(one, j) - mean_square(base, j));
      counts.push_back(static_cast<double>(base.tree.jackknife_nodes()[j].moments.count));
    }
    const Estimate& mse = one.difference->terms.mse;
    EXPECT_NEAR(mse.value, full, 1e-12);
    EXPECT_NEAR(mse.mcse, jackknife_error(full, without, counts), 1e-10);
    EXPECT_GT(mse.mcse, 0);
    // Common draws: far below the root of the sum of variances.
    EXPECT_LT(mse.mcse, 0.8 * std::hypot(one.estimates.mse.mcse, base.estimates.mse.mcse));
    EXPECT_NEAR(one.difference->terms.output_correlation.value,
                one.estimates.output_correlation.value - base.estimates.output_correlation.value,
                1e-12);
    EXPECT_TRUE(one.difference->terms.queries.empty());
  }
}

TEST(Differences, AddVariancesWhereSeedsDiffer) {
  const RunResult result = run_against(difference_scenario("\"run.seed\" = [1, 2]"), "run.seed=1");
  const ConditionDifference& difference = *result.conditions[1].difference;
  EXPECT_FALSE(difference.paired);
  EXPECT_EQ(difference.reference, 0u);
  const Estimate& a = result.conditions[0].estimates.mse;
  const Estimate& b = result.conditions[1].estimates.mse;
  EXPECT_EQ(difference.terms.mse.value, b.value - a.value);
  EXPECT_EQ(difference.terms.mse.mcse, std::hypot(a.mcse, b.mcse));
}

TEST(Differences, OfOtherTrainingSetsWithTheSameSeedArePairedToo) {
  // Points and noise of the smaller training set are among those of the larger one.
  const RunResult result = run_against(difference_scenario("\"data.n\" = [20, 22]"), "#0");
  const ConditionDifference& difference = *result.conditions[1].difference;
  EXPECT_TRUE(difference.paired);
  EXPECT_LT(difference.terms.mse.mcse, 0.8 * std::hypot(result.conditions[0].estimates.mse.mcse,
                                                        result.conditions[1].estimates.mse.mcse));
}

TEST(Differences, AreUndefinedWithoutStandardErrorsOrEqualReplicates) {
  const RunResult unequal =
      run_against(difference_scenario("\"run.replicates\" = [100, 200]"), "#0");
  EXPECT_EQ(unequal.conditions[1].difference->reference, 0u);
  EXPECT_TRUE(std::isnan(unequal.conditions[1].difference->terms.mse.value));
  const RunResult few = run_against(
      difference_scenario("\"heads.kernel.bandwidth\" = [0.4, 0.5]", {"run.replicates=5"}), "#0");
  EXPECT_FALSE(std::isnan(few.conditions[1].difference->terms.mse.value));
  EXPECT_TRUE(std::isnan(few.conditions[1].difference->terms.mse.mcse));
  // A figure that one of them does not have.
  const RunResult heads = run_against(difference_scenario("\"heads.count\" = [1, 2]"), "#0");
  EXPECT_TRUE(std::isnan(heads.conditions[1].difference->terms.output_correlation.value));
  EXPECT_FALSE(std::isnan(heads.conditions[1].difference->terms.mse.value));
}

TEST(Differences, AreThereOnlyWhereTheyAreAskedFor) {
  const RunResult result = run(difference_scenario("\"data.n\" = [20, 22]"), {.backend = "cpu"});
  EXPECT_FALSE(result.conditions[0].difference);
  EXPECT_EQ(result.difference_to, "");
}

}  // namespace
}  // namespace headlab
