// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/computed_conditions.h"

#include <cstddef>
#include <limits>
#include <memory>
#include <string>

#include "engine/files/error.h"
#include "engine/files/words.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/setup_laws.h"
#include "kernels/statistics/stopping.h"
#include "validation/diversity/projected_heads.h"
#include "validation/theory/side_by_side.h"

namespace headlab::tools {
namespace {

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

/// Largest value of an index that follows from the error.
double ceiling_of(const std::string& index, int heads) {
  if (heads == 1) return undefined;
  // Weights are not negative, so no two vectors of them are more than at right angles.
  return index == "output" ? output_index_upper_bound(heads) : 1.0;
}

ComputedCondition computed_condition(const std::shared_ptr<const Condition>& condition,
                                     const Theory& theory) {
  if (condition->stack) return {.condition = condition, .result = theory};
  return {.condition = condition,
          .result = theory,
          .indices = condition_indices<Remainder>(*condition, {}, *theory.plan, theory.figures)};
}

}  // namespace

template <class Number>
IndicesOf<Number> condition_indices(const Condition& condition, const Preparation& found,
                                    const Plan& plan, const ErrorTerms<Number>& terms) {
  const auto& compress = stage<CompressStage>(condition.mechanism);
  const bool compressed = compress && !compress->off(condition.heads, condition.k);
  // Heads that every replicate learns have no subspaces of the condition, nor have those of a draw.
  const bool of_condition = !plan.learning && !redraws(*condition.subspaces);
  const std::vector<Index> of_heads =
      head_indices(make_subspaces(condition, found), *plan.kernel, compressed);
  NumberList<const Number> of_error;
  terms.index_fields(of_error);
  IndicesOf<Number> indices;
  indices.reserve(of_heads.size() + of_error.all.size());
  for (const Index& index : of_heads) {
    indices.push_back(
        {.name = index.name,
         .figure = {.value = of_condition ? index.value.value_or(undefined) : undefined},
         .upper_bound = index.upper_bound.value_or(undefined)});
  }
  for (const NamedNumber<const Number>& index : of_error.all) {
    indices.push_back({.name = index.name,
                       .figure = *index.number,
                       .upper_bound = ceiling_of(index.name, plan.heads),
                       .simulated = true});
  }
  return indices;
}

template IndicesOf<Estimate> condition_indices(const Condition&, const Preparation&, const Plan&,
                                               const ErrorTerms<Estimate>&);
template IndicesOf<Remainder> condition_indices(const Condition&, const Preparation&, const Plan&,
                                                const ErrorTerms<Remainder>&);

std::vector<ConditionIndices> condition_indices(const RunResult& result) {
  std::vector<ConditionIndices> indices;
  indices.reserve(result.conditions.size());
  for (const ConditionResult& one : result.conditions) {
    if (one.layers) {
      indices.emplace_back();
      continue;
    }
    indices.push_back(
        condition_indices<Estimate>(*one.condition, one.found, one.plan, one.estimates));
  }
  return indices;
}

std::vector<Theory> compute_theories(const Scenario& scenario, TheorySource source, int threads,
                                     const std::function<bool()>& stop) {
  std::vector<Theory> theories;
  const StopScope scope(stop);
  const std::size_t count = scenario.conditions.size();
  for (const Condition& condition : scenario.conditions) {
    if (stop && stop()) throw Stopped();
    try {
      theories.push_back(compute_theory(condition, source, threads));
    } catch (const WorkStopped&) {
      throw Stopped();
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
    computed.push_back(
        computed_condition(std::make_shared<const Condition>(scenario.conditions[i]), theories[i]));
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
    computed.push_back(computed_condition(simulated.condition, theory));
    computed.back().simulated =
        simulated.layers ? side_by_side(*simulated.layers, theory)
                         : side_by_side(simulated.estimates, theory.figures, theory.plan->truth);
  }
  return computed;
}

}  // namespace headlab::tools
