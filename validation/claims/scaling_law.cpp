// SPDX-License-Identifier: Apache-2.0
// Seed claim: under a budget D = H d_k the best per-head dimension d_k* grows like log n, and the
// best number of heads H* nearly linearly in D. On a small grid three parts of it can be told
// apart: that d_k* grows at all (under each bandwidth rule, see allocation.cpp), that it grows by
// one step a decade of n, and that it does not depend on D.
#include <cmath>
#include <map>

#include "validation/claims/claim.h"
#include "validation/claims/experiment.h"

namespace headlab {
namespace {

std::string allocation_text(const Condition& condition) {
  return "d_k " + std::to_string(condition.k) + " at n " + std::to_string(condition.n) + ", D " +
         std::to_string(condition.heads * condition.k);
}

/// "Condition a is at least as good as condition b."
Comparison better(Experiment& experiment, std::size_t a, std::size_t b) {
  const Jackknifed& first = experiment.observed(a).mse;
  return at_least_zero("MSE of " + allocation_text(experiment.condition(b)) + " over that of " +
                           allocation_text(experiment.condition(a)) + ", less 1",
                       experiment.observed(b).mse - first, first.value, experiment.margin(),
                       experiment.node_counts());
}

/// Conditions: at a small n a small and a large d_k, then both at a large n.
std::vector<Finding> grows(Experiment& experiment) {
  Finding finding;
  finding.comparisons = {better(experiment, 0, 1), better(experiment, 3, 2)};
  return {std::move(finding)};
}

/// d_k that the claim predicts for a condition: one at n = 100 and one more a decade.
int one_step_a_decade(const Condition& condition) {
  return static_cast<int>(std::lround(std::log10(static_cast<double>(condition.n)))) - 1;
}

int one(const Condition&) {
  return 1;
}

/// Among the conditions of each (n, D), the d_k predicted is at least as good as every other.
std::vector<Finding> predicted_is_best(Experiment& experiment, int (*predicted)(const Condition&)) {
  std::map<std::pair<std::uint64_t, int>, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < experiment.conditions(); ++i) {
    const Condition& condition = experiment.condition(i);
    groups[{condition.n, condition.heads * condition.k}].push_back(i);
  }
  Finding finding;
  for (const auto& [setting, conditions] : groups) {
    for (const std::size_t best : conditions) {
      const Condition& condition = experiment.condition(best);
      if (condition.k != predicted(condition)) continue;
      for (const std::size_t other : conditions) {
        if (other != best) finding.comparisons.push_back(better(experiment, best, other));
      }
    }
  }
  return {std::move(finding)};
}

std::vector<Finding> steps(Experiment& experiment) {
  std::vector<Finding> findings = predicted_is_best(experiment, one_step_a_decade);
  findings[0].note =
      "Steps 1, 2, 3 over two decades fit a log, and any power of n from n^0.20 to n^0.27 rounded "
      "to whole dimensions: the form of growth cannot be told on this grid.";
  return findings;
}

std::vector<Finding> independent_of_budget(Experiment& experiment) {
  return predicted_is_best(experiment, one);
}

}  // namespace

Claim scaling_law_claim() {
  return {.name = "scaling_law",
          .forms = {{.name = "growth, fixed", .examine = grows},
                    {.name = "growth, sqrt_dim", .examine = grows},
                    {.name = "growth, rate", .examine = grows},
                    {.name = "growth, tuned", .examine = grows},
                    {.name = "one step a decade", .examine = steps},
                    {.name = "linear in D", .examine = independent_of_budget}}};
}

}  // namespace headlab
