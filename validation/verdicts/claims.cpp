// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/scenario/law_reader.h"
#include "engine/scenario/scenario.h"
#include "validation/claims/experiment.h"
#include "validation/claims/stated_claim.h"
#include "validation/verdicts/validate.h"

namespace headlab {

// One function a claim, in the file of its name.
Claim identity_claim();
Claim decomposition_claim();
Claim variance_floor_claim();
Claim log_correlation_claim();
Claim hdi_claim();
Claim weights_claim();
Claim output_projection_claim();
Claim self_attention_claim();
Claim isomorphism_claim();
Claim allocation_claim();
Claim scaling_law_claim();
Claim specialization_claim();
Claim low_rank_claim();
Claim collapse_claim();
Claim hidden_state_claim();
Claim rank_links_claim();
Claim layer_norm_claim();
Claim span_claim();
Claim head_channels_claim();
Claim retrieval_claim();
Claim tickets_claim();
Claim synergy_claim();

namespace {

/// Adds what scenarios say: forms that they state, to the claims they are of or as claims of their
/// own, and of the other forms the words.
void add_scenarios(std::vector<Claim>& all) {
  for (const ClaimScenario& file : claim_scenarios()) {
    const Scenario scenario = parse_scenario(file.text, file.file);
    if (!states_claims(scenario)) {
      const ClaimSection section = read_claim_section(scenario);
      const auto claim = std::ranges::find(all, section.name, &Claim::name);
      const auto form = std::ranges::find(claim->forms, section.form, &ClaimForm::name);
      read_texts(section.table, "claim", *form);
      continue;
    }
    StatedClaims stated = read_stated_claims(scenario);
    auto claim = std::ranges::find(all, stated.name, &Claim::name);
    if (claim == all.end()) claim = all.insert(claim, Claim{.name = stated.name, .forms = {}});
    for (StatedClaim& one : stated.all) {
      one.form.examine = nullptr;
      claim->forms.push_back(std::move(one.form));
    }
  }
}

}  // namespace

const std::vector<Claim>& claims() {
  static const std::vector<Claim> all = [] {
    std::vector<Claim> in_order = {identity_claim(),
                                   decomposition_claim(),
                                   variance_floor_claim(),
                                   {.name = "angles", .forms = {}},
                                   log_correlation_claim(),
                                   {.name = "temperature", .forms = {}},
                                   hdi_claim(),
                                   weights_claim(),
                                   output_projection_claim(),
                                   self_attention_claim(),
                                   isomorphism_claim(),
                                   allocation_claim(),
                                   scaling_law_claim(),
                                   specialization_claim(),
                                   low_rank_claim(),
                                   collapse_claim(),
                                   hidden_state_claim(),
                                   rank_links_claim(),
                                   layer_norm_claim(),
                                   span_claim(),
                                   head_channels_claim(),
                                   retrieval_claim(),
                                   tickets_claim(),
                                   synergy_claim()};
    add_scenarios(in_order);
    return in_order;
  }();
  return all;
}

const Claim& find_claim(const std::string& name) {
  std::vector<std::string> names;
  for (const Claim& claim : claims()) {
    if (claim.name == name) return claim;
    names.push_back(claim.name);
  }
  throw InvalidInput("unknown claim \"" + one_line(name) + "\"" + suggestion(name, names) +
                     (name == "all" ? " - without a name it is all of them" : ""));
}

const ClaimForm& find_form(const Claim& claim, const std::string& form) {
  std::vector<std::string> names;
  for (const ClaimForm& one : claim.forms) {
    if (!one.examine) continue;
    if (one.name == form) return one;
    names.push_back(one.name);
  }
  throw InvalidInput("claim \"" + claim.name + "\" has no form \"" + one_line(form) + "\"" +
                     suggestion(form, names));
}

}  // namespace headlab
