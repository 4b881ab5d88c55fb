// SPDX-License-Identifier: Apache-2.0
#include "engine/run/memory.h"

#include <initializer_list>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "engine/scenario/condition.h"
#include "engine/scenario/setup_laws.h"
#include "engine/testing/refusal.h"
#include "kernels/backends.h"
#include "kernels/laws.h"
#include "kernels/plan.h"
#include "kernels/testing/played_machine.h"

namespace headlab {
namespace {

constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t gib = std::uint64_t{1} << 30;

class Memory : public testing::Test {
 protected:
  /// Leaves so many bytes for the rest of the test.
  void limit(std::uint64_t bytes) {
    machine_.emplace(std::initializer_list<test::PlayedMachine::Variable>{
        {"HEADLAB_MEMORY_LIMIT", std::to_string(bytes)}});
  }

 private:
  std::optional<test::PlayedMachine> machine_;
};

/// A backend that needs 8 bytes a training point.
class PointBackend : public Backend {
 public:
  explicit PointBackend(std::string name = "points") : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  std::string simd() const override { return "none"; }
  std::string device() const override { return "none"; }
  int workers(int threads) const override { return threads; }
  std::uint64_t worker_bytes(Plans plans) const override {
    return plans.size() * (8 * plans[0]->n + 1000);
  }
  std::unique_ptr<Worker> worker(Plans) const override {
    throw std::logic_error("nothing is to be computed here");
  }

