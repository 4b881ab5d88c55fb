// SPDX-License-Identifier: Apache-2.0
#include "validation/search/confirm.h"

#include <utility>
#include <vector>

#include "engine/run/simulate.h"
#include "validation/search/scenarios.h"

namespace headlab {

std::string inversion_scenario(const Scenario& base, const Inversion& inversion,
                               std::uint64_t replicates) {
  return head_sets_scenario(base, inversion.diverse.sizes,
                            {inversion.diverse.toml(), inversion.plain.toml()}, base.seed,
                            replicates);
}

Certificate pair_certificate(std::string scenario, std::uint64_t seed,
                             const SampledEstimates& first, const SampledEstimates& second) {
  const std::vector<double>& counts = first.node_counts;
  Certificate certificate{.scenario = std::move(scenario),
                          .seed = seed,
                          .replicates = first.replicates,
                          .first_mse = first.mse.figure(counts),
                          .second_mse = second.mse.figure(counts),
                          .difference = (first.mse - second.mse).figure(counts)};
  certificate.z = certificate.difference.value / certificate.difference.mcse;
  return certificate;
}

Certificate confirm(const Scenario& base, const Inversion& inversion, std::uint64_t replicates,
                    const Backend& backend, int threads) {
  std::string text = inversion_scenario(base, inversion, replicates);
  const Study study = parse_study(text, "counterexample");
  std::vector<SampledEstimates> estimates;
  for (const Scenario& scenario : study.conditions) {
    const Plan plan = make_plan(scenario);
    estimates.push_back(sampled_estimates(simulate(plan, backend, threads, replicates),
                                          plan.head_weights, plan.truth));
  }
  return pair_certificate(std::move(text), base.seed, estimates[0], estimates[1]);
}

std::vector<std::pair<std::string, std::pair<double, double>>> closed_form(
    const Inversion& inversion, const std::string& error) {
  return {{"index", {inversion.of_diverse.index, inversion.of_plain.index}},
          {error, {inversion.of_diverse.error, inversion.of_plain.error}}};
}

}  // namespace headlab
