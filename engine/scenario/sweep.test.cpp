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

TEST(Progression, KeepsDigitsWhereAsked) {
  EXPECT_EQ(values_of("{ logspace = [100, 1000, 4], digits = 2 }"), "[100, 220, 460, 1000]");
  EXPECT_EQ(values_of("{ logspace = [0.01, 1, 5], digits = 3 }"),
            "[0.01, 0.0316, 0.1, 0.316, 1.0]");
  EXPECT_EQ(values_of("{ linspace = [1.0, 1.2, 9], digits = 2 }"), "[1.0, 1.1, 1.2]");
  EXPECT_EQ(values_of("{ linspace = [1, 2, 3], digits = 0 }"),
            "s: k.digits: is 0, must be in [1, 15]");
  EXPECT_EQ(values_of("{ linspace = [1, 2, 3], digits = 2, round = true }"),
            "s: k: has both round and digits - leave one out");
}

TEST(Progression, RefusesInOneLine) {
  const std::string three = "s: k.linspace: needs [first, last, number of values]";
  EXPECT_EQ(values_of("{ linspace = 3 }"), three);
  EXPECT_EQ(values_of("{ linspace = [1, 2] }"), three);
  EXPECT_EQ(values_of("{ linspace = [1, nan, 3] }"),
            "s: k.linspace[1]: is nan, needs a finite number");
  EXPECT_EQ(values_of("{ linspace = [1, 2, \"3\"] }"),
            "s: k.linspace[2]: is \"3\", needs a number - write 3");
  EXPECT_EQ(values_of("{ linspace = [1, 2, 1] }"),
            "s: k.linspace: number of values is 1, must be an integer in [2, 1000]");
  EXPECT_EQ(values_of("{ linspace = [1, 2, 2.5] }"),
            "s: k.linspace: number of values is 2.5, must be an integer in [2, 1000]");
  EXPECT_EQ(
      values_of("{ linspace = [1, 2, 3], logspace = [1, 2, 3] }"),
      "s: k.logspace: cannot be given here (allowed: one of linspace, logspace and range, with "
      "round or digits)");
  EXPECT_EQ(values_of("{ linspace = [1, 2, 3], round = 1 }"),
            "s: k.round: is 1, needs true or false - write true");
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

/// Keys a, b, c and bandwidth of all conditions, or the error.
std::string conditions_of(const std::string& sweep) {
  std::string text;
  try {
    const Sweep all(parse_toml("a = 1\nh = { b = 2, c = [3, 4] }\n" + sweep, "s.toml"));
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Value one = all.condition(i);
      std::string line = to_toml(*value_at(one, "a")) + " " + to_toml(*value_at(one, "h.b")) + " " +
                         to_toml(*value_at(one, "h.c"));
      if (const Value* width = value_at(one, "h.width")) line += " " + to_toml(*width);
      text += line + "\n";
    }
  } catch (const InvalidInput& error) {
    text += error.what();
  }
  return text;
}

TEST(Sweep, CrossesTablesAndVariesTheKeysOfOneTogether) {
  EXPECT_EQ(conditions_of("[[sweep]]\nzip = true\na = [1, 2]\n\"h.b\" = [5, 6]\n"
                          "[[sweep]]\n\"h.c[1]\" = [7, 8]\n"),
            "1 5 [3, 7]\n1 5 [3, 8]\n2 6 [3, 7]\n2 6 [3, 8]\n");
  EXPECT_EQ(conditions_of("[[sweep]]\na = [1, 2]\n\"h.b\" = [5, 6]\n"),
            "1 5 [3, 4]\n1 6 [3, 4]\n2 5 [3, 4]\n2 6 [3, 4]\n");
  EXPECT_EQ(conditions_of("[[sweep]]\na = [1, 2]\n[[sweep]]\nzip = true\n\"h.b\" = [1]\n\"h.c\" "
                          "= [[1], [2]]\n"),
            "s.toml:8:1: sweep.h.c: has 2 values, h.b has 1 - with zip = true all need the same "
            "number");
  EXPECT_EQ(conditions_of("[sweep]\n\"h.c[2]\" = [7]\n"),
            "s.toml:4:13: h.c: has 2 elements, and no [2]");
}

