// SPDX-License-Identifier: Apache-2.0
#include "engine/run/run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>

#include "engine/files/error.h"
#include "engine/files/words.h"
#include "engine/run/condition_groups.h"
#include "engine/run/control_check.h"
#include "engine/run/control_pilot.h"
#include "engine/run/learned_heads.h"
#include "engine/run/memory.h"
#include "engine/run/not_finite.h"
#include "engine/run/pilot.h"
#include "engine/run/ranks.h"
#include "engine/run/setup.h"
#include "engine/run/until.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/setup_laws.h"

namespace headlab {
namespace {

using Clock = std::chrono::steady_clock;

/// What a condition and its results take until the run ends [bytes]: its plan, its nodes, and these
/// once more when they are written.
double kept_bytes(const Condition& condition) {
  const MomentLayout layout = layout_of(condition);
  const auto nodes = static_cast<double>(std::min(condition.replicates, first_leaf));
  return static_cast<double>(plan_bytes(condition)) +
         2 * 8 * nodes * static_cast<double>(layout.statistics() + layout.comoments());
}

/// Throws InvalidInput unless each condition fits in memory, and the results of all; asks `go_on`
/// before each. Returns what is left next to those [bytes], nothing where it was stopped.
std::optional<std::uint64_t> check_scenario(const Scenario& scenario, const Backend& backend,
                                            int threads,
                                            const std::function<bool(std::size_t)>& go_on) {
  double kept = 0;
  for (std::size_t i = 0; i < scenario.conditions.size(); ++i) {
    if (!go_on(i)) return std::nullopt;
    check_memory(scenario.conditions[i], backend, threads);
    kept += kept_bytes(scenario.conditions[i]);
  }
  if (scenario.conditions.size() > 1) {
    require_memory(
        static_cast<std::uint64_t>(std::min(kept, 1e18)),
        "for " + std::to_string(scenario.conditions.size()) + " conditions and their results",
        "sweep", "or run parts of it");
  }
  const std::uint64_t available = available_bytes();
  const auto results = static_cast<std::uint64_t>(std::min(kept, 1e18));
  return results < available ? available - results : 0;
}

/// Says when it is time again for something that costs time: every `interval` seconds at most, and
/// so that it takes no more than a twentieth of a processor, and is not at it more than half of the
/// time. Where there are more threads than processors it mostly waits, which costs nothing.
class Pace {
 public:
  explicit Pace(double interval) : interval_(interval), next_(Clock::now() + seconds(interval)) {}

  template <class Act>
  void act_when_due(const Act& act) {
    const auto start = Clock::now();
    if (start < next_) return;
    const double used_before = processor_seconds();
    act();
    const auto end = Clock::now();
    const double used = processor_seconds() - used_before;
    next_ = end + std::max(seconds(std::max(interval_, 20 * used)), end - start);
  }

 private:
  static Clock::duration seconds(double number) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(number));
  }
  /// Of this thread.
  static double processor_seconds() {
    timespec used = {};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
  }

  double interval_;
  Clock::time_point next_;
};

/// The figure of a study of depth that progress shows: what is left of the tokens' differences
/// after the last layer.
Estimate headline_of(const LayerEstimates& layers) {
  return layers.rows.empty() ? Estimate{}
                             : layers.rows.back().metrics[layer_metric("log_residual")];
}

/// How many replicates are done, with the shares of those under way once none was finished for as
/// long as makes a replicate long. Never falls: a block that is handed in is no step back.
class ReplicatesDone {
 public:
  ReplicatesDone(std::uint64_t count, double long_seconds)
      : count_(count), long_seconds_(long_seconds), shown_(static_cast<double>(count)) {}

  double at(std::uint64_t count, double under_way) {
    if (count > count_) since_ = {};
    count_ = count;
    long_ = long_ || since_.seconds() >= long_seconds_;
    shown_ = std::max(shown_, static_cast<double>(count) + (long_ ? under_way : 0.0));
    return shown_;
  }

