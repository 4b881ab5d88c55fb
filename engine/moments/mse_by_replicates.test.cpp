// SPDX-License-Identifier: Apache-2.0
#include "engine/moments/mse_by_replicates.h"

#include <gtest/gtest.h>

#include "engine/testing/hand_made_result.h"

namespace headlab {
namespace {

ConditionResult one_result(const std::vector<std::string>& sets, std::uint64_t replicates) {
  return hand_made::condition_result(hand_made::scenario(sets).conditions.at(0), replicates);
}

TEST(MseByReplicates, EndsWithTheEstimateOfTheRun) {
  for (const char* moments : {"pairwise", "aggregate"}) {
    for (const char* estimator : {"conditional", "plain"}) {
      const ConditionResult run =
          one_result({std::string("run.moments=\"") + moments + "\"",
                      std::string("run.estimator=\"") + estimator + "\"",
                      "heads.weights={ law = \"explicit\", values = [0.25, 0.5] }"},
                     1003);
      const auto all = mse_by_replicates(run.tree, run.plan.head_weights, run.plan.truth);
      ASSERT_EQ(all.size(), 12u) << moments << " " << estimator;
      EXPECT_EQ(all.back().replicates, 1003u);
      EXPECT_EQ(all.back().nodes, static_cast<std::size_t>(run.estimates.nodes()));
      EXPECT_NEAR(all.back().mse.value / run.estimates.mse.value, 1, 1e-12);
      EXPECT_NEAR(all.back().mse.mcse / run.estimates.mse.mcse, 1, 1e-8);
      for (std::size_t i = 1; i < all.size(); ++i) {
        EXPECT_GT(all[i].replicates, all[i - 1].replicates);
      }
      // The control: other weights are another ensemble.
      if (std::string(moments) == "aggregate") continue;
      const std::vector<double> other = {0.5, 0.25};
      const auto wrong = mse_by_replicates(run.tree, other, run.plan.truth);
      EXPECT_GT(std::abs(wrong.back().mse.value / run.estimates.mse.value - 1), 1e-6);
    }
  }
}

TEST(MseByReplicates, HasTheEstimateOfAShorterRunBelowTheFirstLeaf) {
  // Until then every replicate is a node, so that a shorter run has the same nodes.
  const ConditionResult run = one_result({}, 200);
  for (const MseAfter& one :
       mse_by_replicates(run.tree, run.plan.head_weights, run.plan.truth, nullptr, 5)) {
    const ConditionResult shorter = one_result({}, one.replicates);
    EXPECT_NEAR(one.mse.value / shorter.estimates.mse.value, 1, 1e-12);
    EXPECT_NEAR(one.mse.mcse / shorter.estimates.mse.mcse, 1, 1e-8);
  }
}

TEST(MseByReplicates, IsThatOfDraws) {
  const std::vector<std::string> heads = {"heads.subspaces={ law = \"haar\", redraw = true }"};
  for (const std::uint64_t replicates : {128u, 1024u, 4096u}) {
    const ConditionResult run = one_result(heads, replicates);
    ASSERT_TRUE(run.tree.layout().per_draw);
    const auto all = mse_by_replicates(run.tree, run.plan.head_weights, run.plan.truth);
    ASSERT_FALSE(all.empty());
    EXPECT_EQ(all.front().nodes, 16u);
    EXPECT_GE(all.front().replicates, 128u);
    EXPECT_EQ(all.back().replicates, replicates);
    EXPECT_NEAR(all.back().mse.value / run.estimates.mse.value, 1, 1e-12);
    EXPECT_NEAR(all.back().mse.mcse / run.estimates.mse.mcse, 1, 1e-8);
  }
  // The control: fewer draws are another estimate, and too few have no standard error.
  const ConditionResult longer = one_result(heads, 4096), shorter = one_result(heads, 1024);
  EXPECT_GT(std::abs(longer.estimates.mse.value / shorter.estimates.mse.value - 1), 1e-9);
  const ConditionResult few = one_result(heads, 120);
  EXPECT_TRUE(mse_by_replicates(few.tree, few.plan.head_weights, few.plan.truth).empty());
}

TEST(MseByReplicates, IsEmptyBelowEightNodes) {
  const ConditionResult few = one_result({}, 7);
  EXPECT_TRUE(mse_by_replicates(few.tree, few.plan.head_weights, few.plan.truth).empty());
  const ConditionResult enough = one_result({}, 8);
  EXPECT_EQ(mse_by_replicates(enough.tree, enough.plan.head_weights, enough.plan.truth).size(), 1u);
}

}  // namespace
}  // namespace headlab
