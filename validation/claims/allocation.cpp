// SPDX-License-Identifier: Apache-2.0
// A budget D = H d_k can be spent on one full-dimensional head, on D one-dimensional ones, or in
// between. Claimed: in between is best. What the bandwidth does when d_k changes is part of the
// claim, so there is one form for each rule:
//   fixed     the same bandwidth for every d_k
//   sqrt_dim  softmax at temperature sqrt(d_k), as in Transformers
//   rate      b = n^(-1/(2 beta + d_k)), beta = 2 derivatives
//   tuned     the best bandwidth of each allocation, found in a pilot with another seed
// One more form, exact, holds the simulated errors against the exact ones, and the choice with
// them.
#include <algorithm>
#include <map>

#include "validation/claims/claim.h"
#include "validation/claims/experiment.h"

namespace headlab {
namespace {

std::string heads_text(const Condition& condition) {
  return std::to_string(condition.heads) + (condition.heads == 1 ? " head" : " heads") +
         " of d_k " + std::to_string(condition.k);
}

/// Conditions: one-dimensional heads, the allocation in between, one full head.
std::vector<Finding> interior_is_best(Experiment& experiment) {
  const Jackknifed& between = experiment.observed(1).mse;
  Finding finding;
  for (const std::size_t end : {std::size_t{0}, std::size_t{2}}) {
    finding.comparisons.push_back(
        at_least_zero("MSE of " + heads_text(experiment.condition(end)) + " over that of " +
                          heads_text(experiment.condition(1)) + ", less 1",
                      experiment.observed(end).mse - between, between.value, experiment.margin(),
                      experiment.node_counts()));
  }
  return {std::move(finding)};
}

/// Each n has conditions for several allocations: their errors are the exact ones, and that with
/// the least exact error is at least as good as every other.
std::vector<Finding> simulated_is_exact(Experiment& experiment) {
  std::map<std::uint64_t, std::vector<std::size_t>> by_n;
  Finding finding;
  for (std::size_t i = 0; i < experiment.conditions(); ++i) {
    const Condition& condition = experiment.condition(i);
    const double mse = experiment.theory(i, TheorySource::exact).figures.mse.value;
    by_n[condition.n].push_back(i);
    finding.comparisons.push_back(equal_to(
        "MSE of " + heads_text(condition) + " at n " + std::to_string(condition.n),
        experiment.observed(i).mse, mse, mse, experiment.margin(), experiment.node_counts()));
  }
  for (const auto& [n, conditions] : by_n) {
    const std::size_t best = *std::ranges::min_element(conditions, {}, [&](std::size_t i) {
      return experiment.theory(i, TheorySource::exact).figures.mse.value;
    });
    const Jackknifed& least = experiment.observed(best).mse;
    for (const std::size_t other : conditions) {
      if (other == best) continue;
      finding.comparisons.push_back(at_least_zero(
          "MSE of " + heads_text(experiment.condition(other)) + " over that of " +
              heads_text(experiment.condition(best)) + " at n " + std::to_string(n) + ", less 1",
          experiment.observed(other).mse - least, least.value, experiment.margin(),
          experiment.node_counts()));
    }
  }
  return {std::move(finding)};
}

}  // namespace

Claim allocation_claim() {
  return {.name = "allocation",
          .forms = {{.name = "fixed", .examine = interior_is_best},
                    {.name = "sqrt_dim", .examine = interior_is_best},
                    {.name = "rate", .examine = interior_is_best},
                    {.name = "tuned", .examine = interior_is_best},
                    {.name = "exact", .examine = simulated_is_exact}}};
}

}  // namespace headlab
