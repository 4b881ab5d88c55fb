// SPDX-License-Identifier: Apache-2.0
#include "engine/run/forecast.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <variant>

#include "engine/files/json_writer.h"
#include "engine/moments/moment_tree.h"
#include "engine/run/condition_groups.h"
#include "engine/run/memory.h"
#include "engine/run/simulate.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/setup_laws.h"
#include "kernels/parallel_for.h"
#include "kernels/plan.h"
#include "kernels/statistics/stopping.h"

namespace headlab {
namespace {

/// Kernel weights of one replicate that every backend computes within a fraction of a second.
constexpr double max_measured_work = 4e6;

/// A number in results.nc and in JSON.
constexpr double netcdf_number = 8;
constexpr double json_number = 22;

/// Variables, attributes and the scenario of results.nc, and what a condition has there besides its
/// figures.
constexpr double netcdf_head = 80000;
constexpr double netcdf_condition = 1000;
constexpr double json_condition = 2000;

/// Cost of a replicate where every point is drawn and seen, as it is for some backends.
double whole_work(const Plan& plan) {
  if (plan.stack) return replicate_work(plan);
  return replicate_work(plan.n, plan.d, plan.heads, plan.queries);
}

/// Gives a plan fewer points. Heads see and keep as many tokens as before, or all that there are.
void shrink(Plan& plan, std::uint64_t n) {
  const std::uint64_t before = plan.mechanism.merge.tokens(plan.n);
  const std::uint64_t tokens = plan.mechanism.merge.tokens(n);
  plan.n = n;
  for (SeenTokens& seen : plan.mechanism.seen) {
    seen = seen_tokens(tokens, seen.end - seen.begin, std::min(before - seen.end, tokens - 1),
                       seen.sinks);
  }
  for (std::uint64_t& top : plan.mechanism.keep.top) top = std::min(top, tokens);
}

/// Replicates of the pilot behind optimal weights.
double pilot_replicates(const Condition& condition) {
  const auto* optimal = std::get_if<OptimalWeights>(&*condition.weights);
  return optimal ? static_cast<double>(optimal->replicates) : 0;
}

struct Forecaster {
  const Scenario& scenario;
  const Backend& backend;
  int threads;
  std::vector<Plan> plans = {};

  double work_of(const ConditionGroup& group) const {
    double work = 0;
    for (const std::size_t i : group) work += replicate_work(plans[i]);
    return work;
  }

  std::vector<const Plan*> pointers(const ConditionGroup& group) const {
    std::vector<const Plan*> all;
    for (const std::size_t i : group) all.push_back(&plans[i]);
    return all;
  }

  void make_plans() {
    for (const Condition& condition : scenario.conditions) {
      check_memory(condition, backend, threads);
      plans.push_back(make_plan(without_preparation(condition)));
      if (plans.size() > 1) plans.back().table.share_with(plans[plans.size() - 2].table);
    }
  }

