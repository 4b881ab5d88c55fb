// SPDX-License-Identifier: Apache-2.0
/// \file Runs in which heads or queries are drawn again for every leaf.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/files/netcdf/file.h"
#include "engine/moments/estimates.h"
#include "engine/results/results_netcdf.h"
#include "engine/results/results_reader.h"
#include "engine/run/run.h"
#include "engine/run/simulate.h"
#include "engine/scenario/world.h"
#include "engine/testing/folder_test.h"
#include "engine/testing/refusal.h"
#include "engine/testing/same_bits.h"
#include "kernels/backends.h"

namespace headlab {
namespace {

using Settings = std::vector<std::string>;

const std::string heads_again = "heads.subspaces={ law = \"haar\", redraw = true }";
const std::string coordinates_again = "heads.subspaces={ law = \"coordinates\", redraw = true }";
const std::string queries_again = "queries={ law = \"design\", count = 3, redraw = true }";

/// The regression varies along one of four coordinates, so that the error of a head depends on what
/// it sees of that one.
Scenario redrawn_scenario(Settings sets, const std::string& sweep = "") {
  return parse_scenario(
      World{
          .n = "25",
          .design = "{ law = 'normal', dim = 4 }",
          .regression = "{ law = 'additive', amplitude = [1, 0, 0, 0], frequency = [2, 1, 1, 1] }",
          .noise = "{ law = 'normal', sd = 0.5 }",
          .heads = "count = 2\ndim = 1\nsubspaces = { law = 'haar' }",
          .kernel = "{ law = 'gaussian', bandwidth = 0.5 }",
          .queries = "law = 'design'\ncount = 3",
          .run = "seed = 3\nreplicates = 1536"}
              .text() +
          sweep,
      "redrawn.toml", sets);
}

ConditionResult run_one(const Settings& sets, const Session& session = {.backend = "cpu"}) {
  return run(redrawn_scenario(sets), session).conditions.at(0);
}

/// The figures of every draw of a condition, each from a plan and a worker of its own.
std::vector<ErrorTerms<double>> draws_of(const Condition& condition, const Backend& backend,
                                         std::uint64_t draws) {
  std::vector<ErrorTerms<double>> all;
  for (std::uint64_t draw = 0; draw < draws; ++draw) {
    Plan plan = make_plan(condition);
    set_draw(plan, condition, draw);
    Moments leaf;
    backend.worker(plan)->run({.first = 8 * draw, .count = 8}, {&leaf, 1});
    all.push_back(error_terms(plan.layout(), leaf, plan.head_weights, plan.truth));
  }
  return all;
}

double mean_over(const std::vector<ErrorTerms<double>>& draws, double ErrorTerms<double>::*figure) {
  double sum = 0;
  for (const ErrorTerms<double>& one : draws) sum += one.*figure;
  return sum / static_cast<double>(draws.size());
}

TEST(Redraw, BeginsWithTheHeadsAndQueriesThatAreDrawnOnce) {
  for (const char* law : {"haar", "coordinates"}) {
    const std::string given = std::string("heads.subspaces={ law = \"") + law + "\", seed = 5";
    const Condition once = redrawn_scenario({given + " }"}).conditions[0];
    const Condition again =
        redrawn_scenario({given + ", redraw = true }", queries_again}).conditions[0];
    const Plan fixed = make_plan(once);
    Plan plan = make_plan(again);
    EXPECT_FALSE(fixed.redraws);
    EXPECT_TRUE(plan.redraws);
    EXPECT_EQ(plan.projections, fixed.projections);
    EXPECT_EQ(plan.query_points, fixed.query_points);
    EXPECT_EQ(plan.truth, fixed.truth);

    // Other draws are others, and a draw is the same whatever came before it.
    std::vector<Plan> draws;
    for (const std::uint64_t draw : {0u, 1u, 2u, 1u}) {
      set_draw(plan, again, draw);
      draws.push_back(plan);
    }
    EXPECT_EQ(draws[0].projections, fixed.projections);
    EXPECT_EQ(draws[1].projections, draws[3].projections);
    EXPECT_EQ(draws[1].truth, draws[3].truth);
    EXPECT_NE(draws[1].query_points, draws[0].query_points);
    EXPECT_NE(draws[1].query_points, draws[2].query_points);
    EXPECT_NE(draws[1].projections, draws[2].projections);
  }
}

TEST(Redraw, LeavesWhatIsDrawnOnceAlone) {
  const Condition condition = redrawn_scenario({heads_again}).conditions[0];
  const Plan first = make_plan(condition);
  Plan plan = first;
  set_draw(plan, condition, 7);
  EXPECT_NE(plan.projections, first.projections);
  EXPECT_EQ(plan.query_points, first.query_points);
  const Condition queries = redrawn_scenario({queries_again}).conditions[0];
  plan = make_plan(queries);
  set_draw(plan, queries, 7);
  EXPECT_EQ(plan.projections, first.projections);
  EXPECT_NE(plan.query_points, first.query_points);
  EXPECT_NE(plan.truth, first.truth);
}

TEST(Redraw, GivesTheMeansOverDrawsOfTheFiguresGivenTheDraw) {
  const auto backend = make_backend("reference");
  const std::vector<Settings> all = {
      {heads_again},
      {coordinates_again},
      {queries_again, "run.estimator=\"plain\""},
      {heads_again, queries_again, "run.moments=\"aggregate\""},
      {heads_again, "heads.weights={ law = \"explicit\", values = [0.7, 0.5] }"},
      {heads_again, "heads.count=1"}};
  for (Settings sets : all) {
    SCOPED_TRACE(sets[0] + " " + sets.back());
    sets.push_back("run.replicates=160");
    const ConditionResult one = run_one(sets, {.backend = "reference"});
    const auto draws = draws_of(*one.condition, *backend, 20);
    const auto expect = [&](const Estimate& figure, double ErrorTerms<double>::*of) {
      EXPECT_NEAR(figure.value / mean_over(draws, of), 1, 1e-12);
      // Over draws alone: a standard error of a mean of 20 independent numbers.
      double square = 0;
      for (const auto& draw : draws) square += std::pow(draw.*of - figure.value, 2);
      EXPECT_NEAR(figure.mcse / std::sqrt(square / 19 / 20), 1, 1e-9);
    };
    const ConditionEstimates& e = one.estimates;
    expect(e.mse, &ErrorTerms<double>::mse);
    expect(e.bias_squared, &ErrorTerms<double>::bias_squared);
    expect(e.bias_squared_plugin, &ErrorTerms<double>::bias_squared_plugin);
    expect(e.variance_term, &ErrorTerms<double>::variance_term);
    expect(e.head_variance_mean, &ErrorTerms<double>::head_variance_mean);
    if (one.plan.heads == 1) {
      EXPECT_TRUE(std::isnan(e.head_covariance_mean.value));
      EXPECT_TRUE(std::isnan(e.output_correlation.value));
    } else {
      expect(e.covariance_term, &ErrorTerms<double>::covariance_term);
      // A ratio of means, not a mean of ratios.
      const double c = mean_over(draws, &ErrorTerms<double>::head_covariance_mean);
      const double v = mean_over(draws, &ErrorTerms<double>::head_variance_mean);
      EXPECT_NEAR(e.output_correlation.value, c / v, 1e-12);
      EXPECT_GT(e.output_correlation.mcse, 0);
    }
    if (one.tree.layout().has_alignment()) {
      expect(e.weights_index, &ErrorTerms<double>::weights_index);
    } else {
      EXPECT_TRUE(std::isnan(e.weights_index.value));
    }
    EXPECT_TRUE(e.queries.empty());
    EXPECT_TRUE(std::isnan(e.mse_query_se));
  }
}

TEST(Redraw, HasTheMeanOfRunsThatDrawOnce) {
  // 60 runs with heads, queries and training sets of their own.
  std::vector<double> errors;
  for (int seed = 0; seed < 60; ++seed) {
    const std::string text = std::to_string(100 + seed);
    errors.push_back(run_one({"heads.subspaces={ law = \"haar\", seed = " + text + " }",
                              "queries.seed=" + text, "run.seed=" + text, "run.replicates=256"})
                         .estimates.mse.value);
  }
  const double mean = std::accumulate(errors.begin(), errors.end(), 0.0) / 60;
  double square = 0;
  for (const double error : errors) square += (error - mean) * (error - mean);
  const Estimate redrawn =
      run_one({heads_again, queries_again, "run.replicates=8192"}).estimates.mse;
  const double scale = std::hypot(redrawn.mcse, std::sqrt(square / 59 / 60));
  EXPECT_LT(std::abs(redrawn.value - mean), 4 * scale);
  // One draw is somewhere else: the test would see it.
  EXPECT_GT(std::sqrt(square / 59), 10 * redrawn.mcse);
}

/// Share of `studies` small studies whose 95 % interval for the mean squared error holds `truth`.
double coverage(Settings sets, const std::string& law, double truth, int studies) {
  int covered = 0;
  sets.insert(sets.end(), {"run.replicates=512", "run.estimator=\"conditional\""});
  for (int study = 0; study < studies; ++study) {
    const std::string seed = std::to_string(1000 + study);
    Settings of_study = sets;
    of_study.push_back("heads.subspaces={ law = \"haar\", " + law + "seed = " + seed + " }");
    of_study.push_back("run.seed=" + seed);
    const ConditionEstimates e = run_one(of_study, {.backend = "cpu", .threads = 1}).estimates;
    constexpr double quantile_of_63 = 1.9983;  // of Student's t, 0.975
    EXPECT_EQ(e.nodes(), 64);
    const double half = quantile_of_63 * e.mse.mcse;
    covered += std::abs(e.mse.value - truth) <= half ? 1 : 0;
  }
  return static_cast<double>(covered) / studies;
}

TEST(Redraw, StandardErrorsCoverTheDrawOfTheHeads) {
  constexpr int studies = 200;
  const Estimate truth =
      run_one({heads_again, "run.replicates=200000", "run.seed=77"}).estimates.mse;
  const double binomial = std::sqrt(0.95 * 0.05 / studies);
  EXPECT_NEAR(coverage({}, "redraw = true, ", truth.value, studies), 0.95, 3 * binomial);
  // Heads that are drawn once are somewhere else, which their standard error does not know.
  EXPECT_LT(coverage({}, "", truth.value, studies), 0.5);
}

TEST(Redraw, HasTheSameBitsForAnyNumberOfThreads) {
  for (const Settings& sets : {Settings{heads_again}, Settings{heads_again, queries_again}}) {
    const ConditionResult one = run_one(sets, {.backend = "cpu", .threads = 1});
    const ConditionResult four = run_one(sets, {.backend = "cpu", .threads = 4});
    expect_same_nodes(one.tree, four.tree);
    EXPECT_EQ(one.estimates.mse.value, four.estimates.mse.value);
    EXPECT_EQ(one.estimates.mse.mcse, four.estimates.mse.mcse);
  }
}

/// The cpu backend with another opinion on how much work is worth handing out at once.
class LargeBlocks : public Backend {
 public:
  std::string name() const override { return cpu_->name(); }
  std::string simd() const override { return cpu_->simd(); }
  std::string device() const override { return cpu_->device(); }
  int workers(int threads) const override { return threads; }
  double block_work() const override { return 1e12; }
  std::uint64_t worker_bytes(Plans plans) const override { return cpu_->worker_bytes(plans); }
  std::unique_ptr<Worker> worker(Plans plans) const override { return cpu_->worker(plans); }

