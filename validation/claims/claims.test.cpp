// SPDX-License-Identifier: Apache-2.0
// Every claim with a fault in the simulated world, so that what is claimed of the world as
// it should be no longer holds there: the verdict has to turn.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <utility>

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

/// Verdict on one built-in scenario, for one index or one stated form where it has several.
Verdict verdict_on(const std::string& file, const std::string& which,
                   const std::function<void(Plan&)>& fault) {
  for (const ClaimScenario& scenario : claim_scenarios()) {
    if (scenario.file != "scenarios/claims/" + file + ".toml") continue;
    const Validation result = validate_scenario(scenario.text, {.threads = 2},
                                                {.substitutes = Substitutes{.fault = fault}});
    for (const VerdictRow& row : result.rows) {
      if (row.index == which || row.form == which) return row.verdict;
    }
  }
  ADD_FAILURE() << "no scenario " << file << " with \"" << which << "\"";
  return Verdict::unresolved;
}

/// An error in the world, and the verdict it turns.
struct Fault {
  std::string claim;
  std::string scenario;  ///< file name without folder and ending
  std::string which;     ///< index, or form that the scenario states; or empty
  Verdict honest;
  Verdict faulty;
  std::string error;
  void (*apply)(Plan&);
};

void scale_bandwidth(Plan& plan, double factor) {
  if (auto* gaussian = std::get_if<GaussianKernel>(&plan.kernel.own()))
    gaussian->bandwidth *= factor;
}

