// SPDX-License-Identifier: Apache-2.0
#include "kernels/plan.h"

#include <functional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "kernels/laws.h"
#include "kernels/testing/mechanisms.h"
#include "kernels/testing/test_plans.h"

namespace headlab {
namespace {

Plan plan_of(const test::Shape& shape = {}) {
  return test::make_plan(shape, GaussianKernel{.bandwidth = 0.5});
}

/// The plan with other laws, put into a table of their own.
template <class Design, class Regression, class Noise>
Plan with_laws(const Design& design, const Regression& regression, const Noise& noise) {
  Plan plan = plan_of();
  plan.table = {};
  plan.design = design.sampler(plan.table);
  plan.regression = regression.function(plan.table, plan.d);
  plan.noise = noise.sampler(plan.table, plan.d);
  return plan;
}

TEST(SharesDraws, WhateverTheHeadsDoWithThem) {
  const Plan plan = plan_of();
  EXPECT_TRUE(shares_draws(plan, plan));
  EXPECT_TRUE(shares_draws(plan, plan_of()));  // equal tables in two places
  Plan other = test::make_plan({.heads = 4, .k = 3, .queries = 2}, SoftmaxKernel{},
                               Estimator::conditional, MomentMode::aggregate);
  other.table = plan.table;
  other.regression = plan.regression;
  EXPECT_TRUE(shares_draws(plan, other));
  EXPECT_TRUE(shares_draws(other, plan));
  // Stages begin after the draws, which keep their bits.
  for (const test::NamedStage& stage : test::all_stages()) {
    Plan staged = plan;
    stage.set(staged);
    EXPECT_TRUE(shares_draws(plan, staged)) << stage.name;
    EXPECT_TRUE(shares_draws(staged, staged)) << stage.name;
  }
}

TEST(SharesDraws, NotWhereAnyPartOfTheDrawsDiffers) {
  const std::vector<std::pair<std::string, std::function<void(Plan&)>>> changes = {
      {"n", [](Plan& plan) { plan.n = 99; }},
      {"d", [](Plan& plan) { plan.d = 5; }},
      {"seed", [](Plan& plan) { plan.seed = 12; }},
      {"fixed design", [](Plan& plan) { plan.fixed_design_seed = 0; }},
      {"stream of the design", [](Plan& plan) { plan.streams.design = Purpose::pilot_design; }},
      {"stream of choices",
       [](Plan& plan) { plan.streams.design_choice = Purpose::pilot_design_choice; }},
      {"stream of the noise", [](Plan& plan) { plan.streams.noise = Purpose::pilot_noise; }},
      {"sequence", [](Plan& plan) { plan.ar1 = Ar1(0.5); }},
      {"estimator", [](Plan& plan) { plan.estimator = Estimator::plain; }},
      {"design", [](Plan& plan) { plan.design = UniformDesign::Sampler{}; }},
      {"regression", [](Plan& plan) { plan.regression = ZeroRegression::Function{}; }},
      {"noise", [](Plan& plan) { plan.noise = NormalNoise{.sd = 0.6}.sampler(plan.table, 6); }},
      {"table", [](Plan& plan) { plan.table.add(std::vector<double>{1}); }},
  };
  for (const auto& [what, change] : changes) {
    Plan other = plan_of();
    change(other);
    EXPECT_FALSE(shares_draws(plan_of(), other)) << what;
    EXPECT_FALSE(shares_draws(other, plan_of())) << what;
  }
  Plan fixed = plan_of(), otherwise_fixed = plan_of();
  fixed.fixed_design_seed = 1;
  otherwise_fixed.fixed_design_seed = 2;
  EXPECT_FALSE(shares_draws(fixed, otherwise_fixed));
}

TEST(SharesDraws, ComparesTheNumbersOfTheLaws) {
  const NormalDesign normal{.dim = 6};
  const NormalDesign correlated{.dim = 6, .ar1 = 0.5};
  const StepRegression step{.direction = {1, 0, 0, 0, 0, 0}};
  const NormalNoise noise{.sd = 0.5};
  const Plan plan = with_laws(correlated, step, noise);
  EXPECT_TRUE(shares_draws(plan, with_laws(correlated, step, noise)));

  EXPECT_FALSE(shares_draws(plan, with_laws(normal, step, noise)));
  EXPECT_FALSE(shares_draws(plan, with_laws(NormalDesign{.dim = 6, .ar1 = 0.4}, step, noise)));
  auto other = step;
  other.direction[5] = 1e-9;
  EXPECT_FALSE(shares_draws(plan, with_laws(correlated, other, noise)));
  other = step;
  other.threshold = 0.1;
  EXPECT_FALSE(shares_draws(plan, with_laws(correlated, other, noise)));
  other = step;
  other.height = 2;
  EXPECT_FALSE(shares_draws(plan, with_laws(correlated, other, noise)));
  EXPECT_FALSE(shares_draws(plan, with_laws(correlated, step, LaplaceNoise{.sd = 0.5})));
  const FileDesign file{.rows = {{1, 2, 3, 4, 5, 6}, {2, 3, 4, 5, 6, 7}}};
  Plan rows = with_laws(file, step, noise);
  std::get<FileDesign::Sampler>(rows.design.own()).successive = 2;
  EXPECT_TRUE(shares_draws(rows, rows));
  EXPECT_FALSE(shares_draws(with_laws(file, step, noise), rows));
  EXPECT_FALSE(shares_draws(with_laws(normal, step, StudentNoise{.df = 5, .sd = 0.5}),
                            with_laws(normal, step, StudentNoise{.df = 6, .sd = 0.5})));
  EXPECT_FALSE(shares_draws(with_laws(StudentDesign{.dim = 6, .df = 5}, step, noise),
                            with_laws(StudentDesign{.dim = 6, .df = 6}, step, noise)));
}

}  // namespace
}  // namespace headlab
