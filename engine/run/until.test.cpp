// SPDX-License-Identifier: Apache-2.0
// Runs that end by their standard error.
#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/results/results_netcdf.h"
#include "engine/run/run.h"
#include "engine/scenario/world.h"
#include "engine/testing/folder_test.h"
#include "engine/testing/hand_made_result.h"
#include "engine/testing/refusal.h"
#include "engine/testing/same_bits.h"

namespace headlab {
namespace {

Scenario until_scenario(const std::vector<std::string>& sets = {}) {
  return hand_made::plane(sets,
                          "[sweep]\n\"heads.kernel.bandwidth\" = [0.4, 0.8]\n"
                          "\"run.estimator\" = [\"plain\", \"conditional\"]\n",
                          {"replicates = 100000"});
}

RunOptions until(const std::string& text) {
  RunOptions options;
  options.until = parse_until(text);
  return options;
}

class UntilRun : public FolderTest {
 protected:
  std::string path() const { return at("results.nc"); }

  void keep(const Scenario& scenario, const RunResult& result) const {
    write_results(path(), scenario, result, {}, provenance());
  }
  RunResult resume(const Scenario& scenario, RunOptions options) const {
    Checkpoint begun = read_checkpoint(path(), scenario, provenance());
    options.begun = &begun;
    return run(scenario, {.backend = "cpu", .threads = 1}, options);
  }
};

TEST_F(UntilRun, HasTheBitsOfARunOfAsManyReplicates) {
  for (const std::string backend : {"cpu", "reference"}) {
    const RunResult result =
        run(until_scenario(), {.backend = backend, .threads = 2}, until("mse=1.5%"));
    EXPECT_TRUE(result.outcome.complete);
    ASSERT_TRUE(result.precision);
    EXPECT_TRUE(result.precision->met());
    ASSERT_GE(result.precision->looks.size(), 2u);
    const std::uint64_t replicates = result.precision->looks.back().replicates;
    EXPECT_EQ(replicates % node_replicates({}, replicates), 0u);
    for (const ConditionResult& one : result.conditions) {
      EXPECT_EQ(one.tree.count(), replicates);
      EXPECT_EQ(one.condition->replicates, replicates);
      EXPECT_LE(one.estimates.mse.mcse, 0.015 * one.estimates.mse.value);
    }
    expect_same_bits(result, run(until_scenario({"run.replicates=" + std::to_string(replicates)}),
                                 {.backend = backend}));
    // Each look follows from the one before.
    const std::vector<Look>& looks = result.precision->looks;
    EXPECT_EQ(looks[0].replicates, first_look);
    for (std::size_t i = 1; i < looks.size(); ++i) {
      EXPECT_GT(looks[i - 1].ratio, 1);
      EXPECT_EQ(looks[i].replicates, next_look(looks[i - 1].replicates, looks[i - 1].ratio));
    }
  }
}

TEST_F(UntilRun, OneConditionOrFigureDecidesWhereItAloneIsNamed) {
  const auto replicates = [&](const std::string& text) {
    return run(until_scenario(), {.backend = "cpu"}, until(text)).conditions[0].tree.count();
  };
  const std::uint64_t all = replicates("mse=1.5%");
  EXPECT_EQ(replicates("mse@#0=1.5%,mse@#1=1.5%,mse@#2=1.5%,mse@#3=1.5%"), all);
  EXPECT_LT(replicates("mse@#3=1.5%"), all);
  EXPECT_EQ(replicates("mse=99%"), first_look);
  EXPECT_GE(replicates("mse=99%,head_bias[1,0]=0.002"), 2 * first_look);
  EXPECT_GE(replicates("mse=1.5%,mse@#1=99%"), all);
}

TEST_F(UntilRun, ResumedAtAnyMomentEndsWithTheSameReplicates) {
  const Scenario scenario = until_scenario();
  const RunResult whole = run(scenario, {.backend = "cpu"}, until("mse=1.5%"));
  int stops = 0;
  // Stopped after every so many checks of the flag, between looks and within a condition.
  for (const int asked : {1, 2, 3, 5, 8, 12, 20}) {
    std::atomic<bool> stop = false;
    int reports = 0;
    RunOptions options = until("mse=1.5%");
    options.checkpoint_seconds = 0;
    options.checkpoint = [&](const RunResult&) {
      if (++reports >= asked) stop = true;
    };
    const RunResult part = run(scenario, {.backend = "cpu", .threads = 1, .stop = &stop}, options);
    if (part.outcome.complete || part.conditions.empty()) continue;
    ++stops;
    keep(scenario, part);
    const RunResult resumed = resume(scenario, until("mse=1.5%"));
    expect_same_bits(resumed, whole);
    EXPECT_EQ(resumed.precision->looks, whole.precision->looks);
  }
  EXPECT_GE(stops, 2);
}

TEST_F(UntilRun, ResumedBetweenLooksEndsWithTheSameReplicates) {
  const Scenario scenario = until_scenario();
  const RunResult whole = run(scenario, {.backend = "cpu"}, until("mse=1.5%"));
  ASSERT_GE(whole.precision->looks.size(), 2u);
  const std::uint64_t second = whole.precision->looks[1].replicates;
  // As a signal leaves them: any number of replicates, and the looks so far.
  for (const std::uint64_t count : {std::uint64_t{500}, std::uint64_t{1024}, std::uint64_t{1101},
                                    std::uint64_t{1200}, second}) {
    SCOPED_TRACE(count);
    RunResult part =
        run(until_scenario({"run.replicates=" + std::to_string(count)}), {.backend = "cpu"});
    part.outcome.complete = false;
    Precision early = whole.precision.value();
    early.looks = count > first_look ? std::vector<Look>{early.looks.front()} : std::vector<Look>();
    part.precision.emplace(std::move(early));
    keep(scenario, part);
    const RunResult resumed = resume(scenario, until("mse=1.5%"));
    expect_same_bits(resumed, whole);
    EXPECT_EQ(resumed.precision->looks, whole.precision->looks);
  }
}

TEST_F(UntilRun, LooksThatNoRunTakesAreRefused) {
  const Scenario scenario = until_scenario();
  const RunResult good = run(scenario, {.backend = "cpu"}, until("mse=5%"));
  const auto refused = [&](const std::function<void(Precision&)>& damage) {
    RunResult bad = good;
    damage(*bad.precision);
    keep(scenario, bad);
    return refusal_line([&] { resume(scenario, until("mse=5%")); }) != "accepted";
  };
  EXPECT_FALSE(refused([](Precision&) {}));
  EXPECT_TRUE(refused([](Precision& p) { p.looks.back().ratio = std::nan(""); }));
  EXPECT_TRUE(refused([](Precision& p) { p.looks.back().target = 1; }));
  EXPECT_TRUE(refused([](Precision& p) { p.looks.back().replicates = 0; }));
}

TEST_F(UntilRun, AFinishedRunIsLeftAsItIsAndMayGetANewTarget) {
  const Scenario scenario = until_scenario();
  const RunResult first = run(scenario, {.backend = "cpu"}, until("mse=5%"));
  keep(scenario, first);
  const RunResult again = resume(scenario, until("mse=5%"));
  expect_same_bits(again, first);
  EXPECT_EQ(again.precision->looks, first.precision->looks);
  // With another target the first look is at what is there.
  const RunResult tighter = resume(scenario, until("mse=1.5%"));
  EXPECT_TRUE(tighter.precision->met());
  EXPECT_EQ(tighter.precision->first, whole_nodes_from(first.conditions[0].tree.count()));
  EXPECT_GT(tighter.conditions[0].tree.count(), first.conditions[0].tree.count());
  expect_same_bits(
      tighter,
      run(until_scenario({"run.replicates=" + std::to_string(tighter.conditions[0].tree.count())}),
          {.backend = "cpu"}));
}

TEST_F(UntilRun, MissesItsTargetAtTheMostReplicatesAndGoesOnWithMore) {
  const RunResult whole = run(until_scenario(), {.backend = "cpu"}, until("mse=1.5%"));
  const Scenario few = until_scenario({"run.replicates=1501"});
  const RunResult missed = run(few, {.backend = "cpu"}, until("mse=1.5%"));
  EXPECT_TRUE(missed.outcome.complete);
  EXPECT_FALSE(missed.precision->met());
  EXPECT_EQ(missed.conditions[0].tree.count(), 1501u);
  EXPECT_EQ(missed.precision->looks.back().replicates, 1501u);
  expect_same_bits(missed, run(few, {.backend = "cpu"}));
  keep(few, missed);
  const RunResult resumed = resume(until_scenario(), until("mse=1.5%"));
  expect_same_bits(resumed, whole);
  EXPECT_EQ(resumed.precision->looks, whole.precision->looks);

  const Scenario fewer = until_scenario({"run.replicates=1000"});
  const RunResult early = run(fewer, {.backend = "cpu"}, until("mse=99%"));
  EXPECT_TRUE(early.precision->met());
  EXPECT_EQ(early.conditions[0].tree.count(), 1000u);
}

TEST_F(UntilRun, WhatIsUndefinedInTheSimulationIsCountedAndNeverMet) {
  // Without noise and signal the heads do not vary.
  const RunResult result =
      run(until_scenario({"data.regression={law=\"zero\"}", "data.noise.sd=0", "sweep={}"}),
          {.backend = "reference"}, until("mse=1%,output_correlation=0.1"));
  EXPECT_TRUE(result.outcome.complete);
  EXPECT_EQ(result.conditions[0].tree.count(), first_look);
  EXPECT_FALSE(result.precision->met());
  EXPECT_EQ(result.precision->looks.back(), (Look{first_look, 0, 0, 0, 1}));
}

TEST_F(UntilRun, TargetsThatNoRunMeetsAreRefused) {
  const auto refusal = [](const Scenario& scenario, const std::string& text) {
    return refusal_line([&] { run(scenario, {.backend = "cpu"}, until(text)); });
  };
  EXPECT_EQ(refusal(until_scenario({"sweep={}"}), "mse@#1=1%"),
            "--until: mse@#1=1%: there is no such condition (allowed: #0)");
  EXPECT_EQ(refusal(until_scenario({"run.replicates=7"}), "mse=1%"),
            "--until: 7 replicates at most: no standard errors - allow 8 or more");
  EXPECT_EQ(refusal(until_scenario({"sweep={\"run.estimator\"=[\"plain\"], "
                                    "\"heads.kernel.bandwidth\"=[1], \"run.replicates\"=[8, 9]}"}),
                    "mse=1%")
                .substr(0, 20),
            "--until: gives all c");
  EXPECT_EQ(refusal(until_scenario({"sweep={}", "run.moments=\"aggregate\""}), "index_weights=0.1"),
            "--until: index_weights=0.1: is undefined in condition #0, which has 2 queries, 2 "
            "heads and aggregate moments");
  EXPECT_EQ(refusal(until_scenario(), "index_weights=0.1"),
            "--until: index_weights=0.1: is undefined in condition #0, which has 2 queries, 2 "
            "heads and pairwise moments - name the conditions that have it, as "
            "index_weights@#1=0.1");
  EXPECT_EQ(refusal(until_scenario(), "head_bias[2,0]=1"),
            "--until: head_bias[2,0]=1: is undefined in condition #0, which has 2 queries, 2 "
            "heads and pairwise moments");
}

/// A step that one of 4299 points is beyond, with noise that is integrated.
Scenario rare_step(std::uint64_t replicates) {
  return parse_scenario(World{.regression = "{ law = 'step', direction = [1], threshold = 3.5 }",
                              .points = "[[0]]",
                              .run = "seed = 3"}
                            .text(),
                        "rare.toml", {"run.replicates=" + std::to_string(replicates)});
}

TEST_F(UntilRun, WhatDidNotOccurIsNotPrecise) {
  const RunResult missed = run(rare_step(8192), {.backend = "cpu"}, until("head_bias[0,0]=1e-5"));
  EXPECT_FALSE(missed.precision->met());
  EXPECT_EQ(missed.conditions[0].tree.count(), 8192u);
  // sqrt(2.326e-4) / 1e-5 squared.
  const RunResult met = run(rare_step(8000000), {.backend = "cpu"}, until("head_bias[0,0]=1e-5"));
  EXPECT_TRUE(met.precision->met());
  EXPECT_GT(met.conditions[0].tree.count(), 1800000u);
  EXPECT_LT(met.conditions[0].estimates.queries[0].head_bias[0].mcse, 1e-5);
}

TEST_F(UntilRun, ShareOfAFigureThatIsNoiseIsNotPrecise) {
  PrecisionTarget target = parse_until("mse=50%").at(0);
  EXPECT_GT(precision_ratio(Estimate{.value = 1, .mcse = 0.3}, target), 1);
  EXPECT_LE(precision_ratio(Estimate{.value = 1, .mcse = 0.16}, target), 1);
  target = parse_until("head_bias[0,0]=0.1").at(0);
  EXPECT_LE(precision_ratio(Estimate{.value = 0.2, .mcse = 0.1}, target), 1);
  Estimate rare{.value = 0, .mcse = 0, .carriers = 0, .allowance = 0.05};
  EXPECT_LE(precision_ratio(rare, target), 1);
  rare.allowance = 0.2;
  EXPECT_GT(precision_ratio(rare, target), 1);
}

}  // namespace
}  // namespace headlab
