// SPDX-License-Identifier: Apache-2.0
#include "engine/run/simulate.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "engine/files/error.h"
#include "engine/moments/estimates.h"
#include "kernels/learning/worker.h"
#include "kernels/parallel_for.h"
#include "kernels/plan.h"
#include "kernels/stack/stack.h"
#include "kernels/stack/worker.h"
#include "kernels/statistics/stopping.h"

namespace headlab {
namespace {

/// Hands out blocks of replicates to threads and collects their moments in the order of the
/// replicates, whatever the order in which they are finished.
class BlockScheduler : public BlockQueue {
 public:
  /// `begun` has a tree for each plan, all of one count.
  BlockScheduler(std::vector<MomentTree> begun, Plans plans, const Backend& backend,
                 std::uint64_t replicates, int workers, int helpers)
      : replicates_(replicates),
        ahead_(4 * static_cast<std::uint64_t>(workers + helpers)),
        next_first_(begun.front().end()),
        trees_(std::move(begun)) {
    double work = 0;
    // Where no head sees a point some backends draw it all the same.
    for (const Plan* plan : plans) {
      work += replicate_work(plan->n, plan->d, plan->heads, plan->queries) + learning_work(*plan);
    }
    while (2.0 * static_cast<double>(block_) * work < backend.block_work() &&
           block_ < max_block_replicates) {
      block_ *= 2;
    }
    if (helpers > 0) enlarge_blocks(static_cast<std::uint64_t>(workers + helpers));
  }

  /// The next block, or count 0 when there is none or the run is to stop. Waits while the thread
  /// that holds the oldest block is far behind: memory stays bounded.
  Block next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return has_next(); });
    return take_next();
  }

  std::optional<Block> try_next() override {
    const std::lock_guard lock(mutex_);
    if (!has_next()) return std::nullopt;
    return take_next();
  }

  void collect(const Block& block, std::vector<Moments> moments) override {
    {
      const std::lock_guard lock(mutex_);
      waiting_.emplace(block.first, Finished{block.count, std::move(moments)});
      for (auto it = waiting_.begin(); it != waiting_.end() && it->first == trees_.front().end();
           it = waiting_.erase(it)) {
        std::vector<Moments>& nodes = it->second.moments;
        const std::size_t of_tree = nodes.size() / trees_.size();
        for (std::size_t i = 0; i < nodes.size(); ++i) {
          trees_[i / of_tree].append(std::move(nodes[i]));
        }
        ++collected_;
      }
    }
    changed_.notify_all();
  }

  bool stopping() override {
    const std::lock_guard lock(mutex_);
    return stopping_;
  }

  void stop(std::exception_ptr error = nullptr) {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      if (error && !error_) error_ = error;
    }
    changed_.notify_all();
  }

  /// To be called once no thread works on a block any more.
  void finish() {
    {
      const std::lock_guard lock(mutex_);
      finished_ = true;
    }
    changed_.notify_all();
  }

  /// True after finish(); waits for it for a tenth of a second at most.
  bool wait_finished() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::milliseconds(100), [&] { return finished_; });
  }

  std::vector<MomentTree> trees() {
    const std::lock_guard lock(mutex_);
    return trees_;
  }
  /// Replicates of blocks that are finished and wait for one before them.
  std::uint64_t waiting() {
    const std::lock_guard lock(mutex_);
    std::uint64_t count = 0;
    for (const auto& [first, finished] : waiting_) count += finished.replicates;
    return count;
  }
  void rethrow() {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  static constexpr std::uint64_t max_nodes = 32;  ///< of a block

  struct Finished {
    std::uint64_t replicates;
    std::vector<Moments> moments;  ///< [plans][nodes]
  };

  /// Moments travel to this process: up to eight times as many replicates in a block, as long as
  /// each worker still has many blocks.
  void enlarge_blocks(std::uint64_t workers) {
    constexpr std::uint64_t blocks_each = 32;
    const std::uint64_t left = replicates_ - next_first_;
    for (int doubled = 0; doubled < 3 && block_ < max_block_replicates; ++doubled) {
      if (2 * block_ * blocks_each * workers > left) return;
      block_ *= 2;
    }
  }

  /// True where take_next() knows what comes next, a block or the end.
  bool has_next() const {
    return stopping_ || next_first_ >= replicates_ || scheduled_ - collected_ < ahead_;
  }

  Block take_next() {
    const std::uint64_t first = next_first_;
    if (stopping_ || first >= replicates_) return {};
    const Block block = block_from(first);
    next_first_ += block.count;
    ++scheduled_;
    return block;
  }

  /// Blocks are powers of two aligned to their size, so that none crosses first_leaf, and hand in
  /// nodes as large as the tree takes them there: what a block returns stays small.
  Block block_from(std::uint64_t first) const {
    const std::uint64_t left = replicates_ - first;
    const std::uint64_t largest = trees_.front().max_node(first);
    if (largest == 1) {
      std::uint64_t size = std::min(block_, first_leaf);
      while (first % size != 0) size /= 2;
      return {first, std::min(size, left), 1};
    }
    std::uint64_t size = std::clamp<std::uint64_t>(block_, leaf_replicates, largest * max_nodes);
    while (first % size != 0 || (size > left && size > leaf_replicates)) size /= 2;
    return {first, std::min(size, left), static_cast<int>(std::min(size, largest))};
  }

  std::uint64_t replicates_;
  std::uint64_t block_ = 1;  ///< replicates, where they may be so many
  std::uint64_t ahead_;      ///< max. blocks handed out and not yet collected
  std::uint64_t next_first_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t scheduled_ = 0;
  std::uint64_t collected_ = 0;
  bool finished_ = false;
  bool stopping_ = false;
  std::exception_ptr error_;
  std::map<std::uint64_t, Finished> waiting_;  ///< by first replicate
  std::vector<MomentTree> trees_;              ///< [plans]
};