TEST(Sweep, LabelsAreAKeyThatVariesWithTheOthers) {
  const std::string root = "a = 1\nh = { b = 2 }\n";
  const Sweep all(parse_toml(root +
                                 "[[sweep]]\nlabel = \"angle (rad)\"\nlabels = [\"thin\", "
                                 "\"thick\"]\na = [1, 2]\n[[sweep]]\nlabel = \"b\"\n\"h.b\" = [5, "
                                 "6]\n",
                             "s.toml"));
  EXPECT_EQ(all.keys(),
            (std::vector<std::string>{"labels.\"angle (rad)\"", "a", "labels.b", "h.b"}));
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(to_toml(*value_at(all.condition(2), "labels.\"angle (rad)\"")), "\"thick\"");
  EXPECT_EQ(to_toml(*value_at(all.condition(2), "a")), "2");
  EXPECT_EQ(to_toml(*value_at(all.condition(3), "labels.b")), "6");
  EXPECT_EQ(to_toml(*value_at(all.condition(3), "h.b")), "6");
  EXPECT_EQ(conditions_of("[sweep]\na = [1, 2]\nlabels = [1, 2]\n"),
            "s.toml:5:11: sweep.labels: has an integer, needs strings");
}

TEST(Sweep, ComputesFormulasOfOtherKeys) {
  EXPECT_EQ(
      conditions_of("[sweep]\na = [1, 4]\n\"h.width\" = { formula = \"sqrt(a) + h.c[1]\" }\n"),
      "1 2 [3, 4] 5\n4 2 [3, 4] 6\n");
  // Formulas of formulas, by the last part of a key, and rounding that does not show.
  EXPECT_EQ(conditions_of("[sweep]\na = [1, 3]\n\"h.b\" = { formula = \"0.1 * a\" }\n\"h.width\" = "
                          "{ formula = \"b * 10\" }\n"),
            "1 0.1 [3, 4] 1\n3 0.3 [3, 4] 3\n");
  EXPECT_EQ(
      conditions_of("[g]\nwidth = { formula = \"a + 1\" }\n[sweep]\n\"h.width\" = [7]\na = { "
                    "formula = \"width\" }"),
      "s.toml:7:5: a: has a formula with width: several keys end so - write h.width or g.width");
  EXPECT_EQ(conditions_of("[sweep]\na = [0]\n\"h.width\" = { formula = \"1 / a\" }\n"),
            "s.toml:5:25: h.width.formula: is not finite for a = 0");
  EXPECT_EQ(conditions_of("[sweep]\na = [0]\n\"h.width\" = { formula = \"1 + h.d\" }\n"),
            "s.toml:5:13: h.width: has a formula with h.d, which is not a number of the scenario "
            "(allowed: a, h.b, h.width) - did you mean \"h.b\"?");
  EXPECT_EQ(conditions_of("[sweep]\na = [0]\n\"h.width\" = { formula = \"1 + h.b\" }\n\"h.b\" = { "
                          "formula = \"h.width\" }\n"),
            "s.toml:6:9: h.b: has a formula that needs itself");
  EXPECT_EQ(
      conditions_of("[sweep]\n\"h.width\" = { formula = \"1 +\" }\na = [0]\n"),
      "s.toml:4:25: h.width.formula: ends where a number or a name should stand (at its end)");
  EXPECT_EQ(conditions_of("[sweep]\n\"h.width\" = { formula = \"1\" }\n"),
            "s.toml:3:1: sweep: has formulas alone - put them where the keys stand");
}

}  // namespace
}  // namespace headlab
