// SPDX-License-Identifier: Apache-2.0
// Stages of a mechanism on every backend against the reference, alone and in pairs.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/testing/agreement_fixture.h"
#include "kernels/testing/mechanisms.h"

namespace headlab {
namespace {

using test::all_kernels;
using test::all_stages;
using test::has_stage;
using test::NamedStage;

class StageAgreement : public test::Agreement {
 protected:
  Moments expect_agreement(const Plan& plan, const std::string& what) {
    SCOPED_TRACE(what);
    return test::Agreement::expect_agreement(plan);
  }
};

TEST_F(StageAgreement, EveryStageIsEquivalentToReference) {
  for (const NamedStage& stage : all_stages()) {
    for (const KernelLaw& kernel : all_kernels(0.6)) {
      if (!has_stage(kernel, stage)) continue;
      for (const Estimator estimator : test::estimators) {
        for (const MomentMode mode : test::modes) {
          Plan plan = test::make_plan({.n = 61}, kernel, estimator, mode);
          stage.set(plan);
          on_every_path([&] { expect_agreement(plan, stage.name); });
          Plan longer = test::make_plan({.n = 200}, kernel, estimator, mode);
          stage.set(longer);
          expect_agreement(longer, stage.name);
        }
      }
    }
  }
}

TEST_F(StageAgreement, EveryPairOfStagesIsEquivalentToReference) {
  const std::vector<NamedStage> stages = all_stages();
  for (const NamedStage& first : stages) {
    for (const NamedStage& second : stages) {
      if (!test::go_together(first, second)) continue;
      for (const KernelLaw& kernel : all_kernels(0.6)) {
        if (!has_stage(kernel, first) || !has_stage(kernel, second)) continue;
        Plan plan = test::make_plan({.n = 97}, kernel);
        first.set(plan);
        second.set(plan);
        expect_agreement(plan, first.name + " and " + second.name);
      }
    }
  }
}

TEST_F(StageAgreement, EveryWidthOfHeadsHasEveryStage) {
  for (const NamedStage& stage : all_stages()) {
    for (const int k : {1, 3, 4, 8, 16, 40}) {
      for (const int queries : {2, 5}) {
        for (const KernelLaw& kernel : {KernelLaw(GaussianKernel{.bandwidth = k > 8 ? 4.0 : 1.2}),
                                        KernelLaw(SoftmaxKernel{.temperature = k > 8 ? 4.0 : 1})}) {
          Plan plan = test::make_plan({.n = 70, .d = k + 2, .heads = 2, .k = k, .queries = queries},
                                      kernel);
          stage.set(plan);
          expect_agreement(plan, stage.name);
        }
      }
    }
    // Products would lose the digits.
    Plan narrow = test::make_plan({.n = 70, .k = 3}, GaussianKernel{.bandwidth = 0.01});
    stage.set(narrow);
    expect_agreement(narrow, stage.name + ", narrow");
  }
}

TEST_F(StageAgreement, ManyHeadsNoiseThatVariesAndLongSetsAreEquivalentToReference) {
  for (const NamedStage& stage : all_stages()) {
    for (const int heads : {20, 30}) {
      Plan many = test::make_plan({.n = 150, .heads = heads, .k = 1, .queries = 2},
                                  GaussianKernel{.bandwidth = 0.7}, Estimator::conditional,
                                  MomentMode::aggregate);
      stage.set(many);
      expect_agreement(many, stage.name + ", many heads");
    }
    Plan varying = test::make_plan({.n = 150}, SoftmaxKernel{.temperature = 0.6});
    test::vary_noise(varying);
    stage.set(varying);
    expect_agreement(varying, stage.name + ", noise that varies");
    Plan longer = test::make_plan({.n = 9001}, GaussianKernel{.bandwidth = 0.5});
    stage.set(longer);
    expect_agreement(longer, stage.name + ", long");
    Plan far = test::make_plan({.n = 90}, GaussianKernel{.bandwidth = 0.05});
    stage.set(far);
    expect_agreement(far, stage.name + ", narrow windows");
  }
}

TEST_F(StageAgreement, LevelsOfLargeBlocksAreEquivalentToReference) {
  for (const KernelLaw& kernel : {KernelLaw(GaussianKernel{.bandwidth = 0.5}),
                                  KernelLaw(SoftmaxKernel{.temperature = 0.5})}) {
    Plan plan = test::make_plan({.n = 700, .heads = 2, .queries = 3}, kernel);
    plan.mechanism.levels.weights = {0.4, 0, 0, 0.1, 0, 0, 0, 0, 0.2, 0.3};
    expect_agreement(plan, "512 tokens");
    for (const std::uint64_t window : {100, 300}) {
      plan.mechanism.seen.push_back(seen_tokens(700, window, 60, 4));
    }
    expect_agreement(plan, "512 tokens, windows");
  }
}

TEST_F(StageAgreement, RulesOfKeepWithUnionAreEquivalentToReference) {
  for (const Keep& rule :
       {Keep{.rule = Keep::Rule::ratio, .ratio = 0.5}, Keep{.rule = Keep::Rule::block, .block = 5},
        Keep{.rule = Keep::Rule::block, .block = 4, .pooled = true}}) {
    for (const double bandwidth : {0.6, 0.05}) {
      for (const Estimator estimator : test::estimators) {
        Plan plan = test::make_plan({.n = 130}, GaussianKernel{.bandwidth = bandwidth}, estimator);
        plan.mechanism.keep = rule;
        plan.mechanism.keep.top = {1, 2, 1};
        const Moments alone = compute(plan, 2);
        plan.mechanism.keep.shared = true;
        EXPECT_NE(compute(plan, 2).mean, alone.mean);
        for (const std::uint64_t window : {130, 90}) {
          plan.mechanism.seen.clear();
          for (std::uint64_t h = 0; h < 3; ++h) {
            plan.mechanism.seen.push_back(seen_tokens(130, window - 20 * h, 3 * h, 2));
          }
          expect_agreement(plan, "union of rule " + std::to_string(static_cast<int>(rule.rule)));
        }
      }
    }
  }
}

/// Makes the first `count` heads of a plan exactly alike: of these cpu computes one.
void make_alike(Plan& plan, std::size_t count) {
  const auto size = static_cast<std::size_t>(plan.d * plan.k);
  for (std::size_t h = 1; h < count; ++h) {
    std::copy_n(plan.projections.begin(), size,
                plan.projections.begin() + static_cast<std::ptrdiff_t>(h * size));
    if (!plan.mechanism.seen.empty()) plan.mechanism.seen[h] = plan.mechanism.seen[0];
    if (!plan.mechanism.keep.top.empty()) plan.mechanism.keep.top[h] = plan.mechanism.keep.top[0];
  }
}

/// Every stage, and every rule with union, on sets of heads of which some are alike.
TEST_F(StageAgreement, HeadsThatAreAlikeAreEquivalentToReference) {
  std::vector<test::NamedStage> stages = test::all_stages();
  stages.push_back({"none", [](Plan&) {}});
  for (const test::NamedStage& stage : test::all_stages()) {
    if (stage.name != "ratio" && stage.name != "block" && stage.name != "pooled") continue;
    stages.push_back({stage.name + " with union", [set = stage.set](Plan& plan) {
                        set(plan);
                        plan.mechanism.keep.shared = true;
                      }});
    stages.push_back({stage.name + " with union of windows", [set = stage.set](Plan& plan) {
                        for (std::uint64_t h = 0; h < 3; ++h) {
                          plan.mechanism.seen.push_back(seen_tokens(plan.n, 60 - 9 * h, h, 2));
                        }
                        set(plan);
                        plan.mechanism.keep.shared = true;
                      }});
  }
  in_every_way([&] {
    for (const test::NamedStage& stage : stages) {
      for (const KernelLaw& kernel : test::all_kernels(0.6)) {
        const bool pools = stage.name.starts_with("pooled");
        if (!test::has_stage(kernel, {pools ? "pooled" : stage.name, {}})) continue;
        for (const Estimator estimator : {Estimator::conditional, Estimator::plain}) {
          for (const MomentMode mode : {MomentMode::pairwise, MomentMode::aggregate}) {
            for (const std::size_t alike : {2, 3}) {
              Plan plan = test::make_plan({.n = 64, .queries = 3}, kernel, estimator, mode);
              stage.set(plan);
              make_alike(plan, alike);
              expect_agreement(plan, std::to_string(alike) + " alike, " + stage.name);
            }
          }
        }
      }
    }
  });
}

TEST_F(StageAgreement, TheComparisonSeesEveryStage) {
  const Plan plain = test::make_plan({.n = 97}, GaussianKernel{.bandwidth = 0.6});
  const std::vector<double> statistics = compute(plain, 2).mean;
  for (const NamedStage& stage : all_stages()) {
    Plan plan = plain;
    stage.set(plan);
    EXPECT_TRUE(is_far(plan, 2, statistics)) << stage.name;
  }
}

TEST_F(StageAgreement, ASequenceHasTheBitsOfTheReference) {
  for (const std::uint64_t n : {7, 32, 33, 200, 1000}) {
    Plan plan = test::make_plan({.n = n}, GaussianKernel{.bandwidth = 0.6});
    std::ranges::fill(plan.query_points, 0.0);
    const std::vector<double> independent = draw_training_set(plan, 4).x;
    plan.ar1 = Ar1(0.8);
    const std::vector<double> expected = draw_training_set(plan, 4).x;
    EXPECT_TRUE(std::ranges::equal(design(plan, 4), expected)) << n;
    EXPECT_NE(expected, independent);
    expect_agreement(plan, "ar1");
    // With the affine map of a design.
    plan.design =
        NormalDesign{.dim = 6, .mean = std::vector<double>(6, 0.5), .ar1 = 0.4}.sampler(plan.table);
    EXPECT_TRUE(std::ranges::equal(design(plan, 4), draw_training_set(plan, 4).x)) << n;
    expect_agreement(plan, "ar1 of a design");
  }
  // In parts, which begin anywhere.
  for (const NamedStage& stage : all_stages()) {
    Plan plan = test::make_plan({.n = 200}, GaussianKernel{.bandwidth = 0.6});
    plan.ar1 = Ar1(0.8);
    stage.set(plan);
    expect_agreement(plan, "ar1 and " + stage.name);
  }
}

/// Sets as design the rows of a file, one after another.
void set_rows(Plan& plan, const std::vector<std::vector<double>>& rows) {
  FileDesign::Sampler sampler = FileDesign{.rows = rows}.sampler(plan.table);
  sampler.successive = static_cast<std::uint32_t>(plan.n);
  plan.design = sampler;
}

TEST_F(StageAgreement, SuccessiveRowsOfAFileHaveEveryStage) {
  std::vector<std::vector<double>> rows;
  std::vector<double> values;
  for (int i = 0; i < 90; ++i) {
    rows.emplace_back();
    for (int c = 0; c < 6; ++c) rows.back().push_back(std::sin(1.7 * (6 * i + c)));
    values.push_back(std::cos(i));
  }
  for (const NamedStage& stage : all_stages()) {
    Plan plan = test::make_plan({.n = 80}, GaussianKernel{.bandwidth = 0.6});
    set_rows(plan, rows);
    plan.regression = FileRegression{.values = values}.function(plan.table, 6);
    stage.set(plan);
    expect_agreement(plan, "rows and " + stage.name);
  }
}

/// Equal points have to have keys of equal bits, or the tokens do not tie.
TEST_F(StageAgreement, EqualPointsTieWhereverTheyStand) {
  for (const int k : {1, 3, 8, 17}) {
    std::vector<std::vector<double>> rows;
    for (int i = 0; i < 300; ++i) {
      rows.emplace_back();
      // Seven different points.
      for (int c = 0; c < k + 5; ++c) rows.back().push_back(std::sin(i % 7 * 1.3 + 0.7 * c));
    }
    for (const std::uint64_t top : {1, 60, 140}) {
      Plan plan = test::make_plan({.n = 300, .d = k + 5, .k = k}, GaussianKernel{.bandwidth = 1});
      set_rows(plan, rows);
      plan.mechanism.keep = {.rule = Keep::Rule::top, .top = {top, top, top}};
      expect_agreement(plan, "top " + std::to_string(top));
    }
  }
}

/// A design of one coordinate, given as rows of a file, and one head with one query at 0.
Plan plan_of_keys(const std::vector<double>& keys) {
  Plan plan;
  plan.n = keys.size();
  plan.kernel = GaussianKernel{.bandwidth = 1};
  plan.projections = {1};
  plan.query_points = {0};
  plan.head_weights = {1};
  plan.truth = {0};
  plan.moments = MomentMode::aggregate;
  std::vector<std::vector<double>> rows;
  for (const double key : keys) rows.push_back({key});
  set_rows(plan, rows);
  plan.regression = FileRegression{.values = keys}.function(plan.table, 1);
  plan.noise = NormalNoise{.sd = 1}.sampler(plan.table, 1);
  return plan;
}

TEST_F(StageAgreement, KeptTokensAreThoseAboveTheThresholdAndAllTies) {
  // Log weights -x^2 / 2 that differ by 1e-4 around the third, or tie.
  const double third = 1;
  const double near = std::sqrt(third * third + 2e-4);
  const std::vector<double> gap = {2, near, 0.3, -third, 0.7, 3, -2.5};
  const std::vector<double> tie = {2, third, 0.3, third, 0.7, 3, third};
  const auto estimate = [&](Plan plan, const Keep& keep) {
    plan.mechanism.keep = keep;
    return expect_agreement(plan, "").mean[0];
  };
  const auto mean_of = [](const std::vector<double>& kept) {
    double weight = 0;
    double sum = 0;
    for (const double x : kept) {
      weight += std::exp(-x * x / 2);
      sum += x * std::exp(-x * x / 2);
    }
    return sum / weight;
  };
  const auto top = [](std::uint64_t k) { return Keep{.rule = Keep::Rule::top, .top = {k}}; };
  EXPECT_NEAR(estimate(plan_of_keys(gap), top(3)), mean_of({0.3, 0.7, -third}), 1e-6);
  EXPECT_NEAR(estimate(plan_of_keys(gap), top(4)), mean_of({0.3, 0.7, -third, near}), 1e-6);
  for (const std::uint64_t k : {3, 4, 5}) {
    EXPECT_NEAR(estimate(plan_of_keys(tie), top(k)), mean_of({0.3, 0.7, third, third, third}),
                1e-6);
  }
  const auto ratio = [](double x) {
    return Keep{.rule = Keep::Rule::ratio, .ratio = std::exp((0.3 * 0.3 - x * x) / 2)};
  };
  EXPECT_NEAR(estimate(plan_of_keys(gap), ratio(std::sqrt(1 + 1e-4))), mean_of({0.3, 0.7, -third}),
              1e-6);
  // Blocks of equal weight tie as well: (2, .3), (2, .3) and (3, .1).
  const Keep block = {.rule = Keep::Rule::block, .top = {1}, .block = 2};
  EXPECT_NEAR(estimate(plan_of_keys({2, 0.3, -2.5, 3, 2, 0.3}), block), mean_of({2, 0.3, 2, 0.3}),
              1e-6);
}

TEST_F(StageAgreement, ACompactHeadWithAnEmptyWindowTakesItsNearestSeenToken) {
  for (const bool keeps : {false, true}) {
    Plan plan = plan_of_keys({5, 4, 0.5, 6, 7, 0});
    plan.kernel = EpanechnikovKernel{.bandwidth = 1};
    plan.mechanism.seen = {seen_tokens(6, 2, 1, 2)};
    if (keeps) plan.mechanism.keep = {.rule = Keep::Rule::top, .top = {2}};
    const Moments node = expect_agreement(plan, "empty window");
    EXPECT_FLOAT_EQ(static_cast<float>(node.mean[0]), 4);
    EXPECT_EQ(node.windows, (WindowCounts{.empty = 1, .narrow = 1}));
  }
}

}  // namespace
}  // namespace headlab