void scale_temperature(Plan& plan, double factor) {
  if (auto* softmax = std::get_if<SoftmaxKernel>(&plan.kernel.own()))
    softmax->temperature *= factor;
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

/// Changes the stack of a plan.
template <class Change>
void change_stack(Plan& plan, const Change& change) {
  Stack stack = *plan.stack;
  change(stack);
  plan.stack = std::make_shared<const Stack>(std::move(stack));
}

GaussianMaps& gaussian_maps(Stack& stack) {
  return std::get<GaussianMaps>(stack.maps);
}

void drop_norm(Plan& plan) {
  change_stack(plan, [](Stack& stack) { stack.norm = {}; });
}

/// The second head is the first.
void equal_heads(Plan& plan) {
  change_stack(plan, [](Stack& stack) { stack.fixed[1] = stack.fixed[0]; });
}

/// Walks that stay where they are every second time.
void slow_down(Plan& plan) {
  change_stack(plan, [](Stack& stack) {
    for (Eigen::MatrixXd& walk : stack.fixed) {
      walk = ((walk + Eigen::MatrixXd::Identity(walk.rows(), walk.cols())) / 2).eval();
    }
  });
}

void forget(Plan& plan) {
  change_stack(plan, [](Stack& stack) { stack.memory = 0; });
}

/// Soft attention in place of a memory.
void soften_memory(Plan& plan) {
  change_stack(plan, [](Stack& stack) {
    if (stack.memory > 0) stack.temperature *= 8;
    stack.memory = 0;
  });
}

void hide_later_tokens(Plan& plan) {
  change_stack(plan, [](Stack& stack) { stack.causal = true; });
}

void leave_out_skip(Plan& plan) {
  change_stack(plan, [](Stack& stack) { stack.skip = 0; });
}

void leave_out_attention(Plan& plan) {
  change_stack(plan, [](Stack& stack) { stack.branch = 0; });
}

void draw_other_logits(Plan& plan) {
  if (!plan.stack) return;
  change_stack(plan, [](Stack& stack) { stack.logit_correlation = 0.9; });
}

const Fault faults[] = {
    {"identity", "identity_equal_norms", "", Verdict::identity, Verdict::refuted, "b^2 is not t",
     [](Plan& plan) { scale_bandwidth(plan, 1.05); }},
    {"identity", "identity_unequal_norms", "", Verdict::refuted, Verdict::unresolved,
     "a query at the origin, where both kernels weigh all keys alike up to the window",
     [](Plan& plan) {
       scale_bandwidth(plan, 1e3);
       plan.query_points.assign(plan.query_points.size(), 0.0);
     }},
    {"hdi", "hdi_path_gaussian_centre", "chordal", Verdict::supported, Verdict::refuted,
     "heads at right angles see the same", align_right_angles},
    {"decomposition", "decomposition_exact", "", Verdict::supported, Verdict::refuted,
     "a bandwidth 5 % off", [](Plan& plan) { scale_bandwidth(plan, 1.05); }},
    {"decomposition", "decomposition_conditional", "", Verdict::supported, Verdict::refuted,
     "another design", [](Plan& plan) { plan.fixed_design_seed = 1; }},
    {"variance_floor", "variance_floor", "", Verdict::supported, Verdict::refuted,
     "heads that look the same where they are many",
     [](Plan& plan) {
       if (plan.heads == 64) align(plan);
     }},
    {"angles", "angles_centre", "centre", Verdict::supported, Verdict::refuted,
     "heads at right angles see the same", align_right_angles},
    {"angles", "angles_query_average", "query average", Verdict::supported, Verdict::refuted,
     "heads at right angles see the same", align_right_angles},
    {"angles", "angles_off_centre", "off centre", Verdict::refuted, Verdict::supported,
     "the query is moved to the centre",
     [](Plan& plan) { plan.query_points.assign(plan.query_points.size(), 0.0); }},
    {"angles", "angles_floor", "floor", Verdict::supported, Verdict::refuted, "heads see the same",
     align},
    {"angles", "angles_floor_any_design", "floor, any design", Verdict::refuted,
     Verdict::supported, "a window of everything",
     [](Plan& plan) { scale_bandwidth(plan, 1e4); }},
    {"log_correlation", "log_correlation", "", Verdict::supported, Verdict::refuted,
     "a temperature 20 % off", [](Plan& plan) { scale_temperature(plan, 1.2); }},
    {"temperature", "temperature_sqrt_dim", "sqrt(d_k)", Verdict::supported, Verdict::refuted,
     "a temperature 5 % off", [](Plan& plan) { scale_temperature(plan, 1.05); }},
    {"temperature", "temperature_one", "one", Verdict::refuted, Verdict::supported,
     "temperature sqrt(d_k)", [](Plan& plan) { scale_temperature(plan, std::sqrt(plan.k)); }},
    {"temperature", "temperature_condensation", "condensation", Verdict::supported,
     Verdict::refuted, "a temperature 20 % off",
     [](Plan& plan) { scale_temperature(plan, 1.2); }},
    {"output_projection", "output_projection_own", "", Verdict::supported, Verdict::refuted,
     "orthogonal heads with a wider window",
     [](Plan& plan) {
       if (at_right_angles(plan)) scale_bandwidth(plan, 1.1);
     }},
    {"self_attention", "self_attention", "", Verdict::supported, Verdict::refuted,
     "a bandwidth 10 % off", [](Plan& plan) { scale_bandwidth(plan, 1.1); }},
    {"weights", "weights_optimism", "", Verdict::supported, Verdict::refuted,
     "heads of other covariance than the optimum is told for",
     [](Plan& plan) { scale_bandwidth(plan, 1.2); }},
    {"weights", "weights_gain", "", Verdict::supported, Verdict::refuted,
     "weights on the wrong heads",
     [](Plan& plan) {
       if (plan.head_weights[0] != plan.head_weights[1]) plan.head_weights = {-1, 1, 1};
     }},
    {"isomorphism", "isomorphism_by_bandwidth", "", Verdict::supported, Verdict::refuted,
     "the many heads have other bandwidths than the few",
     [](Plan& plan) {
       if (plan.heads == 64) scale_bandwidth(plan, 0.6);
     }},
    {"angles", "angles_mechanism", "mechanism, stage by stage", Verdict::supported,
     Verdict::refuted, "heads at right angles see the same", align_right_angles},
    {"angles", "angles_transform", "transform", Verdict::refuted, Verdict::supported,
     "heads see the same whatever their angles", align},
    {"angles", "angles_union", "union", Verdict::refuted, Verdict::supported,
     "heads keep their own weights", [](Plan& plan) { plan.mechanism.keep.shared = false; }},
    {"angles", "angles_union", "keep without union", Verdict::supported, Verdict::refuted,
     "heads keep what any keeps", [](Plan& plan) { plan.mechanism.keep.shared = true; }},
    {"hdi", "hdi_sparsity", "sparsity", Verdict::refuted, Verdict::supported, "nothing is dropped",
     keep_all},
    {"hdi", "hdi_sparsity", "sparsity, premise", Verdict::supported, Verdict::refuted,
     "nothing is dropped", keep_all},
    {"hdi", "hdi_windows", "windows", Verdict::refuted, Verdict::supported, "windows of everything",
     see_all},
    {"hdi", "hdi_windows", "windows, premise", Verdict::supported, Verdict::refuted,
     "windows of everything", see_all},
    {"context", "context_softmax", "splitting, softmax", Verdict::supported, Verdict::refuted,
     "windows of a quarter", see_half},
    {"context", "context_gaussian_one", "splitting, Gaussian of dimension 1", Verdict::refuted,
     Verdict::supported, "windows of everything", see_all},
    {"context", "context_gaussian_six", "splitting, Gaussian of dimension 6", Verdict::supported,
     Verdict::refuted, "windows of a quarter", see_half},
    {"merging", "merging_price", "price", Verdict::refuted, Verdict::supported, "nothing is merged",
     [](Plan& plan) {
       if (!plan.mechanism.merge.off()) scale_temperature(plan, 2);
       plan.mechanism.merge = {};
     }},
    {"merging", "merging_price", "price, premise", Verdict::supported, Verdict::refuted,
     "nothing is merged, at the temperature of merged points",
     [](Plan& plan) { plan.mechanism.merge = {}; }},
    {"merging", "merging_curved", "curved truth", Verdict::refuted, Verdict::supported,
     "nothing is merged", [](Plan& plan) { plan.mechanism.merge = {}; }},
    {"merging", "merging_reduction", "reduction", Verdict::supported, Verdict::refuted,
     "the bandwidth of merged heads 5 % off",
     [](Plan& plan) {
       if (!plan.mechanism.merge.off()) scale_bandwidth(plan, 1.05);
     }},
    {"levels", "levels_softmax", "softmax, independent keys", Verdict::refuted, Verdict::supported,
     "keys at one scale",
     [](Plan& plan) {
       if (!plan.mechanism.levels.off()) scale_temperature(plan, 4.0 / 3);
       plan.mechanism.levels = {};
     }},
    {"levels", "levels_softmax", "softmax, premise", Verdict::supported, Verdict::refuted,
     "keys at one scale, at the temperature of two",
     [](Plan& plan) { plan.mechanism.levels = {}; }},
    {"levels", "levels_gaussian", "Gaussian", Verdict::refuted, Verdict::supported,
     "keys at one scale",
     [](Plan& plan) {
       if (!plan.mechanism.levels.off()) scale_bandwidth(plan, 0.1317 / 0.2);
       plan.mechanism.levels = {};
     }},
    {"levels", "levels_gaussian", "Gaussian, premise", Verdict::supported, Verdict::refuted,
     "keys at one scale, with the bandwidth of two",
     [](Plan& plan) { plan.mechanism.levels = {}; }},
    {"low_rank", "low_rank_scores", "", Verdict::identity, Verdict::refuted,
     "compressed keys 1 % longer",
     [](Plan& plan) {
       for (std::size_t i = plan.projections.size() / 2; i < plan.projections.size(); ++i) {
         plan.projections[i] *= 1.01;
       }
     }},
    {"low_rank", "low_rank_output", "output", Verdict::refuted, Verdict::supported,
     "one compression under both names",
     [](Plan& plan) {
       const double keys[] = {0, 0, 1, 0};
       const double queries[] = {0, 0, std::sqrt(0.5), 0};
       std::ranges::copy(keys, plan.projections.begin() + 4);
       std::ranges::copy(queries, plan.query_projections.begin() + 4);
     }},
    {"layer_norm", "layer_norm_few", "", Verdict::supported, Verdict::refuted,
     "more tokens than features", [](Plan& plan) { plan.n = 12; }},
    {"layer_norm", "layer_norm_many", "", Verdict::refuted, Verdict::supported, "RMS norm",
     [](Plan& plan) { change_stack(plan, [](Stack& stack) { stack.norm.kind = NormKind::rms; }); }},
    {"layer_norm", "layer_norm_every", "", Verdict::refuted, Verdict::supported,
     "tokens on three of four axes",
     [](Plan& plan) {
       change_stack(plan, [](Stack& stack) { stack.tokens = Eigen::MatrixXd::Identity(3, 4); });
     }},
    {"layer_norm", "layer_norm_protects", "", Verdict::refuted, Verdict::supported,
     "no norm in either stack", drop_norm},
    {"layer_norm", "layer_norm_contributes", "", Verdict::refuted, Verdict::supported,
     "no norm in either stack", drop_norm},
    {"span", "span_identity_values", "", Verdict::supported, Verdict::refuted, "drawn values",
     [](Plan& plan) {
       change_stack(plan, [](Stack& stack) {
         stack.maps = GaussianMaps{.k = 6, .value_dim = 6};
       });
     }},
    {"span", "span_spanning_tokens", "", Verdict::supported, Verdict::refuted,
     "too few tokens to span the space", [](Plan& plan) { plan.n = 3; }},
    {"span", "span_any_values", "", Verdict::refuted, Verdict::supported,
     "as many tokens as features", [](Plan& plan) { plan.n = 6; }},
    {"span", "span_mlp", "", Verdict::supported, Verdict::refuted, "a line through the origin",
     [](Plan& plan) {
       change_stack(plan, [](Stack& stack) {
         stack.tokens.rowwise() -= stack.tokens.colwise().mean().eval();
       });
     }},
    {"head_channels", "head_channels_read_out", "", Verdict::supported, Verdict::refuted,
     "heads that write more than they are read",
     [](Plan& plan) {
       change_stack(plan, [](Stack& stack) { gaussian_maps(stack).value_dim = 6; });
     }},
    {"head_channels", "head_channels_row_space", "", Verdict::supported, Verdict::refuted,
     "a block for each head",
     [](Plan& plan) { change_stack(plan, [](Stack& stack) { stack.averaged = false; }); }},
    {"head_channels", "head_channels_full_output", "", Verdict::refuted, Verdict::supported,
     "one block for all heads",
     [](Plan& plan) { change_stack(plan, [](Stack& stack) { stack.averaged = true; }); }},
    {"retrieval", "retrieval", "", Verdict::supported, Verdict::refuted, "a temperature 5 % off",
     [](Plan& plan) { change_stack(plan, [](Stack& stack) { stack.temperature *= 1.05; }); }},
    {"tickets", "tickets_rate", "", Verdict::supported, Verdict::refuted,
     "no more than 12 samples",
     [](Plan& plan) {
       change_stack(plan, [](Stack& stack) {
         gaussian_maps(stack).samples = std::min(gaussian_maps(stack).samples, 12);
       });
     }},
    {"tickets", "tickets_output", "", Verdict::supported, Verdict::refuted,
     "a pruned head of half the temperature",
     [](Plan& plan) { change_stack(plan, [](Stack& stack) { stack.temperature /= 2; }); }},
    {"synergy", "synergy_faster", "", Verdict::supported, Verdict::refuted,
     "both heads fast on the same half", equal_heads},
    {"synergy", "synergy_best_weights", "", Verdict::identity, Verdict::refuted,
     "mixtures that stay where they are every second time", slow_down},
    {"synergy", "synergy_no_slower", "", Verdict::refuted, Verdict::supported, "equal heads",
     equal_heads},
    {"synergy", "synergy_fidelity_above", "", Verdict::supported, Verdict::refuted, "equal heads",
     equal_heads},
    {"synergy", "synergy_fidelity_below", "", Verdict::refuted, Verdict::supported, "equal heads",
     equal_heads},
    {"synergy", "synergy_long_lines", "", Verdict::supported, Verdict::refuted,
     "walks that stay where they are every second time", slow_down},
    {"synergy", "synergy_every_line", "", Verdict::refuted, Verdict::supported, "a sure step",
     [](Plan& plan) {
       change_stack(plan, [](Stack& stack) { stack.fixed[0].row(0) = stack.fixed[0].row(1); });
     }},
    {"synergy", "synergy_union", "", Verdict::supported, Verdict::refuted, "the first head alone",
     equal_heads},
    {"dropping", "dropping_error", "error", Verdict::refuted, Verdict::supported,
     "nothing is dropped", keep_all},
    {"dropping", "dropping_noise", "noise", Verdict::supported, Verdict::refuted,
     "the head of 5 weights keeps all",
     [](Plan& plan) {
       if (!plan.mechanism.keep.off() && plan.mechanism.keep.top[0] == 5) keep_all(plan);
     }},
    {"fusion", "fusion_additive", "additive, early", Verdict::refuted, Verdict::supported,
     "little noise in the noisy setting",
     [](Plan& plan) {
       if (plan.n == 400) set_noise(plan, 0.1);
     }},
    {"fusion", "fusion_additive", "additive, late", Verdict::refuted, Verdict::supported,
     "noise and a narrow window in the other setting",
     [](Plan& plan) {
       if (plan.n == 400) return;
       set_noise(plan, 4);
       scale_bandwidth(plan, 0.4);
     }},
    {"fusion", "fusion_product", "product", Verdict::supported, Verdict::refuted,
     "heads that see both modalities",
     [](Plan& plan) {
       plan.projections = {0.6, 0.8, -0.8, 0.6};
     }},
    {"autocorrelation", "autocorrelation", "noise", Verdict::refuted, Verdict::supported,
     "more noise on dependent points",
     [](Plan& plan) {
       if (plan.ar1) set_noise(plan, std::sqrt(19.0));
     }},
    {"autocorrelation", "autocorrelation", "signal", Verdict::refuted, Verdict::supported,
     "noise in place of the signal, more on dependent points",
     [](Plan& plan) { set_noise(plan, plan.ar1 ? 20 * std::sqrt(19.0) : 20); }},
    {"allocation", "allocation_tuned_additive", "", Verdict::supported, Verdict::refuted,
     "the allocation in between is mistuned",
     [](Plan& plan) {
       if (plan.k == 3) scale_bandwidth(plan, 4);
     }},
    {"scaling_law", "scaling_law_growth_tuned_additive", "", Verdict::supported, Verdict::refuted,
     "the large training sets are small ones", [](Plan& plan) { plan.n = 30; }},
    {"specialization", "specialization_additive", "chordal", Verdict::supported, Verdict::refuted,
     "nothing is learned", [](Plan& plan) { plan.learning->steps = 0; }},
    {"specialization", "specialization_pays_additive", "", Verdict::supported, Verdict::unresolved,
     "the penalty is not in force", [](Plan& plan) { plan.learning->diversity = 0; }},
    {"collapse", "collapse_bound", "", Verdict::supported, Verdict::refuted, "a causal mask",
     hide_later_tokens},
    {"collapse", "collapse_simplex", "order three", Verdict::supported, Verdict::refuted,
     "attention with a memory",
     [](Plan& plan) { change_stack(plan, [](Stack& stack) { stack.memory = 0.5; }); }},
    {"collapse", "collapse_simplex", "unconditional", Verdict::refuted, Verdict::supported,
     "smaller tokens",
     [](Plan& plan) { change_stack(plan, [](Stack& stack) { stack.tokens *= 0.9; }); }},
    {"collapse", "collapse_averaged", "averaged heads", Verdict::supported, Verdict::refuted,
     "heads of another correlation", draw_other_logits},
    {"skip", "skip_rank", "rank with a skip", Verdict::supported, Verdict::refuted, "no skip",
     leave_out_skip},
    {"skip", "skip_rank", "rank without a skip", Verdict::supported, Verdict::refuted,
     "values of rank 1",
     [](Plan& plan) {
       change_stack(plan, [](Stack& stack) { std::get<GaussianMaps>(stack.maps).value_dim = 1; });
     }},
    {"skip", "skip_share", "share", Verdict::supported, Verdict::refuted, "no skip",
     leave_out_skip},
    {"skip", "skip_cosine_simplex", "cosine, simplex", Verdict::refuted, Verdict::supported,
     "no attention", leave_out_attention},
    {"skip", "skip_cosine_gaussian", "cosine, Gaussian", Verdict::refuted, Verdict::supported,
     "no attention", leave_out_attention},
    {"hidden_state", "hidden_state_bound", "", Verdict::supported, Verdict::refuted,
     "a causal mask", hide_later_tokens},
    {"hidden_state", "hidden_state_rate", "", Verdict::refuted, Verdict::supported,
     "the first scores for ever",
     [](Plan& plan) { change_stack(plan, [](Stack& stack) { stack.memory = 1; }); }},
    {"hidden_state", "hidden_state_simplex", "simplex", Verdict::supported, Verdict::refuted,
     "softer attention in place of the memory", soften_memory},
    {"hidden_state", "hidden_state_logits", "independent logits", Verdict::refuted,
     Verdict::supported, "no memory", forget},
    {"hidden_state", "hidden_state_gaussian", "cosine, soft attention", Verdict::refuted,
     Verdict::supported, "no memory", forget},
    {"hidden_state", "hidden_state_gaussian", "cosine, hard attention", Verdict::supported,
     Verdict::refuted, "softer attention in place of the memory", soften_memory},
    {"rank_links", "rank_links_floor", "", Verdict::supported, Verdict::refuted,
     "a layer of more correlated heads", draw_other_logits},
    {"rank_links", "rank_links_ambiguity", "", Verdict::supported, Verdict::refuted,
     "a layer of more correlated heads", draw_other_logits},
};

class Faulty : public testing::TestWithParam<Fault> {};

TEST_P(Faulty, WorldTurnsTheVerdict) {
  const Fault& fault = GetParam();
  EXPECT_STREQ(verdict_text(verdict_on(fault.scenario, fault.which, nullptr)),
               verdict_text(fault.honest));
  EXPECT_STREQ(verdict_text(verdict_on(fault.scenario, fault.which, fault.apply)),
               verdict_text(fault.faulty))
      << fault.error;
}

INSTANTIATE_TEST_SUITE_P(Claims, Faulty, testing::ValuesIn(faults),
                         [](const testing::TestParamInfo<Fault>& test) {
                           std::string name = test.param.scenario;
                           if (!test.param.which.empty()) name += "_" + test.param.which;
                           std::ranges::replace_if(
                               name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

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
  std::set<std::string> faulty;
  for (const Fault& fault : faults) faulty.insert(fault.claim);
  std::set<std::pair<std::string, std::string>> forms;
  for (const ClaimScenario& file : claim_scenarios()) {
    const Scenario scenario = parse_scenario(file.text, file.file);
    if (states_claims(scenario)) {
      const StatedClaims stated = read_stated_claims(scenario);
      for (const StatedClaim& one : stated.all) {
        EXPECT_TRUE(forms.insert({stated.name, one.form.name}).second) << one.form.name;
        EXPECT_FALSE(one.expected.empty()) << one.form.name;
        // "In this form" is said of what somebody else claims.
        EXPECT_FALSE(one.form.origin.empty() && one.form.statement.starts_with("In this form"))
            << one.form.name;
        EXPECT_TRUE(std::ranges::any_of(faults,
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
