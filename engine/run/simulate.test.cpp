// SPDX-License-Identifier: Apache-2.0
#include "engine/run/simulate.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/scenario/condition.h"
#include "engine/testing/same_bits.h"
#include "engine/testing/small_scenario.h"
#include "kernels/backends.h"
#include "kernels/statistics/stopping.h"

namespace headlab {
namespace {

/// The cpu backend with another opinion on how much work is worth dealing at once.
class OtherBlocks : public Backend {
 public:
  explicit OtherBlocks(double block_work) : block_work_(block_work) {}
  std::string name() const override { return cpu_->name(); }
  std::string simd() const override { return cpu_->simd(); }
  std::string device() const override { return cpu_->device(); }
  int workers(int threads) const override { return threads; }
  double block_work() const override { return block_work_; }
  std::uint64_t worker_bytes(Plans plans) const override { return cpu_->worker_bytes(plans); }
  std::unique_ptr<Worker> worker(Plans plans) const override { return cpu_->worker(plans); }

 private:
  double block_work_;
  std::unique_ptr<Backend> cpu_ = make_backend("cpu");
};

TEST(Simulate, GivesTheSameBitsForBlocksOfAnySize) {
  // From one replicate a block to all of them: 2931 leaves every kind of tail.
  for (const std::uint64_t replicates : {300, 2931}) {
    const Plan plan = make_plan(small_scenario().conditions.at(0));
    const auto expected = simulate(plan, OtherBlocks(1), 1, replicates);
    for (const double block_work : {1e5, 1e7, 1e12}) {
      expect_same_bits(simulate(plan, OtherBlocks(block_work), 2, replicates), expected);
    }
  }
}

/// Plans of three ensembles on the training sets of the small study.
std::vector<Plan> plans_on_shared_draws(const std::string& estimator) {
  const std::vector<std::vector<std::string>> ensembles = {
      {},
      {"heads.kernel.bandwidth=0.8", "heads.dim=2", "heads.subspaces={ law = \"haar\" }"},
      {"heads.count=2", "queries.count=9", "run.moments=\"aggregate\""}};
  std::vector<Plan> plans;
  for (std::vector<std::string> sets : ensembles) {
    sets.push_back("run.estimator=\"" + estimator + "\"");
    plans.push_back(make_plan(small_scenario(sets).conditions.at(0)));
  }
  return plans;
}

TEST(Simulate, GivesAPlanTheSameBitsAloneAndWithOthers) {
  for (const std::string backend_name : {"reference", "cpu"}) {
    const auto backend = make_backend(backend_name);
    for (const std::string estimator : {"conditional", "plain"}) {
      const std::vector<Plan> plans = plans_on_shared_draws(estimator);
      std::vector<const Plan*> pointers;
      for (const Plan& plan : plans) pointers.push_back(&plan);
      for (const std::uint64_t replicates : {100, 413}) {
        const auto together = simulate(pointers, *backend, 2, replicates);
        ASSERT_EQ(together.size(), plans.size());
        for (std::size_t p = 0; p < plans.size(); ++p) {
          expect_same_bits(together[p], simulate(plans[p], *backend, 1, replicates));
        }
      }
    }
  }
}

TEST(Simulate, GivesSeveralPlansTheSameBitsForBlocksOfAnySize) {
  const std::vector<Plan> plans = plans_on_shared_draws("conditional");
  const std::vector<const Plan*> pointers = {&plans[0], &plans[1], &plans[2]};
  const auto expected = simulate(pointers, OtherBlocks(1), 1, 2931);
  for (const double block_work : {1e5, 1e7, 1e12}) {
    const auto trees = simulate(pointers, OtherBlocks(block_work), 3, 2931);
    for (std::size_t p = 0; p < plans.size(); ++p) {
      expect_same_bits(trees[p], expected[p]);
    }
  }
}

TEST(Simulate, StopsAllPlansAtTheSameReplicate) {
  const std::vector<Plan> plans = plans_on_shared_draws("conditional");
  const std::vector<const Plan*> pointers = {&plans[0], &plans[1], &plans[2]};
  std::atomic<bool> stop = false;
  SimulationHooks hooks{.stop = [&] { return stop.load(); }};
  hooks.watch = [&](const SimulationSoFar& so_far) {
    const std::vector<MomentTree> trees = so_far.moments();
    ASSERT_EQ(trees.size(), 3u);
    EXPECT_EQ(trees[0].count(), trees[2].count());
    stop = trees[0].count() > 0;
  };
  const auto trees = simulate(pointers, *make_backend("cpu"), 2, 100000000, hooks);
  EXPECT_GT(trees[0].count(), 0u);
  EXPECT_LT(trees[0].count(), 100000000u);
  EXPECT_EQ(trees[1].count(), trees[0].count());
  EXPECT_EQ(trees[2].count(), trees[0].count());
}

/// A backend whose workers wait, halfway through each replicate, until `go_on` is true.
class HalfwayBackend : public OtherBlocks {
 public:
  explicit HalfwayBackend(const std::atomic<bool>& go_on) : OtherBlocks(1), go_on_(go_on) {}
  std::unique_ptr<Worker> worker(Plans plans) const override {
    return std::make_unique<HalfwayWorker>(OtherBlocks::worker(plans), go_on_);
  }

 private:
  class HalfwayWorker : public Worker {
   public:
    HalfwayWorker(std::unique_ptr<Worker> worker, const std::atomic<bool>& go_on)
        : worker_(std::move(worker)), go_on_(go_on) {}
    void run(const Block& block, std::span<Moments> out) override {
      stop_point(0.5);
      // The last block goes on at once: it is finished before the others and waits for them.
      while (block.first + block.count < 3 && !go_on_) std::this_thread::yield();
      worker_->run(block, out);
    }

   private:
    std::unique_ptr<Worker> worker_;
    const std::atomic<bool>& go_on_;
  };
  const std::atomic<bool>& go_on_;
};

TEST(Simulate, TellsWhatIsUnderWay) {
  const Plan plan = make_plan(small_scenario().conditions.at(0));
  std::atomic<bool> go_on = false;
  double most = 0;
  int calls = 0;
  const SimulationHooks hooks{.watch = [&](const SimulationSoFar& so_far) {
    const std::uint64_t count = so_far.moments().front().count();
    const double under_way = so_far.under_way();
    EXPECT_TRUE(under_way >= 0 && static_cast<double>(count) + under_way <= 3);
    most = std::max(most, under_way);
    // Half of two replicates, and all of the third.
    go_on = go_on || most == 2 || ++calls == 600;
  }};
  simulate(plan, HalfwayBackend(go_on), 3, 3, hooks);
  EXPECT_EQ(most, 2);
}

TEST(Simulate, RefusesPlansThatDoNotShareTheirDraws) {
  const Plan plan = make_plan(small_scenario().conditions.at(0));
  const Plan other = make_plan(small_scenario({"run.seed=4"}).conditions.at(0));
  const std::vector<const Plan*> plans = {&plan, &other};
  EXPECT_THROW(simulate(plans, *make_backend("cpu"), 1, 8), std::invalid_argument);
}

}  // namespace
}  // namespace headlab