 private:
  std::uint64_t count_;
  double long_seconds_;
  double shown_;
  Stopwatch since_;  ///< when the count rose
  bool long_ = false;
};

/// A run under way.
class Run {
 public:
  Run(std::shared_ptr<const Scenario> scenario, const Session& session, const RunOptions& options)
      : shared_(std::move(scenario)),
        session_(session),
        options_(options),
        checkpoint_(options.checkpoint_seconds) {
    result_.machine = options.simulates ? session.machine() : options.begun->machine;
    if (options.begun && options.simulates) require_same_backend(*options.begun, result_.machine);
    if (options.share) result_.share = *options.share;
    if (!options.until.empty()) {
      require_targets_fit(options.until, scenario_, options.references);
      result_.precision = {.targets = options.until,
                           .most = scenario_.conditions.front().replicates,
                           .conditions = scenario_.conditions.size()};
    }
  }

  RunResult finish() {
    const std::optional<std::uint64_t> available =
        check_scenario(scenario_, *session_.backend, result_.machine.threads,
                       [&](std::size_t i) { return plans_on(i, "conditions checked"); });
    watch_ = {};
    std::vector<Preparation> found;
    result_.outcome.complete = false;
    if (available && prepare(found) && begin(std::move(found)) && meet_ranks()) {
      result_.outcome.complete = !options_.simulates ? is_complete()
                                 : result_.precision ? simulate_until(*available)
                                                     : simulate_groups(*available);
    }
    // A sweep of many conditions that was stopped early shows those that it has.
    while (!conditions().empty() && conditions().back().tree.count() == 0) conditions().pop_back();
    set_differences(result_, options_.references);
    result_.notes = session_.backend->notes();
    result_.outcome = session_.outcome(result_.outcome.complete, watch_);
    return std::move(result_);
  }

 private:
  std::vector<ConditionResult>& conditions() { return result_.conditions; }

  /// False on a rank that has served another, and where the session stops before all ranks are
  /// ready.
  bool meet_ranks() {
    Ranks* const ranks = options_.ranks;
    if (!ranks) return true;
    std::vector<const Plan*> plans;
    for (const ConditionResult& one : conditions()) plans.push_back(&one.plan);
    const RankStudy study = rank_study(scenario_, plans, result_.machine);
    if (ranks->leads()) return ranks->gather(study, session_.stop_hook());
    ranks->serve(study, *session_.backend, result_.machine.threads,
                 [this](const std::vector<std::size_t>& group) { return plans_of(group); });
    conditions().clear();
    return false;
  }

  RankPlans plans_of(const std::vector<std::size_t>& group) {
    RankPlans found;
    for (const std::size_t i : group) found.plans.push_back(&conditions().at(i).plan);
    found.set_draw = [this, group](Plan& plan, std::size_t p, std::uint64_t draw) {
      headlab::set_draw(plan, *conditions()[group[p]].condition, draw);
    };
    return found;
  }

  /// The replicates that condition i still lacks.
  ReplicateRange left(std::size_t i) const {
    const ConditionResult& one = result_.conditions[i];
    const std::uint64_t total = one.condition->replicates;
    const std::uint64_t end = options_.share ? options_.share->parts[i].range.end() : total;
    return {one.tree.end(), end - one.tree.end(), total};
  }

  bool is_complete() const {
    for (std::size_t i = 0; i < result_.conditions.size(); ++i) {
      if (left(i).replicates > 0) return false;
    }
    return true;
  }

  /// Before condition i is planned, every few conditions: reports, and returns false where the
  /// session stops. The first ones are always planned: what was restored of them is then in the
  /// result.
  bool plans_on(std::size_t i, const char* what) {
    if (i % stop_interval != stop_interval - 1) return true;
    if (session_.should_stop()) return false;
    if (!session_.report) return true;
    progress_.act_when_due([&] {
      const std::size_t count = scenario_.conditions.size();
      session_.report({.done = i,
                       .total = count,
                       .what = what,
                       .share = static_cast<double>(i) / static_cast<double>(count)});
    });
    return true;
  }

