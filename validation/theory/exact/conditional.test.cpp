// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/exact/conditional.h"

#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/run/run.h"
#include "engine/scenario/testing/known_world.h"
#include "kernels/testing/known_cases.h"

namespace headlab {
namespace {

using nlohmann::json;

Condition condition_of(const json& known) {
  World world = test::known_world(known);
  world.n += "\nfixed_design = true";
  world.run = "seed = 1\nreplicates = 20";
  return world.condition();
}

/// Largest difference to the known means and covariances; NaN is infinite.
double distance(const Plan& plan, const HeadTheory& theory, const json& known) {
  double largest = 0;
  auto look = [&](double value, double expected) {
    const double difference = std::abs(value - expected);
    largest = difference <= largest ? largest : std::isnan(difference) ? INFINITY : difference;
  };
  for (Eigen::Index h = 0; h < plan.heads; ++h) {
    const auto row = static_cast<std::size_t>(h);
    look(theory.bias(h) + plan.truth[0], known["conditional_mean"][row]);
    for (Eigen::Index l = 0; l < plan.heads; ++l) {
      look(theory.covariance(h, l),
           known["conditional_covariance"][row][static_cast<std::size_t>(l)]);
    }
  }
  return largest;
}

TEST(ConditionalTheory, GivesTheKnownAnswers) {
  const json cases = test::known("fixed_design");
  ASSERT_EQ(cases.size(), 2u);
  for (const json& known : cases) {
    const Plan plan = make_plan(condition_of(known));
    TrainingSet sample = test::given_sample(known, plan);
    EXPECT_LE(distance(plan, conditional_theory(plan, sample).queries.at(0), known), 1e-12);
    // Negative control: one point of the design a little off.
    sample.x[0] += 1e-8;
    EXPECT_FALSE(distance(plan, conditional_theory(plan, sample).queries.at(0), known) <= 1e-12);
  }
}

TEST(ConditionalTheory, IsWhatAFixedDesignSimulates) {
  const json known = test::known("fixed_design")[1];
  Scenario scenario;
  scenario.conditions = {condition_of(known)};
  const ConditionResult result = run(scenario, {.backend = "reference"}).conditions.at(0);
  const ConditionalTheory theory = conditional_theory(result.plan);
  const QueryEstimates& simulated = result.estimates.queries[0];
  const auto heads = static_cast<std::size_t>(result.plan.heads);
  for (std::size_t h = 0; h < heads; ++h) {
    EXPECT_EQ(simulated.head_bias[h].mcse, 0);
    EXPECT_NEAR(simulated.head_bias[h].value, theory.queries[0].bias(static_cast<Eigen::Index>(h)),
                1e-15);
    for (std::size_t l = 0; l < heads; ++l) {
      EXPECT_NEAR(
          simulated.head_covariance[h * heads + l].value,
          theory.queries[0].covariance(static_cast<Eigen::Index>(h), static_cast<Eigen::Index>(l)),
          1e-15);
    }
  }
  EXPECT_NEAR(result.estimates.weights_index.value, theory.weights_index, 1e-15);
  EXPECT_GT(theory.weights_index, 0.01);
}

TEST(ConditionalTheory, NeedsAFixedDesign) {
  const json known = test::known("fixed_design")[0];
  Plan plan = make_plan(condition_of(known));
  plan.fixed_design_seed.reset();
  EXPECT_THROW(conditional_theory(plan), std::invalid_argument);
}

}  // namespace
}  // namespace headlab
