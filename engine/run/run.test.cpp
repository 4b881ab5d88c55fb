// SPDX-License-Identifier: Apache-2.0
#include "engine/run/run.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "engine/files/error.h"
#include "engine/scenario/world.h"
#include "engine/testing/folder_test.h"
#include "engine/testing/same_bits.h"
#include "engine/testing/small_scenario.h"
#include "kernels/backends.h"
#include "kernels/cuda/status/status.h"
#include "kernels/testing/played_machine.h"

namespace headlab {
namespace {

MomentTree tree_of(const std::vector<std::string>& sets, const Session& session) {
  return run(small_scenario(sets), session).conditions.at(0).tree;
}

TEST(Run, GivesTheSameBitsForAnyNumberOfThreads) {
  for (const std::string estimator : {"conditional", "plain"}) {
    for (const std::string moments : {"pairwise", "aggregate"}) {
      const std::vector<std::string> sets = {"run.estimator=\"" + estimator + "\"",
                                             "run.moments=\"" + moments + "\""};
      const auto one = tree_of(sets, {.threads = 1});
      for (const int threads : {2, 3, 8})
        expect_same_bits(tree_of(sets, {.threads = threads}), one);
    }
  }
}

TEST(Run, AnotherSeedGivesOtherDrawsAndTheSameQueries) {
  const RunResult a = run(small_scenario());
  const RunResult b = run(small_scenario({"run.seed=4"}));
  EXPECT_NE(a.conditions[0].estimates.mse.value, b.conditions[0].estimates.mse.value);
  EXPECT_EQ(a.conditions[0].plan.query_points, b.conditions[0].plan.query_points);
}

TEST(Run, TheFirstReplicatesOfALongRunAreThoseOfAShortOne) {
  const auto shorter = tree_of({"run.replicates=200"}, {}).nodes();
  const auto longer = tree_of({"run.replicates=255"}, {}).nodes();
  for (std::size_t r = 0; r < 200; ++r) {
    EXPECT_EQ(shorter[r].moments.mean, longer[r].moments.mean);
  }
}

TEST(Run, GoesOnWhereItEndedWithTheBitsOfOneRun) {
  const Plan plan = make_plan(small_scenario().conditions.at(0));
  const std::unique_ptr<Backend> backend = make_backend("cpu");
  const MomentTree whole = simulate(plan, *backend, 2, 3000);
  for (const std::uint64_t first : {1, 37, 255, 256, 264, 1000, 2048}) {
    MomentTree part = simulate(plan, *backend, 2, first);
    part =
        continue_simulation(std::move(part), plan, *backend, 1, 1512 + (first > 1512 ? 1000 : 0));
    part = continue_simulation(std::move(part), plan, *backend, 2, 3000);
    expect_same_bits(part, whole);
  }
  // One replicate further is no place to stop at.
  EXPECT_THROW(continue_simulation(simulate(plan, *backend, 1, 1001), plan, *backend, 1, 2000),
               std::invalid_argument);
  Plan other = plan;
  other.moments = MomentMode::aggregate;
  EXPECT_THROW(continue_simulation(simulate(plan, *backend, 1, 8), other, *backend, 1, 16),
               std::invalid_argument);
}

TEST(Run, CpuAgreesWithReferenceFarBelowTheStandardError) {
  for (const std::string estimator : {"conditional", "plain"}) {
    const std::vector<std::string> sets = {"run.replicates=400",
                                           "run.estimator=\"" + estimator + "\""};
    const ConditionEstimates fast =
        run(small_scenario(sets), {.backend = "cpu"}).conditions[0].estimates;
    const ConditionEstimates exact =
        run(small_scenario(sets), {.backend = "reference"}).conditions[0].estimates;
    // The same draws: what is left is float32 rounding, averaged over 400 replicates.
    auto close = [](const Estimate& a, const Estimate& b) {
      return std::abs(a.value - b.value) <= 0.01 * b.mcse;
    };
    EXPECT_TRUE(close(fast.mse, exact.mse));
    EXPECT_TRUE(close(fast.bias_squared, exact.bias_squared));
    EXPECT_TRUE(close(fast.variance_term, exact.variance_term));
    EXPECT_TRUE(close(fast.covariance_term, exact.covariance_term));
    EXPECT_TRUE(close(fast.output_index, exact.output_index));
    if (estimator == "conditional") {
      EXPECT_TRUE(close(fast.weights_index, exact.weights_index));
    }
  }
}

TEST(Run, AFixedDesignLeavesTheConditionalEstimatorNothingToSimulate) {
  const ConditionEstimates e =
      run(small_scenario({"data.fixed_design=true"})).conditions[0].estimates;
  EXPECT_EQ(e.mse.mcse, 0.0);
  EXPECT_GT(e.variance_term.value, 0.0);
  // The plain estimator draws the noise and arrives at the same figures.
  const ConditionEstimates plain =
      run(small_scenario({"data.fixed_design=true", "run.estimator=\"plain\""}))
          .conditions[0]
          .estimates;
  EXPECT_TRUE(std::abs(plain.mse.value - e.mse.value) < 4.5 * plain.mse.mcse);
  EXPECT_TRUE(std::abs(plain.covariance_term.value - e.covariance_term.value) <
              4.5 * plain.covariance_term.mcse);
}

TEST(Run, StopsWhenAskedAndKeepsWhatIsDone) {
  std::atomic<bool> stop = false;
  const Session session{
      .threads = 2, .stop = &stop, .report = [&](const Progress& p) { stop = p.done > 0; }};

  const RunResult result = run(small_scenario({"run.replicates=100000000"}), session);

  ASSERT_EQ(result.conditions.size(), 1u);
  EXPECT_FALSE(result.outcome.complete);
  EXPECT_TRUE(result.outcome.interrupted);
  const std::uint64_t kept = result.conditions[0].tree.count();
  EXPECT_GT(kept, 0u);
  EXPECT_LT(kept, 100000000u);
  EXPECT_EQ(result.conditions[0].estimates.replicates, kept);
}

TEST(Run, StopsAtItsTimeLimitWithoutBeingInterrupted) {
  const RunResult result =
      run(small_scenario({"run.replicates=100000000"}), {.deadline = deadline_in(0.2)});
  EXPECT_FALSE(result.outcome.complete);
  EXPECT_FALSE(result.outcome.interrupted);
}

TEST(Run, TellsProgressInOrder) {
  std::vector<Progress> heard;

  run(small_scenario({"run.replicates=40000"}),
      {.report = [&](const Progress& progress) { heard.push_back(progress); }});

  ASSERT_FALSE(heard.empty());
  for (std::size_t i = 1; i < heard.size(); ++i) EXPECT_LE(heard[i - 1].done, heard[i].done);
  EXPECT_EQ(heard.back().done, 40000u);
  EXPECT_EQ(heard.back().total, 40000u);
  EXPECT_NEAR(heard.back().seconds_left, 0, 1e-9);
}

/// Replicates whose keys are several slabs: a backend tells more than once what it has done of one.
Scenario replicates_in_slabs() {
  return small_scenario({"data.n=60000", "heads.count=24", "heads.dim=4",
                         "heads.subspaces={ law = 'haar' }", "queries.count=1",
                         "run.replicates=100000"});
}

/// The share of the whole replicates that are done.
double whole_share(const Progress& progress) {
  return static_cast<double>(progress.done) / static_cast<double>(progress.total);
}

TEST(Run, TellsTheShareDoneOfLongReplicates) {
  for (const std::string backend : {"reference", "cpu"}) {
    std::atomic<bool> stop = false;
    double last = 0;
    int reports = 0;
    bool within = false;
    const Session session{
        .backend = backend, .threads = 1, .stop = &stop, .report = [&](const Progress& progress) {
          EXPECT_TRUE(progress.share >= last && progress.share < 1) << backend;
          last = progress.share;
          if (last > whole_share(progress)) {
            within = true;
            EXPECT_TRUE(progress.seconds_left > 0);
          }
          stop = within || ++reports == 100;
        }};
    const RunResult result = run(replicates_in_slabs(), session, {.long_replicate_seconds = 0});
    EXPECT_TRUE(within) << backend;
    EXPECT_FALSE(result.outcome.complete);
  }
}

TEST(Run, CountsWholeReplicatesWhereTheyAreShort) {
  std::atomic<bool> stop = false;
  int reports = 0;
  const Session session{.threads = 1, .stop = &stop, .report = [&](const Progress& progress) {
                          EXPECT_EQ(progress.share, whole_share(progress));
                          stop = ++reports == 5;
                        }};
  run(replicates_in_slabs(), session, {.long_replicate_seconds = 1e9});
  EXPECT_GE(reports, 5);
}

TEST(Run, ComputesNoFiguresOnTheWayThatNobodyIsShown) {
  std::vector<std::uint64_t> heard;
  Session session{.deadline = deadline_in(0.7)};
  session.report = [&](const Progress& progress) { heard.push_back(progress.done); };
  session.report_due = [] { return false; };
  const RunResult result = run(small_scenario({"run.replicates=100000000"}), session);
  // That of the end is computed anyway.
  EXPECT_EQ(heard, std::vector<std::uint64_t>{result.conditions.at(0).tree.count()});
}

TEST(Run, SmallestRunsWork) {
  for (const std::string replicates : {"1", "7", "8", "255", "256", "257"}) {
    const RunResult result = run(small_scenario({"run.replicates=" + replicates}), {.threads = 3});
    EXPECT_TRUE(result.outcome.complete);
    EXPECT_EQ(result.conditions[0].tree.count(), std::stoull(replicates));
  }
  const ConditionEstimates one_head =
      run(small_scenario({"heads.count=1", "heads.subspaces={ law = \"aligned\" }"}))
          .conditions[0]
          .estimates;
  EXPECT_EQ(one_head.covariance_term.value, 0.0);
  EXPECT_TRUE(std::isnan(one_head.head_covariance_mean.value));
  EXPECT_TRUE(std::isnan(one_head.output_index.value));
  EXPECT_TRUE(std::isnan(one_head.weights_index.value));
}

TEST(Run, GivesAConditionOfASweepTheBitsThatItHasAlone) {
  // Two groups of three: each bandwidth with both n.
  const RunResult sweep =
      run(small_scenario({"run.replicates=300", "sweep.\"heads.kernel.bandwidth\"=[0.2, 0.4, 0.8]",
                          "sweep.\"data.n\"=[30, 60]"}));
  ASSERT_EQ(sweep.conditions.size(), 6u);
  EXPECT_TRUE(sweep.outcome.complete);
  std::size_t i = 0;
  for (const std::string bandwidth : {"0.2", "0.4", "0.8"}) {
    for (const std::string n : {"30", "60"}) {
      const ConditionResult& one = sweep.conditions[i++];
      EXPECT_EQ(one.condition->swept, (std::vector<std::string>{bandwidth, n}));
      EXPECT_EQ(one.plan.n, std::stoull(n));
      expect_same_bits(one.tree, tree_of({"run.replicates=300",
                                          "heads.kernel.bandwidth=" + bandwidth, "data.n=" + n},
                                         {}));
    }
  }
}

TEST(Run, SharesTheTimeOfAGroupByWork) {
  const RunResult sweep = run(small_scenario({"sweep.\"queries.count\"=[5, 50]"}));
  const ConditionResult& a = sweep.conditions.at(0);
  const ConditionResult& b = sweep.conditions.at(1);
  EXPECT_NEAR(b.seconds / a.seconds, replicate_work(b.plan) / replicate_work(a.plan), 1e-9);
  EXPECT_DOUBLE_EQ(b.weights_per_second * b.seconds, 1500.0 * 50 * 3 * 60);
}

TEST(Run, StopsWhileManyConditionsArePlanned) {
  std::atomic<bool> stop = false;
  Session session{.threads = 1, .stop = &stop};
  std::vector<std::string> heard;
  session.report = [&](const Progress& progress) {
    heard.emplace_back(progress.what);
    stop = true;
  };
  const RunResult result =
      run(small_scenario({"run.replicates=2",
                          "sweep.\"heads.kernel.bandwidth\"={ linspace = [0.4, 0.8, 1000] }"}),
          session);
  EXPECT_EQ(result.conditions.size(), 0u);
  EXPECT_FALSE(result.outcome.complete);
  EXPECT_TRUE(result.outcome.interrupted);
  EXPECT_EQ(heard, std::vector<std::string>{"conditions checked"});
}

TEST(Run, StopsTheConditionsOfAGroupTogether) {
  std::atomic<bool> stop = false;
  Session session{.threads = 2, .stop = &stop};
  std::vector<Progress> heard;
  session.report = [&](const Progress& progress) {
    heard.push_back(progress);
    stop = progress.done > 0;
  };
  // The first and the third condition share their draws, and so do the second and the fourth.
  const RunResult result =
      run(small_scenario({"run.replicates=100000000", "sweep.\"heads.kernel.bandwidth\"=[0.4, 0.8]",
                          "sweep.\"data.n\"=[30, 60]"}),
          session);
  ASSERT_EQ(result.conditions.size(), 3u);
  EXPECT_FALSE(result.outcome.complete);
  const std::uint64_t kept = result.conditions[0].tree.count();
  EXPECT_GT(kept, 0u);
  EXPECT_EQ(result.conditions[2].tree.count(), kept);
  // The one between was not begun.
  EXPECT_EQ(result.conditions[1].tree.count(), 0u);
  EXPECT_EQ(result.conditions[1].estimates.replicates, 0u);
  EXPECT_TRUE(std::isnan(result.conditions[1].estimates.mse.value));
  ASSERT_FALSE(heard.empty());
  EXPECT_EQ(heard[0].condition, 0u);
  EXPECT_EQ(heard[0].last_condition, 2u);
  EXPECT_EQ(heard[0].together, 2u);
  EXPECT_EQ(heard[0].conditions, 4u);
}

/// A study in which the square of s(x) leaves float32 at far points, in units of what it is at the
/// others; float64 holds it.
std::vector<std::string> far_points(const std::string& path) {
  std::ofstream(path) << "0,0,0,0\n0,0,0,0\n0,0,0,0\n1e6,1e6,1e6,1e6\n1e6,1e6,1e6,1e6\n";
  return {"data.n=200", "data.design={ law = \"file\", path = \"" + path + "\" }",
          "data.noise={ law = \"heteroscedastic\", sd = 1, slope = 1e6, direction = [1e6, 1e6, "
          "1e6, 1e6] }",
          "queries.count=12", "run.replicates=64"};
}

class RunOfAFile : public FolderTest {};

TEST_F(RunOfAFile, NamesTheConditionThatIsNotFinite) {
  std::vector<std::string> sets = far_points(at("far_points.csv"));
  sets.push_back("sweep.\"heads.kernel.bandwidth\"=[0.4, 0.8]");
  EXPECT_TRUE(refusal_line<RunFailed>([&] {
                run(small_scenario(sets), {.backend = "cpu"});
              }).starts_with("condition #0: the mean squared error"));
}

TEST(Run, OptimalWeightsAreFixedBeforeTheRunAndLowerTheError) {
  const std::vector<std::string> unequal = {
      "heads.kernel={ law = \"softmax\", temperature = 0.3 }"};
  auto optimal = unequal;
  optimal.push_back("heads.weights={ law = \"optimal\" }");

  const RunResult uniform = run(small_scenario(unequal));
  const RunResult best = run(small_scenario(optimal));

  double sum = 0;
  for (const double a : best.conditions[0].plan.head_weights) sum += a;
  EXPECT_NEAR(sum, 1, 1e-12);
  EXPECT_LT(best.conditions[0].estimates.mse.value, uniform.conditions[0].estimates.mse.value);
}

/// One set of tokens that heads keep together, who are exactly alike.
ErrorTerms<Estimate> alike_with_union(int heads, const std::string& backend) {
  const std::string text = World{.n = "64",
                                 .design = "{ law = 'normal', dim = 4 }",
                                 .noise = "{ law = 'normal', sd = 1 }",
                                 .heads =
                                     "count = 2\ndim = 1\nsubspaces = { law = 'aligned' "
                                     "}\nmechanism = { keep = { top = 8, union = true } }",
                                 .kernel = "{ law = 'gaussian', bandwidth = 0.7 }",
                                 .points = "[[0.5, 0.2, 0, 0]]",
                                 .run = "seed = 1\nreplicates = 2000"}
                               .text();
  const std::vector<std::string> sets = {"heads.count=" + std::to_string(heads)};
  return run(parse_scenario(text, "alike.toml", sets), {.backend = backend, .threads = 1})
      .conditions.at(0)
      .estimates;
}

TEST(Run, HeadsThatAreAlikeKeepTogetherWhatOneKeepsAlone) {
  for (const int heads : {2, 3}) {
    const ErrorTerms<Estimate> reference = alike_with_union(heads, "reference"),
                               cpu = alike_with_union(heads, "cpu");
    // By NumPy on the same draws, to the digits given.
    EXPECT_NEAR(reference.head_variance_mean.value, 0.12503, 5e-6);
    for (const Estimate ErrorTerms<Estimate>::*const figure :
         {&ErrorTerms<Estimate>::head_variance_mean, &ErrorTerms<Estimate>::head_covariance_mean}) {
      const double exact = (reference.*figure).value;
      // As for one replicate: 40 eps, and 8 for each unit of an exponent, of which these have 20.
      EXPECT_LE(std::abs((cpu.*figure).value - exact), 200 * 0x1p-24 * exact);
      // What no weights of sum 1 fall below.
      EXPECT_GE((cpu.*figure).value, 1.0 / 64);
    }
  }
}

TEST(Run, RefusesWhatIsNotThere) {
  const cuda::Status gpu = cuda::status();
  if (!gpu.built || !gpu.problem.empty()) {
    EXPECT_THROW(run(small_scenario(), {.backend = "cuda"}), InvalidInput);
  }
  EXPECT_THROW(run(small_scenario(), {.backend = "cpuu"}), InvalidInput);
}

TEST_F(RunOfAFile, DoesNotPassOnWhatIsNotFinite) {
  const std::vector<std::string> sets = far_points(at("far_points.csv"));
  EXPECT_THROW(run(small_scenario(sets), {.backend = "cpu"}), RunFailed);
  EXPECT_TRUE(std::isfinite(
      run(small_scenario(sets), {.backend = "reference"}).conditions[0].estimates.mse.value));
}

TEST(Run, RefusesASweepWhoseResultsDoNotFitTogether) {
  const std::vector<std::string> one = {"run.replicates=255", "run.seed=0"};
  std::string seeds;
  for (int seed = 0; seed < 2000; ++seed) seeds += std::to_string(seed) + ", ";
  const Scenario sweep =
      small_scenario({"run.replicates=255", "sweep.\"run.seed\"=[" + seeds + "]"});
  const test::PlayedMachine small{{"HEADLAB_MEMORY_LIMIT", "100000000"}};
  EXPECT_NO_THROW(run(small_scenario(one)));
  EXPECT_THROW(run(sweep), InvalidInput);
}

TEST(Run, RefusesWhatDoesNotFitBeforeItStarts) {
  const test::PlayedMachine small{{"HEADLAB_MEMORY_LIMIT", "100000000"}};
  // The reference holds a whole training set.
  EXPECT_THROW(run(small_scenario({"data.n=1000000000"}), {.backend = "reference"}), InvalidInput);
  EXPECT_THROW(run(small_scenario({"queries.count=1000000"})), InvalidInput);
}

}  // namespace
}  // namespace headlab