  /// Fits and pilots come first: a scenario they refuse is refused before anything is simulated for
  /// the record. False where they were stopped.
  bool prepare(std::vector<Preparation>& all) {
    return std::ranges::all_of(scenario_.conditions, [&](const Condition& condition) {
      if (condition.stack) {
        all.emplace_back();
        return true;
      }
      const auto tell = [&](const FitCheck& check) {
        if (!session_.report) return;
        const std::uint64_t steps = std::get<LearnedSubspaces>(*condition.subspaces).steps;
        session_.report(
            {.condition = all.size(),
             .last_condition = all.size(),
             .conditions = scenario_.conditions.size(),
             .done = check.step,
             .total = steps,
             .what = "steps of learning",
             .share =
                 steps == 0 ? 0 : static_cast<double>(check.step) / static_cast<double>(steps)});
      };
      const bool keeps = options_.setup && needs_preparation(condition);
      std::optional<Preparation> found;
      if (keeps) found = options_.setup->find(condition);
      if (!found) {
        found = learn_heads(condition, session_, tell);
        if (!found || !find_weights(condition, *found, session_) ||
            !find_controls(condition, *found, session_)) {
          return false;
        }
        if (keeps) options_.setup->keep(condition, *found, session_.stop_hook());
      }
      all.push_back(std::move(*found));
      return true;
    });
  }

  /// Every condition as it is before the simulation. False, with no condition, where the session
  /// stops it.
  bool begin(std::vector<Preparation> found) {
    conditions().reserve(found.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (!plans_on(i, "conditions planned")) {
        conditions().clear();
        return false;
      }
      const Condition& condition = scenario_.conditions[i];
      Plan plan = make_plan(condition, found[i]);
      if (i > 0) plan.table.share_with(conditions().back().plan.table);
      CheckpointCondition begun = restore(options_.begun, i, plan);
      const Share* share = options_.share;
      MomentTree none = share ? MomentTree(plan.kept_layout(), share->parts[i].range)
                              : MomentTree(plan.kept_layout());
      if (begun.tree.count() == 0) begun.tree = none;
      conditions().push_back({.condition = {shared_, &condition},
                              .found = std::move(found[i]),
                              .plan = std::move(plan),
                              .tree = std::move(none),
                              .estimates = {}});
      set_moments(i, std::move(begun.tree), begun.seconds);
    }
    return true;
  }

  /// Cost of the replicates that condition i still lacks.
  double work_left(std::size_t i) {
    return static_cast<double>(left(i).replicates) * replicate_work(conditions()[i].plan);
  }

  /// Gives condition i the moments it has now, for `seconds` of simulation in all. What it had
  /// before stays where anything is wrong with them.
  void set_moments(std::size_t i, MomentTree tree, double seconds) {
    ConditionResult& one = conditions()[i];
    // Where the replicates of a last leaf that was not full are not all there again.
    if (tree.count() < one.tree.count()) return;
    const Plan& plan = one.plan;
    if (plan.stack) one.layers = std::make_shared<LayerEstimates>(estimate_layers(tree, plan.n));
    ConditionEstimates estimates =
        plan.stack ? counts_of_layers(tree) : estimate(tree, plan, one.condition->measures);
    if (!plan.stack && tree.count() > 1 && !std::isfinite(estimates.mse.value)) {
      throw RunFailed(numbered_condition(i) + ": the mean squared error is not finite: " +
                      why_not_finite(plan, tree.count()));
    }
    if (plan.controls) {
      one.controls = std::make_shared<ControlReport>(
          report_controls(*one.condition, plan, *one.found.controls, tree, estimates));
    }
    one.tree = std::move(tree);
    one.estimates = std::move(estimates);
    one.seconds = seconds;
    one.weights_per_second =
        static_cast<double>(one.tree.count()) * weights_of_replicate(plan) / seconds;
  }

