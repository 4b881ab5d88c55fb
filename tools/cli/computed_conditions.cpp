// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/computed_conditions.h"

#include <cstddef>
#include <limits>
#include <string>

#include "engine/files/error.h"
#include "engine/files/words.h"
#include "tools/cli/condition_indices.h"
#include "validation/theory/side_by_side.h"

namespace headlab::tools {
namespace {

ComputedCondition computed_condition(const Condition& condition, const Theory& theory) {
  if (condition.stack) return {.condition = condition, .result = theory};
  return {.condition = condition,
          .result = theory,
          .indices = condition_indices<Remainder>(condition, {}, theory.plan, theory.figures)};
}

}  // namespace

std::vector<Theory> compute_theories(const Scenario& scenario, TheorySource source, int threads,
                                     const std::function<bool()>& stop) {
  std::vector<Theory> theories;
  const std::size_t count = scenario.conditions.size();
  for (const Condition& condition : scenario.conditions) {
    if (stop && stop()) throw Stopped();
    try {
      theories.push_back(compute_theory(condition, source, threads));
    } catch (const InvalidInput& error) {
      if (count == 1) throw;
      throw InvalidInput(numbered_condition(theories.size()) + " of " + std::to_string(count) +
                         ": " + error.what());
    }
  }
  return theories;
}

std::vector<ComputedCondition> computed_conditions(const Scenario& scenario,
                                                   const std::vector<Theory>& theories) {
  std::vector<ComputedCondition> computed;
  for (std::size_t i = 0; i < theories.size(); ++i) {
    computed.push_back(computed_condition(scenario.conditions[i], theories[i]));
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
    computed.push_back(computed_condition(*simulated.condition, theory));
    computed.back().simulated =
        simulated.layers ? side_by_side(*simulated.layers, theory)
                         : side_by_side(simulated.estimates, theory.figures, theory.plan.truth);
  }
  return computed;
}

}  // namespace headlab::tools
