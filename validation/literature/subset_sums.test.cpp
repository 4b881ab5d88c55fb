// SPDX-License-Identifier: Apache-2.0
#include "validation/literature/subset_sums.h"

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

TEST(SubsetSums, RefuseWhatIsOutOfRange) {
  EXPECT_THROW(expected_subset_hits(31, 0, 1), InvalidInput);
  EXPECT_THROW(expected_subset_hits(3, 0, 0), InvalidInput);
}

}  // namespace
}  // namespace headlab
