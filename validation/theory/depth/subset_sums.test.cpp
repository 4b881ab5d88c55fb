// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/depth/subset_sums.h"

#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/files/error.h"
#include "validation/theory/depth/testing/known_answers.h"

namespace headlab {
namespace {

using nlohmann::json;

TEST(SubsetSums, AgreeWithTheKnownAnswers) {
  for (const json& known : depth_cases("subset_sum")) {
    const double z = known["inputs"]["z"], eps = known["inputs"]["eps"];
    const json& expected = known["expected"];
    const auto count = static_cast<int>(known["inputs"]["x"].size());
    const auto agrees = [&](double hits) {
      return within(hits, expected["expected_hits_uniform"], known["tolerance"]);
    };
    EXPECT_TRUE(agrees(expected_subset_hits(count, z, eps)));
    // Negative controls.
    EXPECT_FALSE(agrees(expected_subset_hits(count + 1, z, eps)));
    EXPECT_FALSE(agrees(expected_subset_hits(count, z, eps * (1 + 1e-7))));
  }
}

TEST(SubsetSums, ExpectedHitsAreThoseByHand) {
  EXPECT_EQ(expected_subset_hits(0, 0, 0.1), 1);
  EXPECT_EQ(expected_subset_hits(0, 0.2, 0.1), 0);
  // One uniform: 1/2 times 2 eps within (-1, 1), half of it at the end.
  EXPECT_NEAR(expected_subset_hits(1, 0.5, 0.1), 0.1, 1e-15);
  EXPECT_NEAR(expected_subset_hits(1, 1, 0.1), 0.05, 1e-15);
  // Two: the triangle (2 - |s|)/4.
  EXPECT_NEAR(expected_subset_hits(2, 0.5, 0.1), 2 * 0.1 + 0.2 * 1.5 / 4, 1e-15);
  // Every subset of ten is somewhere.
  EXPECT_NEAR(expected_subset_hits(10, 0, 20), 1024, 1e-9);
  EXPECT_NEAR(expected_subset_hits(30, 0, 40) / 1073741824, 1, 1e-12);
}

TEST(SubsetSums, RandomEnergyFormIsNearTheFailureProbability) {
  for (const json& known : depth_cases("subset_failure")) {
    const json& in = known["inputs"];
    const SampleLaw law = in["law"] == "uniform" ? SampleLaw::uniform : SampleLaw::product;
    const RandomEnergyForm form(in["m"], law);
    const double failure = form.failure(in["z"], in["eps"]);
    const auto agrees = [&](double got, const char* name, double margin) {
      const double se = known["se"][name];
      return std::abs(got - known["expected"][name].get<double>()) <= margin + 3 * se;
    };
    EXPECT_TRUE(agrees(failure, "random_energy", 0));
    EXPECT_TRUE(agrees(failure, "failure", 0.01));
    // Negative controls: the other law, twice the error.
    const SampleLaw other = law == SampleLaw::uniform ? SampleLaw::product : SampleLaw::uniform;
    EXPECT_FALSE(
        agrees(RandomEnergyForm(in["m"], other).failure(in["z"], in["eps"]), "failure", 0.01));
    EXPECT_FALSE(agrees(form.failure(in["z"], 2 * in["eps"].get<double>()), "random_energy", 0));
  }
}

TEST(SubsetSums, LogitErrorsMoveAttentionByTheTangent) {
  for (const json& known : depth_cases("logit_error")) {
    const double e = known["inputs"]["largest_logit_error"];
    const auto agrees = [&](double got) {
      return within(got, known["expected"]["total_variation"], known["tolerance"]);
    };
    EXPECT_TRUE(agrees(attention_shift_upper_bound(e)));
    EXPECT_FALSE(agrees(attention_shift_upper_bound(e * (1 + 1e-10))));
  }
  // Sharp for two keys, whose log ratio moves from -e to e.
  const double e = 0.7;
  EXPECT_NEAR(1 / (1 + std::exp(-e)) - 1 / (1 + std::exp(e)), attention_shift_upper_bound(e),
              1e-15);
}

TEST(SubsetSums, RefuseWhatIsOutOfRange) {
  EXPECT_THROW(expected_subset_hits(31, 0, 1), InvalidInput);
  EXPECT_THROW(expected_subset_hits(3, 0, 0), InvalidInput);
  EXPECT_THROW(RandomEnergyForm(0, SampleLaw::uniform), InvalidInput);
  EXPECT_THROW(attention_shift_upper_bound(-1), InvalidInput);
  EXPECT_THROW(attention_shift_upper_bound(std::nan("")), InvalidInput);
}

}  // namespace
}  // namespace headlab
