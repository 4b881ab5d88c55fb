// SPDX-License-Identifier: Apache-2.0
#include "validation/allocation/allocations.h"

#include <cmath>
#include <variant>

#include <gtest/gtest.h>

#include "engine/scenario/setup_laws.h"
#include "engine/scenario/world.h"
#include "engine/testing/refusal.h"
#include "kernels/kernel_laws.h"
#include "kernels/plan.h"
#include "kernels/testing/tolerances.h"

namespace headlab {
namespace {

Condition world(const std::vector<std::string>& sets = {}) {
  return World{.n = "16",
               .design = R"({ law = "normal", dim = 5 })",
               .noise = R"({ law = "normal", sd = 1 })",
               .heads = "count = 1\ndim = 2\nsubspaces = { law = \"orthogonal\" }",
               .kernel = R"({ law = "gaussian", bandwidth = 0.3 })",
               .points = "[[0, 0, 0, 0, 0]]",
               .run = "seed = 4\nreplicates = 10"}
      .condition(sets);
}

std::string refusal(const Condition& base, int budget, BandwidthRule rule) {
  return refusal_line([&] { allocation_conditions(base, budget, rule); });
}

std::vector<double> widths(const Condition& base, int budget, BandwidthRule rule) {
  std::vector<double> all;
  for (const Condition& one : allocation_conditions(base, budget, rule)) {
    all.push_back(kernel_width(*one.kernel));
  }
  return all;
}

TEST(EnumerateAllocations, AsByHand) {
  EXPECT_EQ(enumerate_allocations(7, 5),
            (std::vector<Allocation>{{7, 1}, {3, 2}, {2, 3}, {1, 4}, {1, 5}}));
  EXPECT_EQ(enumerate_allocations(3, 100), (std::vector<Allocation>{{3, 1}, {1, 2}, {1, 3}}));
  EXPECT_EQ(enumerate_allocations(1, 3), (std::vector<Allocation>{{1, 1}}));
  EXPECT_EQ(enumerate_allocations(9, 1), (std::vector<Allocation>{{9, 1}}));
}

TEST(EnumerateAllocations, SpendsAsMuchAsFits) {
  for (int budget = 1; budget <= 40; ++budget) {
    const auto all = enumerate_allocations(budget, 12);
    ASSERT_EQ(all.size(), static_cast<std::size_t>(std::min(budget, 12)));
    for (const auto& [heads, k] : all) {
      EXPECT_LE(heads * k, budget);
      EXPECT_GT((heads + 1) * k, budget);
    }
  }
}

TEST(AllocationScenarios, KeepTheLawOfHeadsWhereItIsDefined) {
  const auto all = allocation_conditions(world(), 7, BandwidthRule::fixed);
  ASSERT_EQ(all.size(), 5u);
  std::vector<std::string> laws;
  for (const Condition& one : all) {
    laws.emplace_back(std::visit([](const auto& law) { return law.name; }, *one.subspaces));
    EXPECT_EQ(one.moments, MomentMode::aggregate);
    EXPECT_EQ(one.estimator, Estimator::conditional);
    EXPECT_NO_THROW(make_plan(one));
  }
  // H k = 7, 6, 6, 4, 5 of 5 dimensions.
  EXPECT_EQ(laws, (std::vector<std::string>{"haar", "haar", "haar", "orthogonal", "orthogonal"}));
  for (const Condition& one :
       allocation_conditions(world({"run.estimator=\"plain\""}), 3, BandwidthRule::fixed)) {
    EXPECT_EQ(one.estimator, Estimator::plain);
  }
  const auto aligned =
      allocation_conditions(world({"heads.subspaces={law=\"aligned\"}"}), 7, BandwidthRule::fixed);
  EXPECT_TRUE(std::holds_alternative<AlignedSubspaces>(*aligned[0].subspaces));
}

TEST(BandwidthRules, GaussianByHand) {
  EXPECT_EQ(widths(world(), 3, BandwidthRule::fixed), (std::vector<double>{0.3, 0.3, 0.3}));
  EXPECT_EQ(widths(world(), 3, BandwidthRule::tuned), (std::vector<double>{0.3, 0.3, 0.3}));
  const auto by_dim = widths(world(), 4, BandwidthRule::sqrt_dim);
  EXPECT_NEAR(by_dim[0], 1, eps);
  EXPECT_NEAR(by_dim[3], std::sqrt(2.0), 2 * eps);
  // n = 16: 16^(-1/5), 16^(-1/6), 16^(-1/7), 16^(-1/8) = 2^(-1/2).
  const auto by_rate = widths(world(), 4, BandwidthRule::rate);
  EXPECT_NEAR(by_rate[0], std::exp2(-0.8), 2 * eps);
  EXPECT_NEAR(by_rate[3], std::exp2(-0.5), 2 * eps);
}

TEST(BandwidthRules, SqrtDimGivesAGaussianTheLengthScaleOfItsSoftmax) {
  const Condition softmax = world({"heads.kernel={law=\"softmax\",temperature=3}"});
  const auto temperatures = allocation_conditions(softmax, 5, BandwidthRule::sqrt_dim);
  const auto bandwidths = allocation_conditions(world(), 5, BandwidthRule::sqrt_dim);
  const auto scale = [](const auto& law) { return law.length_scale(); };
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(kernel_width(*temperatures[i].kernel), std::sqrt(static_cast<double>(i + 1)), eps);
    EXPECT_NEAR(std::visit(scale, *temperatures[i].kernel),
                std::visit(scale, *bandwidths[i].kernel), 4 * eps);
  }
  EXPECT_EQ(widths(softmax, 2, BandwidthRule::fixed), (std::vector<double>{3, 3}));
}

TEST(BandwidthRules, AreFoundByName) {
  for (const auto rule :
       {BandwidthRule::fixed, BandwidthRule::sqrt_dim, BandwidthRule::rate, BandwidthRule::tuned}) {
    EXPECT_EQ(find_rule(rule_name(rule)), rule);
  }
  EXPECT_EQ(refusal_line([&] { find_rule("tune"); }),
            "--bandwidth-rule: \"tune\" is unknown (allowed: fixed, sqrt_dim, rate, tuned) - "
            "did you mean \"tuned\"?");
}

TEST(AllocationScenarios, HaveTheStagesOfTheScenarioAndItsSequence) {
  const Condition base =
      world({"heads.mechanism={merge=2, levels=[0.5,0.5], window=6, sinks=1, "
             "keep={top=3}, transform={mix=0.2}}",
             "data.sequence={law=\"ar1\",correlation=0.5}"});
  for (const Condition& one : allocation_conditions(base, 4, BandwidthRule::fixed)) {
    const Plan plan = make_plan(one);
    EXPECT_EQ(plan.mechanism.merge.stride, 2u);
    EXPECT_EQ(plan.mechanism.levels.weights, (std::vector<double>{0.5, 0.5}));
    EXPECT_EQ(plan.mechanism.seen, std::vector<SeenTokens>(static_cast<std::size_t>(one.heads),
                                                           seen_tokens(8, 6, 0, 1)));
    EXPECT_EQ(plan.mechanism.keep.top,
              std::vector<std::uint64_t>(static_cast<std::size_t>(one.heads), 3));
    EXPECT_TRUE(plan.ar1.has_value());
  }
}

TEST(AllocationScenarios, RefuseStagesOfOneSize) {
  const auto refused = [](const std::string& stages, std::uint64_t n) {
    Condition base = world({"heads.count=2", "heads.mechanism=" + stages});
    base.n = n;
    return refusal(base, 4, BandwidthRule::fixed);
  };
  const auto expect = [&](const std::string& stages, const std::string& line,
                          std::uint64_t n = 16) {
    EXPECT_EQ(refused(stages, n), "--set heads.mechanism=" + stages + ": heads.mechanism." + line);
  };
  const std::string per_head =
      ": gives every head its number, and allocations have any number of heads - write one number "
      "for all";
  expect("{window=[4,5]}", "window" + per_head);
  expect("{skip=[4,5]}", "skip" + per_head);
  expect("{window=3, sinks=[0,1]}", "sinks" + per_head);
  expect("{keep={top=[4,5]}}", "keep.top" + per_head);
  expect("{transform={matrix=[[1,0],[0,2]]}}",
         "transform.matrix: is for heads of one dimension - write mix, or leave transform out");
  const std::string compress = "heads.mechanism={compress={by=\"k_svd\",rank=2}}";
  EXPECT_EQ(refusal(world({"heads.kernel={law=\"softmax\",temperature=1}", compress}), 4,
                    BandwidthRule::fixed),
            "--set " + compress +
                ": heads.mechanism.compress: is fitted to heads of one size - leave compress out");
  expect("{skip=10}", "skip.tokens: leaves out 10 of 8 tokens, so none is left, with n = 8", 8);
  EXPECT_EQ(refused("{skip=10}", 16), "accepted");
  // One number for all heads is not an array of them.
  EXPECT_NE(refused("{window=[4,4]}", 16), "accepted");
  EXPECT_EQ(refused("{window=4, keep={top=2}, transform={mix=0.5}}", 16), "accepted");
}

TEST(AllocationScenarios, RefuseWhatIsOfOneSize) {
  EXPECT_EQ(refusal(world(), 0, BandwidthRule::fixed), "--budget: is 0 (allowed: 1 to 1024)");
  EXPECT_EQ(refusal(world(), 1025, BandwidthRule::fixed), "--budget: is 1025 (allowed: 1 to 1024)");
  EXPECT_EQ(refusal(world({"heads.subspaces={law=\"principal_angles\",angles=[1,1]}"}), 4,
                    BandwidthRule::fixed),
            "--set heads.subspaces={law=\"principal_angles\",angles=[1,1]}: heads.subspaces: law "
            "\"principal_angles\" gives heads of the scenario's size (allowed: orthogonal, "
            "aligned, haar, "
            "equiangular) - write --set 'heads.subspaces={law=\"haar\"}'");
  EXPECT_NE(refusal(world({"heads.subspaces={law=\"learned\"}"}), 4, BandwidthRule::fixed)
                .find("law \"learned\" gives heads of the scenario's size"),
            std::string::npos);
  for (const std::string weights : {"law=\"explicit\",values=[1]", "law=\"optimal\""}) {
    const std::string text =
        refusal(world({"heads.weights={" + weights + "}"}), 4, BandwidthRule::fixed);
    EXPECT_NE(text.find("gives the weights of so many heads (allowed: uniform, geometric)"),
              std::string::npos)
        << text;
  }
}

/// Heads of the scenario see coordinates of a design in which two are alike; those of an allocation
/// may see how they differ.
TEST(AllocationScenarios, RefuseDirectionsThatPointsDoNotHold) {
  const std::string alike =
      "data.design={ law = \"normal\", dim = 3, mean = [100, 100, 0], covariance = "
      "[[1, 0.999999, 0], [0.999999, 1, 0], [0, 0, 1]] }";
  const std::vector<std::string> sets = {alike, "queries.points=[[0, 0, 0]]", "heads.dim=1",
                                         "heads.subspaces={ law = \"aligned\" }"};
  EXPECT_NE(refusal(world(sets), 2, BandwidthRule::fixed)
                .find("data.design.covariance: head 0 sees a direction"),
            std::string::npos);
  const Condition one = world(sets);
  EXPECT_EQ(allocation_conditions(one, 2, BandwidthRule::fixed, {1}).size(), 1u);
  std::vector<std::string> haar = sets;
  haar.emplace_back("heads.subspaces={ law = \"haar\" }");
  EXPECT_NE(refusal(world(haar), 2, BandwidthRule::fixed)
                .find("data.design.covariance: heads may see a direction"),
            std::string::npos);
}

TEST(AllocationScenarios, TakeTheDimensionsAskedFor) {
  const auto dims_of = [](int budget, const std::vector<int>& dims) {
    std::vector<int> found;
    for (const Condition& one :
         allocation_conditions(world(), budget, BandwidthRule::fixed, dims)) {
      EXPECT_EQ(one.heads, budget / one.k);
      found.push_back(one.k);
    }
    return found;
  };
  EXPECT_EQ(dims_of(7, {4, 2}), (std::vector<int>{2, 4}));
  EXPECT_EQ(dims_of(7, {3, 16}), (std::vector<int>{3}));
}

TEST(AllocationScenarios, RefuseARuleThatSaysNothingOfTheKernel) {
  const Condition softmax = world({"heads.kernel={law=\"softmax\",temperature=3}"});
  const Condition laplace = world({"heads.kernel={law=\"laplace\",bandwidth=3}"});
  EXPECT_EQ(refusal(softmax, 4, BandwidthRule::rate),
            "--bandwidth-rule rate: is about bandwidths, kernel \"softmax\" has none (allowed: "
            "fixed, sqrt_dim, tuned)");
  EXPECT_EQ(refusal(laplace, 4, BandwidthRule::sqrt_dim),
            "--bandwidth-rule sqrt_dim: is about kernels \"softmax\" and \"gaussian\", this one is "
            "\"laplace\" (allowed: fixed, rate, tuned)");
  EXPECT_EQ(refusal(softmax, 4, BandwidthRule::tuned), "accepted");
  EXPECT_EQ(refusal(laplace, 4, BandwidthRule::rate), "accepted");
}

}  // namespace
}  // namespace headlab
