// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/condition_indices.h"

#include <limits>
#include <optional>
#include <string>
#include <variant>

#include "engine/scenario/subspaces.h"
#include "validation/diversity/indices.h"
#include "validation/diversity/query_key.h"

namespace headlab::tools {
namespace {

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

/// Index qk of heads that project queries and keys apart: 1 less the mean over pairs of E rho.
std::optional<double> query_key_index(const Subspaces& subspaces, const KernelLaw& kernel) {
  const auto* softmax = std::get_if<SoftmaxKernel>(&kernel);
  if (softmax == nullptr || subspaces.queries().empty() || subspaces.heads() < 2)
    return std::nullopt;
  double sum = 0;
  const auto pairs = query_key_correlations(to_query_matrices(subspaces), to_matrices(subspaces),
                                            softmax->temperature);
  for (const QueryKeyCorrelation& pair : pairs) sum += pair.mean;
  return 1 - sum / static_cast<double>(pairs.size());
}

/// Largest value of an index that follows from the error.
double ceiling_of(const std::string& index, int heads) {
  if (heads == 1) return undefined;
  // Weights are not negative, so no two vectors of them are more than at right angles.
  return index == "output" ? output_index_upper_bound(heads) : 1.0;
}

}  // namespace

template <class Number>
IndicesOf<Number> condition_indices(const Condition& condition, const Preparation& found,
                                    const Plan& plan, const ErrorTerms<Number>& terms) {
  std::optional<double> bandwidth, temperature;
  const Subspaces subspaces = make_subspaces(condition, found);
  const bool alike = subspaces.orthonormal() && subspaces.queries().empty();
  if (const auto* gaussian = std::get_if<GaussianKernel>(&plan.kernel); gaussian && alike) {
    bandwidth = gaussian->bandwidth;
  }
  if (const auto* softmax = std::get_if<SoftmaxKernel>(&plan.kernel); softmax && alike) {
    temperature = softmax->temperature;
  }
  const std::optional<double> query_key = query_key_index(subspaces, plan.kernel);
  // Heads that every replicate learns have no subspaces of the condition, nor have those of a draw.
  const bool of_condition = !plan.learning && !redraws(condition.subspaces);
  IndicesOf<Number> indices;
  for (Index& index : subspace_indices(to_matrices(subspaces), bandwidth, temperature)) {
    if (index.name == "qk" && query_key) index.value = query_key;
    indices.push_back(
        {.name = index.name,
         .figure = {.value = of_condition ? index.value.value_or(undefined) : undefined},
         .upper_bound = index.upper_bound.value_or(undefined)});
  }
  NumberList<const Number> of_error;
  terms.index_fields(of_error);
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
  for (const ConditionResult& one : result.conditions) {
    indices.push_back(
        condition_indices<Estimate>(*one.condition, one.found, one.plan, one.estimates));
  }
  return indices;
}

}  // namespace headlab::tools