 private:
  std::unique_ptr<Backend> cpu_ = make_backend("cpu");
};

SimulationHooks draw_hooks(const std::vector<Condition>& conditions) {
  return {.set_draw = [&conditions](Plan& plan, std::size_t p, std::uint64_t draw) {
    set_draw(plan, conditions[p], draw);
  }};
}

TEST(Redraw, HasTheSameBitsForBlocksOfAnySize) {
  const std::vector<Condition> conditions =
      redrawn_scenario({heads_again, queries_again}).conditions;
  const Plan plan = make_plan(conditions[0]);
  for (const std::uint64_t replicates : {136u, 2936u}) {
    expect_same_nodes(simulate(plan, LargeBlocks(), 2, replicates, draw_hooks(conditions)),
                      simulate(plan, *make_backend("cpu"), 1, replicates, draw_hooks(conditions)));
  }
}

TEST(Redraw, HasTheSameBitsAloneAndWithOthers) {
  const std::string sweep = "[sweep]\n\"heads.kernel.bandwidth\" = [0.3, 0.6, 1.2]\n";
  const Scenario scenario = redrawn_scenario({heads_again, queries_again}, sweep);
  const RunResult together = run(scenario, {.backend = "cpu"});
  for (std::size_t i = 0; i < 3; ++i) {
    const std::vector<Condition> alone = {scenario.conditions[i]};
    expect_same_nodes(
        together.conditions[i].tree,
        simulate(make_plan(alone[0]), *make_backend("cpu"), 1, 1536, draw_hooks(alone)));
  }
}

TEST(Redraw, KeepsConditionsPaired) {
  const Scenario scenario = redrawn_scenario({heads_again, queries_again},
                                             "[sweep]\n\"heads.kernel.bandwidth\" = [0.5, 0.6]\n");
  const RunResult result = run(scenario, {.backend = "cpu"});
  std::vector<JackknifedEstimates> both;
  for (const ConditionResult& one : result.conditions) {
    both.push_back(jackknifed_estimates(one.tree, one.plan.head_weights, one.plan.truth));
  }
  const Estimate difference = (both[0].mse - both[1].mse).figure(both[0].node_counts);
  const Estimate first = both[0].mse.figure(both[0].node_counts);
  EXPECT_GT(difference.mcse, 0);
  EXPECT_LT(difference.mcse, 0.5 * first.mcse);
}

TEST(Redraw, AgreesOnEveryBackend) {
  for (const Settings& sets :
       {Settings{heads_again, queries_again}, Settings{heads_again, "run.estimator=\"plain\""},
        Settings{coordinates_again, queries_again, "run.moments=\"aggregate\""}}) {
    Settings few = sets;
    few.push_back("run.replicates=256");
    const ConditionEstimates reference = run_one(few, {.backend = "reference"}).estimates;
    const ConditionEstimates cpu = run_one(few, {.backend = "cpu"}).estimates;
    const auto expected = numbers_of<Estimate>(reference);
    const auto found = numbers_of<Estimate>(cpu);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const Estimate& figure = *expected[i].number;
      // Draws are the same: what differs is float32.
      EXPECT_NEAR(found[i].number->value, figure.value, 1e-5 * std::abs(figure.value) + 1e-6)
          << expected[i].name;
      EXPECT_NEAR(found[i].number->mcse, figure.mcse, 1e-4 * figure.mcse) << expected[i].name;
    }
  }
}

TEST(Redraw, LearnsHeadsAndRedrawsQueries) {
  const std::string learned = "heads.subspaces={ law = \"learned\", fit = \"FIT\", steps = 10 }";
  for (const std::string fit : {"once", "per_replicate"}) {
    std::string law = learned;
    law.replace(law.find("FIT"), 3, fit);
    const ConditionResult one =
        run_one({law, queries_again, "run.estimator=\"plain\"", "run.replicates=128"});
    EXPECT_EQ(one.estimates.replicates, 128u);
    EXPECT_GT(one.estimates.mse.value, 0);
    EXPECT_GT(one.estimates.mse.mcse, 0);
  }
}

TEST(Redraw, HasNoStandardErrorBelow16Draws) {
  const ConditionEstimates fifteen = run_one({heads_again, "run.replicates=120"}).estimates;
  EXPECT_GT(fifteen.mse.value, 0);
  EXPECT_TRUE(std::isnan(fifteen.mse.mcse));
  EXPECT_TRUE(std::isnan(fifteen.output_correlation.mcse));
  EXPECT_GT(run_one({heads_again, "run.replicates=128"}).estimates.mse.mcse, 0);
}

TEST(Redraw, KeepsWholeLeavesAndAtMost128OfThem) {
  const auto counts = [](std::uint64_t replicates) {
    std::vector<std::uint64_t> all;
    const ConditionResult one =
        run_one({heads_again, "run.replicates=" + std::to_string(replicates)});
    for (const Node& node : one.tree.nodes()) all.push_back(node.moments.count);
    return all;
  };
  EXPECT_EQ(counts(48), std::vector<std::uint64_t>(6, 8));
  EXPECT_EQ(counts(1024), std::vector<std::uint64_t>(128, 8));
  std::vector<std::uint64_t> more(64, 16);
  more.push_back(8);
  EXPECT_EQ(counts(1032), more);
}

TEST(Redraw, RefusesAPartOfADrawAndPlansWithoutDraws) {
  const std::vector<Condition> conditions = redrawn_scenario({heads_again}).conditions;
  const Plan plan = make_plan(conditions[0]);
  const auto backend = make_backend("cpu");
  EXPECT_THROW(simulate(plan, *backend, 1, 12, draw_hooks(conditions)), std::invalid_argument);
  EXPECT_THROW(simulate(plan, *backend, 1, 16), std::invalid_argument);
  MomentTree tree(plan.kept_layout());
  Moments part{
      .count = 4, .mean = std::vector<double>(draw_statistics), .comoment = {}, .windows = {}};
  EXPECT_THROW(tree.append(part), std::invalid_argument);
  EXPECT_THROW(MomentTree(plan.kept_layout(), {{0, part}}), std::invalid_argument);
  part.count = 8;
  tree.append(part);
  EXPECT_EQ(tree.count(), 8u);
}

class RedrawResume : public FolderTest {};

TEST_F(RedrawResume, GivesTheBitsOfOneRun) {
  const Settings sets = {heads_again, queries_again};
  const Session session{.backend = "cpu"};
  const ConditionResult straight = run_one(sets, session);
  for (const std::uint64_t first : {8u, 248u, 256u, 1032u}) {
    const Scenario part = [&] {
      Settings fewer = sets;
      fewer.push_back("run.replicates=" + std::to_string(first));
      return redrawn_scenario(fewer);
    }();
    const RunResult begun = run(part, session);
    write_results(at("results.nc"), part, begun, {}, provenance());
    const StoredCondition stored = read_nodes(at("results.nc"), 0);
    expect_same_nodes(MomentTree(stored.layout, stored.nodes), begun.conditions[0].tree);
    const Scenario whole = redrawn_scenario(sets);
    Checkpoint checkpoint = read_checkpoint(at("results.nc"), whole, provenance());
    const RunResult resumed = run(whole, session, {.begun = &checkpoint});
    expect_same_nodes(resumed.conditions[0].tree, straight.tree);
    EXPECT_EQ(resumed.conditions[0].estimates.mse.mcse, straight.estimates.mse.mcse);
  }
}

TEST_F(RedrawResume, RefusesResultsOfHeadsDrawnOnce) {
  const Scenario once = redrawn_scenario({});
  write_results(at("results.nc"), once, run(once, {.backend = "cpu"}), {}, provenance());
  EXPECT_PRED_FORMAT2(
      testing::IsSubstring, "heads.subspaces.redraw was not given and is true", refusal_line([&] {
        read_checkpoint(at("results.nc"), redrawn_scenario({heads_again}), provenance());
      }));
}

TEST_F(RedrawResume, KeepsNullForHeadsPairsAndQueries) {
  // Conditions that redraw and one that does not, in one file.
  const Scenario scenario = redrawn_scenario(
      {"run.replicates=256"},
      "[sweep]\n\"heads.subspaces\" = [{ law = \"haar\" }, { law = \"haar\", redraw = true }]\n"
      "\"queries.redraw\" = [false, true]\n");
  const RunResult result = run(scenario, {.backend = "cpu"});
  write_results(at("results.nc"), scenario, result, {}, provenance());
  for (std::size_t i = 0; i < 4; ++i) {
    const StoredCondition stored = read_nodes(at("results.nc"), i);
    EXPECT_EQ(stored.layout, result.conditions[i].tree.layout());
    expect_same_nodes(MomentTree(stored.layout, stored.nodes), result.conditions[i].tree);
  }
  const NetcdfInput file(at("results.nc"));
  EXPECT_EQ(file.root().texts("redraw"),
            (std::vector<std::string>{"", "queries", "heads", "heads and queries"}));
  const NetcdfGroup redrawn = results_blocks(file.root()).at(1).group;
  EXPECT_EQ(redrawn.integers("condition"), (std::vector<std::int64_t>{1, 2, 3}));
  const auto all_nan = [&](const char* name, std::size_t row, std::size_t rows) {
    const std::vector<double> all = redrawn.doubles(name);
    const std::size_t size = all.size() / rows;
    return std::ranges::all_of(std::span(all).subspan(row * size, size),
                               [](double x) { return std::isnan(x); });
  };
  for (std::size_t row = 0; row < 3; ++row) {
    for (const char* name : {"query_mse", "query_mse_mcse", "head_bias", "head_bias_mcse"}) {
      EXPECT_TRUE(all_nan(name, row, 3)) << name << row;
    }
    // Points that are drawn once are known, and so are such heads.
    EXPECT_EQ(all_nan("x", row, 3), row != 1) << row;
    EXPECT_EQ(all_nan("truth", row, 3), row != 1) << row;
    EXPECT_EQ(all_nan("projections", row, 3), row != 0) << row;
  }
}

}  // namespace
}  // namespace headlab
