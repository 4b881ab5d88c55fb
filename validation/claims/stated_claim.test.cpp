// SPDX-License-Identifier: Apache-2.0
#include "validation/claims/stated_claim.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/files/error.h"
#include "validation/verdicts/validate.h"

namespace headlab {
namespace {

/// Eight heads of dimension 2 in 8 dimensions; m = 0 unless it is replaced.
const std::string world = R"([scenario]
name = "conjecture"
[data]
n = 50
design = { law = "normal", dim = 8 }
regression = { law = "zero" }
noise = { law = "normal", sd = 1.0 }
[heads]
count = 2
dim = 2
subspaces = { law = "orthogonal" }
kernel = { law = "gaussian", bandwidth = 0.7 }
[queries]
law = "points"
points = [[0, 0, 0, 0, 0, 0, 0, 0]]
[run]
seed = 5
replicates = 8192
[sweep]
"heads.subspaces" = [{ law = "orthogonal" }, { law = "aligned" }]
"heads.count" = [2, 3, 4]
)";

const std::string orthogonal = R"({ figure = "mse", at = { "heads.subspaces" = "orthogonal" } })";
const std::string aligned = R"({ figure = "mse", at = { "heads.subspaces" = "aligned" } })";

std::string compare(const std::string& body, const std::string& name = "claim") {
  return "[[claim.compare]]\nname = \"" + name + "\"\n" + body + "\n";
}

Validation verdicts_on(const std::string& claims, int threads = 0) {
  Session session;
  session.threads = threads;
  return validate_scenario(world + claims, session);
}

const char* verdict_on(const std::string& claim) {
  return verdict_text(verdicts_on(claim).rows.at(0).verdict);
}

// Each kind of comparison, once true and once turned round.
TEST(StatedClaims, KindsHoldAndFail) {
  const std::string each = "for_each = [\"heads.count\"]\nmargin = { relative = 0.01 }\n";
  const std::string one = R"("heads.count" = 2, "heads.subspaces" = "orthogonal")";
  const std::string two = R"("heads.count" = 2, "heads.subspaces" = "aligned")";
  const auto mse = [](const std::string& at) {
    return "{ figure = \"mse\", at = { " + at + " } }";
  };
  struct Case {
    const char* verdict;
    std::string body;
  };
  const std::vector<Case> cases = {
      {"supported", "less = " + orthogonal + "\nthan = " + aligned + "\n" + each},
      {"refuted", "less = " + aligned + "\nthan = " + orthogonal + "\n" + each},
      // Aligned heads are one head.
      {"supported", "equal = [" + mse(two) + ", " +
                        mse(R"("heads.count" = 4, "heads.subspaces" = "aligned")") +
                        "]\nmargin = 1e-9"},
      {"refuted", "equal = [" + mse(one) + ", " + mse(two) + "]\nmargin = { relative = 0.01 }"},
      {"supported", "of = " + mse(one) + "\nat_most = 0.5\nmargin = 0"},
      {"refuted", "of = " + mse(one) + "\nat_least = 0.5\nmargin = 0"},
      {"supported", "ratio = [" + mse(two) + ", " + mse(two) + "]\nequals = 1\nmargin = 0.001"},
      {"refuted", "ratio = [" + mse(one) + ", " + mse(two) + "]\nequals = 1\nmargin = 0.001"},
      {"refuted", "of = " + mse(one) + "\nequals = 0.5\nmargin = { relative = 0.01 }"},
      {"supported",
       "of = " + mse(one) + "\nequals_theory = \"exact\"\nmargin = { relative = 0.02 }"},
      {"supported",
       "monotone = { figure = \"mse\", in = \"heads.count\", direction = \"decreasing\", at = { "
       "\"heads.subspaces\" = \"orthogonal\" } }\nmargin = { relative = 0.001 }"},
      {"refuted",
       "monotone = { figure = \"mse\", in = \"heads.count\", direction = \"increasing\", at = { "
       "\"heads.subspaces\" = \"orthogonal\" } }\nmargin = { relative = 0.001 }"},
      {"supported",
       "argmin = { figure = \"mse\", over = \"heads.count\", is = 4, at = { \"heads.subspaces\" = "
       "\"orthogonal\" } }\nmargin = { relative = 0.001 }"},
      {"refuted",
       "argmin = { figure = \"mse\", over = \"heads.count\", is = 2, at = { \"heads.subspaces\" = "
       "\"orthogonal\" } }\nmargin = { relative = 0.001 }"}};
  for (const Case& one_case : cases) {
    EXPECT_STREQ(verdict_on(compare(one_case.body)), one_case.verdict) << one_case.body;
  }
}

TEST(StatedClaims, TheoryThatIsNotTheWorldsIsRefuted) {
  ValidateOptions options;
  options.substitutes.fault = [](Plan& plan) { plan.n *= 2; };
  const std::string claim = compare(
      "of = { figure = \"mse\", at = { \"heads.count\" = 2, \"heads.subspaces\" = "
      "\"orthogonal\" } }\nequals_theory = \"exact\"\nmargin = { relative = 0.02 }");
  EXPECT_EQ(validate_scenario(world + claim, {}, options).rows.at(0).verdict, Verdict::refuted);
}

TEST(StatedClaims, OneVerdictEachWithAllComparisons) {
  const std::string less = "less = " + orthogonal + "\nthan = " + aligned +
                           "\nfor_each = [\"heads.count\"]\nmargin = 0.01";
  const Validation validation =
      verdicts_on(compare(less, "one") + compare(less + "\nexpected = \"refuted\"", "two"));
  ASSERT_EQ(validation.rows.size(), 2u);
  EXPECT_EQ(validation.comparisons, 6u);
  EXPECT_EQ(validation.rows[0].claim, "conjecture");
  EXPECT_EQ(validation.rows[0].form, "one");
  EXPECT_EQ(validation.rows[1].form, "two");
  ASSERT_EQ(validation.rows[0].effects.size(), 3u);
  EXPECT_EQ(validation.rows[0].effects[0].what,
            "mse at heads.subspaces = orthogonal, heads.count = 2 less than mse at "
            "heads.subspaces = aligned, heads.count = 2");
  EXPECT_TRUE(validation.rows[0].as_expected());
  EXPECT_FALSE(validation.rows[1].as_expected());
}

// Conditions share their draws: the difference is known far better than its terms.
TEST(StatedClaims, ConditionsArePaired) {
  const Comparison effect =
      verdicts_on(compare("equal = [{ figure = \"mse\", at = { \"heads.count\" = 2, "
                          "\"heads.subspaces\" = \"aligned\" } }, { figure = \"mse\", at = { "
                          "\"heads.count\" = 3, \"heads.subspaces\" = \"aligned\" } }]\nmargin = "
                          "0.01"))
          .rows.at(0)
          .decisive;
  EXPECT_LT(effect.effect.mcse, 1e-9);
  const Comparison unpaired =
      verdicts_on(compare("of = { figure = \"mse\", at = { \"heads.count\" = 2, "
                          "\"heads.subspaces\" = \"aligned\" } }\nat_most = 1\nmargin = 0"))
          .rows.at(0)
          .decisive;
  EXPECT_GT(unpaired.effect.mcse, 1e-6);
}

TEST(StatedClaims, SameBitsForAnyThreads) {
  const std::string claim = compare("less = " + orthogonal + "\nthan = " + aligned +
                                    "\nfor_each = [\"heads.count\"]\nmargin = 0.01");
  const Comparison one = verdicts_on(claim, 1).rows.at(0).decisive;
  const Comparison three = verdicts_on(claim, 3).rows.at(0).decisive;
  EXPECT_EQ(one.effect.value, three.effect.value);
  EXPECT_EQ(one.effect.mcse, three.effect.mcse);
}

// The mean over draws of heads is a claim of its own.
TEST(StatedClaims, HeadsMayBeDrawnAgain) {
  std::string text = world + compare(
                                 "less = { figure = \"mse\", at = { \"heads.subspaces\" = "
                                 "\"haar\" } }\nthan = " +
                                 aligned + "\nfor_each = [\"heads.count\"]\nmargin = 0");
  const std::string law = "{ law = \"orthogonal\" }, {";
  text.replace(text.find(law), law.size(), "{ law = \"haar\", redraw = true }, {");
  EXPECT_EQ(validate_scenario(text).rows.at(0).verdict, Verdict::supported);
}

TEST(StatedClaims, RejectsWhatIsUnclear) {
  const std::string than = "\nthan = " + aligned + "\nfor_each = [\"heads.count\"]\n";
  const std::string side =
      "{ figure = \"mse\", at = { \"heads.count\" = 2, \"heads.subspaces\" = "
      "\"aligned\" } }";
  struct Case {
    std::string body;
    std::string problem;
  };
  const std::vector<Case> cases = {
      {"less = " + orthogonal + than, "scenario:22:1: claim.compare[0].margin: is missing"},
      {"less = " + orthogonal + than + "margin = -1", "margin: is -1, must be >= 0"},
      {"less = " + orthogonal + than + "margin = { rel = 1 }", "margin.rel: unknown key"},
      {"less = " + orthogonal + "\nmargin = 0", "claim.compare[0].than: is missing"},
      {"less = { figure = \"msee\" }" + than + "margin = 0",
       "scenario:24:19: claim.compare[0].less.figure: figure \"msee\" is unknown"},
      {"less = { figure = \"mse\" }" + than + "margin = 0",
       "less: fits 2 conditions - add heads.subspaces to `at`, or to `for_each`"},
      {"less = { figure = \"mse\", at = { \"heads.subspaces\" = \"har\" } }" + than + "margin = 0",
       "no condition has heads.count = 2, heads.subspaces = \"har\" (heads.subspaces is "
       "orthogonal, aligned)"},
      {"less = { figure = \"mse\", at = { \"heads.kernel\" = 2 } }" + than + "margin = 0",
       "\"heads.kernel\" is not swept (allowed: heads.subspaces, heads.count)"},
      {"less = { figure = \"mse\", at = 3 }" + than + "margin = 0", "less.at: is an integer"},
      {"less = { figure = \"mse\", at = { \"heads.count\" = 2 } }" + than + "margin = 0",
       "\"heads.count\" is in `for_each` too"},
      {"less = " + orthogonal + than + "margin = 0\nexpected = \"true\"", "expected: is \"true\""},
      {"less = " + orthogonal + than + "margin = 0\nequals = 1", "equals: needs `of` or `ratio`"},
      {"less = " + orthogonal + than + "margin = 0\nof = 1", "states less, of at once"},
      {"than = " + orthogonal + "\nmargin = 0", "states no comparison"},
      {"of = " + side + "\nmargin = 0", "needs one of equals, at_most, at_least, equals_theory"},
      {"of = " + side + "\nmargin = 0\nequals = 1\nat_most = 2", "has equals, at_most"},
      {"of = " + side + "\nmargin = { relative = 1 }\nequals = 0", "a margin relative to 0 is 0"},
      {"of = " + side + "\nmargin = 0\nequals = nan", "equals: is nan"},
      {"of = " + side + "\nmargin = 0\nequals_theory = \"exakt\"", "equals_theory: is \"exakt\""},
      {"ratio = " + side + "\nmargin = 0\nequals = 1", "ratio: needs an array of two tables"},
      {"monotone = { figure = \"mse\", in = \"heads.count\", direction = \"up\", at = { "
       "\"heads.subspaces\" = \"aligned\" } }\nmargin = 0",
       "direction: is \"up\" (allowed: increasing, decreasing)"},
      {"monotone = { figure = \"mse\", in = \"heads.dim\", direction = \"increasing\" }\nmargin = "
       "0",
       "\"heads.dim\" is not swept"},
      {"argmin = { figure = \"mse\", over = \"heads.count\", is = 7, at = { \"heads.subspaces\" = "
       "\"aligned\" } }\nmargin = 0",
       "no condition has heads.subspaces = \"aligned\", heads.count = 7 (heads.count is 2, 3, 4)"},
      {"of = { figure = \"head_bias[0,5]\", at = { \"heads.count\" = 2, \"heads.subspaces\" = "
       "\"aligned\" } }\nmargin = 0\nequals = 0",
       "head_bias[0,5] is undefined in condition #3 (2 heads"},
      {"nonsense = 1\nmargin = 0", "nonsense: unknown key"}};
  for (const Case& one : cases) {
    try {
      verdicts_on(compare(one.body));
      ADD_FAILURE() << "accepted: " << one.body;
    } catch (const InvalidInput& error) {
      EXPECT_NE(std::string(error.what()).find(one.problem), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
}

TEST(StatedClaims, RejectsScenariosThatCannotDecide) {
  const std::string claim = compare("less = " + orthogonal + "\nthan = " + aligned +
                                    "\nfor_each = [\"heads.count\"]\nmargin = 0");
  const auto problem_of = [&](const std::string& from, const std::string& to) {
    std::string text = world + claim;
    text.replace(text.find(from), from.size(), to);
    try {
      validate_scenario(text);
    } catch (const InvalidInput& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_NE(problem_of("8192", "8000").find("8000 are too few for a verdict"), std::string::npos);
  EXPECT_NE(problem_of("\"heads.count\" = [2, 3, 4]\n",
                       "\"heads.count\" = [2, 3, 4]\n\"run.replicates\" = [8192, 9000]\n")
                .find("run.replicates is swept"),
            std::string::npos);
  EXPECT_NE(problem_of("[[claim.compare]]", "[claim]\nindex = []\n[[claim.other]]").find("unknown"),
            std::string::npos);
}

}  // namespace
}  // namespace headlab
