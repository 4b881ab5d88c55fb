// SPDX-License-Identifier: Apache-2.0
#include "validation/search/confirm.h"

#include <utility>
#include <vector>

#include "engine/run/simulate.h"
#include "validation/search/scenarios.h"

namespace headlab {

std::string inversion_scenario(const Condition& base, const Inversion& inversion,
                               std::uint64_t replicates) {
  return head_sets_condition_text(base, inversion.diverse.sizes,
                                  {inversion.diverse.toml(), inversion.plain.toml()}, base.seed,
                                  replicates);
}

Counterexample pair_counterexample(std::string scenario, std::uint64_t seed,
                                   const JackknifedEstimates& first,
                                   const JackknifedEstimates& second) {
  const std::vector<double>& counts = first.node_counts;
  Counterexample counterexample{.scenario = std::move(scenario),
                                .seed = seed,
                                .replicates = first.replicates,
                                .first = first.mse.figure(counts),
                                .second = second.mse.figure(counts),
                                .difference = (first.mse - second.mse).figure(counts)};
  counterexample.z = counterexample.difference.value / counterexample.difference.mcse;
  return counterexample;
}

Counterexample confirm(const Condition& base, const Inversion& inversion, std::uint64_t replicates,
                       const Backend& backend, int threads) {
  std::string text = inversion_scenario(base, inversion, replicates);
  const Scenario scenario = parse_scenario(text, "counterexample");
  std::vector<JackknifedEstimates> estimates;
  for (const Condition& condition : scenario.conditions) {
    const Plan plan = make_plan(condition);
    estimates.push_back(jackknifed_estimates(simulate(plan, backend, threads, replicates),
                                             plan.head_weights, plan.truth));
  }
  return pair_counterexample(std::move(text), base.seed, estimates[0], estimates[1]);
}

std::vector<std::pair<std::string, std::pair<double, double>>> closed_form(
    const Inversion& inversion, const std::string& error) {
  return {{"index", {inversion.of_diverse.index, inversion.of_plain.index}},
          {error, {inversion.of_diverse.error, inversion.of_plain.error}}};
}

}  // namespace headlab
