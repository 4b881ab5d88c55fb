// SPDX-License-Identifier: Apache-2.0
#include "engine/run/run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/files/error.h"
#include "engine/run/condition_groups.h"
#include "engine/run/learned_heads.h"
#include "engine/run/memory.h"
#include "engine/run/pilot.h"
#include "kernels/backends.h"
#include "kernels/parallel_for.h"

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

/// Says when it is time again for something that costs time: every `interval` seconds at most, and
/// so that it takes no more than a twentieth of the time.
class Pace {
 public:
  explicit Pace(double interval) : interval_(interval), next_(Clock::now() + seconds(interval)) {}

  template <class Act>
  void act_when_due(const Act& act) {
    const auto start = Clock::now();
    if (start < next_) return;
    act();
    next_ = Clock::now() + std::max(seconds(interval_), 20 * (Clock::now() - start));
  }

 private:
  static Clock::duration seconds(double number) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(number));
  }

  double interval_;
  Clock::time_point next_;
};

/// A run under way.
class Run {
 public:
  Run(const Study& study, const RunOptions& options, const Backend& backend)
      : study_(study),
        options_(options),
        backend_(backend),
        checkpoint_(options.checkpoint_seconds) {
    result_.backend = backend.name();
    result_.simd = backend.simd();
    result_.device = backend.device();
    result_.threads = backend.workers(thread_count(options.threads));
    if (options.begun) require_same_backend(*options.begun, backend);
  }

  RunResult finish() {
    const std::uint64_t available = check_study(study_, backend_, result_.threads);
    start_ = Clock::now();
    std::vector<Preparation> found;
    result_.complete = false;
    if (prepare(found)) {
      begin(std::move(found));
      simulate_groups(available);
      result_.complete = std::ranges::all_of(conditions(), is_complete);
    }
    // A sweep of many conditions that was stopped early shows those that it has.
    while (!conditions().empty() && conditions().back().tree.count() == 0) conditions().pop_back();
    result_.notes = backend_.notes();
    result_.interrupted = !result_.complete && options_.stop && options_.stop->load();
    return std::move(result_);
  }

 private:
  std::vector<ConditionResult>& conditions() { return result_.conditions; }

  static bool is_complete(const ConditionResult& condition) {
    return condition.tree.count() == condition.scenario.replicates;
  }

  bool stopped() const {
    return (options_.stop && options_.stop->load()) ||
           (options_.max_seconds && seconds_since(start_) >= *options_.max_seconds);
  }

  /// Fits and pilots come first: a scenario they refuse is refused before anything is simulated for
  /// the record. False where they were stopped.
  bool prepare(std::vector<Preparation>& all) {
    const auto stop = [this] { return stopped(); };
    return std::ranges::all_of(study_.conditions, [&](const Scenario& scenario) {
      FitHooks fit{.stop = stop};
      if (options_.progress && learns_heads_once(scenario)) {
        fit.check = [&, at = all.size()](const FitCheck& check) {
          options_.progress({.condition = at,
                             .last_condition = at,
                             .conditions = study_.conditions.size(),
                             .done = check.step,
                             .total = std::get<LearnedSubspaces>(scenario.subspaces).steps,
                             .what = "steps of learning",
                             .seconds = seconds_since(start_),
                             .seconds_left = std::numeric_limits<double>::quiet_NaN()});
        };
      }
      std::optional<Preparation> found = learn_heads(scenario, backend_, options_.threads, fit);
      if (!found || !find_weights(scenario, *found, backend_, options_.threads, {.stop = stop})) {
        return false;
      }
      all.push_back(std::move(*found));
      return true;
    });
  }

  /// Every condition as it is before the simulation.
  void begin(std::vector<Preparation> found) {
    for (std::size_t i = 0; i < found.size(); ++i) {
      const Scenario& scenario = study_.conditions[i];
      Plan plan = make_plan(scenario, found[i]);
      BegunCondition begun = take_begun(options_.begun, i, plan);
      MomentTree none(plan.layout());
      conditions().push_back({.scenario = scenario,
                              .found = std::move(found[i]),
                              .plan = std::move(plan),
                              .tree = std::move(none),
                              .estimates = {}});
      set_moments(i, std::move(begun.tree), begun.seconds);
      work_ahead_ += work_left(i);
    }
  }

  /// Cost of the replicates that condition i still lacks.
  double work_left(std::size_t i) {
    const ConditionResult& condition = conditions()[i];
    return static_cast<double>(condition.scenario.replicates - condition.tree.count()) *
           replicate_work(condition.plan);
  }