  /// Simulates a group for about `seconds`; returns kernel weights a second.
  double speed_of(const ConditionGroup& group, double seconds, double& taken) const {
    std::vector<Plan> measured;
    for (const std::size_t i : group) measured.push_back(plans[i]);
    double whole = 0;
    for (const Plan& plan : measured) whole += whole_work(plan);
    const double share = max_measured_work / whole;
    for (Plan& plan : measured) {
      // A fit on fewer points would not be the same work.
      if (share >= 1 || plan.learning || plan.stack) continue;
      shrink(plan, std::max<std::uint64_t>(
                       1, static_cast<std::uint64_t>(share * static_cast<double>(plan.n))));
    }
    std::vector<const Plan*> all;
    double work = 0;
    for (const Plan& plan : measured) {
      all.push_back(&plan);
      work += replicate_work(plan);
    }
    std::uint64_t most = scenario.conditions[group.front()].replicates;
    const auto deadline = deadline_in(seconds);
    const Stopwatch watch;
    SimulationHooks hooks{.stop = stop_of_scope(),
                          .enough = [&] { return std::chrono::steady_clock::now() >= deadline; }};
    hooks.set_draw = [&](Plan& plan, std::size_t p, std::uint64_t draw) {
      set_draw(plan, scenario.conditions[group[p]], draw);
    };
    // As many fits as threads are enough.
    if (measured.front().learning) {
      const auto few = static_cast<std::uint64_t>(threads);
      const std::uint64_t draws = (few + leaf_replicates - 1) / leaf_replicates;
      most = std::min(most, measured.front().redraws ? draws * leaf_replicates : few);
    }
    const std::uint64_t replicates = simulate(all, backend, threads, most, hooks).front().count();
    stop_point();
    taken = watch.seconds();
    return static_cast<double>(replicates) * work / taken;
  }
};

/// Nodes that a run of so many replicates keeps.
double kept_nodes(const MomentLayout& layout, std::uint64_t replicates) {
  const std::uint64_t size = node_replicates(layout, replicates);
  // Whole nodes, and the binary pieces of the last one.
  return static_cast<double>(replicates / size) +
         (replicates % size == 0 ? 0 : std::log2(static_cast<double>(size)));
}

}  // namespace

Condition without_preparation(Condition condition) {
  if (std::holds_alternative<OptimalWeights>(*condition.weights)) {
    condition.weights = UniformWeights{};
  }
  if (learns_heads_once(condition)) {
    condition.subspaces = AlignedSubspaces{};
    if (std::holds_alternative<LearnedWeights>(*condition.weights)) {
      condition.weights = UniformWeights{};
    }
  }
  return condition;
}

ResultSize result_size(const Scenario& scenario) {
  double nodes = 0, arrays = netcdf_head, summary = 0;
  for (const Condition& condition : scenario.conditions) {
    const MomentLayout layout = layout_of(condition);
    const auto heads = static_cast<double>(layout.heads);
    const auto queries = static_cast<double>(layout.queries);
    const double text = static_cast<double>(to_json(condition.parameters.tree()).size());
    nodes += netcdf_number * kept_nodes(layout, condition.replicates) *
             static_cast<double>(layout.statistics() + layout.comoments() + 6);
    if (condition.stack) {
      const double figures = 2 * queries * heads;
      arrays += netcdf_number * figures + text + netcdf_condition;
      summary += json_number * figures + text + json_condition;
      continue;
    }
    const Sizes sizes = sizes_of(condition);
    const double matrices = layout.pairwise() ? 2 * heads * heads : 0;
    const double figures = queries * (4 + sizes.d + 2 * heads + 2 * heads * heads);
    arrays += netcdf_number * (figures + heads * sizes.d * sizes.k) + text + netcdf_condition;
    const bool has_matrices = matrices * queries / 2 <= 1e5;
    summary += json_number * queries * (4 + sizes.d + 2 * heads + (has_matrices ? matrices : 0)) +
               text + json_condition;
  }
  const auto whole = [](double bytes) { return static_cast<std::uint64_t>(std::min(bytes, 1e18)); };
  return {.netcdf = whole(nodes + arrays),
          .netcdf_without_nodes = whole(arrays),
          .summary = whole(summary)};
}

BackendForecast forecast(const Scenario& scenario, const BackendChoice& choice, int threads,
                         double seconds) {
  const Backend& backend = *choice;
  threads = thread_count(threads);
  BackendForecast found{.machine = Machine{.backend = backend.name(),
                                           .simd = backend.simd(),
                                           .device = backend.device(),
                                           .threads = threads}};
  Forecaster forecaster{scenario, backend, threads};
  try {
    forecaster.make_plans();
    ConditionGroup every(scenario.conditions.size());
    for (std::size_t i = 0; i < every.size(); ++i) every[i] = i;
    const std::uint64_t available = available_bytes();
    const std::vector<ConditionGroup> groups =
        condition_groups(scenario, forecaster.pointers(every), all_replicates(scenario), backend,
                         threads, available);
    found.groups = groups.size();

    double work = 0, largest = -1;
    const TableBytes tables = table_bytes(scenario);
    double kept =
        2 * static_cast<double>(result_size(scenario).netcdf) + static_cast<double>(tables.kept);
    std::uint64_t simulation = 0;
    const ConditionGroup* costliest = nullptr;
    for (const Condition& condition : scenario.conditions) {
      kept += static_cast<double>(plan_bytes(condition));
    }
    for (const ConditionGroup& group : groups) {
      const std::uint64_t replicates = scenario.conditions[group.front()].replicates;
      double of_group = static_cast<double>(replicates) * forecaster.work_of(group);
      if (of_group > largest) {
        largest = of_group;
        costliest = &group;
      }
      for (const std::size_t i : group) {
        of_group += pilot_replicates(scenario.conditions[i]) * replicate_work(forecaster.plans[i]);
      }
      work += of_group;
      const int workers = static_cast<int>(std::min<std::uint64_t>(
          static_cast<std::uint64_t>(backend.workers(threads)), replicates));
      simulation = std::max(
          simulation, simulation_bytes(forecaster.pointers(group), replicates, backend, workers));
    }
    const double of_run = std::min(1e18, kept + static_cast<double>(simulation));
    found.memory = std::max(static_cast<std::uint64_t>(of_run), tables.reading);
    found.weights_per_second = forecaster.speed_of(*costliest, seconds, found.measured_seconds);
    found.seconds = work / found.weights_per_second;
  } catch (const std::invalid_argument& error) {
    found.problem = error.what();
  }
  return found;
}

}  // namespace headlab
