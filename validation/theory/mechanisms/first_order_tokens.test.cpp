// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/mechanisms/first_order_tokens.h"

#include <cmath>

#include <gtest/gtest.h>

#include "engine/scenario/world.h"
#include "kernels/plan.h"
#include "validation/theory/mechanisms/token_model.h"
#include "validation/theory/theory.h"

namespace headlab {
namespace {

const std::string one_noisy_head = World{.n = "600",
                                         .design = R"({ law = "normal", dim = 2 })",
                                         .noise = R"({ law = "normal", sd = 1.0 })",
                                         .heads =
                                             "count = 2\ndim = 1\nsubspaces = { law = "
                                             "\"explicit\", matrices = [[[1], [0]], [[0], [1]]] }",
                                         .kernel = R"({ law = "softmax", temperature = 1.0 })",
                                         .points = "[[0.8, 0.3]]",
                                         .run = "replicates = 8"}
                                       .text();

TheoryModel noisy_model(const std::vector<std::string>& settings) {
  const Condition condition =
      parse_scenario(one_noisy_head, "first_order.toml", settings).conditions.at(0);
  return token_model(condition, make_plan(condition));
}

/// What is left of the exact variances after first order and its next term, over that term.
double left_over(const std::vector<std::string>& settings, bool lags) {
  const Condition condition =
      parse_scenario(one_noisy_head, "first_order.toml", settings).conditions.at(0);
  const HeadTheory exact = compute_theory(condition, TheorySource::exact, 2).heads.at(0);
  TheoryModel model = noisy_model(settings);
  FirstOrder leading = first_order_of_tokens(model).at(0);
  if (!lags) {
    if (!model.levels.empty()) model.design.components[0].covariance *= 0.625;  // of [.5, .5]
    leading.next_covariance = first_order(model).at(0).next_covariance;
  }
  double largest = 0;
  for (Eigen::Index h = 0; h < 2; ++h) {
    largest = std::max(largest, std::abs(exact.covariance(h, h) - leading.covariance(h, h) -
                                         leading.next_covariance(h, h)) /
                                    std::abs(leading.next_covariance(h, h)));
  }
  return largest;
}

TEST(FirstOrderOfTokens, LeavesTheNextOrderOfTheExactVariance) {
  const std::vector<std::vector<std::string>> cases = {
      {"heads.mechanism={ levels = [0.5, 0.5] }"},
      {"data.sequence={ law = \"ar1\", correlation = 0.5 }"},
      {"data.sequence={ law = \"ar1\", correlation = 0.5 }",
       "heads.kernel={ law = \"gaussian\", bandwidth = 0.8 }"},
  };
  for (const auto& settings : cases) {
    EXPECT_LT(left_over(settings, true), 0.1) << settings[0];
    EXPECT_GT(left_over(settings, false), 0.2) << settings[0];  // the control
  }
}

/// At correlation 1/2 a token counts for a third: 1 + 2 (1/2 + 1/4 + ...) = 3, and 9 to third
/// order.
TEST(FirstOrderOfTokens, CountsDependentTokensInTheThirdOrder) {
  const auto third = [](const std::vector<std::string>& settings) {
    const FirstOrder at = first_order_of_tokens(noisy_model(settings)).at(0);
    return at.covariance_remainder(0, 0) - std::abs(at.next_covariance(0, 0));
  };
  const double independent = third({});
  EXPECT_GT(independent, 0);
  // The ends of the sequence have fewer neighbours: a share of 2/n.
  EXPECT_NEAR(third({"data.sequence={ law = \"ar1\", correlation = 0.5 }"}), 9 * independent,
              0.01 * 9 * independent);
}

TEST(FirstOrderOfTokens, HasThePriceOfAFilter) {
  const HeadTheory at =
      first_order_of_tokens(noisy_model({"heads.mechanism={ levels = [0.5, 0.3, 0.2] }"})).at(0);
  EXPECT_NEAR(600 * at.covariance(0, 0), std::exp(0.535 * 0.64), 1e-12);
  EXPECT_NEAR(600 * at.covariance(0, 1), 1, 1e-12);
  EXPECT_GT(std::abs(600 * first_order_of_tokens(noisy_model({})).at(0).covariance(0, 0) -
                     std::exp(0.535 * 0.64)),
            0.1);
}

TEST(FirstOrderOfTokens, SaysWhatStandsInTheWay) {
  const auto obstacle = [](const std::vector<std::string>& settings) {
    return first_order_obstacle(noisy_model(settings)).value_or("");
  };
  EXPECT_NE(obstacle({"heads.mechanism={ keep = { top = 3 } }"}).find("mechanism.keep"),
            std::string::npos);
  EXPECT_NE(obstacle({"heads.mechanism={ levels = [0.5, 0.5] }",
                      "heads.kernel={ law = \"gaussian\", bandwidth = 0.8 }"})
                .find("softmax"),
            std::string::npos);
  EXPECT_NE(obstacle({"heads.mechanism={ levels = [0.5, 0.5] }",
                      "data.regression={ law = \"linear\", coefficients = [1.0, 0.0] }"})
                .find("noise alone"),
            std::string::npos);
  EXPECT_EQ(obstacle({"heads.mechanism={ window = 30, merge = 2 }"}), "");
}

}  // namespace
}  // namespace headlab
