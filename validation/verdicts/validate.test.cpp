// SPDX-License-Identifier: Apache-2.0
#include "validation/verdicts/validate.h"

#include <atomic>
#include <cmath>

#include <gtest/gtest.h>

#include "engine/files/error.h"
#include "engine/scenario/world.h"
#include "engine/testing/refusal.h"
#include "kernels/statistics/stopping.h"
#include "validation/claims/stated_claim.h"
#include "validation/statistics/comparison.h"

namespace headlab {
namespace {

const std::string world = World{.n = "5",
                                .design = R"({ law = "normal", dim = 2 })",
                                .regression = R"({ law = "linear", coefficients = [1, 0] })",
                                .noise = R"({ law = "normal", sd = 0.5 })",
                                .heads = "count = 2\ndim = 1\nsubspaces = { law = \"orthogonal\" }",
                                .kernel = R"({ law = "gaussian", bandwidth = 0.8 })",
                                .points = "[[1, 0]]",
                                .run = "seed = 3\nreplicates = 4096"}
                              .text() +
                          R"([claim]
name = "test"
form = "test"
expected = "supported"
margin = 0.5
)";

using Examine = decltype(ClaimForm::examine);

Comparison known(double effect, double mcse, double margin) {
  return {.what = "known", .effect = {effect, mcse}, .df = 100, .margin = margin};
}

/// Finds the same comparisons at every look.
Examine finds(const std::vector<Comparison>& comparisons) {
  return [=](Experiment& experiment) {
    experiment.observed();
    Finding finding;
    finding.comparisons = comparisons;
    return std::vector<Finding>{finding};
  };
}
/// Of effects 0 and `effect`.
Examine two(double effect) {
  return finds({known(0, 0.01, 0.5), known(effect, 0.01, 0.5)});
}

VerdictRow verdict(const Examine& examine, const std::string& text = world,
                   const Session& session = {.threads = 1}, const ValidateOptions& options = {}) {
  const ClaimForm form = {
      .name = "test", .statement = "s", .assumptions = "a", .refuted_by = "r", .examine = examine};
  return validate_form(form, text, session, options).rows.at(0);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Validate, SupportNeedsEveryComparisonAndRefutationOne) {
  EXPECT_EQ(verdict(two(0)).verdict, Verdict::supported);
  EXPECT_EQ(verdict(two(0.49)).verdict, Verdict::unresolved);
  EXPECT_EQ(verdict(two(0.51)).verdict, Verdict::unresolved);
  EXPECT_EQ(verdict(two(1)).verdict, Verdict::refuted);
  EXPECT_EQ(verdict(two(-1)).verdict, Verdict::refuted);
  EXPECT_EQ(verdict(two(1)).decisive.effect.value, 1);
}

TEST(Validate, AnEasyVerdictTakesOneLookAndAHardOneAll) {
  EXPECT_EQ(verdict(two(0)).replicates, min_look);
  EXPECT_EQ(verdict(two(1)).replicates, min_look);
  EXPECT_EQ(verdict(two(0.49)).replicates, 4096U);
}

TEST(Validate, EachLookSpendsAThirdOfAlpha) {
  // t of 2.4 on 100 degrees of freedom: enough at alpha (2.364), not at a third of it (2.776).
  const Comparison close = known(0.5 - 2.4 * 0.01, 0.01, 0.5);
  EXPECT_TRUE(supports(close, verdict_alpha));
  EXPECT_EQ(verdict(finds({close})).verdict, Verdict::unresolved);
  EXPECT_EQ(verdict(finds({known(0.5 - 2.8 * 0.01, 0.01, 0.5)})).verdict, Verdict::supported);
  // The same for refutation.
  const Comparison beyond = known(0.5 + 2.4 * 0.01, 0.01, 0.5);
  EXPECT_LT(p_value_against(beyond), verdict_alpha);
  EXPECT_EQ(verdict(finds({beyond})).verdict, Verdict::unresolved);
  EXPECT_EQ(verdict(finds({known(0.5 + 2.8 * 0.01, 0.01, 0.5)})).verdict, Verdict::refuted);
}

TEST(Validate, WhatIsNoNumberIsUnresolved) {
  EXPECT_EQ(verdict(finds({known(std::nan(""), 0.01, 0.5)})).verdict, Verdict::unresolved);
}

TEST(Validate, TheoryThatDeclinesOrFillsTheMarginLimits) {
  const auto declines = [](Experiment&) -> std::vector<Finding> {
    throw ClosedFormDeclines("no form");
  };
  EXPECT_EQ(verdict(declines).verdict, Verdict::limited_by_theory);
  EXPECT_EQ(verdict(declines).note, "no form");
  // Any other refusal is an error of the claim, which no verdict may hide.
  const auto broken = [](Experiment&) -> std::vector<Finding> { throw InvalidInput("broken"); };
  EXPECT_THROW(verdict(broken), InvalidInput);
  Comparison coarse = known(0.2, 0.01, 0.5);
  coarse.theory_error = 0.6;
  EXPECT_EQ(verdict(finds({coarse})).verdict, Verdict::limited_by_theory);
  // Beside it a comparison that a good closed form contradicts still refutes.
  EXPECT_EQ(verdict(finds({coarse, known(0.2, 0.001, 0.1)})).verdict, Verdict::refuted);
  // What is not a number decides nothing and is what the report shows.
  const VerdictRow nothing = verdict(
      finds({known(0.2, 0.001, 0.5), known(std::nan(""), 0.001, 0.5), known(0.1, 0.001, 0.5)}));
  EXPECT_EQ(nothing.verdict, Verdict::unresolved);
  EXPECT_TRUE(std::isnan(nothing.decisive.effect.value));
}

TEST(Validate, AnotherVerdictThanExpectedIsADifference) {
  EXPECT_TRUE(verdict(two(0)).as_expected());
  EXPECT_FALSE(verdict(two(1)).as_expected());
  EXPECT_TRUE(verdict(two(1), replaced(world, "expected = \"supported\"", "expected = \"refuted\""))
                  .as_expected());
}

TEST(Validate, OneThatTimeCutShortIsNone) {
  const VerdictRow row = verdict(two(1), world, {.threads = 1, .deadline = deadline_in(0)});
  EXPECT_FALSE(row.complete);
  EXPECT_EQ(row.verdict, Verdict::unresolved);
  EXPECT_TRUE(row.as_expected());
}

TEST(Validate, TooFewReplicatesAreRefused) {
  EXPECT_THROW(verdict(two(0), world, {}, {.replicates = smallest_scenario - 1}), InvalidInput);
  EXPECT_NO_THROW(verdict(two(0), world, {.threads = 1}, {.replicates = smallest_scenario}));
}

TEST(Validate, AnUnknownClaimIsRefusedWithTheNearest) {
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "did you mean \"identity\"",
                      refusal_line([&] { validate({"identitty"}, {.threads = 1}); }));
}