/// Worker of plans that redraw: every leaf has a worker of its own, on the plans of its draw.
class DrawWorker : public Worker {
 public:
  DrawWorker(Plans plans, const Backend& backend, const SimulationHooks& hooks)
      : backend_(backend), hooks_(hooks), leaf_(plans.size()) {
    for (const Plan* plan : plans) drawn_.push_back(*plan);
    for (const Plan& plan : drawn_) pointers_.push_back(&plan);
  }

  void run(const Block& block, std::span<Moments> out) override {
    const auto node = static_cast<std::uint64_t>(block.node);
    const std::uint64_t nodes = block.nodes();
    std::vector<std::vector<Moments>> leaves(drawn_.size());  // of a node
    for (std::uint64_t i = 0; i < nodes; ++i) {
      const std::uint64_t first = block.first + i * node;
      for (std::uint64_t done = 0; done < node; done += leaf_replicates) {
        const WorkPart part =
            WorkPart::number((i * node + done) / leaf_replicates, block.count / leaf_replicates);
        run_leaf(first + done, leaves);
      }
      for (std::size_t p = 0; p < drawn_.size(); ++p) {
        out[p * nodes + i] = merge_siblings(drawn_[p].kept_layout(), leaves[p]);
        leaves[p].clear();
      }
    }
  }

 private:
  void run_leaf(std::uint64_t first, std::vector<std::vector<Moments>>& leaves) {
    for (std::size_t p = 0; p < drawn_.size(); ++p) {
      hooks_.set_draw(drawn_[p], p, first / leaf_replicates);
    }
    make_worker(backend_, pointers_, hooks_.stop)
        ->run({.first = first, .count = leaf_replicates}, leaf_);
    for (std::size_t p = 0; p < drawn_.size(); ++p) {
      const Plan& plan = drawn_[p];
      leaves[p].push_back(draw_moments(plan.layout(), leaf_[p], plan.head_weights, plan.truth));
    }
  }

