// SPDX-License-Identifier: Apache-2.0
#include "engine/run/condition_groups.h"

#include <atomic>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "engine/run/memory.h"
#include "engine/scenario/setup_laws.h"
#include "engine/scenario/world.h"
#include "kernels/copy_on_write.h"
#include "kernels/plan.h"
#include "kernels/testing/played_machine.h"

namespace headlab {
namespace {

/// A backend whose workers take at most `most` plans, of 1000 bytes each.
class CountingBackend : public Backend {
 public:
  explicit CountingBackend(std::size_t most) : most_(most) {}
  std::string name() const override { return "counting"; }
  std::string simd() const override { return "none"; }
  std::string device() const override { return "none"; }
  int workers(int threads) const override { return threads; }
  std::size_t plans_together() const override { return most_; }
  std::uint64_t worker_bytes(Plans plans) const override { return 1000 * plans.size(); }
  std::unique_ptr<Worker> worker(Plans) const override {
    throw std::logic_error("nothing is to be computed here");
  }

 private:
  std::size_t most_;
};

Scenario grouped_study(const std::string& sweep) {
  return parse_scenario(World{.n = "20",
                              .design = "{ law = 'normal', dim = 3 }",
                              .regression = "{ law = 'linear', coefficients = [1, 0, 0] }",
                              .noise = "{ law = 'normal', sd = 0.5 }",
                              .heads = "count = 2\ndim = 1\nsubspaces = { law = 'haar' }",
                              .kernel = "{ law = 'gaussian', bandwidth = 0.4 }",
                              .queries = "law = 'design'\ncount = 3",
                              .run = "replicates = 100",
                              .sweep = sweep}
                            .text(),
                        "groups.toml");
}

std::vector<ConditionGroup> groups_of(const Scenario& scenario, std::size_t most = 16,
                                      std::vector<std::uint64_t> begun = {}) {
  std::vector<Plan> plans;
  for (const Condition& condition : scenario.conditions) plans.push_back(make_plan(condition));
  std::vector<const Plan*> pointers;
  for (const Plan& plan : plans) pointers.push_back(&plan);
  begun.resize(plans.size());
  std::vector<ReplicateRange> left;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const std::uint64_t replicates = scenario.conditions[i].replicates;
    left.push_back({begun[i], replicates - begun[i], replicates});
  }
  return condition_groups(scenario, pointers, left, CountingBackend(most), 2, available_bytes());
}

using Groups = std::vector<ConditionGroup>;

TEST(ConditionGroups, HoldWhatSharesItsDraws) {
  EXPECT_EQ(groups_of(grouped_study("\"heads.kernel.bandwidth\" = [0.2, 0.4, 0.8]")),
            (Groups{{0, 1, 2}}));
  EXPECT_EQ(
      groups_of(grouped_study("\"heads\" = [{ count = 1, dim = 2, subspaces = { law = \"haar\" }, "
                              "kernel = { law = \"gaussian\", bandwidth = 1 } }]\n"
                              "\"queries.count\" = [2, 3]\n"
                              "\"run.moments\" = [\"pairwise\", \"aggregate\"]")),
      (Groups{{0, 1, 2, 3}}));
  // In a resumed run, those that are equally far.
  EXPECT_EQ(groups_of(grouped_study("\"heads.kernel.bandwidth\" = [0.2, 0.4, 0.8]"), 16, {8, 0, 8}),
            (Groups{{0, 2}, {1}}));
  for (const std::string key :
       {"\"data.n\" = [10, 20]", "\"run.seed\" = [1, 2]", "\"run.replicates\" = [10, 20]",
        "\"data.noise.sd\" = [1, 2]", "\"run.estimator\" = [\"plain\", \"conditional\"]"}) {
    EXPECT_EQ(groups_of(grouped_study(key)), (Groups{{0}, {1}})) << key;
  }
}

TEST(ConditionGroups, HoldConditionsThatAllRedrawOrNone) {
  Scenario scenario = grouped_study("\"heads.kernel.bandwidth\" = [0.2, 0.4, 0.8, 1.6]");
  for (const std::size_t i : {1u, 3u}) {
    std::get<HaarSubspaces>(scenario.conditions[i].subspaces.own()).redraw = true;
  }
  EXPECT_EQ(groups_of(scenario), (Groups{{0, 2}, {1, 3}}));
}

TEST(ConditionGroups, NeedNotStandSideBySide) {
  EXPECT_EQ(groups_of(grouped_study("\"heads.dim\" = [1, 2]\n\"data.n\" = [10, 20, 30]")),
            (Groups{{0, 3}, {1, 4}, {2, 5}}));
}

TEST(ConditionGroups, AreFoundWithoutASweepToo) {
  Scenario scenario =
      grouped_study("\"data.n\" = [10, 20]\n\"heads.kernel.bandwidth\" = [0.1, 0.2]");
  EXPECT_EQ(groups_of(scenario), (Groups{{0, 1}, {2, 3}}));
  scenario.swept.clear();
  for (Condition& condition : scenario.conditions) condition.swept.clear();
  EXPECT_EQ(groups_of(scenario), (Groups{{0, 1}, {2, 3}}));
}

TEST(ConditionGroups, AreNoLargerThanTheBackendGainsFrom) {
  const Scenario scenario = grouped_study("\"heads.kernel.bandwidth\" = [0.1, 0.2, 0.3, 0.4, 0.5]");
  EXPECT_EQ(groups_of(scenario, 2), (Groups{{0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(groups_of(scenario, 1), (Groups{{0}, {1}, {2}, {3}, {4}}));
}

TEST(ConditionGroups, FitInMemory) {
  const Scenario scenario = grouped_study("\"heads.kernel.bandwidth\" = [0.1, 0.2, 0.3, 0.4, 0.5]");
  const Plan plan = make_plan(scenario.conditions[0]);
  const std::vector<const Plan*> two = {&plan, &plan};
  const std::uint64_t bytes = simulation_bytes(two, 100, CountingBackend(16), 2);
  EXPECT_EQ(bytes, 2 * moments_bytes(plan.layout(), 100, 2) + 2 * 2000);
  const test::PlayedMachine of_two{{"HEADLAB_MEMORY_LIMIT", std::to_string(bytes)}};
  EXPECT_EQ(groups_of(scenario), (Groups{{0, 1}, {2, 3}, {4}}));
  const test::PlayedMachine of_less{{"HEADLAB_MEMORY_LIMIT", std::to_string(bytes - 1)}};
  EXPECT_EQ(groups_of(scenario), (Groups{{0}, {1}, {2}, {3}, {4}}));
}

/// A thread reads a copy of `value` and lets it go, and `change` is then called of `value` without
/// anything that would order the two: ThreadSanitizer reports a change of what was read.
template <class T, class Read, class Change>
void change_after_reader(T value, const Read& read, const Change& change) {
  std::atomic<bool> gone = false;
  std::jthread reader([&, copy = std::optional<T>(value)]() mutable {
    read(*copy);
    copy.reset();
    gone.store(true, std::memory_order_relaxed);
  });
  while (!gone.load(std::memory_order_relaxed)) std::this_thread::yield();
  change(value);
}

TEST(ConditionGroups, SharedNumbersAreChangedWithoutARace) {
  change_after_reader(
      Table({1, 2}), [](const Table& table) { EXPECT_EQ(table.exact()[1], 2); },
      [](Table& table) {
        EXPECT_EQ(table.add(std::vector<double>{3}), 2);
        EXPECT_EQ(table.exact()[0] + table.rounded()[2], 4);
      });
  change_after_reader(
      CopyOnWrite<int>(1), [](const CopyOnWrite<int>& number) { EXPECT_EQ(*number, 1); },
      [](CopyOnWrite<int>& number) { EXPECT_EQ(++number.own(), 2); });
}

}  // namespace
}  // namespace headlab