  /// Tests the means of the controls, and compares the figures with those without controls, which
  /// take their place where the test fails or the pilot lacked tails of the run.
  ControlReport report_controls(const Condition& condition, const Plan& plan,
                                const FoundControls& found, const MomentTree& tree,
                                ConditionEstimates& estimates) const {
    ControlReport report = check_controls(found, tree);
    ConditionEstimates without = estimate(tree.without_controls(), plan.head_weights, plan.truth,
                                          nullptr, {}, condition.measures);
    const auto with = numbers_of<Estimate>(estimates);
    const auto before = numbers_of<Estimate>(without);
    for (std::size_t i = 0; i < with.size(); ++i) {
      const double ratio = before[i].number->mcse / with[i].number->mcse;
      report.gains.emplace_back(with[i].name, ratio * ratio);
    }
    if (!report.used()) estimates = std::move(without);
    return report;
  }

  /// Resumes from the looks of an earlier run with the same targets. From results without these
  /// targets the first look is at the replicates that are there.
  void restore_looks() {
    Precision& precision = *result_.precision;
    const Precision* begun =
        options_.begun && options_.begun->precision ? &*options_.begun->precision : nullptr;
    if (begun && begun->targets == precision.targets && begun->conditions == precision.conditions) {
      precision.first = begun->first;
      precision.looks = begun->looks;
      precision.drop_early_look();
    }
    std::uint64_t count = 0;
    for (const ConditionResult& one : conditions()) count = std::max(count, one.tree.count());
    if (count <= precision.goal()) return;
    precision.looks.clear();
    precision.first = whole_nodes_from(count);
  }

  /// Simulates from look to look until all targets are met or there are no more replicates. False
  /// where it was stopped.
  bool simulate_until(std::uint64_t available) {
    require_targets_defined(options_.until, conditions());
    restore_looks();
    Precision& precision = *result_.precision;
    for (;;) {
      for (ConditionResult& one : conditions()) {
        auto with_goal = std::make_shared<Condition>(*one.condition);
        with_goal->replicates = precision.goal();
        one.condition = std::move(with_goal);
      }
      if (!simulate_groups(available)) return false;
      if (precision.done()) return true;
      set_differences(result_, options_.references);
      precision.looks.push_back(look_at(precision.targets, conditions()));
    }
  }

