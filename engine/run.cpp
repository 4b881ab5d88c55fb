// SPDX-License-Identifier: Apache-2.0
#include "engine/run.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

#include "engine/error.h"
#include "engine/memory.h"
#include "engine/pilot.h"

namespace headlab {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Cost of one replicate in kernel weights: those it takes, and the coordinates drawn for it.
double replicate_work(std::uint64_t n, int d, int heads, int queries) {
  return static_cast<double>(n) * (static_cast<double>(heads) * queries + 4.0 * d);
}
double work_per_replicate(const Plan& plan) {
  return replicate_work(plan.n, plan.d, plan.heads, plan.queries);
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

/// Deals blocks of replicates to threads and collects their moments in the order of the replicates,
/// whatever the order in which they are finished.
class Dealer {
 public:
  Dealer(const Plan& plan, std::uint64_t replicates, int threads)
      : plan_(plan),
        replicates_(replicates),
        ahead_(4 * static_cast<std::uint64_t>(threads)),
        tree_(plan.layout()) {
    // Blocks of one size and aligned to it, so that none crosses first_leaf.
    constexpr double wanted = 4e6;
    while (block_ < first_leaf &&
           2.0 * static_cast<double>(block_) * work_per_replicate(plan) < wanted) {
      block_ *= 2;
    }
  }

  /// The next block, or count 0 when there is none or the run is to stop. Waits while the thread
  /// that holds the oldest block is far behind: memory stays bounded.
  Block next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopping_ || dealt_ - collected_ < ahead_; });
    const std::uint64_t first = next_first_;
    if (stopping_ || first >= replicates_) return {};
    const int node = first < first_leaf ? 1 : leaf_replicates;
    const std::uint64_t size = std::max(block_, static_cast<std::uint64_t>(node));
    const std::uint64_t count = std::min(size, replicates_ - first);
    next_first_ += count;
    ++dealt_;
    return {first, count, node};
  }

  void collect(const Block& block, std::vector<Moments> moments) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.emplace(block.first, std::move(moments));
      for (auto it = waiting_.begin(); it != waiting_.end() && it->first == tree_.count();
           it = waiting_.erase(it)) {
        for (Moments& node : it->second) tree_.append(std::move(node));
        ++collected_;
      }
    }
    changed_.notify_all();
  }

  void stop(std::exception_ptr error = nullptr) {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      if (error && !error_) error_ = error;
    }
    changed_.notify_all();
  }

  void leave() {
    {
      const std::lock_guard lock(mutex_);
      ++left_;
    }
    changed_.notify_all();
  }

  /// True when `threads` threads have left; waits a tenth of a second at most.
  bool wait_for(int threads) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::milliseconds(100),
                             [&] { return left_ == threads; });
  }

  MomentTree tree() {
    const std::lock_guard lock(mutex_);
    return tree_;
  }
  void rethrow() {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  const Plan& plan_;
  std::uint64_t replicates_;
  std::uint64_t block_ = 1;  ///< replicates
  std::uint64_t ahead_;      ///< blocks dealt and not yet collected, at most

  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t next_first_ = 0;
  std::uint64_t dealt_ = 0;
  std::uint64_t collected_ = 0;
  int left_ = 0;
  bool stopping_ = false;
  std::exception_ptr error_;
  std::map<std::uint64_t, std::vector<Moments>> waiting_;  ///< by first replicate
  MomentTree tree_;
};

void work(const Plan& plan, const Backend& backend, Dealer& dealer) {
  try {
    const std::unique_ptr<Worker> worker = backend.worker(plan);
    for (Block block = dealer.next(); block.count > 0; block = dealer.next()) {
      std::vector<Moments> moments(block.nodes());
      worker->run(block, moments);
      dealer.collect(block, std::move(moments));
    }
  } catch (...) {
    dealer.stop(std::current_exception());
  }
  dealer.leave();
}

int thread_count(int asked) {
  if (asked > 0) return asked;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

MomentTree simulate(const Plan& plan, const Backend& backend, int threads, std::uint64_t replicates,
                    const SimulationHooks& hooks) {
  const int workers = static_cast<int>(
      std::min(static_cast<std::uint64_t>(backend.workers(thread_count(threads))), replicates));
  Dealer dealer(plan, replicates, workers);
  {
    std::vector<std::jthread> pool;
    for (int i = 0; i < workers; ++i) {
      try {
        pool.emplace_back([&] { work(plan, backend, dealer); });
      } catch (const std::system_error& error) {
        // The bits do not depend on the number of threads, so those that started carry on.
        if (pool.empty()) throw CouldNotFinish(std::string("no thread: ") + error.what());
        break;
      }
    }
    const auto started = static_cast<int>(pool.size());
    // Progress may cost as much as merging all nodes does; it gets a twentieth of the time.
    auto next_progress = Clock::now();
    while (!dealer.wait_for(started)) {
      if (hooks.stop && hooks.stop()) dealer.stop();
      if (hooks.progress && Clock::now() >= next_progress) {
        const auto start = Clock::now();
        hooks.progress(dealer.tree());
        next_progress = Clock::now() + 20 * (Clock::now() - start);
      }
    }
  }
  dealer.rethrow();
  return dealer.tree();
}

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
  result.interrupted = !result.complete && options.stop && options.stop->load();
  return result;
}

}  // namespace headlab
