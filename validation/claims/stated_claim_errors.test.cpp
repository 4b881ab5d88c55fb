// SPDX-License-Identifier: Apache-2.0
// What is wrong in a table [[claim.compare]] is said in one line.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/testing/refusal.h"
#include "validation/claims/testing/stated_claim_world.h"
#include "validation/verdicts/validate.h"

namespace headlab {
namespace {

using namespace stated;

TEST(StatedClaimErrors, RejectsWhatIsUnclear) {
  const std::string than = "\nthan = " + aligned + "\nfor_each = [\"heads.count\"]\n";
  const std::string side =
      "{ figure = 'mse', at = { 'heads.count' = 2, 'heads.subspaces' = 'aligned' } }";
  struct Case {
    std::string body;
    std::string problem;
  };
  const std::vector<Case> cases = {
      {"less = " + orthogonal + than, "scenario:22:1: claim.compare[0].margin: is missing"},
      {"less = " + orthogonal + than + "margin = -1", "margin: is -1, must be >= 0"},
      {"less = " + orthogonal + than + "margin = { rel = 1 }", "margin.rel: unknown key"},
      {"less = " + orthogonal + "\nmargin = 0", "claim.compare[0].than: is missing"},
      {"less = { figure = 'msee' }" + than + "margin = 0",
       "scenario:24:19: claim.compare[0].less.figure: figure \"msee\" is unknown"},
      {"less = { figure = 'mse' }" + than + "margin = 0",
       "less: fits 2 conditions - add heads.subspaces to `at`, or to `for_each`"},
      {"less = { figure = 'mse', at = { 'heads.subspaces' = 'har' } }" + than + "margin = 0",
       "no condition has heads.count = 2, heads.subspaces = \"har\" (heads.subspaces is "
       "orthogonal, aligned)"},
      {"less = { figure = 'mse', at = { 'heads.kernel' = 2 } }" + than + "margin = 0",
       "\"heads.kernel\" is not swept (allowed: heads.subspaces, heads.count)"},
      {"less = { figure = 'mse', at = { count = 2 } }" + than + "margin = 0",
       "claim.compare[0].less.at: \"count\" is not a whole key - write heads.count"},
      {"slope = { figure = 'mse', over = 'count', equals = 1 }\nmargin = 0",
       "claim.compare[0].slope: \"count\" is not a whole key - write heads.count"},
      {"monotone = { figure = 'mse', in = 'coutn', direction = 'increasing' }\nmargin = 0",
       "claim.compare[0].monotone: \"coutn\" is not swept (allowed: heads.subspaces, heads.count) "
       "- did you mean \"heads.count\"?"},
      {"less = { figure = 'mse', at = 3 }" + than + "margin = 0", "less.at: is 3, needs a table"},
      {"less = { figure = 'mse', at = { 'heads.count' = 2 } }" + than + "margin = 0",
       "\"heads.count\" is in `for_each` too"},
      {"less = " + orthogonal + than + "margin = 0\nexpected = 'true'", "expected: is \"true\""},
      {"less = " + orthogonal + than + "margin = 0\nequals = 1", "equals: needs `of` or `ratio`"},
      {"less = " + orthogonal + than + "margin = 0\nof = 1", "states less, of at once"},
      {"than = " + orthogonal + "\nmargin = 0", "states no comparison"},
      {"of = " + side + "\nmargin = 0", "needs one of equals, at_most, at_least, equals_theory"},
      {"of = " + side + "\nmargin = 0\nequals = 1\nat_most = 2", "has equals, at_most"},
      {"of = " + side + "\nmargin = { relative = 1 }\nequals = 0", "a margin relative to 0 is 0"},
      {"of = " + side + "\nmargin = 0\nequals = nan", "equals: is nan"},
      {"of = " + side + "\nmargin = 0\nequals_theory = 'exakt'", "equals_theory: is \"exakt\""},
      {"ratio = " + side + "\nmargin = 0\nequals = 1", "ratio: needs an array of two tables"},
      {"monotone = { figure = 'mse', in = 'heads.count', direction = 'up', at = { "
       "'heads.subspaces' = 'aligned' } }\nmargin = 0",
       "direction: is \"up\" (allowed: increasing, decreasing)"},
      {"monotone = { figure = 'mse', in = 'heads.dim', direction = 'increasing' }\nmargin = 0",
       "\"heads.dim\" is not swept"},
      {"slope = { figure = 'mse', over = 'heads.count' }\nmargin = 0",
       "claim.compare[0].slope: needs one of equals, at_most, at_least; has none"},
      {"slope = { figure = 'mse', over = 'heads.count' }\nmargin = 0\nequals = 1",
       "claim.compare[0].equals: belongs into the table of `slope`"},
      {"slope = { figure = 'mse', over = 'heads.subspaces', at = { 'heads.count' = 2 }, equals = 1 "
       "}\nmargin = 0",
       "goes along \"heads.subspaces\", whose values are not numbers"},
      {"crossing = { figure = 'mse', over = 'heads.count', first = { 'heads.subspaces' = 'aligned' "
       "}, second = { 'heads.subspaces' = 'orthogonal' }, between = [3, 2] }\nmargin = 0",
       "between: needs two numbers that rise, as [100, 200]"},
      {"crossing = { figure = 'mse', over = 'heads.count', first = { 'heads.subspaces' = 'aligned' "
       "}, second = { 'heads.subspaces' = 'orthogonal' }, between = [1, 3] }\nmargin = 0",
       "is not within the values of \"heads.count\", 2 to 4"},
      {"argmin = { figure = 'mse', over = 'heads.count', is = 7, at = { 'heads.subspaces' = "
       "'aligned' } }\nmargin = 0",
       "no condition has heads.subspaces = \"aligned\", heads.count = 7 (heads.count is 2, 3, 4)"},
      {"of = { figure = 'head_bias[0,5]', at = { 'heads.count' = 2, 'heads.subspaces' = 'aligned' "
       "} }\nmargin = 0\nequals = 0",
       "head_bias[0,5] is undefined in condition #3 (2 heads"},
      {"nonsense = 1\nmargin = 0",
       "claim.compare[0].nonsense: unknown key (allowed: name, statement, assumptions, refuted_by, "
       "origin, expected, all, less, than, equal, of, ratio, equals, at_most, at_least, "
       "equals_theory, monotone, argmin, slope, crossing, for_each, margin, unit)"},
      {"less = { figure = 'mse', where = 3 }" + than + "margin = 0",
       "claim.compare[0].less.where: unknown key (allowed: figure, at)"},
      {"less = { at = { 'heads.subspaces' = 'aligned' } }" + than + "margin = 0",
       "claim.compare[0].less.figure: is missing"},
      {"less = { figure = 'head_bias' }" + than + "margin = 0", "head_bias"},
      {"less = " + orthogonal + "\nthan = " + aligned + "\nfor_each = ['heads.kernel']\nmargin = 0",
       "claim.compare[0].for_each: \"heads.kernel\" is not swept (allowed: heads.subspaces, "
       "heads.count)"},
      {"less = " + orthogonal + "\nthan = " + aligned + "\nfor_each = 3\nmargin = 0",
       "claim.compare[0].for_each: "},
      {"equal = [" + side + "]\nmargin = 0", "equal: needs an array of two tables"},
      {"equal = [" + side + ", 3]\nmargin = 0", "claim.compare[0].equal[1]: "},
      {"of = " + side + "\nmargin = nan\nequals = 1",
       "claim.compare[0].margin: is nan, needs a finite number"},
      {"of = " + side + "\nmargin = inf\nequals = 1",
       "claim.compare[0].margin: is inf, needs a finite number"},
      {"of = " + side + "\nmargin = { relative = nan }\nequals = 1",
       "claim.compare[0].margin.relative: is nan, needs a finite number"},
      {"of = " + side + "\nmargin = 0\nequals = 1\nunit = 's2'", "unit: is \"s2\""},
      {"all = 3\nmargin = 0", "claim.compare[0].all: needs an array of tables"},
      {"all = []\nmargin = 0", "claim.compare[0].all: needs an array of tables"},
      {"all = [3]\nmargin = 0", "claim.compare[0].all[0]"},
      {"all = [{ of = " + side + ", equals = 1 }]", "claim.compare[0].margin: is missing"},
      {"all = [{ of = " + side + " }]\nmargin = 0", "claim.compare[0].all[0]: needs one of"},
      {"all = [{ of = " + side + ", equals = 1, name = 'x' }]\nmargin = 0",
       "claim.compare[0].all[0].name: unknown key"},
      {"all = [{ of = " + side + ", equals = 1, margin = -1 }]\nmargin = 0",
       "claim.compare[0].all[0].margin: is -1"},
      {"all = [{ of = " + side + ", equals = 1 }]\nof = " + side + "\nmargin = 0",
       "claim.compare[0].of: stands next to `all`"},
      {"of = " + side + "\nmargin = {}\nequals = 1",
       "claim.compare[0].margin.relative: is missing"},
      {"of = " + side + "\nmargin = 0\nat_most = inf",
       "claim.compare[0].at_most: is inf, needs a finite number"},
      {"of = " + side + "\nmargin = 0\nat_least = -nan",
       "claim.compare[0].at_least: is nan, needs a finite number"},
      {"of = " + side + "\nmargin = 0\nequals = '1'", "equals: is \"1\", needs a number - write 1"},
      {"ratio = [" + side + ", " + side + "]\nmargin = 0\nequals_theory = 'exact'",
       "equals_theory: needs `of`: closed forms are of single figures"},
      {"than = " + side + "\nof = " + side + "\nmargin = 0\nequals = 1", "than: needs `less`"},
      {"monotone = { figure = 'mse', in = 'heads.count' }\nmargin = 0",
       "claim.compare[0].monotone.direction: is missing"},
      {"monotone = { figure = 'mse', in = 'heads.count', direction = 'increasing', at = { "
       "'heads.subspaces' = 'aligned', 'heads.count' = 2 } }\nmargin = 0",
       "claim.compare[0].monotone: goes along \"heads.count\", which `at` or `for_each` fixes"},
      {"monotone = { figure = 'mse', in = 'heads.count', direction = 'increasing' }\nfor_each = "
       "['heads.subspaces', 'heads.count']\nmargin = 0",
       "claim.compare[0].monotone: goes along \"heads.count\", which `at` or `for_each` fixes"},
      {"monotone = { figure = 'mse', in = 'heads.count', direction = 'increasing' }\nmargin = 0",
       "fits 2 conditions - add heads.subspaces to `at`, or to `for_each`"},
      {"argmin = { figure = 'mse', over = 'heads.count' }\nmargin = 0",
       "claim.compare[0].argmin.is: is missing"},
      {"argmin = { figure = 'mse', over = 'heads.count', is = nan, at = { 'heads.subspaces' = "
       "'aligned' } }\nmargin = 0",
       "no condition has heads.subspaces = \"aligned\", heads.count = nan"},
      {"less = " + mse(2, "aligned") + "\nthan = " + mse(2, "aligned") + "\nmargin = 0",
       "claim.compare[0].than: is mse at heads.subspaces = aligned, heads.count = 2, which it is "
       "compared with"},
      {"equal = [" + mse(2, "aligned") + ", " + mse(2, "aligned") + "]\nmargin = 0",
       "claim.compare[0].equal[1]: is mse"},
      // The signal is zero, so that no head is biased.
      {"of = { figure = 'head_bias[0,0]', at = { 'heads.count' = 2, 'heads.subspaces' = 'aligned' "
       "} }\nmargin = { relative = 0.1 }\nequals_theory = 'exact'",
       "head_bias[0,0] has a closed form of 0, and a margin relative to 0 is 0 - give an absolute "
       "one"}};
  for (const Case& one : cases) {
    EXPECT_PRED_FORMAT2(testing::IsSubstring, one.problem,
                        refusal_line([&] { verdicts_on(compare(one.body)); }))
        << one.body;
  }
}

std::string message_of(const std::string& text) {
  return refusal_line([&] { validate_scenario(text, {.threads = 2}); });
}

TEST(StatedClaimErrors, RejectsTablesThatAreNoClaims) {
  const std::string body = "of = " + mse(2, "aligned") + "\nat_most = 1\nmargin = 0\n";
  struct Case {
    std::string claims;
    std::string problem;
  };
  const std::vector<Case> cases = {
      {"[[claim.compare]]\n" + body, "claim.compare[0].name: is missing"},
      {"[[claim.compare]]\nname = 3\n" + body, "claim.compare[0].name: is 3, needs a string"},
      {compare(body, "one") + compare(body, "one"),
       "claim.compare[1].name: \"one\" is the name of another claim"},
      {compare(body, "one") + compare(body + "ratio = 1", "two"), "claim.compare[1]: states of"},
      {"[claim]\ncompare = []\n", "claim.compare: needs tables - write [[claim.compare]]"},
      {"[claim]\ncompare = 3\n", "claim.compare: needs tables - write [[claim.compare]]"},
      {"[claim]\ncompare = [3]\n", "claim.compare[0]: "},
      {"[claim]\nform = \"centre\"\n" + compare(body),
       "claim.form: is of a claim in the program - write it in [[claim.compare]]"},
      {"[claim]\nmargin = 0.1\n" + compare(body), "claim.margin: is of a claim in the program"}};
  for (const Case& one : cases) {
    const std::string message = message_of(world + one.claims);
    EXPECT_NE(message.find(one.problem), std::string::npos) << message;
  }
  EXPECT_EQ(message_of(world + compare(body)), "accepted");
}

// A scenario without a sweep has one condition, which needs no `at`.
TEST(StatedClaimErrors, NeedNoSweep) {
  const std::string alone = world.substr(0, world.find("[sweep]"));
  EXPECT_EQ(message_of(alone + compare("of = { figure = \"mse\" }\nat_most = 1\nmargin = 0")),
            "accepted");
  const std::string at = message_of(
      alone + compare("of = { figure = \"mse\", at = { \"heads.count\" = 2 } }\nat_most = "
                      "1\nmargin = 0"));
  EXPECT_NE(at.find("\"heads.count\" is not swept - there is no [sweep]"), std::string::npos) << at;
}

// Laws of one name are told apart by their whole tables, in claims and in what is said of them.
TEST(StatedClaimErrors, LawsOfOneNameNeedTheirTables) {
  const std::string alone = world.substr(0, world.find("[sweep]"));
  const std::string laws =
      alone +
      "[sweep]\n\"heads.subspaces\" = [{ law = \"equiangular\", angle = 0.5 }, { law = "
      "\"equiangular\", angle = 0.9 }]\n";
  const auto claim = [](const std::string& value) {
    return compare("of = { figure = \"mse\", at = { \"heads.subspaces\" = " + value +
                   " } }\nat_most = 1\nmargin = 0");
  };
  const std::string by_name = message_of(laws + claim("\"equiangular\""));
  EXPECT_NE(by_name.find("claim.compare[0].of: heads.subspaces = \"equiangular\" is the name of "
                         "more than one law of the sweep - write the whole table"),
            std::string::npos)
      << by_name;
  const Validation validation =
      validate_scenario(laws + claim("{ law = \"equiangular\", angle = 0.9 }"), {.threads = 2});
  EXPECT_NE(validation.rows.at(0).decisive.what.find("angle = 0.9"), std::string::npos)
      << validation.rows.at(0).decisive.what;
  const std::string repeated = message_of(
      alone + "[sweep]\n\"heads.count\" = [2, 2]\n" +
      compare("of = { figure = \"mse\", at = { \"heads.count\" = 2 } }\nat_most = 1\nmargin = 0"));
  EXPECT_NE(repeated.find("sweep.heads.count: has 2 twice - leave one out"), std::string::npos)
      << repeated;
}

TEST(StatedClaimErrors, RejectsScenariosThatCannotDecide) {
  const std::string claim = compare("less = " + orthogonal + "\nthan = " + aligned +
                                    "\nfor_each = [\"heads.count\"]\nmargin = 0");
  const auto problem_of = [&](const std::string& from, const std::string& to) {
    std::string text = world + claim;
    text.replace(text.find(from), from.size(), to);
    return refusal_line([&] { validate_scenario(text); });
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