 private:
  std::string name_;
};

Condition condition_of(int dim) {
  Condition condition;
  NormalDesign design;
  design.dim = dim;
  condition.design = design;
  condition.subspaces = AlignedSubspaces{};
  condition.queries = DesignQueries{.count = 1, .seed = 0};
  condition.n = 100;
  condition.replicates = 1000;
  return condition;
}

std::string refusal(const Condition& condition, int workers = 1) {
  return refusal_line([&] { check_memory(condition, PointBackend(), workers); });
}

TEST_F(Memory, CheckPassesWhatFits) {
  limit(10000000);
  EXPECT_EQ(refusal(condition_of(3)), "accepted");
  Condition pilot = condition_of(3);
  pilot.weights = OptimalWeights{};
  EXPECT_EQ(refusal(pilot), "accepted");
}

TEST_F(Memory, CheckNamesN) {
  limit(gib);
  Condition condition = condition_of(3);
  condition.n = gib / 8;
  EXPECT_EQ(refusal(condition),
            "data.n: needs 1.0 GiB of memory for 1 worker, 1.0 GiB available - lower data.n");
  EXPECT_EQ(refusal(condition, 2),
            "data.n: needs 2.0 GiB of memory for 2 workers, 1.0 GiB available - lower data.n or "
            "use --threads 1");
  condition.n /= 2;
  EXPECT_EQ(refusal(condition), "accepted");
}

TEST_F(Memory, CheckCountsTheHeadsAndQueriesOfEveryWorkersDraw) {
  limit(gib);
  Condition condition = condition_of(4);
  condition.n = 1;
  condition.queries = DesignQueries{.count = 1000000, .seed = 0};
  condition.heads = 1;
  EXPECT_NE(refusal(condition, 1).find("for the moments"), std::string::npos);
  condition.queries = DesignQueries{.count = 1000000, .seed = 0, .redraw = true};
  EXPECT_EQ(refusal(condition, 1), "accepted");
  EXPECT_EQ(refusal(condition, 16).rfind("queries.count: needs ", 0), 0u) << refusal(condition, 16);
}

TEST_F(Memory, CheckSaysWhereNWasWritten) {
  limit(gib);
  Condition condition = condition_of(3);
  condition.n = gib;
  condition.parameters = parse_toml("[data]\nn = 1073741824\n", "big.toml");
  EXPECT_EQ(refusal(condition).rfind("big.toml:2:5: data.n: needs 8.0 GiB", 0), 0u)
      << refusal(condition);
}

TEST_F(Memory, CheckRefusesBeforeItAllocates) {
  limit(gib);
  Condition condition = condition_of(4096);
  condition.heads = 2000000000;
  condition.k = 4096;
  EXPECT_NE(refusal(condition), "accepted");

  condition = condition_of(4096);
  condition.queries = DesignQueries{.count = 1000000, .seed = 0};
  EXPECT_EQ(refusal(condition).rfind("queries.count: needs ", 0), 0u) << refusal(condition);

  condition = condition_of(4);
  condition.heads = 1000;
  condition.queries = DesignQueries{.count = 1000000, .seed = 0};
  EXPECT_NE(refusal(condition).find("for the moments"), std::string::npos);
  EXPECT_NE(refusal(condition).find("or use run.moments = \"aggregate\""), std::string::npos);

  condition = condition_of(4);
  condition.n = unlimited / 4;  // 8 n bytes do not fit in 64 bits
  EXPECT_NE(refusal(condition).find("more than 16 EiB"), std::string::npos) << refusal(condition);
}

TEST_F(Memory, CheckRefusesALargePilot) {
  limit(gib);
  Condition condition = condition_of(4);
  condition.heads = 1000;
  condition.queries = DesignQueries{.count = 10, .seed = 0};
  condition.moments = MomentMode::aggregate;
  EXPECT_EQ(refusal(condition), "accepted");
  OptimalWeights weights;
  weights.replicates = 4000;
  condition.weights = weights;
  EXPECT_NE(refusal(condition), "accepted");
}

TEST_F(Memory, CheckCountsTheWorkerOfCpuThatAPilotNeeds) {
  Condition condition = condition_of(3);
  condition.queries = DesignQueries{.count = 20, .seed = 0};
  const auto least = [&](const char* backend) {
    std::uint64_t refused = 0, accepted = gib;
    while (accepted - refused > 1) {
      const std::uint64_t middle = (refused + accepted) / 2;
      limit(middle);
      const std::string line =
          refusal_line([&] { check_memory(condition, PointBackend(backend), 1); });
      (line == "accepted" ? accepted : refused) = middle;
    }
    EXPECT_LT(accepted, gib);
    return accepted;
  };
  EXPECT_EQ(least("points"), least("cpu"));
  condition.controls = ExactControls{};
  const Plan plan = make_plan(condition);
  EXPECT_EQ(least("points") - least("cpu"),
            make_backend("cpu")->worker_bytes(plan) - PointBackend().Backend::worker_bytes(plan));
}

TEST_F(Memory, CheckRefusesALargeTrainingSetForAFit) {
  limit(gib);
  Condition condition = condition_of(4);
  condition.heads = 1;
  condition.k = 1;
  LearnedSubspaces learned;
  learned.points = 1000;
  condition.subspaces = learned;
  EXPECT_EQ(refusal(condition), "accepted");
  learned.points = 100000000;
  condition.subspaces = learned;
  EXPECT_EQ(refusal(condition).rfind("heads.subspaces.points: needs ", 0), 0u)
      << refusal(condition);
}

TEST_F(Memory, MomentsGrowWithTheirNodes) {
  const MomentLayout layout = {
      .queries = 10, .heads = 4, .mode = MomentMode::pairwise, .conditional = true};
  const std::uint64_t node = (layout.statistics() + layout.comoments()) * 8;
  const std::uint64_t one = moments_bytes(layout, 1, 1);
  EXPECT_GE(moments_bytes(layout, 101, 1) - one, 100 * node);
  EXPECT_EQ(moments_bytes(layout, 1000, 1), moments_bytes(layout, 1000000, 1));
  EXPECT_LE(moments_bytes(layout, 1000, 1), 256 * 8 * node);
  EXPECT_EQ(moments_bytes({.queries = 2147483647,
                           .heads = 2147483647,
                           .mode = MomentMode::pairwise,
                           .conditional = true},
                          1000, 1),
            unlimited);
}

TEST_F(Memory, PlanCountsTheTablesOfItsLaws) {
  const Condition plain = condition_of(100);
  Condition correlated = plain;
  std::get<NormalDesign>(correlated.design.own()).ar1 = 0.5;
  EXPECT_GE(plan_bytes(correlated) - plan_bytes(plain), 100u * 100 * 12);
  Condition random = plain;
  random.regression =
      RandomCosinesRegression{.terms = 1000, .length_scale = 1, .smoothness = {}, .seed = 0};
  EXPECT_GE(plan_bytes(random) - plan_bytes(plain), 1000u * 102 * 12);
  // What the plan really holds is no more than what was counted.
  for (const Condition& condition : {plain, correlated, random}) {
    const Plan plan = make_plan(condition);
    EXPECT_LE(12 * plan.table.size() + 8 * plan.projections.size() + 8 * plan.query_points.size(),
              plan_bytes(condition));
  }
}

}  // namespace
}  // namespace headlab
