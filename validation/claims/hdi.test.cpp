// SPDX-License-Identifier: Apache-2.0
// Each form of the claim comes out as expected, and otherwise where there is a fault in what is
// simulated.

#include <cmath>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/files/words.h"
#include "engine/run/run.h"
#include "engine/scenario/scenario.h"
#include "engine/testing/refusal.h"
#include "kernels/testing/paths.h"
#include "validation/claims/near_ties.h"
#include "validation/claims/stated_claim.h"
#include "validation/verdicts/validate.h"

namespace headlab {

namespace {

std::string text_of(const std::string& name) {
  for (const ClaimScenario& condition : claim_scenarios()) {
    if (condition.file == "scenarios/claims/" + name + ".toml") return condition.text;
  }
  throw std::invalid_argument("no claim scenario " + name);
}

Validation validated(const std::string& name, std::function<void(Plan&)> fault = {}) {
  return validate_scenario(text_of(name), {.backend = "cpu", .threads = 1},
                           {.substitutes = Substitutes{.fault = std::move(fault)}});
}

/// Numbers of one head in a plan.
std::size_t head_size(const Plan& plan) {
  return static_cast<std::size_t>(plan.d) * static_cast<std::size_t>(plan.k);
}

/// Every head sees the first k coordinates.
void align_all(Plan& plan) {
  const auto k = static_cast<std::size_t>(plan.k);
  for (std::size_t i = 0; i < plan.projections.size(); ++i) {
    const std::size_t within = i % head_size(plan);
    plan.projections[i] = within / k == within % k ? 1 : 0;
  }
}

/// The same, where the first two heads are at right angles: diversity at its best is undone.
void align_orthogonal(Plan& plan) {
  const std::size_t size = head_size(plan);
  double common = 0;
  for (std::size_t i = 0; i < size; ++i) {
    common += std::abs(plan.projections[i] * plan.projections[size + i]);
  }
  if (common < 1e-12) align_all(plan);
}

std::vector<std::string> verdicts(const Validation& validation) {
  std::vector<std::string> texts;
  for (const VerdictRow& row : validation.rows) texts.push_back(verdict_text(row.verdict));
  return texts;
}

using Texts = std::vector<std::string>;

TEST(HdiClaim, OutputIdentityHoldsAndOtherWeightsBreakIt) {
  EXPECT_EQ(verdicts(validated("hdi_output")), Texts{"identity"});
  const auto unequal = [](Plan& plan) { plan.head_weights[0] *= 1.01; };
  EXPECT_EQ(verdicts(validated("hdi_output", unequal)), Texts{"refuted"});
}

TEST(HdiClaim, PathIsSupportedAndRefutedWhereDiversityIsUndone) {
  EXPECT_EQ(verdicts(validated("hdi_path_gaussian_centre")), Texts(3, "supported"));
  const Validation faulty = validated("hdi_path_gaussian_centre", align_orthogonal);
  EXPECT_EQ(verdicts(faulty), Texts(3, "refuted"));
  ASSERT_TRUE(faulty.rows[0].counterexample);
  EXPECT_GT(faulty.rows[0].counterexample->z, 5);
}

TEST(HdiClaim, ChordalIsRefutedBetweenConfigurationsByACertificateThatReplays) {
  const Validation validation = validated("hdi_between_gaussian");
  EXPECT_EQ(verdicts(validation), (Texts{"refuted", "refuted", "supported"}));
  ASSERT_TRUE(validation.rows[0].counterexample);
  const Counterexample& counterexample = *validation.rows[0].counterexample;
  const RunResult replay =
      run(parse_scenario(counterexample.scenario, "replay",
                         {"run.replicates=" + std::to_string(counterexample.replicates)}),
          {.backend = "cpu", .threads = 2});
  const auto mse_of = [&](std::size_t which) {
    return replay.conditions.at(counterexample.conditions.at(which)).estimates.mse;
  };
  EXPECT_EQ(mse_of(0).value, counterexample.first.value);
  EXPECT_EQ(mse_of(0).mcse, counterexample.first.mcse);
  EXPECT_EQ(mse_of(1).value, counterexample.second.value);
  EXPECT_GT(counterexample.z, 5);
  EXPECT_FALSE(validation.rows[2].counterexample);
}

TEST(HdiClaim, ACounterexampleIsThatOfTheComparisonThatRefutes) {
  for (const char* scenario : {"hdi_between_softmax", "hdi_path_softmax_signal"}) {
    for (const VerdictRow& row : validated(scenario).rows) {
      if (row.verdict != Verdict::refuted) continue;
      ASSERT_TRUE(row.counterexample) << scenario;
      const Counterexample& found = *row.counterexample;
      EXPECT_NEAR(row.decisive.effect.value, -found.difference.value / found.second.value, 1e-12)
          << scenario << ", " << row.index;
      // It has the index of both, in the order of the comparison.
      ASSERT_EQ(found.closed_form.size(), 1U);
      const auto [first, second] = found.closed_form[0].second;
      EXPECT_TRUE(row.decisive.what.starts_with(
          formatted("MSE at index %.6g less than MSE at index %.6g, ", first, second)))
          << row.decisive.what;
    }
  }
}

TEST(SpecializationClaim, AnIndexThatRisesTooLittleHasNoCounterexampleOfTheError) {
  const Validation validation = validated("specialization_single_index");
  ASSERT_EQ(verdicts(validation), Texts(2, "refuted"));
  for (const VerdictRow& row : validation.rows) {
    EXPECT_FALSE(row.counterexample);
    EXPECT_NEAR(row.decisive.expected - row.decisive.observed - 0.2, row.decisive.effect.value,
                1e-12);
    EXPECT_EQ(row.decisive.what,
              "index " + row.index + " at the start less than after training by more than 0.2");
    EXPECT_EQ(row.decisive.replicates, 512U);
    EXPECT_EQ(row.replicates, 2048U);
  }
}

TEST(HdiClaim, NearTiesAreComputedWithoutReplicates) {
  for (const Comparison& one : validated("hdi_near_ties").rows.at(0).effects) {
    EXPECT_EQ(one.replicates, 0U) << one.what;
  }
}

TEST(HdiClaim, WhereAllHeadsAreAlignedNoPairContradicts) {
  // Differences of 0 in every replicate, which claims about different heads do not expect.
  EXPECT_EQ(verdicts(validated("hdi_between_gaussian", align_all)), Texts(3, "unresolved"));
}

TEST(HdiClaim, PairsThatAreNoneAreRefused) {
  const std::string text = text_of("hdi_between_softmax");
  const std::string given = "[[12, 13], [2, 14], [15, 8]]";
  ASSERT_NE(text.find(given), std::string::npos);
  for (const auto& [pairs, problem] :
       {std::pair("[[12, 13], [2]]", "needs an array for each index"),
        std::pair("[[12, 99]]", "needs an array for each index"), std::pair("[]", "needs an array"),
        std::pair("[[13, 12]]", "the index qk of condition #13 is not above that of")}) {
    std::string wrong = text;
    wrong.replace(wrong.find(given), given.size(), pairs);
    EXPECT_PRED_FORMAT2(testing::IsSubstring, problem, refusal_line([&] {
                          validate_scenario(wrong, {.backend = "cpu", .threads = 1}, {});
                        }))
        << pairs;
  }
}

}  // namespace

namespace {

TEST(NearTies, ExactNoiseMeetsTheKnownAnswersBetweenItsNodes) {
  const auto answers = nlohmann::json::parse(std::ifstream(test::known_answers()));
  int compared = 0;
  for (const auto& known : answers.at("finite_n_noise")) {
    if (known.at("query_projection") != nlohmann::json({0, 0})) continue;
    const std::uint64_t n = known.at("n");
    const double cosine = known.at("cos_angle"), bandwidth = known.at("bandwidth");
    if (cosine == 0 || compared > 0) continue;  // one says it all, and each takes its time
    const auto noise = exact_noise(n, bandwidth);
    const double exact = static_cast<double>(n) * known.at("C").get<double>();
    EXPECT_LE(std::abs(noise(cosine) - exact), 1e-6) << cosine;
    EXPECT_LE(std::abs(noise(1) - static_cast<double>(n) * known.at("V").at(0).get<double>()),
              1e-6);
    // Negative control: too few points.
    EXPECT_GT(std::abs(exact_noise(n, bandwidth, 2)(cosine) - exact), 1e-6);
    ++compared;
  }
  EXPECT_GE(compared, 1);
}

TEST(NearTies, InversionsOfOverlapAreSmallAndShrinkLikeOneOverN) {
  // Two heads on one direction and one at right angles; a star with cosines of 0.6.
  Matrices pair(3, Eigen::MatrixXd::Zero(3, 1)), star = pair;
  pair[0](0, 0) = pair[1](0, 0) = pair[2](2, 0) = 1;
  star[0](0, 0) = 1;
  star[1](0, 0) = star[2](0, 0) = 0.6;
  star[1](1, 0) = star[2](2, 0) = 0.8;
  const NearTies few = overlap_near_ties(20, 0.5, {pair, star});
  const NearTies many = overlap_near_ties(80, 0.5, {pair, star});
  EXPECT_GT(many.error_gap, 1e-9);  // more than the quadrature's own error
  EXPECT_LT(many.error_gap, 0.5 * few.error_gap);
  EXPECT_LT(many.index_gap, 0.5 * few.index_gap);
  EXPECT_LT(few.error_gap, 0.02);
  EXPECT_EQ(overlap_near_ties(20, 0.5, {star, pair, pair}).error_gap, few.error_gap);
}

TEST(NearTies, SizesWithoutMeaningAreRefused) {
  EXPECT_THROW(exact_noise(1, 0.5), std::invalid_argument);
  EXPECT_THROW(exact_noise(10, 0.5, 1), std::invalid_argument);
}

}  // namespace

}  // namespace headlab
