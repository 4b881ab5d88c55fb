// SPDX-License-Identifier: Apache-2.0
#include "engine/run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

#include "engine/error.h"
#include "engine/memory.h"
#include "engine/pilot.h"

namespace headlab {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double work_per_replicate(const Scenario& scenario) {
  const int d = std::visit([](const auto& law) { return law.dimension(); }, scenario.design);
  const int queries = std::visit([](const auto& law) { return law.size(); }, scenario.queries);
  return replicate_work(scenario.n, d, scenario.heads, queries);
}

/// What the results of a condition take until the run ends [bytes]: its nodes, and once more when
/// they are written.
double kept_bytes(const Scenario& scenario) {
  const MomentLayout layout{
      .queries = std::visit([](const auto& law) { return law.size(); }, scenario.queries),
      .heads = scenario.heads,
      .mode = scenario.moments,
      .conditional = scenario.estimator == Estimator::conditional};
  const auto nodes = static_cast<double>(std::min(scenario.replicates, first_leaf));
  return 2 * 8 * nodes * static_cast<double>(layout.statistics() + layout.comoments());
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
  double kept = 0;
  for (const Scenario& scenario : study.conditions) {
    check_memory(scenario, *backend, result.threads);
    kept += kept_bytes(scenario);
  }
  if (study.conditions.size() > 1) {
    require_memory(static_cast<std::uint64_t>(std::min(kept, 1e18)),
                   "for the results of " + std::to_string(study.conditions.size()) + " conditions",
                   "sweep", "or run parts of it");
  }

  const auto start = Clock::now();
  auto stop = [&] {
    return (options.stop && options.stop->load()) ||
           (options.max_seconds && seconds_since(start) >= *options.max_seconds);
  };
  // Pilots first: a scenario they refuse is refused before anything is simulated for the record.
  std::vector<Scenario> scenarios = study.conditions;
  std::vector<double> shares;  // work, to tell how much time is left
  double work_ahead = 0;
  for (Scenario& scenario : scenarios) {
    if (!resolve_weights(scenario, *backend, options.threads, {.stop = stop})) break;
    shares.push_back(static_cast<double>(scenario.replicates) * work_per_replicate(scenario));
    work_ahead += shares.back();
  }
  double work_done = 0;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    if (stop()) {
      result.complete = false;
      break;
    }
    Scenario& scenario = scenarios[i];
    Plan plan = make_plan(scenario);
    const auto condition_start = Clock::now();

    auto tell = [&](const MomentTree& tree, const Figure& mse) {
      const double part =
          static_cast<double>(tree.count()) / static_cast<double>(scenario.replicates);
      const double done = work_done + part * shares[i];
      Progress progress{.condition = i,
                        .conditions = study.conditions.size(),
                        .done = tree.count(),
                        .total = scenario.replicates,
                        .seconds = seconds_since(start),
                        .seconds_left = std::numeric_limits<double>::quiet_NaN(),
                        .mse = {}};
      if (done > 0) progress.seconds_left = progress.seconds * (work_ahead - done) / done;
      progress.mse = mse;
      options.progress(progress);
    };
    SimulationHooks hooks{.stop = stop};
    if (options.progress) {
      hooks.progress = [&](const MomentTree& tree) {
        tell(tree, estimate(tree, plan.head_weights, plan.truth).mse);
      };
    }
    MomentTree tree = simulate(plan, *backend, options.threads, scenario.replicates, hooks);
    const double seconds = seconds_since(condition_start);

    const double weights =
        static_cast<double>(tree.count()) * plan.queries * plan.heads * static_cast<double>(plan.n);
    Estimates estimates = estimate(tree, plan.head_weights, plan.truth);
    if (tree.count() > 1 && !std::isfinite(estimates.mse.value)) {
      throw CouldNotFinish("condition " + std::to_string(i + 1) +
                           ": the mean squared error is not finite: values of the design, "
                           "regression or noise leave the range of the numbers in use - try "
                           "--backend reference");
    }
    if (options.progress) tell(tree, estimates.mse);
    work_done += shares[i];
    const bool complete = tree.count() == scenario.replicates;
    result.conditions.push_back({std::move(scenario), std::move(plan), std::move(tree),
                                 std::move(estimates), seconds, weights / seconds});
    result.complete = result.complete && complete;
  }
  result.notes = backend->notes();
  result.interrupted = !result.complete && options.stop && options.stop->load();
  return result;
}

}  // namespace headlab
