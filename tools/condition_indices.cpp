// SPDX-License-Identifier: Apache-2.0
#include "tools/condition_indices.h"

#include <limits>
#include <optional>
#include <variant>

#include "engine/subspaces.h"
#include "validation/indices.h"

namespace headlab::tools {

ConditionIndices condition_indices(const ConditionResult& condition) {
  constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
  std::optional<double> bandwidth, temperature;
  if (const auto* gaussian = std::get_if<GaussianKernel>(&condition.plan.kernel)) {
    bandwidth = gaussian->bandwidth;
  }
  if (const auto* softmax = std::get_if<SoftmaxKernel>(&condition.plan.kernel)) {
    temperature = softmax->temperature;
  }
  ConditionIndices indices;
  for (const Index& index :
       subspace_indices(make_subspaces(condition.scenario), bandwidth, temperature)) {
    indices.push_back({.name = index.name,
                       .figure = {.value = index.value.value_or(undefined)},
                       .ceiling = index.ceiling.value_or(undefined)});
  }
  const int heads = condition.plan.heads;
  indices.push_back({.name = "output",
                     .figure = condition.estimates.output_index,
                     .ceiling = heads > 1 ? output_index_ceiling(heads) : undefined,
                     .simulated = true});
  // Weights are not negative, so no two vectors of them are more than at right angles.
  indices.push_back({.name = "weights",
                     .figure = condition.estimates.weights_index,
                     .ceiling = heads > 1 ? 1.0 : undefined,
                     .simulated = true});
  return indices;
}

std::vector<ConditionIndices> condition_indices(const RunResult& result) {
  std::vector<ConditionIndices> indices;
  for (const ConditionResult& condition : result.conditions) {
    indices.push_back(condition_indices(condition));
  }
  return indices;
}

}  // namespace headlab::tools