  /// Gives condition i the moments it has now, for `seconds` of simulation in all. What it had
  /// before stays where anything is wrong with them.
  void set_moments(std::size_t i, MomentTree tree, double seconds) {
    ConditionResult& condition = conditions()[i];
    // Where the replicates of a last leaf that was not full are not all there again.
    if (tree.count() < condition.tree.count()) return;
    const Plan& plan = condition.plan;
    Estimates estimates = estimate(tree, plan.head_weights, plan.truth);
    if (tree.count() > 1 && !std::isfinite(estimates.mse.value)) {
      throw CouldNotFinish("condition " + std::to_string(i + 1) +
                           ": the mean squared error is not finite: values of the design, "
                           "regression or noise leave the range of the numbers in use - try "
                           "--backend reference");
    }
    condition.tree = std::move(tree);
    condition.estimates = std::move(estimates);
    condition.seconds = seconds;
    condition.weights_per_second = static_cast<double>(condition.tree.count()) * plan.queries *
                                   plan.heads * static_cast<double>(plan.n) / seconds;
  }

  void simulate_groups(std::uint64_t available) {
    std::vector<const Plan*> plans;
    std::vector<std::uint64_t> begun;
    for (const ConditionResult& condition : conditions()) {
      plans.push_back(&condition.plan);
      begun.push_back(condition.tree.whole_count());
    }
    for (const ConditionGroup& group :
         condition_groups(study_, plans, begun, backend_, result_.threads, available)) {
      const auto done = [this](std::size_t i) { return is_complete(conditions()[i]); };
      if (std::ranges::all_of(group, done)) continue;
      if (stopped()) break;
      try {
        simulate_group(group);
      } catch (...) {
        const std::exception_ptr failure = std::current_exception();
        try {
          // What was kept before outlives what fails.
          if (options_.checkpoint) hand_over();
        } catch (...) {
        }
        std::rethrow_exception(failure);
      }
    }
  }

  void simulate_group(const ConditionGroup& group) {
    const std::uint64_t replicates = conditions()[group[0]].scenario.replicates;
    std::vector<const Plan*> plans;
    std::vector<MomentTree> begun;
    std::vector<double> seconds_before, work;
    double group_work = 0;
    for (const std::size_t i : group) {
      const ConditionResult& condition = conditions()[i];
      plans.push_back(&condition.plan);
      begun.push_back(condition.tree.whole());
      seconds_before.push_back(condition.seconds);
      work.push_back(work_left(i));
      group_work += work.back();
    }
    const auto group_start = Clock::now();
    // The time is shared out by work.
    auto keep = [&](std::vector<MomentTree> trees) {
      const double seconds = seconds_since(group_start);
      for (std::size_t p = 0; p < group.size(); ++p) {
        set_moments(group[p], std::move(trees[p]),
                    seconds_before[p] + seconds * work[p] / group_work);
      }
    };
    const std::uint64_t count_before = begun[0].count();
    auto tell = [&](std::uint64_t count, const Figure& mse) {
      const double part = static_cast<double>(count - count_before) /
                          static_cast<double>(replicates - count_before);
      const double done = work_done_ + part * group_work;
      Progress progress{.condition = group.front(),
                        .last_condition = group.back(),
                        .together = group.size(),
                        .conditions = conditions().size(),
                        .done = count,
                        .total = replicates,
                        .seconds = seconds_since(start_),
                        .seconds_left = std::numeric_limits<double>::quiet_NaN(),
                        .mse = mse};
      if (done > 0) progress.seconds_left = progress.seconds * (work_ahead_ - done) / done;
      options_.progress(progress);
    };
    SimulationHooks hooks{.stop = [this] { return stopped(); }};
    hooks.watch = [&](const MomentsSoFar& moments) {
      if (options_.progress) {
        progress_.act_when_due([&] {
          const Plan& plan = *plans[0];
          const std::vector<MomentTree> trees = moments();
          tell(trees[0].count(), estimate(trees[0], plan.head_weights, plan.truth).mse);
        });
      }
      if (options_.checkpoint) {
        checkpoint_.act_when_due([&] {
          keep(moments());
          hand_over();
        });
      }
    };
    keep(continue_simulation(std::move(begun), plans, backend_, options_.threads, replicates,
                             hooks));
    const ConditionResult& first = conditions()[group[0]];
    if (options_.progress) tell(first.tree.count(), first.estimates.mse);
    if (options_.checkpoint) checkpoint_.act_when_due([&] { hand_over(); });
    work_done_ += group_work;
  }

  void hand_over() {
    const auto has_replicates = [](const ConditionResult& of) { return of.tree.count() > 0; };
    if (std::ranges::any_of(conditions(), has_replicates)) options_.checkpoint(result_);
  }

  const Study& study_;
  const RunOptions& options_;
  const Backend& backend_;
  RunResult result_;
  Clock::time_point start_;
  double work_ahead_ = 0;
  double work_done_ = 0;
  Pace progress_{0};
  Pace checkpoint_;
};

}  // namespace

RunResult run(const Study& study, const RunOptions& options) {
  std::unique_ptr<Backend> backend;
  try {
    backend = make_backend(options.backend);
  } catch (const std::invalid_argument& error) {
    throw Refused(error.what());
  }
  return Run(study, options, *backend).finish();
}

}  // namespace headlab
