// SPDX-License-Identifier: Apache-2.0
// For heads of one variance V and one correlation rho,
//   Var(f) = V (1/H + (1 - 1/H) rho),
// so that more heads lower the variance to the floor rho V and never to 0 (unless rho = 0). V and
// rho come from the closed form of two heads; the variance at large H is predicted from them.
#include "engine/scenario/condition.h"
#include "validation/claims/claim.h"
#include "validation/claims/experiment.h"

namespace headlab {
namespace {

std::vector<Finding> prediction(Experiment& experiment) {
  // Condition 0 has two heads: their closed form is the source of V and rho.
  const auto& pair = experiment.theory(0).figures;
  const double variance = pair.head_variance_mean.value;
  const double rho = pair.output_correlation.value;
  Finding finding;
  for (std::size_t i = 1; i < experiment.conditions(); ++i) {
    const JackknifedEstimates& seen = experiment.observed(i);
    const double heads = experiment.condition(i).heads;
    const double predicted = variance * (1 / heads + (1 - 1 / heads) * rho);
    finding.comparisons.push_back(
        equal_to("variance with " + std::to_string(experiment.condition(i).heads) +
                     " heads, relative to its closed form",
                 seen.variance_term + seen.covariance_term, predicted, predicted,
                 experiment.margin(), experiment.node_counts()));
  }
  // The floor itself: what is left at the most heads, over rho V, is at least 1.
  const JackknifedEstimates& last = experiment.observed(experiment.conditions() - 1);
  finding.comparisons.push_back(
      at_least_zero("variance with the most heads, over its floor rho V minus 1",
                    (last.variance_term + last.covariance_term) / (rho * variance) - 1, 1,
                    experiment.margin(), experiment.node_counts()));
  return {std::move(finding)};
}

}  // namespace

Claim variance_floor_claim() {
  return {.name = "variance_floor", .forms = {{.name = "prediction", .examine = prediction}}};
}

}  // namespace headlab