  const Backend& backend_;
  const SimulationHooks& hooks_;
  std::vector<Plan> drawn_;
  std::vector<const Plan*> pointers_;
  std::vector<Moments> leaf_;  ///< [plans]
};

void work(Plans plans, const Backend& backend, BlockScheduler& scheduler,
          const SimulationHooks& hooks, std::atomic<double>& done) {
  try {
    const StopScope scope(hooks.stop);
    const std::unique_ptr<Worker> worker = make_block_worker(plans, backend, hooks);
    for (Block block = scheduler.next(); block.count > 0; block = scheduler.next()) {
      std::vector<Moments> moments(plans.size() * block.nodes());
      {
        const WorkScope work(done, static_cast<double>(block.count));
        worker->run(block, moments);
      }
      scheduler.collect(block, std::move(moments));
    }
  } catch (const WorkStopped&) {
    scheduler.stop();
  } catch (...) {
    scheduler.stop(std::current_exception());
  }
}

void let_help(BlockHelpers& helpers, BlockScheduler& scheduler) {
  try {
    helpers.work(scheduler);
  } catch (...) {
    scheduler.stop(std::current_exception());
  }
}

/// Continues where `begun`, a tree for each plan, ends.
std::vector<MomentTree> advance(std::vector<MomentTree> begun, Plans plans, const Backend& backend,
                                int threads, std::uint64_t replicates,
                                const SimulationHooks& hooks) {
  if (begun.front().end() >= replicates) return begun;
  const int workers =
      static_cast<int>(std::min(static_cast<std::uint64_t>(backend.workers(thread_count(threads))),
                                replicates - begun.front().end()));
  const int helpers = hooks.helpers ? hooks.helpers->capacity() : 0;
  std::vector<std::atomic<double>> done(static_cast<std::size_t>(workers));  // of the blocks
  BlockScheduler scheduler(std::move(begun), plans, backend, replicates, workers, helpers);
  const SimulationSoFar so_far{.moments = [&] { return scheduler.trees(); },
                               .under_way =
                                   [&] {
                                     auto count = static_cast<double>(scheduler.waiting());
                                     for (const std::atomic<double>& one : done) count += one;
                                     return count;
                                   }};
  {
    std::jthread pool;
    try {
      pool = std::jthread([&] {
        const int threads_here = workers + (helpers > 0 ? 1 : 0);
        const auto of_thread = [&](std::size_t i) {
          if (helpers > 0 && i == 0) {
            let_help(*hooks.helpers, scheduler);
          } else {
            work(plans, backend, scheduler, hooks, done[helpers > 0 ? i - 1 : i]);
          }
        };
        try {
          parallel_for(static_cast<std::size_t>(threads_here), threads_here, of_thread);
        } catch (...) {
          scheduler.stop(std::current_exception());
        }
        scheduler.finish();
      });
    } catch (const std::system_error& error) {
      throw RunFailed(std::string("no thread: ") + error.what());
    }
    bool failed = false;
    while (!scheduler.wait_finished()) {
      if (failed) continue;
      try {
        if ((hooks.stop && hooks.stop()) || (hooks.enough && hooks.enough())) scheduler.stop();
        if (hooks.watch) hooks.watch(so_far);
      } catch (...) {
        failed = true;
        scheduler.stop(std::current_exception());
      }
    }
  }
  scheduler.rethrow();
  return scheduler.trees();
}

}  // namespace

std::unique_ptr<Worker> make_block_worker(Plans plans, const Backend& backend,
                                          const SimulationHooks& hooks) {
  if (plans.front()->redraws) return std::make_unique<DrawWorker>(plans, backend, hooks);
  return make_worker(backend, plans, hooks.stop);
}

double replicate_work(std::uint64_t n, int d, int heads, int queries) {
  return static_cast<double>(n) * (static_cast<double>(heads) * queries + 4.0 * d);
}