  /// Simulates what the conditions lack. False where it was stopped.
  bool simulate_groups(std::uint64_t available) {
    work_ahead_ = work_done_;
    for (std::size_t i = 0; i < conditions().size(); ++i) work_ahead_ += work_left(i);
    std::vector<const Plan*> plans;
    std::vector<ReplicateRange> lacking;
    for (std::size_t i = 0; i < conditions().size(); ++i) {
      const ConditionResult& one = conditions()[i];
      plans.push_back(&one.plan);
      // A last leaf that is not full is simulated again.
      ReplicateRange range = left(i);
      const std::uint64_t again = one.tree.count() - one.tree.whole_count();
      lacking.push_back({range.first - again, range.replicates + again, range.total});
    }
    const auto done = [this](std::size_t i) { return left(i).replicates == 0; };
    for (const ConditionGroup& group : condition_groups(
             scenario_, plans, lacking, *session_.backend, result_.machine.threads, available)) {
      if (std::ranges::all_of(group, done)) continue;
      if (session_.should_stop()) break;
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
    return is_complete();
  }

  void simulate_group(const ConditionGroup& group) {
    const std::uint64_t end = left(group[0]).end();
    std::vector<const Plan*> plans;
    std::vector<MomentTree> begun;
    std::vector<double> seconds_before, work;
    double group_work = 0;
    for (const std::size_t i : group) {
      const ConditionResult& one = conditions()[i];
      plans.push_back(&one.plan);
      begun.push_back(one.tree.whole());
      seconds_before.push_back(one.seconds);
      work.push_back(work_left(i));
      group_work += work.back();
    }
    const Stopwatch group_watch;
    // The time is shared out by work.
    auto keep = [&](std::vector<MomentTree> trees) {
      const double seconds = group_watch.seconds();
      for (std::size_t p = 0; p < group.size(); ++p) {
        set_moments(group[p], std::move(trees[p]),
                    seconds_before[p] + seconds * work[p] / group_work);
      }
    };
    const std::uint64_t count_before = begun[0].count();
    const std::uint64_t replicates = count_before + end - begun[0].end();
    ReplicatesDone done_so_far(count_before, options_.long_replicate_seconds);
    auto tell = [&](std::uint64_t count, double under_way, const Estimate& estimate) {
      const double shown = done_so_far.at(count, under_way);
      const double part = (shown - static_cast<double>(count_before)) /
                          static_cast<double>(replicates - count_before);
      const double done = work_done_ + part * group_work;
      Progress progress{.condition = group.front(),
                        .last_condition = group.back(),
                        .together = group.size(),
                        .conditions = conditions().size(),
                        .done = count,
                        .total = replicates,
                        .share = shown / static_cast<double>(replicates),
                        .figure = plans[0]->stack ? "log residual" : "MSE",
                        .estimate = estimate};
      if (const auto& precision = result_.precision) {
        progress.until = "look " + std::to_string(precision->looks.size() + 1) + ", until " +
                         until_text(precision->targets);
      }
      if (done > 0) progress.seconds_left = watch_.seconds() * (work_ahead_ - done) / done;
      session_.report(progress);
    };
    SimulationHooks hooks{.stop = session_.stop_hook(), .set_draw = plans_of(group).set_draw};
    std::optional<RankHelpers> helpers;
    if (options_.ranks) hooks.helpers = &helpers.emplace(*options_.ranks, group);
    hooks.watch = [&](const SimulationSoFar& so_far) {
      if (session_.reports()) {
        progress_.act_when_due([&] {
          const Plan& plan = *plans[0];
          const std::vector<MomentTree> trees = so_far.moments();
          tell(trees[0].count(), so_far.under_way(),
               plan.stack ? headline_of(estimate_layers(trees[0], plan.n))
                          : estimate(trees[0], plan).mse);
        });
      }
      if (options_.checkpoint) {
        checkpoint_.act_when_due([&] {
          keep(so_far.moments());
          hand_over();
        });
      }
    };
    keep(continue_simulation(std::move(begun), plans, *session_.backend, session_.threads, end,
                             hooks));
    const ConditionResult& first = conditions()[group[0]];
    if (session_.report) {
      tell(first.tree.count(), 0, first.layers ? headline_of(*first.layers) : first.estimates.mse);
    }
    if (options_.checkpoint) checkpoint_.act_when_due([&] { hand_over(); });
    work_done_ += group_work;
  }

  void hand_over() {
    const auto has_replicates = [](const ConditionResult& of) { return of.tree.count() > 0; };
    if (!std::ranges::any_of(conditions(), has_replicates)) return;
    set_differences(result_, options_.references);
    options_.checkpoint(result_);
  }

  static constexpr std::size_t stop_interval = 16;  ///< conditions

  const std::shared_ptr<const Scenario> shared_;
  const Scenario& scenario_ = *shared_;
  const Session& session_;
  const RunOptions& options_;
  RunResult result_;
  Stopwatch watch_;
  double work_ahead_ = 0;
  double work_done_ = 0;
  Pace progress_{0};
  Pace checkpoint_;
};

}  // namespace

RunResult run(std::shared_ptr<const Scenario> scenario, const Session& session,
              const RunOptions& options) {
  return Run(std::move(scenario), session, options).finish();
}

RunResult run(Scenario scenario, const Session& session, const RunOptions& options) {
  return run(std::make_shared<const Scenario>(std::move(scenario)), session, options);
}

}  // namespace headlab
