// SPDX-License-Identifier: Apache-2.0
#include "validation/claims/stated_claim.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "engine/files/error.h"
#include "engine/moments/figure_name.h"
#include "engine/run/run.h"
#include "engine/scenario/scenario.h"
#include "engine/testing/refusal.h"
#include "validation/claims/figure_comparison.h"
#include "validation/claims/testing/stated_claim_world.h"
#include "validation/theory/theory.h"
#include "validation/verdicts/validate.h"

namespace headlab {

namespace {

using namespace stated;

std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", x);
  return text;
}

/// The MSE of two heads at right angles, from its closed form.
double exact_mse() {
  static const double value =
      compute_theory(parse_scenario(world, "world").conditions.at(0), TheorySource::exact, 2)
          .figures.mse.value;
  return value;
}

/// A kind of comparison as a claim that is true, and as one that is false: its inequality turned
/// round, or its number, direction or place changed.
struct Kind {
  std::string key;       ///< of the table [[claim.compare]]
  std::string relation;  ///< to a number, where the kind has one
  std::string holds;
  std::string fails;
};

std::vector<Kind> kinds() {
  const std::string each = "\nfor_each = [\"heads.count\"]\n";
  const std::string fine = "\nmargin = { relative = 0.005 }";
  const std::string of = "of = " + mse(2, "orthogonal") + "\n";
  const std::string ratio = "ratio = [" + mse(2, "orthogonal") + ", " + mse(2, "aligned") + "]\n";
  const std::string turned = "ratio = [" + mse(2, "aligned") + ", " + mse(2, "orthogonal") + "]\n";
  const double low = 0.9 * exact_mse();
  const double high = 1.1 * exact_mse();
  return {
      {"less", "", "less = " + orthogonal + "\nthan = " + aligned + each + fine,
       "less = " + aligned + "\nthan = " + orthogonal + each + fine},
      {"less", "", "less = " + mse(4, "orthogonal") + "\nthan = " + mse(2, "orthogonal") + fine,
       "less = " + mse(2, "orthogonal") + "\nthan = " + mse(4, "orthogonal") + fine},
      // Two figures of one condition.
      {"less", "",
       "less = " + one_figure("covariance_term", 2, "orthogonal") +
           "\nthan = " + one_figure("variance_term", 2, "orthogonal") + "\nmargin = 0.001",
       "less = " + one_figure("variance_term", 2, "orthogonal") +
           "\nthan = " + one_figure("covariance_term", 2, "orthogonal") + "\nmargin = 0.001"},
      // Aligned heads are one head.
      {"equal", "", "equal = [" + mse(2, "aligned") + ", " + mse(4, "aligned") + "]\nmargin = 1e-9",
       "equal = [" + mse(2, "aligned") + ", " + mse(2, "orthogonal") + "]\nmargin = 1e-9"},
      {"of", "equals", of + "equals = " + number(exact_mse()) + "\nmargin = { relative = 0.02 }",
       of + "equals = " + number(high) + "\nmargin = { relative = 0.02 }"},
      {"of", "at_most", of + "at_most = " + number(high) + "\nmargin = 0",
       of + "at_most = " + number(low) + "\nmargin = 0"},
      {"of", "at_least", of + "at_least = " + number(low) + "\nmargin = 0",
       of + "at_least = " + number(high) + "\nmargin = 0"},
      {"ratio", "equals",
       "ratio = [" + mse(2, "aligned") + ", " + mse(3, "aligned") + "]\nequals = 1" + fine,
       ratio + "equals = 1" + fine},
      {"ratio", "at_most", ratio + "at_most = 1" + fine, turned + "at_most = 1" + fine},
      {"ratio", "at_least", turned + "at_least = 1" + fine, ratio + "at_least = 1" + fine},
      {"monotone", "", monotone("orthogonal", "decreasing") + fine,
       monotone("orthogonal", "increasing") + fine},
      {"argmin", "", argmin("orthogonal", 4) + fine, argmin("orthogonal", 2) + fine},
      // Heads at right angles add information, and more of them have less error.
      {"slope", "at_most", slope("at_most = -0.05") + fine, slope("at_least = -0.05") + fine},
      // They are the better ones throughout: a crossing is one up to a margin alone.
      {"crossing", "", crossing("orthogonal", "aligned") + "margin = { relative = 2 }",
       crossing("orthogonal", "aligned") + fine}};
}

TEST(StatedClaims, KindsAreSupportedWhereTrueAndRefutedWhereFalse) {
  for (const Kind& kind : kinds()) {
    EXPECT_STREQ(verdict_of(compare(kind.holds)), "supported") << kind.holds;
    EXPECT_STREQ(verdict_of(compare(kind.fails)), "refuted") << kind.fails;
  }
}

// A closed form cannot be misquoted in a claim: here it is the world that is another.
TEST(StatedClaims, ClosedFormsAreSupportedAndRefutedInAnotherWorld) {
  for (const char* source : {"exact", "auto"}) {
    const std::string claim = compare("of = " + mse(2, "orthogonal") + "\nequals_theory = \"" +
                                      source + "\"\nmargin = { relative = 0.02 }");
    EXPECT_STREQ(verdict_of(claim), "supported");
    ValidateOptions options;
    options.substitutes.fault = [](Plan& plan) { plan.n *= 2; };
    EXPECT_EQ(validate_scenario(world + claim, {}, options).rows.at(0).verdict, Verdict::refuted);
  }
}

/// The words between `before` and `after` in the message that `claim` is rejected with.
std::set<std::string> words_in_message(const std::string& claim, const std::string& before,
                                       const std::string& after) {
  std::set<std::string> words;
  const std::string text = refusal_line([&] { verdicts_on(claim); });
  EXPECT_NE(text, "accepted") << claim;
  const std::size_t begin = text.find(before) + before.size();
  std::istringstream list(text.substr(begin, text.find(after, begin) - begin));
  for (std::string word; std::getline(list >> std::ws, word, ',');) words.insert(word);
  return words;
}

// A kind that is added without a row above fails here.
TEST(StatedClaims, EveryKindHasARowOfItsOwn) {
  std::set<std::string> keys;
  std::set<std::string> relations = {"equals_theory"};  // by the test after
  for (const Kind& kind : kinds()) {
    keys.insert(kind.key);
    if (!kind.relation.empty()) relations.insert(kind.relation);
  }
  EXPECT_EQ(words_in_message(compare("margin = 0"), "(allowed: ", ")"), keys);
  EXPECT_EQ(
      words_in_message(compare("of = " + mse(2, "aligned") + "\nmargin = 0"), "needs one of ", ";"),
      relations);
}

// What ties within the margin is not refuted, whichever way round it is claimed; where the tie is
// wider than the margin it is.
TEST(StatedClaims, TiesWithinTheMarginAreNotRefuted) {
  const std::string of = "of = " + mse(2, "orthogonal") + "\n";
  const std::string ratio = "ratio = [" + mse(4, "aligned") + ", " + mse(2, "aligned") + "]\n";
  for (const double off : {-0.03, 0.03}) {
    for (const char* relation : {"equals", "at_most", "at_least"}) {
      const std::string claim =
          of + relation + " = " + number((1 + off) * exact_mse()) + "\nmargin = { relative = ";
      EXPECT_STRNE(verdict_of(compare(claim + "0.04 }")), "refuted") << claim;
      const bool wrong_side =
          std::string(relation) == (off < 0 ? "at_most" : "at_least") || relation[0] == 'e';
      EXPECT_STREQ(verdict_of(compare(claim + "0.0001 }")), wrong_side ? "refuted" : "supported")
          << claim;
    }
  }
  // Heads that are alike are one head, however many they are: equal but for rounding.
  for (const char* margin : {"\nmargin = 0", "\nmargin = { relative = 0 }", "\nmargin = 1e-9"}) {
    for (const std::string& tie :
         {"less = " + mse(2, "aligned") + "\nthan = " + mse(4, "aligned"),
          "less = " + mse(4, "aligned") + "\nthan = " + mse(2, "aligned"),
          "equal = [" + mse(2, "aligned") + ", " + mse(3, "aligned") + "]", ratio + "equals = 1",
          ratio + "at_most = 1", ratio + "at_least = 1", monotone("aligned", "increasing"),
          monotone("aligned", "decreasing"), argmin("aligned", 2), argmin("aligned", 3),
          argmin("aligned", 4)}) {
      EXPECT_STREQ(verdict_of(compare(tie + margin)), "supported") << tie << margin;
    }
  }
}

TEST(StatedClaims, OneVerdictEachWithAllComparisons) {
  const std::string less = "less = " + orthogonal + "\nthan = " + aligned +
                           "\nfor_each = [\"heads.count\"]\nmargin = 0.01";
  const Validation validation =
      verdicts_on(compare(less, "one") + compare(less + "\nexpected = \"refuted\"", "two"));
  ASSERT_EQ(validation.rows.size(), 2u);
  EXPECT_EQ(validation.comparisons, 6u);
  EXPECT_EQ(validation.rows[0].claim, "world");
  EXPECT_EQ(validation.rows[0].form, "one");
  EXPECT_EQ(validation.rows[1].form, "two");
  ASSERT_EQ(validation.rows[0].effects.size(), 3u);
  EXPECT_EQ(validation.rows[0].effects[0].what,
            "mse at heads.subspaces = orthogonal, heads.count = 2 less than mse at "
            "heads.subspaces = aligned, heads.count = 2");
  EXPECT_TRUE(validation.rows[0].as_expected());
  EXPECT_FALSE(validation.rows[1].as_expected());
}

// n C / s2 = 1 at right angles, whatever n and s2; in the figure's own unit that is another number.
TEST(StatedClaims, UnitOfTheNoise) {
  std::string text = world;
  text.replace(text.find("sd = 1.0"), 8, "sd = 3.0");
  const std::string of =
      "of = " + one_figure("head_covariance_mean", 2, "orthogonal") + "\nequals = 1\nmargin = 0.05";
  const auto verdict = [&](const std::string& claim) {
    return validate_scenario(text + compare(claim), {.threads = 2}).rows.at(0);
  };
  EXPECT_EQ(verdict(of).verdict, Verdict::refuted);
  const VerdictRow row = verdict(of + "\nunit = \"s2/n\"");
  EXPECT_EQ(row.verdict, Verdict::supported);
  EXPECT_NEAR(row.decisive.observed, 1, 0.05);
  // Whichever way a number bounds a figure, the figure is what was observed.
  for (const char* relation : {"at_most", "at_least"}) {
    const VerdictRow bounded =
        verdict("of = " + one_figure("head_covariance_mean", 2, "orthogonal") + "\n" + relation +
                " = 7\nmargin = 0.05\nunit = \"s2/n\"");
    EXPECT_NEAR(bounded.decisive.observed, 1, 0.05) << relation;
    EXPECT_EQ(bounded.decisive.expected, 7) << relation;
  }
  // The closed form has the same unit.
  const VerdictRow form = verdict("of = " + one_figure("head_covariance_mean", 2, "orthogonal") +
                                  "\nequals_theory = \"exact\"\nmargin = 0.05\nunit = \"s2/n\"");
  EXPECT_EQ(form.verdict, Verdict::supported);
  EXPECT_NEAR(form.decisive.expected, 1, 1e-3);
  text.replace(text.find("sd = 3.0"), 8, "sd = 0.0");
  EXPECT_THROW(verdict(of + "\nunit = \"s2/n\""), InvalidInput);
}

TEST(StatedClaims, SayWhoseTheyAreAndUnderWhatTheyHold) {
  const std::string body = "of = " + mse(2, "aligned") + "\nat_most = 1\nmargin = 0\n";
  const VerdictRow plain = verdicts_on(compare(body)).rows.at(0);
  EXPECT_EQ(plain.claim, "world");
  EXPECT_EQ(plain.origin, "");
  const VerdictRow row =
      verdicts_on("[claim]\nname = \"group\"\n" +
                  compare(body + "statement = \"s\"\nassumptions = \"a\"\nrefuted_by = "
                                 "\"r\"\norigin = \"o\""))
          .rows.at(0);
  EXPECT_EQ(row.claim, "group");
  EXPECT_EQ(row.form, "claim");
  EXPECT_EQ(row.statement, "s");
  EXPECT_EQ(row.assumptions, "a");
  EXPECT_EQ(row.refuted_by, "r");
  EXPECT_EQ(row.origin, "o");
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

/// The conditions of a counterexample as a run of its scenario, seed and replicates gives them.
std::vector<ConditionResult> replayed(const Counterexample& counterexample, std::uint64_t seed) {
  return run(parse_scenario(counterexample.scenario, "replay",
                            {"run.seed=" + std::to_string(seed),
                             "run.replicates=" + std::to_string(counterexample.replicates)}),
             {.threads = 1})
      .conditions;
}

void expect_replays(const Counterexample& counterexample) {
  const std::vector<ConditionResult> same = replayed(counterexample, counterexample.seed);
  const std::vector<ConditionResult> other = replayed(counterexample, counterexample.seed + 1);
  const Estimate* seen[] = {&counterexample.first, &counterexample.second};
  for (const std::size_t i : {0u, 1u}) {
    const FigureName figure = parse_figure("figure", counterexample.figures[i]);
    const auto of = [&](const std::vector<ConditionResult>& conditions) {
      return *find_figure<Estimate>(conditions.at(counterexample.conditions[i]).estimates, figure);
    };
    EXPECT_EQ(of(same).value, seen[i]->value);
    EXPECT_EQ(of(same).mcse, seen[i]->mcse);
    EXPECT_NE(of(other).value, seen[i]->value);
  }
  EXPECT_NEAR(counterexample.difference.value,
              counterexample.first.value - counterexample.second.value, 1e-15);
  EXPECT_EQ(counterexample.z, counterexample.difference.value / counterexample.difference.mcse);
}

TEST(StatedClaims, ComparisonsJoinedIntoOneVerdict) {
  const std::string good =
      "{ less = " + mse(2, "orthogonal") + ", than = " + mse(2, "aligned") + " }";
  const std::string bad =
      "{ less = " + mse(2, "aligned") + ", than = " + mse(2, "orthogonal") + " }";
  const std::string tie =
      "{ equal = [" + mse(2, "aligned") + ", " + mse(4, "aligned") + "], margin = 1e-9 }";
  const std::string margin = "\nmargin = { relative = 0.005 }";
  const VerdictRow both =
      verdicts_on(compare("all = [" + good + ", " + tie + "]" + margin)).rows.at(0);
  EXPECT_EQ(both.verdict, Verdict::supported);
  ASSERT_EQ(both.effects.size(), 2u);
  EXPECT_EQ(both.effects[0].margin, 0.005);
  EXPECT_EQ(both.effects[1].margin, 1e-9);
  for (const std::string& one : {good + ", " + bad, bad + ", " + good}) {
    const VerdictRow row = verdicts_on(compare("all = [" + one + "]" + margin)).rows.at(0);
    EXPECT_EQ(row.verdict, Verdict::refuted) << one;
    ASSERT_TRUE(row.counterexample) << one;
    expect_replays(*row.counterexample);
  }
  // for_each of the claim holds for each.
  const std::string each = "{ less = " + orthogonal + ", than = " + aligned + " }";
  EXPECT_EQ(verdicts_on(compare("all = [" + each + "]\nfor_each = [\"heads.count\"]\nmargin = 0"))
                .rows.at(0)
                .effects.size(),
            3u);
}

// Every comparison of two conditions has one where it is refuted, of any figure.
TEST(StatedClaims, CounterexamplesReplayToTheBit) {
  const std::string covariance_first = "less = " + one_figure("covariance_term", 2, "aligned") +
                                       "\nthan = " + one_figure("covariance_term", 3, "orthogonal");
  struct Case {
    std::string claim;
    std::array<std::string, 2> figures;
    std::array<std::size_t, 2> conditions;  // orthogonal 2, 3, 4, aligned 2, 3, 4
  };
  const std::vector<Case> cases = {
      {"less = " + mse(2, "aligned") + "\nthan = " + mse(2, "orthogonal"), {"mse", "mse"}, {3, 0}},
      {covariance_first, {"covariance_term", "covariance_term"}, {3, 1}},
      {"less = " + one_figure("query_mse[0]", 4, "aligned") +
           "\nthan = " + one_figure("variance_term", 4, "orthogonal"),
       {"query_mse[0]", "variance_term"},
       {5, 2}},
      {"equal = [" + mse(3, "aligned") + ", " + mse(3, "orthogonal") + "]", {"mse", "mse"}, {4, 1}},
      {argmin("orthogonal", 3), {"mse", "mse"}, {1, 2}}};
  for (const Case& one : cases) {
    const VerdictRow row =
        verdicts_on(compare(one.claim + "\nmargin = { relative = 0.001 }")).rows.at(0);
    ASSERT_EQ(row.verdict, Verdict::refuted) << one.claim;
    ASSERT_TRUE(row.counterexample) << one.claim;
    EXPECT_EQ(row.counterexample->figures, one.figures);
    EXPECT_EQ(row.counterexample->conditions, one.conditions);
    EXPECT_GT(row.counterexample->z, 5) << one.claim;
    expect_replays(*row.counterexample);
  }
}

// That of the comparison that decided, in whose unit the table has its effect.
TEST(StatedClaims, CounterexampleIsOfTheComparisonThatRefutes) {
  const VerdictRow row =
      verdicts_on(compare(monotone("orthogonal", "increasing") + "margin = 0.001")).rows.at(0);
  ASSERT_TRUE(row.counterexample);
  EXPECT_EQ(row.counterexample->difference.value, -row.decisive.effect.value);
  EXPECT_EQ(row.counterexample->difference.mcse, row.decisive.effect.mcse);
  expect_replays(*row.counterexample);
}

TEST(StatedClaims, NoCounterexampleOfWhatStandsOrIsOfOneCondition) {
  for (const std::string& claim :
       {"less = " + mse(2, "orthogonal") + "\nthan = " + mse(2, "aligned") + "\nmargin = 0",
        "of = " + mse(2, "orthogonal") + "\nat_least = 1\nmargin = 0",
        "ratio = [" + mse(2, "orthogonal") + ", " + mse(2, "aligned") +
            "]\nequals = 2\nmargin = 0.01"}) {
    EXPECT_FALSE(verdicts_on(compare(claim)).rows.at(0).counterexample) << claim;
  }
}

// 0.30000000000000004 of a linspace is what a claim calls 0.3, and 0.3 + 1e-9 is not.
TEST(StatedClaims, SweptNumbersAreFoundUpToRounding) {
  const std::string text = world.substr(0, world.find("[sweep]")) +
                           "[sweep]\n\"data.noise.sd\" = { linspace = [0.1, 0.9, 9] }\n";
  const auto claim = [](const std::string& sd) {
    return compare("of = { figure = \"mse\", at = { \"data.noise.sd\" = " + sd +
                   " } }\nat_most = 1\nmargin = 0");
  };
  for (int i = 1; i <= 9; ++i) {
    EXPECT_EQ(validate_scenario(text + claim("0." + std::to_string(i))).rows.at(0).verdict,
              Verdict::supported);
  }
  EXPECT_THROW(validate_scenario(text + claim("0.300000001")), InvalidInput);
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
  // Turned round it has a counterexample, with the same draws of heads.
  const std::string less = "less = ", than = "\nthan = ";
  text.replace(text.find(less), less.size(), "LESS");
  text.replace(text.find(than), than.size(), "\nless = ");
  text.replace(text.find("LESS"), 4, "than = ");
  const VerdictRow refuted = validate_scenario(text).rows.at(0);
  ASSERT_TRUE(refuted.counterexample);
  expect_replays(*refuted.counterexample);
}

}  // namespace

namespace {

constexpr double eps = std::numeric_limits<double>::epsilon();

TEST(FigureComparison, DifferenceByRoundingIsNone) {
  const Jackknifed a(1, {1, 2, 3});
  const Jackknifed same =
      difference_above_rounding(Jackknifed(1 + 8 * eps, {1, 2 - 8 * eps, 3}), a);
  EXPECT_EQ(same.value, 0);
  EXPECT_EQ(same.leave_one_out, std::vector<double>(3, 0.0));
  EXPECT_EQ(difference_above_rounding(Jackknifed(-1e-300), Jackknifed(-1e-300)).value, 0);
  EXPECT_EQ(difference_above_rounding(Jackknifed(0), Jackknifed(0)).value, 0);
}

TEST(FigureComparison, DifferenceBeyondRoundingStays) {
  const Jackknifed a(1, {1, 2, 3});
  const Jackknifed other =
      difference_above_rounding(Jackknifed(1 + 128 * eps, {1, 2, 3 + 1024 * eps}), a);
  EXPECT_EQ(other.value, 128 * eps);
  EXPECT_EQ(other.leave_one_out, (std::vector<double>{0, 0, 1024 * eps}));
  // Small figures are no rounding of each other.
  EXPECT_EQ(difference_above_rounding(Jackknifed(1e-20), Jackknifed(-1e-20)).value, 2e-20);
  EXPECT_EQ(difference_above_rounding(Jackknifed(1e-20), Jackknifed(0)).value, 1e-20);
  EXPECT_TRUE(std::isnan(difference_above_rounding(Jackknifed(std::nan("")), a).value));
}

}  // namespace

}  // namespace headlab