double weights_of_replicate(const Plan& plan) {
  const auto n = static_cast<double>(plan.n);
  if (plan.stack) return n * n * plan.stack->heads * plan.stack->layers;
  return n * plan.queries * plan.heads;
}

double replicate_work(const Plan& plan) {
  if (plan.stack) return stack_work(plan) / 20;
  const Merge& merge = plan.mechanism.merge;
  // What no head sees is neither drawn nor weighed; a sequence is drawn from its beginning.
  SeenTokens any{.begin = merge.tokens(plan.n)};
  double seen = 0;
  for (int h = 0; h < plan.heads; ++h) {
    const SeenTokens one = plan.mechanism.seen_by(h, plan.n);
    seen += static_cast<double>(one.count());
    any = {.sinks = std::max(any.sinks, one.sinks),
           .begin = std::min(any.begin, one.begin),
           .end = std::max(any.end, one.end)};
  }
  const double drawn = plan.ar1
                           ? static_cast<double>(plan.n)
                           : static_cast<double>(any.count()) * static_cast<double>(merge.stride);
  return seen * plan.queries + drawn * 4.0 * plan.d + learning_work(plan);
}

std::vector<MomentTree> simulate(Plans plans, const Backend& backend, int threads,
                                 std::uint64_t replicates, const SimulationHooks& hooks) {
  std::vector<MomentTree> none;
  for (const Plan* plan : plans) none.emplace_back(plan->kept_layout());
  return continue_simulation(std::move(none), plans, backend, threads, replicates, hooks);
}

MomentTree simulate(const Plan& plan, const Backend& backend, int threads, std::uint64_t replicates,
                    const SimulationHooks& hooks) {
  return continue_simulation(MomentTree(plan.kept_layout()), plan, backend, threads, replicates,
                             hooks);
}

std::vector<MomentTree> continue_simulation(std::vector<MomentTree> begun, Plans plans,
                                            const Backend& backend, int threads,
                                            std::uint64_t replicates,
                                            const SimulationHooks& hooks) {
  if (begun.size() != plans.size()) {
    throw std::invalid_argument("a run is continued with one tree a plan");
  }
  const std::uint64_t end = begun.front().end();
  for (std::size_t p = 0; p < plans.size(); ++p) {
    if (!shares_draws(*plans[p], *plans[0])) {
      throw std::invalid_argument("plans simulated together must share their draws");
    }
    if (begun[p].layout() != plans[p]->kept_layout()) {
      throw std::invalid_argument("a run can be continued with its own plan alone");
    }
    if (begun[p].end() != end || begun[p].count() != begun[0].count()) {
      throw std::invalid_argument("plans simulated together must have equally many replicates");
    }
    if (plans[p]->redraws != plans[0]->redraws) {
      throw std::invalid_argument("plans simulated together must all redraw, or none");
    }
  }
  if (plans[0]->redraws && !hooks.set_draw) {
    throw std::invalid_argument("no draws are given to a plan that redraws heads or queries");
  }
  if (plans[0]->redraws && replicates % leaf_replicates != 0) {
    throw std::invalid_argument(std::to_string(replicates) +
                                " replicates are not a whole number of draws");
  }
  if (begun[0].max_node(end) > 1 && end % leaf_replicates != 0) {
    throw std::invalid_argument("a run of " + std::to_string(end) +
                                " replicates cannot be continued: it ends within a leaf");
  }
  return advance(std::move(begun), plans, backend, threads, replicates, hooks);
}

MomentTree continue_simulation(MomentTree begun, const Plan& plan, const Backend& backend,
                               int threads, std::uint64_t replicates,
                               const SimulationHooks& hooks) {
  const Plan* const one = &plan;
  std::vector<MomentTree> trees;
  trees.push_back(std::move(begun));
  return continue_simulation(std::move(trees), Plans(&one, 1), backend, threads, replicates, hooks)
      .front();
}

}  // namespace headlab
