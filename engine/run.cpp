// SPDX-License-Identifier: Apache-2.0
#include "engine/run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "engine/condition_groups.h"
#include "engine/error.h"
#include "engine/learned_heads.h"
#include "engine/memory.h"
#include "engine/pilot.h"

namespace headlab {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// What a condition and its results take until the run ends [bytes]: its plan, its nodes, and these
/// once more when they are written.
double kept_bytes(const Scenario& scenario) {
  const MomentLayout layout{
      .queries = std::visit([](const auto& law) { return law.size(); }, scenario.queries),
      .heads = scenario.heads,
      .mode = scenario.moments,
      .conditional = scenario.estimator == Estimator::conditional};
  const auto nodes = static_cast<double>(std::min(scenario.replicates, first_leaf));
  return static_cast<double>(plan_bytes(scenario)) +
         2 * 8 * nodes * static_cast<double>(layout.statistics() + layout.comoments());
}

/// Throws Refused unless each condition fits in memory, and the results of all. Returns what is
/// left beside those [bytes].
std::uint64_t check_study(const Study& study, const Backend& backend, int threads) {
  double kept = 0;
  for (const Scenario& scenario : study.conditions) {
    check_memory(scenario, backend, threads);
    kept += kept_bytes(scenario);
  }
  if (study.conditions.size() > 1) {
    require_memory(
        static_cast<std::uint64_t>(std::min(kept, 1e18)),
        "for " + std::to_string(study.conditions.size()) + " conditions and their results", "sweep",
        "or run parts of it");
  }
  const std::uint64_t available = available_bytes();
  const auto results = static_cast<std::uint64_t>(std::min(kept, 1e18));
  return results < available ? available - results : 0;
}

ConditionResult result_of(Scenario scenario, Plan plan, MomentTree tree, double seconds) {
  Estimates estimates = estimate(tree, plan.head_weights, plan.truth);
  const double weights =
      static_cast<double>(tree.count()) * plan.queries * plan.heads * static_cast<double>(plan.n);
  return {std::move(scenario),  std::move(plan), std::move(tree),
          std::move(estimates), seconds,         weights / seconds};
}

}  // namespace

RunResult run(const Study& study, const RunOptions& options) {
  std::unique_ptr<Backend> backend;
  try {
    backend = make_backend(options.backend);
  } catch (const std::invalid_argument& error) {
    throw Refused(error.what());
  }
  RunResult result;
  result.backend = backend->name();
  result.simd = backend->simd();
  result.device = backend->device();
  result.threads = backend->workers(thread_count(options.threads));
  const std::uint64_t available = check_study(study, *backend, result.threads);

  const auto start = Clock::now();
  auto stop = [&] {
    return (options.stop && options.stop->load()) ||
           (options.max_seconds && seconds_since(start) >= *options.max_seconds);
  };
  // Fits and pilots first: a scenario they refuse is refused before anything is simulated for the
  // record.
  std::vector<Scenario> scenarios = study.conditions;
  const bool resolved = std::ranges::all_of(scenarios, [&](Scenario& scenario) {
    FitHooks fit{.stop = stop};
    if (options.progress && heads_to_learn(scenario)) {
      fit.check = [&](const FitCheck& check) {
        const auto at = static_cast<std::size_t>(&scenario - scenarios.data());
        options.progress({.condition = at,
                          .last_condition = at,
                          .conditions = scenarios.size(),
                          .done = check.step,
                          .total = std::get<LearnedSubspaces>(scenario.subspaces).steps,
                          .what = "steps of learning",
                          .seconds = seconds_since(start),
                          .seconds_left = std::numeric_limits<double>::quiet_NaN()});
      };
    }
    return resolve_heads(scenario, *backend, options.threads, fit) &&
           resolve_weights(scenario, *backend, options.threads, {.stop = stop});
  });
  std::vector<Plan> plans;
  std::vector<double> work;  // of a condition, to tell how much time is left
  double work_ahead = 0;
  for (std::size_t i = 0; resolved && i < scenarios.size(); ++i) {
    plans.push_back(make_plan(scenarios[i]));
    work.push_back(static_cast<double>(scenarios[i].replicates) * replicate_work(plans[i]));
    work_ahead += work[i];
  }
  std::vector<std::optional<ConditionResult>> results(scenarios.size());
  double work_done = 0;
  result.complete = resolved;
  for (const ConditionGroup& group :
       condition_groups(study, plans, *backend, result.threads, available)) {
    if (stop()) {
      result.complete = false;
      break;
    }
    const std::size_t first = group.front();
    const std::uint64_t replicates = scenarios[first].replicates;
    std::vector<const Plan*> together;
    double group_work = 0;
    for (const std::size_t i : group) {
      together.push_back(&plans[i]);
      group_work += work[i];
    }
    auto tell = [&](std::uint64_t count, const Figure& mse) {
      const double part = static_cast<double>(count) / static_cast<double>(replicates);
      const double done = work_done + part * group_work;
      Progress progress{.condition = first,
                        .last_condition = group.back(),
                        .together = group.size(),
                        .conditions = scenarios.size(),
                        .done = count,
                        .total = replicates,
                        .seconds = seconds_since(start),
                        .seconds_left = std::numeric_limits<double>::quiet_NaN(),
                        .mse = mse};
      if (done > 0) progress.seconds_left = progress.seconds * (work_ahead - done) / done;
      options.progress(progress);
    };
    SimulationHooks hooks{.stop = stop};
    if (options.progress) {
      hooks.progress = [&](std::span<const MomentTree> trees) {
        const Plan& plan = plans[first];
        tell(trees[0].count(), estimate(trees[0], plan.head_weights, plan.truth).mse);
      };
    }
    const auto group_start = Clock::now();
    std::vector<MomentTree> trees =
        simulate(together, *backend, options.threads, replicates, hooks);
    const double seconds = seconds_since(group_start);

    const std::uint64_t count = trees[0].count();
    for (std::size_t p = 0; p < group.size(); ++p) {
      const std::size_t i = group[p];
      results[i] = result_of(std::move(scenarios[i]), std::move(plans[i]), std::move(trees[p]),
                             seconds * work[i] / group_work);
      if (count > 1 && !std::isfinite(results[i]->estimates.mse.value)) {
        throw CouldNotFinish("condition " + std::to_string(i + 1) +
                             ": the mean squared error is not finite: values of the design, "
                             "regression or noise leave the range of the numbers in use - try "
                             "--backend reference");
      }
    }
    if (options.progress) tell(count, results[first]->estimates.mse);
    work_done += group_work;
    result.complete = result.complete && count == replicates;
  }
  while (!results.empty() && !results.back()) results.pop_back();
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i]) {
      MomentTree none(plans[i].layout());
      results[i] = result_of(std::move(scenarios[i]), std::move(plans[i]), std::move(none), 0);
    }
    result.conditions.push_back(std::move(*results[i]));
  }
  result.notes = backend->notes();
  result.interrupted = !result.complete && options.stop && options.stop->load();
  return result;
}

}  // namespace headlab
