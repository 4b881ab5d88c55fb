// SPDX-License-Identifier: Apache-2.0
// Long studies as shards, stopped and resumed: the bits of one process.
#include "engine/run/units.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/files/provenance.h"
#include "engine/scenario/world.h"
#include "engine/testing/folder_test.h"
#include "validation/allocation/allocate.h"
#include "validation/allocation/allocation_json.h"
#include "validation/allocation/regime_map.h"
#include "validation/verdicts/calibration.h"
#include "validation/verdicts/validate.h"

namespace headlab {
namespace {

class UnitStudies : public FolderTest {
 protected:
  /// Computes a study in shards, each stopped some times; then in one process that finds all.
  /// `study(session)` returns whether it was complete.
  void compute_in_shards(std::uint64_t shards, const std::function<bool(Session)>& study) {
    for (std::uint64_t shard = 1; shard <= shards; ++shard) {
      bool done = false;
      for (int tries = 0; !done && tries < 200; ++tries) {
        Units units(plan(shard, shards));
        done = study(stopped_after(units, 2 + 10 * tries));
        units.save(done);
      }
      EXPECT_TRUE(done);
    }
  }

  /// A session that ends when so many things were reported.
  Session stopped_after(Units& units, int reports) {
    stop_ = false;
    reports_left_ = reports;
    Session session{.backend = "cpu", .threads = 1, .stop = &stop_};
    session.units = &units;
    session.report = [this](const Progress&) {
      if (--reports_left_ <= 0) stop_ = true;
    };
    return session;
  }

  UnitsPlan plan(std::uint64_t shard, std::uint64_t shards) const {
    return {.folder = folder_.string(),
            .command = "test",
            .study = "one",
            .shard = shard,
            .shards = shards,
            .is_shard = shards > 1,
            .resumes = true};
  }

  /// The study with what is kept.
  Session final_session(Units& units) const {
    Session session{.backend = "cpu", .threads = 2};
    session.units = &units;
    return session;
  }

 private:
  std::atomic<bool> stop_ = false;
  std::atomic<int> reports_left_ = 0;
};

/// A study whose outcome is a function of the seed; counts how often it is asked.
CalibrationStudy counted_study(std::shared_ptr<std::atomic<int>> runs) {
  return {.rates = {{.measured = RateKind::false_alarm, .what = "a"}},
          .trials = 330,
          .trial = [runs](std::uint64_t seed) {
            ++*runs;
            return std::vector<bool>{seed % 7 == 0};
          }};
}

TEST_F(UnitStudies, CalibrateCountsAsOneProcess) {
  const auto runs = std::make_shared<std::atomic<int>>(0);
  const std::vector<CalibrationStudy> studies = {counted_study(runs), counted_study(runs)};
  const Calibration one = calibrate(studies, {.backend = "cpu", .threads = 1});
  EXPECT_EQ(*runs, 660);
  *runs = 0;
  compute_in_shards(
      3, [&](const Session& session) { return calibrate(studies, session).outcome.complete; });
  // Runs that were stopped in the middle of a unit are the only ones done twice.
  EXPECT_GE(*runs, 660);
  *runs = 0;
  Units units(plan(1, 1));
  const Calibration merged = calibrate(studies, final_session(units));
  EXPECT_EQ(*runs, 0);
  ASSERT_EQ(merged.rates.size(), one.rates.size());
  for (std::size_t r = 0; r < one.rates.size(); ++r) {
    EXPECT_EQ(merged.rates[r].count, one.rates[r].count);
    EXPECT_EQ(merged.rates[r].trials, one.rates[r].trials);
  }
  EXPECT_TRUE(merged.outcome.complete);
}

Scenario small_study(const std::string& sweep) {
  return parse_scenario(World{.n = "20",
                              .design = R"({ law = "normal", dim = 4 })",
                              .regression = R"({ law = "linear", coefficients = [1, 1, 0, 0] })",
                              .noise = R"({ law = "normal", sd = 0.5 })",
                              .heads = "count = 2\ndim = 2\nsubspaces = { law = \"haar\" }",
                              .kernel = R"({ law = "gaussian", bandwidth = 0.8 })",
                              .points = "[[0, 0, 0, 0]]",
                              .run = "seed = 7\nreplicates = 64\n"}
                                .text() +
                            sweep,
                        "units.toml");
}

TEST_F(UnitStudies, MapIsThatOfOneProcess) {
  const Scenario scenario = small_study("[sweep]\n\"heads.kernel.bandwidth\" = [0.5, 1.0]\n");
  const std::vector<BandwidthRule> rules = {BandwidthRule::fixed, BandwidthRule::tuned};
  const std::vector<int> budgets = {4};
  const std::vector<std::uint64_t> sizes = {10, 20, 40, 80};
  const AllocateOptions options{.replicates = 1024};
  const auto map = [&](const Session& session) {
    RegimeMap found = map_regimes(scenario, rules, budgets, sizes, session, options);
    found.outcome.seconds = 0;
    for (RegimeCell& cell : found.cells) cell.study.outcome.seconds = 0;
    return found;
  };
  const RegimeMap one = map({.backend = "cpu", .threads = 1});
  compute_in_shards(3, [&](const Session& session) { return map(session).outcome.complete; });
  Units units(plan(1, 1));
  EXPECT_GT(units.found(), 0u);
  const RegimeMap merged = map(final_session(units));
  EXPECT_EQ(regime_json(merged, provenance(), ""), regime_json(one, provenance(), ""));
}

TEST_F(UnitStudies, AllocationIsThatOfOneProcess) {
  const Condition base = small_study("").conditions[0];
  const AllocateOptions options{.replicates = 4096};
  const auto figures = [&](const Session& session) {
    std::vector<double> all;
    const AllocationStudy study = allocate(base, 6, session, options);
    for (const AllocationRow& row : study.rows) {
      all.insert(all.end(), {row.mse.value, row.mse.mcse, static_cast<double>(row.replicates)});
    }
    return study.outcome.complete ? all : std::vector<double>();
  };
  const std::vector<double> one = figures({.backend = "cpu", .threads = 1});
  compute_in_shards(1, [&](const Session& session) { return !figures(session).empty(); });
  Units units(plan(1, 1));
  EXPECT_GT(units.found(), 0u);
  EXPECT_EQ(figures(final_session(units)), one);
}

TEST_F(UnitStudies, VerdictsAreThoseOfOneProcess) {
  const auto effects = [&](const Session& session) {
    std::vector<double> all;
    const Validation found = validate({"angles"}, session, {.replicates = 8192});
    for (const VerdictRow& row : found.rows) {
      all.push_back(static_cast<double>(row.verdict));
      for (const Comparison& effect : row.effects) all.push_back(effect.effect.value);
    }
    return std::pair(found.outcome.complete, all);
  };
  const auto [complete, one] = effects({.backend = "cpu", .threads = 1});
  ASSERT_TRUE(complete);
  compute_in_shards(2, [&](const Session& session) { return effects(session).first; });
  Units units(plan(1, 1));
  EXPECT_GT(units.found(), 0u);
  EXPECT_EQ(effects(final_session(units)).second, one);
}

}  // namespace
}  // namespace headlab
