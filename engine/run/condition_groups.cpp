// SPDX-License-Identifier: Apache-2.0
#include "engine/run/condition_groups.h"

#include <map>
#include <string>
#include <utility>

#include "engine/run/memory.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/scenario.h"
#include "kernels/plan.h"

namespace headlab {
namespace {

/// True for a swept key that the draws do not depend on.
bool is_beside_the_draws(const std::string& key) {
  return key == "heads" || key.starts_with("heads.") || key == "queries" ||
         key.starts_with("queries.") || key == "layers" || key.starts_with("layers.") ||
         key == "run.moments";
}

/// What the sweep says of the draws of a condition, and whether it redraws: where it differs
/// conditions may not be simulated together. A million conditions are too many to compare the plans
/// of any two.
std::string draws_of(const Scenario& scenario, const Condition& condition) {
  std::string text = redraws(condition) ? "redraws\n" : "";
  for (std::size_t i = 0; i < condition.swept.size(); ++i) {
    if (!is_beside_the_draws(scenario.swept[i])) text += condition.swept[i] + '\n';
  }
  return text;
}

}  // namespace

std::vector<ReplicateRange> all_replicates(const Scenario& scenario) {
  std::vector<ReplicateRange> all;
  for (const Condition& condition : scenario.conditions) {
    all.push_back({0, condition.replicates, condition.replicates});
  }
  return all;
}

std::vector<ConditionGroup> groups_by_draws(
    const Scenario& scenario, Plans plans, std::span<const ReplicateRange> left, std::size_t most,
    const std::function<bool(const ConditionGroup&, std::size_t)>& fits) {
  std::vector<ConditionGroup> groups;
  auto takes = [&](const ConditionGroup& group, std::size_t which) {
    return group.size() < most && left[group[0]] == left[which] &&
           shares_draws(*plans[group[0]], *plans[which]) && (!fits || fits(group, which));
  };
  // The last group of conditions that begin at one replicate with these draws.
  std::map<std::pair<std::uint64_t, std::string>, std::size_t> growing;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const auto [at, is_new] =
        growing.try_emplace({left[i].first, draws_of(scenario, scenario.conditions[i])});
    if (is_new || !takes(groups[at->second], i)) {
      at->second = groups.size();
      groups.emplace_back();
    }
    groups[at->second].push_back(i);
  }
  return groups;
}

std::vector<ConditionGroup> condition_groups(const Scenario& scenario, Plans plans,
                                             std::span<const ReplicateRange> left,
                                             const Backend& backend, int workers,
                                             std::uint64_t available) {
  return groups_by_draws(scenario, plans, left, backend.plans_together(),
                         [&](const ConditionGroup& group, std::size_t which) {
                           std::vector<const Plan*> together;
                           for (const std::size_t member : group) together.push_back(plans[member]);
                           together.push_back(plans[which]);
                           return simulation_bytes(together, left[which].end(), backend, workers) <=
                                  available;
                         });
}

}  // namespace headlab
