// SPDX-License-Identifier: Apache-2.0
// Claims that a scenario states about layers of a stack.
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/moments/figure_name.h"
#include "engine/run/run.h"
#include "engine/scenario/scenario.h"
#include "engine/testing/refusal.h"
#include "validation/claims/testing/stated_claim_world.h"
#include "validation/verdicts/validate.h"

namespace headlab {
namespace {

using stated::compare;

const std::string stack = R"([scenario]
name = "depth"
[tokens]
n = 4
design = { law = "simplex", dim = 4, rho = 1.0, mu = 0.5 }
[heads]
count = 1
kernel = { law = "softmax", temperature = 1.0 }
maps = { law = "scaled_identity", query_key = [1.0], value = [0.9] }
[layers]
count = 3
[run]
seed = 5
replicates = 8192
[sweep]
"layers.skip" = [0, 1]
)";

std::string with(std::string text, const std::string& old, const std::string& replacement) {
  const std::size_t at = text.find(old);
  if (at == std::string::npos) throw std::invalid_argument(old);
  return text.replace(at, old.size(), replacement);
}

/// The same with drawn tokens and maps.
std::string random_stack() {
  return with(
      with(with(stack, R"("simplex", dim = 4, rho = 1.0, mu = 0.5)", R"("normal", dim = 3)"),
           R"("scaled_identity", query_key = [1.0], value = [0.9])",
           R"("gaussian", query_key = 1.0)"),
      "count = 1\n", "count = 1\ndim = 3\n");
}

std::string at_skip(const std::string& figure, int skip) {
  return "{ figure = \"" + figure + "\", at = { \"layers.skip\" = " + std::to_string(skip) + " } }";
}

VerdictRow row_of(const std::string& text, const ValidateOptions& options = {}) {
  return validate_scenario(text, {.threads = 1}, options).rows.at(0);
}

TEST(StatedDepth, LayersAreComparedAndCounterexamplesReplay) {
  const std::string with_skip = at_skip("layers[3].cosine", 1);
  const std::string without = at_skip("layers[3].cosine", 0);
  const auto claim = [&](const std::string& less, const std::string& than) {
    return random_stack() + compare("less = " + less + "\nthan = " + than + "\nmargin = 0.01");
  };
  const VerdictRow good = row_of(claim(with_skip, without));
  EXPECT_EQ(good.verdict, Verdict::supported);
  EXPECT_EQ(good.kernel, "softmax");
  EXPECT_EQ(good.stages, "3 layers");
  EXPECT_EQ(good.assumptions, "The conditions of the scenario.");

  const VerdictRow bad = row_of(claim(without, with_skip));
  EXPECT_EQ(bad.verdict, Verdict::refuted);
  ASSERT_TRUE(bad.counterexample);
  const Counterexample& found = *bad.counterexample;
  EXPECT_EQ(found.figures[0], "layers[3].cosine");
  const RunResult replay =
      run(parse_scenario(found.scenario, "replay",
                         {"run.replicates=" + std::to_string(found.replicates)}),
          {.threads = 2});
  const Estimate* seen[] = {&found.first, &found.second};
  for (const std::size_t i : {0u, 1u}) {
    const FigureName figure = parse_layer_figure("figure", found.figures[i]);
    const Estimate& again =
        *find_figure<Estimate>(*replay.conditions.at(found.conditions[i]).layers, figure);
    EXPECT_EQ(again.value, seen[i]->value);
    EXPECT_EQ(again.mcse, seen[i]->mcse);
    EXPECT_GT(again.mcse, 0);
  }
}

TEST(StatedDepth, ClosedFormsAreThoseOfStacksAndBoundsAreNone) {
  const std::string claim = compare(
      "of = { figure = \"layers[3].diameter\" }\nequals_theory = \"exact\"\nfor_each = "
      "[\"layers.skip\"]\nmargin = { relative = 1e-9 }");
  EXPECT_EQ(row_of(stack + claim).verdict, Verdict::supported);
  ValidateOptions options;
  options.substitutes.fault = [](Plan& plan) {
    Stack other = *plan.stack;
    other.temperature *= 1.001;
    plan.stack = std::make_shared<const Stack>(std::move(other));
  };
  EXPECT_EQ(row_of(stack + claim, options).verdict, Verdict::refuted);

  const std::string bound =
      with(with(stack, R"(law = "scaled_identity", query_key = [1.0], value = [0.9])",
                R"(law = "explicit", query_key = [[[1, 0], [0, 0]]], value = [[[1, 0], [0, 1]]])"),
           R"(n = 4
design = { law = "simplex", dim = 4, rho = 1.0, mu = 0.5 })",
           R"(n = 2
design = { law = "points", points = [[0, 0.1], [0.1, 0]] })");
  const VerdictRow limited = row_of(with(bound, "[0, 1]\n", "[0]\n") + claim);
  EXPECT_EQ(limited.verdict, Verdict::limited_by_theory);
  EXPECT_NE(limited.note.find("bound"), std::string::npos) << limited.note;
}

TEST(StatedDepth, MistakesAreSaidInOneLine) {
  const auto of = [&](const std::string& figure, const std::string& more = "") {
    return stack + compare("of = " + at_skip(figure, 0) + "\nat_most = 1\nmargin = 0" + more);
  };
  const std::string form = "(allowed: layers[L].METRIC, L from 0, as layers[1].cosine)";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {of("layers[3].cosin"), "metric \"cosin\" of layers is unknown"},
      {of("layers[3].cosin"), "did you mean \"cosine\"?"},
      {of("layers[3].collapsed"), "metric \"collapsed\" of layers is unknown"},
      {of("layers[4].cosine"),
       "claim.compare[0].of: layers[4].cosine is not there: condition #0 has layers 0 to 3"},
      {of("mse"), "figure \"mse\" is not of a study of depth " + form},
      {of("layers[-1].cosine"), form},
      {of("layers[3]cosine"), form},
      {of("layers[99999999999999999999].cosine"), form},
      {of("layers[0].entropy"), "layers[0].entropy is undefined in condition #0"},
      {of("layers[1].rank_at_least"), "layers[1].rank_at_least is undefined in condition #0"},
      {of("layers[1].cosine", "\nunit = \"s2/n\""), "a study of depth has no noise"},
      {stated::world + compare("of = { figure = \"layers[1].cosine\" }\nat_most = 1\nmargin = 0"),
       "figure \"layers\" is unknown"}};
  for (const auto& [text, problem] : cases) {
    EXPECT_PRED_FORMAT2(testing::IsSubstring, problem,
                        refusal_line([&, text = text] { row_of(text); }));
  }
}

}  // namespace
}  // namespace headlab
