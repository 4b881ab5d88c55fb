// SPDX-License-Identifier: Apache-2.0
// Every claim with a fault in the simulated world, so that what is claimed of the world as
// it should be no longer holds there: the verdict has to turn.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "engine/files/error.h"
#include "validation/claims/claim.h"
#include "validation/claims/claim_scenarios.h"
#include "validation/verdicts/validate.h"

namespace headlab {
namespace {

/// Verdict on one built-in scenario, for one index where it has several.
Verdict verdict_on(const std::string& file, const std::string& index,
                   const std::function<void(Plan&)>& fault) {
  for (const ClaimScenario& scenario : claim_scenarios()) {
    if (scenario.file != "scenarios/claims/" + file + ".toml") continue;
    const Validation result =
        validate_scenario(scenario.text, {.threads = 2}, {.substitutes = {.fault = fault}});
    for (const VerdictRow& row : result.rows) {
      if (row.index == index) return row.verdict;
    }
  }
  ADD_FAILURE() << "no scenario " << file << " with index \"" << index << "\"";
  return Verdict::unresolved;
}

/// An error in the world, and the verdict it turns.
struct Fault {
  std::string claim;
  std::string scenario;  ///< file name without folder and ending
  std::string index;
  Verdict honest;
  Verdict faulty;
  std::string error;
  void (*apply)(Plan&);
};

void scale_bandwidth(Plan& plan, double factor) {
  if (auto* gaussian = std::get_if<GaussianKernel>(&plan.kernel)) gaussian->bandwidth *= factor;
}

void scale_temperature(Plan& plan, double factor) {
  if (auto* softmax = std::get_if<SoftmaxKernel>(&plan.kernel)) softmax->temperature *= factor;
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

const Fault faults[] = {
    {"identity", "identity_equal_norms", "", Verdict::identity, Verdict::refuted, "b^2 is not t",
     [](Plan& plan) { scale_bandwidth(plan, 1.05); }},
    {"identity", "identity_unequal_norms", "", Verdict::refuted, Verdict::supported,
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
    {"angles", "angles_centre", "", Verdict::supported, Verdict::refuted,
     "heads at right angles see the same", align_right_angles},
    {"angles", "angles_off_centre", "", Verdict::refuted, Verdict::supported,
     "the query is moved to the centre",
     [](Plan& plan) { plan.query_points.assign(plan.query_points.size(), 0.0); }},
    {"log_correlation", "log_correlation", "", Verdict::supported, Verdict::refuted,
     "a temperature 20 % off", [](Plan& plan) { scale_temperature(plan, 1.2); }},
    {"temperature", "temperature_sqrt_dim", "", Verdict::supported, Verdict::refuted,
     "a temperature 5 % off", [](Plan& plan) { scale_temperature(plan, 1.05); }},
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
    {"allocation", "allocation_tuned_additive", "", Verdict::supported, Verdict::refuted,
     "the allocation in between is mistuned",
     [](Plan& plan) {
       if (plan.k == 3) scale_bandwidth(plan, 4);
     }},
    {"scaling_law", "scaling_law_growth_tuned_additive", "", Verdict::supported, Verdict::refuted,
     "the large training sets are small ones", [](Plan& plan) { plan.n = 30; }},
    {"specialization", "specialization_additive", "chordal", Verdict::supported, Verdict::refuted,
     "nothing is learned", [](Plan& plan) { plan.learning->steps = 0; }},
    {"specialization", "specialization_pays_additive", "", Verdict::supported, Verdict::refuted,
     "the penalty is not in force", [](Plan& plan) { plan.learning->diversity = 0; }},
};

class Faulty : public testing::TestWithParam<Fault> {};

TEST_P(Faulty, WorldTurnsTheVerdict) {
  const Fault& fault = GetParam();
  EXPECT_STREQ(verdict_text(verdict_on(fault.scenario, fault.index, nullptr)),
               verdict_text(fault.honest));
  EXPECT_STREQ(verdict_text(verdict_on(fault.scenario, fault.index, fault.apply)),
               verdict_text(fault.faulty))
      << fault.error;
}

INSTANTIATE_TEST_SUITE_P(Claims, Faulty, testing::ValuesIn(faults),
                         [](const testing::TestParamInfo<Fault>& test) {
                           return test.param.scenario +
                                  (test.param.index.empty() ? "" : "_" + test.param.index);
                         });

TEST(Claims, RefuseQueriesThatAreDrawnAgain) {
  const auto scenarios = claim_scenarios();
  const auto at = std::ranges::find_if(scenarios, [](const ClaimScenario& one) {
    return std::string(one.file) == "scenarios/claims/angles_query_average.toml";
  });
  ASSERT_NE(at, scenarios.end());
  std::string text(at->text);
  const std::string law = "law = \"design\"\n";
  ASSERT_NE(text.find(law), std::string::npos);
  text.insert(text.find(law), "redraw = true\n");
  try {
    validate_scenario(text, {.threads = 2}, {});
    FAIL() << "was validated";
  } catch (const InvalidInput& error) {
    EXPECT_NE(std::string(error.what()).find("this claim is about given heads and queries"),
              std::string::npos)
        << error.what();
  }
}

TEST(Claims, EachHasAFaultAndAScenarioForEveryForm) {
  std::set<std::string> faulty;
  for (const Fault& fault : faults) faulty.insert(fault.claim);
  std::set<std::pair<std::string, std::string>> forms;
  for (const ClaimScenario& scenario : claim_scenarios()) {
    const ClaimSection section = read_claim_section(parse_scenario(scenario.text, scenario.file));
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

}  // namespace
}  // namespace headlab
