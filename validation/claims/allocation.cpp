// SPDX-License-Identifier: Apache-2.0
// A budget D = H d_k can be spent on one full-dimensional head, on D one-dimensional ones, or in
// between. Claimed (allocation): in between is best. What the bandwidth does when d_k changes is
// part of the claim, so there is one form for each rule:
//   fixed     the same bandwidth for every d_k
//   sqrt_dim  softmax at temperature sqrt(d_k), as in Transformers
//   rate      b = n^(-1/(2 beta + d_k)), beta = 2 derivatives
//   tuned     the best bandwidth of each allocation, found in a pilot with another seed
// One more form, exact, holds the simulated errors against the exact ones, and the choice with
// them.
//
// Claimed besides (scaling_law): under a budget the best per-head dimension d_k* grows like log n,
// and the best number of heads H* nearly linearly in D. On a small grid three parts of it can be
// told apart: that d_k* grows at all (under each rule), that it grows by one step a decade of n,
// and that it does not depend on D.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/scenario/condition.h"
#include "kernels/counted.h"
#include "validation/claims/claim.h"
#include "validation/claims/experiment.h"

namespace headlab {
namespace {

std::string heads_text(const Condition& condition) {
  return counted(static_cast<std::uint64_t>(condition.heads), "head") + " of d_k " +
         std::to_string(condition.k);
}

std::string allocation_text(const Condition& condition) {
  return "d_k " + std::to_string(condition.k) + " at n " + std::to_string(condition.n) + ", D " +
         std::to_string(condition.heads * condition.k);
}

/// Adds "condition a is at least as good as condition b", in the words of `text`.
void add_better(Experiment& experiment, std::size_t a, std::size_t b,
                std::string (*text)(const Condition&), const std::string& at, Finding& finding) {
  const Jackknifed& first = experiment.observed(a).mse;
  finding.comparisons.push_back(at_least_zero("MSE of " + text(experiment.condition(b)) +
                                                  " over that of " + text(experiment.condition(a)) +
                                                  at + " minus 1",
                                              experiment.observed(b).mse - first, first.value,
                                              experiment.margin(), experiment.node_counts()));
}

/// Conditions: one-dimensional heads, the allocation in between, one full head. A d_k that does not
/// divide the budget leaves some of it unused.
std::vector<Finding> interior_is_best(Experiment& experiment) {
  Finding finding;
  const auto used = [&](std::size_t i) {
    return experiment.condition(i).heads * experiment.condition(i).k;
  };
  for (const std::size_t end : {std::size_t{0}, std::size_t{2}}) {
    const int unused = used(end) - used(1);
    const std::string note = unused > 0 ? " (" + std::to_string(unused) + " of " +
                                              std::to_string(used(end)) + " dimensions unused)"
                                        : "";
    add_better(experiment, 1, end, heads_text, note, finding);
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
        "MSE of " + heads_text(condition) + " at n " + std::to_string(condition.n) +
            ", relative to its closed form",
        experiment.observed(i).mse, mse, mse, experiment.margin(), experiment.node_counts()));
  }
  for (const auto& [n, conditions] : by_n) {
    const std::size_t best = *std::ranges::min_element(conditions, {}, [&](std::size_t i) {
      return experiment.theory(i, TheorySource::exact).figures.mse.value;
    });
    for (const std::size_t other : conditions) {
      if (other == best) continue;
      add_better(experiment, best, other, heads_text, " at n " + std::to_string(n), finding);
    }
  }
  return {std::move(finding)};
}

/// Conditions: at a small n a small and a large d_k, then both at a large n.
std::vector<Finding> grows(Experiment& experiment) {
  Finding finding;
  add_better(experiment, 0, 1, allocation_text, "", finding);
  add_better(experiment, 3, 2, allocation_text, "", finding);
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
        if (other != best) add_better(experiment, best, other, allocation_text, "", finding);
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

Claim allocation_claim() {
  return {.name = "allocation",
          .forms = {{.name = "fixed", .examine = interior_is_best},
                    {.name = "sqrt_dim", .examine = interior_is_best},
                    {.name = "rate", .examine = interior_is_best},
                    {.name = "tuned", .examine = interior_is_best},
                    {.name = "exact", .examine = simulated_is_exact}}};
}

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
