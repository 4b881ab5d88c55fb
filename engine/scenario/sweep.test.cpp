// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/sweep.h"

#include <gtest/gtest.h>

#include "engine/files/error.h"

namespace headlab {
namespace {

/// The values of `text` as TOML, or the error.
std::string values_of(const std::string& text) {
  try {
    const Value table = parse_value(text, "k", Location("s"));
    return to_toml({progression(table, "k", 1000), table.location});
  } catch (const InvalidInput& error) {
    return error.what();
  }
}

TEST(Progression, EqualSteps) {
  EXPECT_EQ(values_of("{ linspace = [0.2, 1.0, 5] }"), "[0.2, 0.4, 0.6, 0.8, 1.0]");
  EXPECT_EQ(values_of("{ linspace = [1, -1, 3] }"), "[1, 0, -1]");
  EXPECT_EQ(values_of("{ linspace = [1, 2, 3] }"), "[1.0, 1.5, 2.0]");
}

TEST(Progression, EqualRatios) {
  EXPECT_EQ(values_of("{ logspace = [1, 1000, 4] }"), "[1, 10, 100, 1000]");
  EXPECT_EQ(values_of("{ logspace = [0.01, 1, 5] }"),
            "[0.01, 0.0316227766016838, 0.1, 0.316227766016838, 1.0]");
}

TEST(Progression, GivenSteps) {
  EXPECT_EQ(values_of("{ range = [2, 16, 2] }"), "[2, 4, 6, 8, 10, 12, 14, 16]");
  EXPECT_EQ(values_of("{ range = [0.1, 0.5, 0.1] }"), "[0.1, 0.2, 0.3, 0.4, 0.5]");
  EXPECT_EQ(values_of("{ range = [1, 6, 2] }"), "[1, 3, 5]");
  EXPECT_EQ(values_of("{ range = [3, 1, -1] }"), "[3, 2, 1]");
  EXPECT_EQ(values_of("{ range = [3, 3, 1] }"), "[3]");
}

TEST(Progression, RoundsWhereAsked) {
  EXPECT_EQ(values_of("{ logspace = [100, 1000, 4], round = true }"), "[100, 215, 464, 1000]");
  EXPECT_EQ(values_of("{ linspace = [1, 3, 9], round = true }"), "[1, 2, 3]");
  EXPECT_EQ(values_of("{ linspace = [1, 3, 3], round = false }"), "[1, 2, 3]");
}

TEST(Progression, RefusesInOneLine) {
  const std::string three = "s: k.linspace: needs [first, last, number of values]";
  EXPECT_EQ(values_of("{ linspace = 3 }"), three);
  EXPECT_EQ(values_of("{ linspace = [1, 2] }"), three);
  EXPECT_EQ(values_of("{ linspace = [1, nan, 3] }"), three);
  EXPECT_EQ(values_of("{ linspace = [1, 2, \"3\"] }"), three);
  EXPECT_EQ(values_of("{ linspace = [1, 2, 1] }"),
            "s: k.linspace: number of values is 1, must be an integer in [2, 1000]");
  EXPECT_EQ(values_of("{ linspace = [1, 2, 2.5] }"),
            "s: k.linspace: number of values is 2.5, must be an integer in [2, 1000]");
  EXPECT_EQ(
      values_of("{ linspace = [1, 2, 3], logspace = [1, 2, 3] }"),
      "s: k.logspace: cannot be given here (allowed: one of linspace, logspace and range, and "
      "round)");
  EXPECT_EQ(values_of("{ linspace = [1, 2, 3], round = 1 }"),
            "s: k.round: is an integer, needs true or false");
  EXPECT_EQ(values_of("{ logspace = [0, 2, 3] }"),
            "s: k.logspace: needs a first and a last value above 0");
  EXPECT_EQ(values_of("{ logspace = [1e-300, 1e300, 3] }"),
            "s: k.logspace: has values beyond the largest number");
  EXPECT_EQ(values_of("{ range = [1, 2, 0] }"),
            "s: k.range: has a step of 0, which does not lead from 1 to 2");
  EXPECT_EQ(values_of("{ range = [1, 2, -1] }"),
            "s: k.range: has a step of -1, which does not lead from 1 to 2");
  EXPECT_EQ(values_of("{ range = [1, 1001, 1] }"),
            "s: k.range: has more than 1000 values (allowed: at most 1000)");
  EXPECT_EQ(values_of("{ linspace = [0, 1e300, 3], round = true }"),
            "s: k.linspace: cannot round 5e+299 to an integer");
}

}  // namespace
}  // namespace headlab
