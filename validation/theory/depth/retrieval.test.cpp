// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/depth/retrieval.h"

#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/files/error.h"
#include "validation/theory/depth/testing/known_answers.h"

namespace headlab {
namespace {

TEST(Retrieval, AgreesWithTheKnownAnswers) {
  for (const nlohmann::json& known : depth_cases("retrieval")) {
    const nlohmann::json& in = known["inputs"];
    const auto agrees = [&](double beta_factor, int more) {
      const int patterns = in["patterns"].get<int>() + more;
      const Retrieval result = retrieval_self_weight(
          patterns, in["beta"].get<double>() * beta_factor, in["squared_norm_of_query"]);
      EXPECT_LE(std::abs(result.normalisation_error), 1e-10);
      return within(result.self_weight, known["expected"]["self_weight"], known["tolerance"]);
    };
    EXPECT_TRUE(agrees(1, 0)) << in;
    // Negative controls.
    EXPECT_FALSE(agrees(1 + 1e-5, 0));
    EXPECT_FALSE(agrees(1, 1));
  }
}

TEST(Retrieval, HasItsLimits) {
  EXPECT_EQ(retrieval_self_weight(1, 2, 3).self_weight, 1);
  EXPECT_EQ(retrieval_self_weight(10, 0, 3).self_weight, 0.1);
  EXPECT_EQ(retrieval_self_weight(10, 3, 0).self_weight, 0.1);
  EXPECT_NEAR(retrieval_self_weight(10, 1e-7, 1).self_weight, 0.1, 1e-7);
  EXPECT_NEAR(retrieval_self_weight(2, 1, 1000).self_weight, 1, 1e-12);
}

TEST(Retrieval, RefusesWhatIsOutOfRange) {
  EXPECT_THROW(retrieval_self_weight(0, 1, 1), InvalidInput);
  EXPECT_THROW(retrieval_self_weight(2, -1, 1), InvalidInput);
  EXPECT_THROW(retrieval_self_weight(2, 1, std::nan("")), InvalidInput);
}

}  // namespace
}  // namespace headlab
