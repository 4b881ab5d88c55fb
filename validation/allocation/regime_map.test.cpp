// SPDX-License-Identifier: Apache-2.0
#include "validation/allocation/regime_map.h"

#include <gmock/gmock.h>

#include <gtest/gtest.h>

#include "engine/files/error.h"
#include "engine/scenario/world.h"
#include "engine/testing/folder_test.h"

namespace headlab {
namespace {

using testing::ElementsAre;

const std::vector<std::uint64_t> map_sizes = {20, 60, 200, 600};
const std::vector<BandwidthRule> fixed_and_rate = {BandwidthRule::fixed, BandwidthRule::rate};

Scenario map_world(const std::string& sweep = R"("data.noise.sd" = [0.3, 1.0])") {
  World world = World{.n = "10",
                      .design = R"({ law = "normal", dim = 6 })",
                      .regression = R"({ law = "random_cosines", terms = 16, length_scale = 3.0 })",
                      .noise = R"({ law = "normal", sd = 1 })",
                      .heads = "count = 6\ndim = 1\nsubspaces = { law = \"orthogonal\" }",
                      .kernel = R"({ law = "gaussian", bandwidth = 0.3 })",
                      .queries = "law = \"design\"\ncount = 4",
                      .run = "seed = 4\nreplicates = 10"};
  world.sweep = sweep;
  return parse_scenario(world.text(), "map_world.toml");
}

RegimeMap mapped(const Scenario& scenario, const std::vector<int>& budgets, Session session = {}) {
  session.backend = "cpu";
  return map_regimes(scenario, fixed_and_rate, budgets, map_sizes, session, {.replicates = 1024});
}

TEST(MapRegimes, HasEveryCellOnceAsItIsAlone) {
  const Scenario scenario = map_world();
  const std::vector<int> budgets = {4, 6};
  const RegimeMap map = mapped(scenario, budgets);
  EXPECT_TRUE(map.outcome.complete);
  EXPECT_THAT(map.keys, ElementsAre("data.noise.sd"));
  ASSERT_EQ(map.cells.size(), 8u);
  EXPECT_TRUE(map.heads.empty());
  std::size_t cell = 0;
  for (std::size_t c = 0; c < 2; ++c) {
    for (const BandwidthRule rule : fixed_and_rate) {
      for (const int budget : budgets) {
        const RegimeCell& one = map.cells[cell++];
        EXPECT_EQ(one.condition, c);
        EXPECT_EQ(one.study.rule, rule);
        EXPECT_EQ(one.study.budget, budget);
      }
    }
  }
  const GrowthStudy alone = study_growth(scenario.conditions[1], 6, map_sizes, {.backend = "cpu"},
                                         {.rule = BandwidthRule::rate, .replicates = 1024});
  const Growth& there = map.cells.back().study.growth;
  EXPECT_EQ(there.n, alone.growth.n);
  EXPECT_EQ(there.errors, alone.growth.errors);
  EXPECT_EQ(there.trend, alone.growth.trend);
}

TEST(MapRegimes, ComparesHeadsOverThreeBudgets) {
  const RegimeMap map = mapped(map_world(R"("data.noise.sd" = [1.0])"), {2, 4, 6});
  ASSERT_EQ(map.heads.size(), fixed_and_rate.size() * map_sizes.size());
  for (const RegimeHeads& heads : map.heads) {
    EXPECT_EQ(heads.growth.budgets.size() + heads.growth.left_out.size(), 3u);
  }
}

TEST(MapRegimes, KeepsWholeCellsWhereTimeEnds) {
  const RegimeMap map = mapped(map_world(), {6}, {.deadline = deadline_in(0)});
  EXPECT_FALSE(map.outcome.complete);
  EXPECT_TRUE(map.cells.empty());
}

TEST(MapRegimes, RefusesACellBeforeAnyIsSimulated) {
  const Scenario scenario = map_world(
      R"("heads.kernel" = [{ law = "gaussian", bandwidth = 0.3 }, { law = "softmax", temperature = 1 }])");
  bool simulated = false;
  const Session session{.backend = "cpu", .report = [&](const Progress&) { simulated = true; }};
  EXPECT_THROW(map_regimes(scenario, fixed_and_rate, std::vector<int>{6}, map_sizes, session),
               InvalidInput);
  EXPECT_FALSE(simulated);
}

TEST(CellVerdict, SaysWhatWasSeen) {
  Growth growth{.left_out = {1e2, 1e3}, .ends = {12, 12}, .trend = "none seen"};
  EXPECT_EQ(cell_verdict(growth), "full dimension");
  growth.ends = {1, 1};
  EXPECT_EQ(cell_verdict(growth), "one dimension a head");
  growth.ends = {1, 12};
  EXPECT_EQ(cell_verdict(growth), "no growth seen");
  growth.trend = "rises";
  EXPECT_EQ(cell_verdict(growth), "rises");
  growth = {.n = {1, 2, 3, 4}, .trend = "rises", .fits = {{.name = "constant"}}, .verdict = "log"};
  EXPECT_EQ(cell_verdict(growth), "rises, log");
  growth.verdict = "not distinguishable";
  EXPECT_EQ(cell_verdict(growth), "rises, log or power");
  growth.trend = "none seen";
  growth.verdict = "constant";
  EXPECT_EQ(cell_verdict(growth), "no growth seen");
  growth.trend = "falls";
  EXPECT_EQ(cell_verdict(growth), "falls");
}

class WriteRegimeMap : public FolderTest {};

TEST_F(WriteRegimeMap, HoldsWhatWasFound) {
  const Scenario scenario = map_world(R"("heads.subspaces.law" = ["orthogonal", "haar"])");
  const RegimeMap map = mapped(scenario, {6});
  const std::string path = at("map.nc");
  write_regime_map(path, scenario, map, {}, "headlab allocate --map");
  {
    const NetcdfInput file(path);
    const NetcdfGroup root = file.root();
    EXPECT_EQ(root.dimension("cell"), 4u);
    EXPECT_EQ(root.doubles("n"), (std::vector<double>{20, 60, 200, 600}));
    const std::vector<double> best = root.doubles("best_dim"), ends = root.doubles("at_the_end");
    ASSERT_EQ(best.size(), 16u);
    for (std::size_t cell = 0; cell < 4; ++cell) {
      const Growth& growth = map.cells[cell].study.growth;
      std::size_t inside = 0;
      for (std::size_t i = 0; i < map_sizes.size(); ++i) {
        if (ends[4 * cell + i] == 1) continue;
        EXPECT_EQ(ends[4 * cell + i], 0);
        EXPECT_EQ(best[4 * cell + i], growth.best[inside++].value);
      }
      EXPECT_EQ(inside, growth.n.size());
    }
    EXPECT_EQ(root.shape("exponent"), (std::vector<std::size_t>{4}));
    EXPECT_EQ(root.text_attribute("command"), "headlab allocate --map");
    EXPECT_EQ(root.text_attribute("swept"), "heads.subspaces.law");
    EXPECT_TRUE(root.has_variable("heads.subspaces.law"));
  }
}

}  // namespace
}  // namespace headlab
