// SPDX-License-Identifier: Apache-2.0
// Every claim with a fault in the simulated world, so that what is claimed of the world as
// it should be no longer holds there: the verdict has to turn.
#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/scenario/condition.h"
#include "engine/scenario/scenario.h"
#include "engine/testing/refusal.h"
#include "kernels/laws.h"
#include "kernels/plan.h"
#include "kernels/stack/stack.h"
#include "validation/claims/stated_claim.h"
#include "validation/verdicts/validate.h"

namespace headlab {
namespace {

using Change = std::function<void(Plan&)>;

/// An effect that is another number than the difference of what is compared says its unit.
void expect_unit(const VerdictRow& row) {
  for (const Comparison& one : row.effects) {
    const double difference = std::abs(one.observed - one.expected);
    const double rounding = 1e-9 * std::max({1.0, std::abs(one.observed), std::abs(one.expected)});
    if (std::isnan(difference) || std::abs(std::abs(one.effect.value) - difference) <= rounding) {
      continue;
    }
    EXPECT_TRUE(std::ranges::any_of(
        std::array{"relative", "minus", "in units of", "by more than"},
        [&](const char* word) { return one.what.find(word) != std::string::npos; }))
        << one.what;
  }
}

/// Verdict on one built-in scenario, for one index or one stated form where it has several.
Verdict verdict_on(const std::string& file, const std::string& which, const Change& fault) {
  for (const ClaimScenario& scenario : claim_scenarios()) {
    if (scenario.file != "scenarios/claims/" + file + ".toml") continue;
    const Validation result = validate_scenario(scenario.text, {.threads = 2},
                                                {.substitutes = Substitutes{.fault = fault}});
    for (const VerdictRow& row : result.rows) {
      expect_unit(row);
      if (row.index == which || row.form == which) return row.verdict;
    }
  }
  ADD_FAILURE() << "no scenario " << file << " with \"" << which << "\"";
  return Verdict::unresolved;
}

/// An error in the world, and the verdict it turns.
struct Fault {
  std::string scenario;  ///< file name without folder and ending
  std::string which;     ///< index, or form that the scenario states; or empty
  Verdict honest;
  Verdict faulty;
  std::string error;
  Change apply;
};

void scale_bandwidth(Plan& plan, double factor) {
  if (auto* gaussian = std::get_if<GaussianKernel>(&plan.kernel.own()))
    gaussian->bandwidth *= factor;
}
Change bandwidth_times(double factor) {
  return [=](Plan& plan) { scale_bandwidth(plan, factor); };
}

void scale_temperature(Plan& plan, double factor) {
  if (auto* softmax = std::get_if<SoftmaxKernel>(&plan.kernel.own()))
    softmax->temperature *= factor;
}
Change temperature_times(double factor) {
  return [=](Plan& plan) { scale_temperature(plan, factor); };
}

/// Where the first two heads are at right angles to one another.
bool at_right_angles(const Plan& plan) {
  const std::size_t size = plan.projections.size() / static_cast<std::size_t>(plan.heads);
  double dot = 0;
  for (std::size_t i = 0; i < size; ++i) dot += plan.projections[i] * plan.projections[size + i];
  return std::abs(dot) < 1e-12;
}

/// Every head looks where the first one does.
void align(Plan& plan) {
  const std::size_t size = plan.projections.size() / static_cast<std::size_t>(plan.heads);
  for (std::size_t i = size; i < plan.projections.size(); ++i) {
    plan.projections[i] = plan.projections[i - size];
  }
}

void align_right_angles(Plan& plan) {
  if (at_right_angles(plan)) align(plan);
}

void set_noise(Plan& plan, double sd) {
  std::visit(
      [&](auto& law) {
        if constexpr (requires { law.sd; }) law.sd = sd;
      },
      plan.noise.own());
}

/// The plain head in place of one that keeps some weights.
void keep_all(Plan& plan) {
  plan.mechanism.keep = {};
}

/// Every head sees every token.
void see_all(Plan& plan) {
  plan.mechanism.seen.clear();
}

/// The newer half of what a head sees, where that is not everything.
void see_half(Plan& plan) {
  for (SeenTokens& seen : plan.mechanism.seen) {
    if (seen.count() < plan.n) seen.begin += seen.count() / 2;
  }
}

/// A change of the stack of a plan, where it has one.
Change in_stack(const std::function<void(Stack&)>& change) {
  return [=](Plan& plan) {
    if (!plan.stack) return;
    Stack stack = *plan.stack;
    change(stack);
    plan.stack = std::make_shared<const Stack>(std::move(stack));
  };
}

GaussianMaps& gaussian_maps(Stack& stack) {
  return std::get<GaussianMaps>(stack.maps);
}

const Change drop_norm = in_stack([](Stack& stack) { stack.norm = {}; });

/// The second head is the first.
const Change equal_heads = in_stack([](Stack& stack) { stack.fixed[1] = stack.fixed[0]; });

/// Walks that stay where they are every second time.
const Change slow_down = in_stack([](Stack& stack) {
  for (Eigen::MatrixXd& walk : stack.fixed) {
    walk = ((walk + Eigen::MatrixXd::Identity(walk.rows(), walk.cols())) / 2).eval();
  }
});

const Change forget = in_stack([](Stack& stack) { stack.memory = 0; });

/// Soft attention in place of a memory.
const Change soften_memory = in_stack([](Stack& stack) {
  if (stack.memory > 0) stack.temperature *= 8;
  stack.memory = 0;
});

const Change hide_later_tokens = in_stack([](Stack& stack) { stack.causal = true; });

const Change leave_out_skip = in_stack([](Stack& stack) { stack.skip = 0; });

const Change leave_out_attention = in_stack([](Stack& stack) { stack.branch = 0; });

const Change draw_other_logits = in_stack([](Stack& stack) { stack.logit_correlation = 0.9; });

std::vector<Fault> faults() {
  using enum Verdict;
  return {
      {"identity_equal_norms", "", identity, refuted, "b^2 is not t", bandwidth_times(1.05)},
      {"identity_unequal_norms", "", refuted, unresolved,
       "a query at the origin, where both kernels weigh all keys alike up to the window",
       [](Plan& plan) {
         scale_bandwidth(plan, 1e3);
         plan.query_points.assign(plan.query_points.size(), 0.0);
       }},
      {"hdi_path_gaussian_centre", "chordal", supported, refuted,
       "heads at right angles see the same", align_right_angles},
      {"decomposition_exact", "", supported, refuted, "a bandwidth 5 % off", bandwidth_times(1.05)},
      {"decomposition_conditional", "", supported, refuted, "another design",
       [](Plan& plan) { plan.fixed_design_seed = 1; }},
      {"variance_floor", "", supported, refuted, "heads that look the same where they are many",
       [](Plan& plan) {
         if (plan.heads == 64) align(plan);
       }},
      {"angles_centre", "centre", supported, refuted, "heads at right angles see the same",
       align_right_angles},
      {"angles_query_average", "query average", supported, refuted,
       "heads at right angles see the same", align_right_angles},
      {"angles_off_centre", "off centre", refuted, supported, "the query is moved to the centre",
       [](Plan& plan) { plan.query_points.assign(plan.query_points.size(), 0.0); }},
      {"angles_floor", "floor", supported, refuted, "heads see the same", align},
      {"angles_floor_any_design", "floor, any design", refuted, supported, "a window of everything",
       bandwidth_times(1e4)},
      {"log_correlation", "", supported, refuted, "a temperature 20 % off", temperature_times(1.2)},
      {"temperature_sqrt_dim", "sqrt(d_k)", supported, refuted, "a temperature 5 % off",
       temperature_times(1.05)},
      {"temperature_one", "one", refuted, supported, "temperature sqrt(d_k)",
       [](Plan& plan) { scale_temperature(plan, std::sqrt(plan.k)); }},
      {"temperature_condensation", "condensation", supported, refuted, "a temperature 20 % off",
       temperature_times(1.2)},
      {"output_projection_own", "", supported, refuted, "orthogonal heads with a wider window",
       [](Plan& plan) {
         if (at_right_angles(plan)) scale_bandwidth(plan, 1.1);
       }},
      {"self_attention", "", supported, refuted, "a bandwidth 10 % off", bandwidth_times(1.1)},
      {"weights_optimism", "", supported, refuted,
       "heads of other covariance than the optimum is told for", bandwidth_times(1.2)},
      {"weights_gain", "", supported, refuted, "weights on the wrong heads",
       [](Plan& plan) {
         if (plan.head_weights[0] != plan.head_weights[1]) plan.head_weights = {-1, 1, 1};
       }},
      {"isomorphism_by_bandwidth", "", supported, refuted,
       "the many heads have other bandwidths than the few",
       [](Plan& plan) {
         if (plan.heads == 64) scale_bandwidth(plan, 0.6);
       }},
      {"angles_mechanism", "mechanism, stage by stage", supported, refuted,
       "heads at right angles see the same", align_right_angles},
      {"angles_transform", "transform", refuted, supported,
       "heads see the same whatever their angles", align},
      {"angles_union", "union", refuted, supported, "heads keep their own weights",
       [](Plan& plan) { plan.mechanism.keep.shared = false; }},
      {"angles_union", "keep without union", supported, refuted, "heads keep what any keeps",
       [](Plan& plan) { plan.mechanism.keep.shared = true; }},
      {"hdi_sparsity", "sparsity", refuted, supported, "nothing is dropped", keep_all},
      {"hdi_sparsity", "sparsity, premise", supported, refuted, "nothing is dropped", keep_all},
      {"hdi_windows", "windows", refuted, supported, "windows of everything", see_all},
      {"hdi_windows", "windows, premise", supported, refuted, "windows of everything", see_all},
      {"context_softmax", "splitting, softmax", supported, refuted, "windows of a quarter",
       see_half},
      {"context_gaussian_one", "splitting, Gaussian of dimension 1", refuted, supported,
       "windows of everything", see_all},
      {"context_gaussian_six", "splitting, Gaussian of dimension 6", supported, refuted,
       "windows of a quarter", see_half},
      {"merging_price", "price", refuted, supported, "nothing is merged",
       [](Plan& plan) {
         if (!plan.mechanism.merge.off()) scale_temperature(plan, 2);
         plan.mechanism.merge = {};
       }},
      {"merging_price", "price, premise", supported, refuted,
       "nothing is merged, at the temperature of merged points",
       [](Plan& plan) { plan.mechanism.merge = {}; }},
      {"merging_curved", "curved truth", refuted, supported, "nothing is merged",
       [](Plan& plan) { plan.mechanism.merge = {}; }},
      {"merging_reduction", "reduction", supported, refuted,
       "the bandwidth of merged heads 5 % off",
       [](Plan& plan) {
         if (!plan.mechanism.merge.off()) scale_bandwidth(plan, 1.05);
       }},
      {"levels_softmax", "softmax, independent keys", refuted, supported, "keys at one scale",
       [](Plan& plan) {
         if (!plan.mechanism.levels.off()) scale_temperature(plan, 4.0 / 3);
         plan.mechanism.levels = {};
       }},
      {"levels_softmax", "softmax, premise", supported, refuted,
       "keys at one scale, at the temperature of two",
       [](Plan& plan) { plan.mechanism.levels = {}; }},
      {"levels_gaussian", "Gaussian", refuted, supported, "keys at one scale",
       [](Plan& plan) {
         if (!plan.mechanism.levels.off()) scale_bandwidth(plan, 0.1317 / 0.2);
         plan.mechanism.levels = {};
       }},
      {"levels_gaussian", "Gaussian, premise", supported, refuted,
       "keys at one scale, with the bandwidth of two",
       [](Plan& plan) { plan.mechanism.levels = {}; }},
      {"low_rank_scores", "", identity, refuted, "compressed keys 1 % longer",
       [](Plan& plan) {
         for (std::size_t i = plan.projections.size() / 2; i < plan.projections.size(); ++i) {
           plan.projections[i] *= 1.01;
         }
       }},
      {"low_rank_output", "output", refuted, supported, "one compression under both names",
       [](Plan& plan) {
         const double keys[] = {0, 0, 1, 0};
         const double queries[] = {0, 0, std::sqrt(0.5), 0};
         std::ranges::copy(keys, plan.projections.begin() + 4);
         std::ranges::copy(queries, plan.query_projections.begin() + 4);
       }},
      {"layer_norm_few", "", supported, refuted, "more tokens than features",
       [](Plan& plan) { plan.n = 12; }},
      {"layer_norm_many", "", refuted, supported, "RMS norm",
       in_stack([](Stack& stack) { stack.norm.kind = NormKind::rms; })},
      {"layer_norm_every", "", refuted, supported, "tokens on three of four axes",
       in_stack([](Stack& stack) { stack.tokens = Eigen::MatrixXd::Identity(3, 4); })},
      {"layer_norm_protects", "", refuted, supported, "no norm in either stack", drop_norm},
      {"layer_norm_contributes", "", refuted, supported, "no norm in either stack", drop_norm},
      {"span_identity_values", "", supported, refuted, "drawn values",
       in_stack([](Stack& stack) { stack.maps = GaussianMaps{.k = 6, .value_dim = 6}; })},
      {"span_spanning_tokens", "", supported, refuted, "too few tokens to span the space",
       [](Plan& plan) { plan.n = 3; }},
      {"span_any_values", "", refuted, supported, "as many tokens as features",
       [](Plan& plan) { plan.n = 6; }},
      {"span_mlp", "", supported, refuted, "a line through the origin", in_stack([](Stack& stack) {
         stack.tokens.rowwise() -= stack.tokens.colwise().mean().eval();
       })},
      {"head_channels_read_out", "", supported, refuted, "heads that write more than they are read",
       in_stack([](Stack& stack) { gaussian_maps(stack).value_dim = 6; })},
      {"head_channels_row_space", "", supported, refuted, "a block for each head",
       in_stack([](Stack& stack) { stack.averaged = false; })},
      {"head_channels_full_output", "", refuted, supported, "one block for all heads",
       in_stack([](Stack& stack) { stack.averaged = true; })},
      {"retrieval", "", supported, refuted, "a temperature 5 % off",
       in_stack([](Stack& stack) { stack.temperature *= 1.05; })},
      {"tickets_rate", "", supported, refuted, "no more than 12 samples",
       in_stack([](Stack& stack) {
         gaussian_maps(stack).samples = std::min(gaussian_maps(stack).samples, 12);
       })},
      {"tickets_output", "", supported, refuted, "a pruned head of half the temperature",
       in_stack([](Stack& stack) { stack.temperature /= 2; })},
      {"synergy_faster", "", supported, refuted, "both heads fast on the same half", equal_heads},
      {"synergy_best_weights", "", identity, refuted,
       "mixtures that stay where they are every second time", slow_down},
      {"synergy_no_slower", "", refuted, supported, "equal heads", equal_heads},
      {"synergy_fidelity_above", "", supported, refuted, "equal heads", equal_heads},
      {"synergy_fidelity_below", "", refuted, supported, "equal heads", equal_heads},
      {"synergy_long_lines", "", supported, refuted,
       "walks that stay where they are every second time", slow_down},
      {"synergy_every_line", "", refuted, supported, "a sure step",
       in_stack([](Stack& stack) { stack.fixed[0].row(0) = stack.fixed[0].row(1); })},
      {"synergy_union", "", supported, refuted, "the first head alone", equal_heads},
      {"dropping_error", "error", refuted, supported, "nothing is dropped", keep_all},
      {"dropping_noise", "noise", supported, refuted, "the head of 5 weights keeps all",
       [](Plan& plan) {
         if (!plan.mechanism.keep.off() && plan.mechanism.keep.top[0] == 5) keep_all(plan);
       }},
      {"fusion_additive", "additive, early", refuted, supported,
       "little noise in the noisy setting",
       [](Plan& plan) {
         if (plan.n == 400) set_noise(plan, 0.1);
       }},
      {"fusion_additive", "additive, late", refuted, supported,
       "noise and a narrow window in the other setting",
       [](Plan& plan) {
         if (plan.n == 400) return;
         set_noise(plan, 4);
         scale_bandwidth(plan, 0.4);
       }},
      {"fusion_product", "product", supported, refuted, "heads that see both modalities",
       [](Plan& plan) {
         plan.projections = {0.6, 0.8, -0.8, 0.6};
       }},
      {"autocorrelation", "noise", refuted, supported, "more noise on dependent points",
       [](Plan& plan) {
         if (plan.ar1) set_noise(plan, std::sqrt(19.0));
       }},
      {"autocorrelation", "signal", refuted, supported,
       "noise in place of the signal, more on dependent points",
       [](Plan& plan) { set_noise(plan, plan.ar1 ? 20 * std::sqrt(19.0) : 20); }},
      {"allocation_tuned_additive", "", supported, refuted, "the allocation in between is mistuned",
       [](Plan& plan) {
         if (plan.k == 3) scale_bandwidth(plan, 4);
       }},
      {"scaling_law_growth_tuned_additive", "", supported, refuted,
       "the large training sets are small ones", [](Plan& plan) { plan.n = 30; }},
      {"specialization_additive", "chordal", supported, refuted, "nothing is learned",
       [](Plan& plan) { plan.learning->steps = 0; }},
      {"specialization_pays_additive", "", supported, unresolved, "the penalty is not in force",
       [](Plan& plan) { plan.learning->diversity = 0; }},
      {"collapse_bound", "", supported, refuted, "a causal mask", hide_later_tokens},
      {"collapse_simplex", "order three", supported, refuted, "attention with a memory",
       in_stack([](Stack& stack) { stack.memory = 0.5; })},
      {"collapse_simplex", "unconditional", refuted, supported, "smaller tokens",
       in_stack([](Stack& stack) { stack.tokens *= 0.9; })},
      {"collapse_averaged", "averaged heads", supported, refuted, "heads of another correlation",
       draw_other_logits},
      {"skip_rank", "rank with a skip", supported, refuted, "no skip", leave_out_skip},
      {"skip_rank", "rank without a skip", supported, refuted, "values of rank 1",
       in_stack([](Stack& stack) { std::get<GaussianMaps>(stack.maps).value_dim = 1; })},
      {"skip_share", "share", supported, refuted, "no skip", leave_out_skip},
      {"skip_cosine_simplex", "cosine, simplex", refuted, supported, "no attention",
       leave_out_attention},
      {"skip_cosine_gaussian", "cosine, Gaussian", refuted, supported, "no attention",
       leave_out_attention},
      {"hidden_state_bound", "", supported, refuted, "a causal mask", hide_later_tokens},
      {"hidden_state_rate", "", refuted, supported, "the first scores for ever",
       in_stack([](Stack& stack) { stack.memory = 1; })},
      {"hidden_state_simplex", "simplex", supported, refuted,
       "softer attention in place of the memory", soften_memory},
      {"hidden_state_logits", "independent logits", refuted, supported, "no memory", forget},
      {"hidden_state_gaussian", "cosine, soft attention", refuted, supported, "no memory", forget},
      {"hidden_state_gaussian", "cosine, hard attention", supported, refuted,
       "softer attention in place of the memory", soften_memory},
      {"rank_links_floor", "", supported, refuted, "a layer of more correlated heads",
       draw_other_logits},
      {"rank_links_ambiguity", "", supported, refuted, "a layer of more correlated heads",
       draw_other_logits},
  };
}

class Faulty : public testing::TestWithParam<Fault> {};

TEST_P(Faulty, WorldTurnsTheVerdict) {
  const Fault& fault = GetParam();
  EXPECT_STREQ(verdict_text(verdict_on(fault.scenario, fault.which, nullptr)),
               verdict_text(fault.honest));
  EXPECT_STREQ(verdict_text(verdict_on(fault.scenario, fault.which, fault.apply)),
               verdict_text(fault.faulty))
      << fault.error;
}

INSTANTIATE_TEST_SUITE_P(Claims, Faulty, testing::ValuesIn(faults()),
                         [](const testing::TestParamInfo<Fault>& test) {
                           std::string name = test.param.scenario;
                           if (!test.param.which.empty()) name += "_" + test.param.which;
                           std::ranges::replace_if(
                               name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

TEST(Claims, AFormHasTheSettingOfTheConditionsItCompares) {
  for (const ClaimScenario& scenario : claim_scenarios()) {
    if (std::string(scenario.file) != "scenarios/claims/autocorrelation.toml") continue;
    const Validation result = validate_scenario(scenario.text, {.threads = 2}, {});
    ASSERT_EQ(result.rows.size(), 2U);
    EXPECT_EQ(result.rows[0].form, "noise");
    EXPECT_FALSE(result.rows[0].signal);
    EXPECT_EQ(result.rows[0].regression, "zero");
    EXPECT_TRUE(result.rows[1].signal);
    EXPECT_EQ(result.rows[1].regression, "linear");
    return;
  }
  FAIL();
}

TEST(Claims, ABoundPrintsTheConditionUnderWhichItFalls) {
  for (const ClaimScenario& scenario : claim_scenarios()) {
    const std::string file = scenario.file;
    const bool remembers = file == "scenarios/claims/hidden_state_bound.toml";
    if (!remembers && file != "scenarios/claims/collapse_bound.toml") continue;
    const Validation result = validate_scenario(scenario.text, {.threads = 2}, {});
    const std::string& note = result.rows.at(0).note;
    EXPECT_TRUE(note.starts_with(remembers ? "|V| tanh(B_1/4) < 1 in " : "c D_0^2 < 1 in "))
        << note;
  }
}

TEST(Claims, AnAllocationSaysWhatOfTheBudgetIsUnused) {
  for (const ClaimScenario& scenario : claim_scenarios()) {
    if (std::string(scenario.file) != "scenarios/claims/allocation_sqrt_dim_single_index.toml")
      continue;
    const Validation result = validate_scenario(scenario.text, {.threads = 2}, {});
    for (const Comparison& one : result.rows.at(0).effects) {
      EXPECT_NE(one.what.find("1 head of d_k 5 (1 of 6 dimensions unused)"), std::string::npos)
          << one.what;
    }
    return;
  }
  FAIL();
}

TEST(Claims, RefuseQueriesThatAreDrawnAgain) {
  const auto scenarios = claim_scenarios();
  const auto at = std::ranges::find_if(scenarios, [](const ClaimScenario& one) {
    return std::string(one.file) == "scenarios/claims/hdi_path_gaussian_queries.toml";
  });
  ASSERT_NE(at, scenarios.end());
  std::string text(at->text);
  const std::string law = "law = \"design\"\n";
  ASSERT_NE(text.find(law), std::string::npos);
  text.insert(text.find(law), "redraw = true\n");
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "this claim is about given heads and queries",
                      refusal_line([&] { validate_scenario(text, {.threads = 2}, {}); }));
}

TEST(Claims, EachHasAFaultAndAScenarioForEveryForm) {
  const std::vector<Fault> all = faults();
  std::set<std::string> faulty;
  std::set<std::pair<std::string, std::string>> forms;
  for (const ClaimScenario& file : claim_scenarios()) {
    const Scenario scenario = parse_scenario(file.text, file.file);
    const bool has_fault = std::ranges::any_of(all, [&](const Fault& fault) {
      return file.file == "scenarios/claims/" + fault.scenario + ".toml";
    });
    if (states_claims(scenario)) {
      const StatedClaims stated = read_stated_claims(scenario);
      if (has_fault) faulty.insert(stated.name);
      for (const StatedClaim& one : stated.all) {
        EXPECT_TRUE(forms.insert({stated.name, one.form.name}).second) << one.form.name;
        EXPECT_FALSE(one.expected.empty()) << one.form.name;
        // "In this form" is said of what somebody else claims.
        EXPECT_FALSE(one.form.origin.empty() && one.form.statement.starts_with("In this form"))
            << one.form.name;
        EXPECT_TRUE(std::ranges::any_of(all,
                                        [&](const Fault& fault) {
                                          return file.file == "scenarios/claims/" + fault.scenario +
                                                                  ".toml" &&
                                                 fault.which == one.form.name;
                                        }))
            << file.file << ", " << one.form.name;
      }
      continue;
    }
    const ClaimSection section = read_claim_section(scenario);
    if (has_fault) faulty.insert(section.name);
    forms.insert({section.name, section.form});
  }
  for (const Claim& claim : claims()) {
    EXPECT_TRUE(faulty.contains(claim.name)) << claim.name;
    for (const ClaimForm& form : claim.forms) {
      EXPECT_TRUE(forms.contains({claim.name, form.name})) << claim.name << ", " << form.name;
      EXPECT_FALSE(form.statement.empty() || form.assumptions.empty() || form.refuted_by.empty());
    }
  }
}

// A seed of its own: scenarios that share theirs are wrong together.
TEST(Claims, StatedOnesHaveSeedsOfTheirOwn) {
  std::set<std::uint64_t> seeds;
  for (const ClaimScenario& file : claim_scenarios()) {
    const Scenario scenario = parse_scenario(file.text, file.file);
    if (!states_claims(scenario)) continue;
    EXPECT_TRUE(seeds.insert(scenario.conditions.front().seed).second) << file.file;
  }
}

}  // namespace
}  // namespace headlab
