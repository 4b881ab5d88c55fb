// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/computed_conditions.h"

#include <cstddef>
#include <limits>
#include <string>

#include "engine/files/error.h"
#include "tools/cli/condition_indices.h"
#include "validation/theory/side_by_side.h"

namespace headlab::tools {
namespace {

ComputedCondition computed_condition(const Scenario& scenario, const Theory& theory) {
  return {.scenario = scenario,
          .result = theory,
          .indices = condition_indices<Remainder>(scenario, {}, theory.plan, theory.figures)};
}

}  // namespace

std::vector<Theory> compute_theories(const Study& study, TheorySource source, int threads) {
  std::vector<Theory> theories;
  const std::size_t count = study.conditions.size();
  for (const Scenario& scenario : study.conditions) {
    try {
      theories.push_back(compute_theory(scenario, source, threads));
    } catch (const Refused& error) {
      if (count == 1) throw;
      throw Refused("condition " + std::to_string(theories.size() + 1) + " of " +
                    std::to_string(count) + ": " + error.what());
    }
  }
  return theories;
}

std::vector<ComputedCondition> computed_conditions(const Study& study,
                                                   const std::vector<Theory>& theories) {
  std::vector<ComputedCondition> computed;
  for (std::size_t i = 0; i < theories.size(); ++i) {
    computed.push_back(computed_condition(study.conditions[i], theories[i]));
  }
  return computed;
}

std::vector<ComputedCondition> compared_conditions(const RunResult& result,
                                                   const std::vector<Theory>& theories) {
  std::vector<ComputedCondition> computed;
  for (std::size_t i = 0; i < result.conditions.size(); ++i) {
    const ConditionResult& simulated = result.conditions[i];
    Theory theory = theories[i];
    set_head_weights(theory, simulated.plan.head_weights);
    computed.push_back(computed_condition(simulated.scenario, theory));
    computed.back().simulated = side_by_side(simulated.estimates, theory.figures);
  }
  return computed;
}

}  // namespace headlab::tools