/// Every number of a validation but the seconds.
std::string bits(const Validation& validation) {
  std::string text;
  for (const VerdictRow& row : validation.rows) {
    char line[200];
    std::snprintf(line, sizeof line, "%s %s %a %a %a %llu\n", row.form.c_str(),
                  verdict_text(row.verdict), row.decisive.effect.value, row.decisive.effect.mcse,
                  row.replicates_needed, static_cast<unsigned long long>(row.replicates));
    text += line;
  }
  return text;
}

TEST(Validate, GivesTheSameBitsAgainAndOnAnyNumberOfThreads) {
  const std::string once = bits(validate({"identity"}, {.threads = 1}, {.replicates = 8192}));
  EXPECT_EQ(once, bits(validate({"identity"}, {.threads = 1}, {.replicates = 8192})));
  EXPECT_EQ(once, bits(validate({"identity"}, {.threads = 2}, {.replicates = 8192})));
  EXPECT_NE(once, bits(validate({"identity"}, {.threads = 1}, {.seed = 8, .replicates = 8192})));
}

TEST(Validate, IsStoppedInPilotsToo) {
  const std::atomic<bool> stop = true;
  for (const char* claim : {"weights", "identity"}) {
    const Validation validation = validate({claim}, {.threads = 1, .stop = &stop});
    EXPECT_FALSE(validation.outcome.complete) << claim;
    EXPECT_FALSE(validation.rows.empty()) << claim;
    for (const VerdictRow& row : validation.rows) {
      EXPECT_EQ(row.verdict, Verdict::unresolved) << claim;
      EXPECT_EQ(row.replicates, 0u) << claim;
    }
  }
}

TEST(Validate, ClosedFormsCanBeGiven) {
  const std::string text = replaced(replaced(world, "name = \"test\"\nform = \"test\"",
                                             "name = \"decomposition\"\nform = \"exact finite n\""),
                                    "margin = 0.5", "margin = 0.2");
  int asked = 0;
  const Theory truth = compute_theory(parse_scenario(text, "t").conditions.at(0));
  const auto with = [&](const Theory& theory) {
    const ClosedForms given = [&](const Condition&, TheorySource) {
      ++asked;
      return theory;
    };
    return validate_scenario(
               text, {.threads = 1},
               {.replicates = 32768, .substitutes = Substitutes{.closed_forms = given}})
        .rows.at(0)
        .verdict;
  };
  EXPECT_EQ(with(truth), Verdict::supported);
  EXPECT_EQ(asked, 1);
  Theory wrong = truth;
  wrong.figures.queries[0].head_bias[1].value += 1;
  EXPECT_EQ(with(wrong), Verdict::refuted);
  // One that takes long stops within.
  std::atomic<bool> stop = false;
  bool went_on = false;
  const ClosedForms slow = [&](const Condition&, TheorySource) {
    stop = true;
    stop_point();
    went_on = true;
    return truth;
  };
  const Validation stopped = validate_scenario(text, {.threads = 1, .stop = &stop},
                                               {.substitutes = Substitutes{.closed_forms = slow}});
  EXPECT_FALSE(went_on);
  EXPECT_FALSE(stopped.outcome.complete);
  EXPECT_EQ(stopped.rows.at(0).verdict, Verdict::unresolved);
}

}  // namespace
}  // namespace headlab
