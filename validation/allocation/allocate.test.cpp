// SPDX-License-Identifier: Apache-2.0
#include "validation/allocation/allocate.h"

#include <atomic>
#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/files/error.h"
#include "engine/scenario/setup_laws.h"
#include "engine/scenario/world.h"
#include "engine/testing/refusal.h"
#include "validation/allocation/allocation_json.h"
#include "validation/allocation/block_runs.h"
#include "validation/statistics/intervals.h"
#include "validation/theory/theory.h"

namespace headlab {
namespace {

/// Two coordinates, of which the truth is about both: two heads of dimension 1 against one of 2.
Condition two_ways(double sd, std::uint64_t seed = 1, const std::string& stages = "{}") {
  return World{
      .n = "12",
      .design = R"({ law = "normal", dim = 2 })",
      .regression =
          R"({ law = "cosines", amplitude = [1.0], frequency = [[0.8, 0.8]], phase = [0.4] })",
      .noise = "{ law = \"normal\", sd = " + std::to_string(sd) + " }",
      .heads = "count = 2\ndim = 1\nsubspaces = { law = \"orthogonal\" }",
      .kernel = R"({ law = "gaussian", bandwidth = 0.4 })",
      .points = "[[0.5, 0.2], [-0.4, 0.7]]",
      .run = "replicates = 10"}
      .condition({"run.seed=" + std::to_string(seed), "heads.mechanism=" + stages});
}

/// Four random ways, where none is known in closed form.
Condition four_ways(std::uint64_t seed) {
  return World{.n = "30",
               .design = R"({ law = "normal", dim = 4 })",
               .regression = R"({ law = "random_cosines", terms = 16, length_scale = 2.5 })",
               .noise = R"({ law = "normal", sd = 1 })",
               .heads = "count = 1\ndim = 1\nsubspaces = { law = \"haar\" }",
               .kernel = R"({ law = "gaussian", bandwidth = 0.7 })",
               .queries = "law = \"design\"\ncount = 2",
               .run = "replicates = 10"}
      .condition({"run.seed=" + std::to_string(seed)});
}

std::vector<double> exact_errors(double sd) {
  std::vector<double> errors;
  for (Condition one : allocation_conditions(two_ways(sd), 2, BandwidthRule::fixed)) {
    one.moments = MomentMode::pairwise;
    errors.push_back(compute_theory(one, TheorySource::exact, 1).figures.mse.value);
  }
  return errors;
}

/// The noise under which both ways tie: errors are linear in its variance.
double tie() {
  const std::vector<double> none = exact_errors(1e-3), one = exact_errors(1);
  const double variance =
      (none[0] - none[1]) / ((none[0] - none[1]) - (one[0] - one[1])) * (1 - 1e-6) + 1e-6;
  return std::sqrt(variance);
}

/// Selections among `seeds` seeds in which row `best` is not in the set.
std::uint64_t misses(Condition (*world)(std::uint64_t), int budget, std::size_t best,
                     double familywise, std::uint64_t seeds) {
  std::uint64_t count = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    // Without a zone every look is made use of.
    const AllocationStudy study =
        allocate(world(seed), budget, {.backend = "cpu", .threads = 1},
                 {.replicates = 4096, .guarantee = {.alpha = familywise, .zone = 0}});
    count += study.rows.at(best).in_best_set ? 0 : 1;
  }
  return count;
}

constexpr std::uint64_t seeds = 200;
constexpr double familywise = 0.05;
constexpr double test_confidence = 0.998;

double near_tie() {
  static const double sd = 0.998 * tie();
  return sd;
}

TEST(Allocate, KeepsABestThatExactTheoryKnowsAsOftenAsSaid) {
  // Less noise than at the tie favours the head that sees more; by so little that chance decides.
  const std::vector<double> errors = exact_errors(near_tie());
  ASSERT_LT(errors[1], errors[0]);
  ASSERT_LT(errors[0] / errors[1] - 1, 2e-3);
  const auto world = [](std::uint64_t seed) { return two_ways(near_tie(), seed); };
  const std::uint64_t missed = misses(world, 2, 1, familywise, seeds);
  EXPECT_LE(clopper_pearson(missed, seeds, test_confidence).low, familywise) << missed;
  // Intervals made too narrow are found out.
  const std::uint64_t narrow = misses(world, 2, 1, 0.8, seeds);
  EXPECT_GT(clopper_pearson(narrow, seeds, test_confidence).low, familywise) << narrow;
}

TEST(Allocate, KeepsABestThatBruteForceKnowsAsOftenAsSaid) {
  std::vector<Condition> all = allocation_conditions(four_ways(0), 4, BandwidthRule::fixed);
  BlockRuns runs(all, {.backend = "cpu", .threads = 2}, std::uint64_t{1} << 30);
  const std::vector<std::size_t> members = {0, 1, 2, 3};
  runs.advance(members, 8192);
  std::size_t best = 0;
  for (const std::size_t member : members) {
    if (runs.mse(member).value < runs.mse(best).value) best = member;
  }
  for (const std::size_t member : members) {
    if (member == best) continue;
    const Estimate lead = (runs.mse(member) - runs.mse(best)).figure(runs.node_counts(member));
    ASSERT_GT(lead.value, 6 * lead.mcse) << member;
  }
  const std::uint64_t missed = misses(four_ways, 4, best, familywise, seeds);
  EXPECT_LE(clopper_pearson(missed, seeds, test_confidence).low, familywise) << missed;
}

TEST(Allocate, AgreesWithExactTheory) {
  const AllocationStudy study =
      allocate(two_ways(0.5), 2, {.threads = 2}, {.replicates = 65536, .guarantee = {.zone = 0}});
  const std::vector<double> errors = exact_errors(0.5);
  for (std::size_t i = 0; i < 2; ++i) {
    // Five standard errors.
    EXPECT_NEAR(study.rows[i].mse.value, errors[i], 5 * study.rows[i].mse.mcse);
  }
  EXPECT_EQ(study.kind, AdviceKind::best);
  EXPECT_EQ(study.advised, errors[0] < errors[1] ? 0u : 1u);
  EXPECT_NE(advice_text(study).find("the best of 2 allocations, with probability 95 % at least."),
            std::string::npos);
}

TEST(Allocate, GivesAllCandidatesTheStagesOfTheScenario) {
  // Heads that see 8 of 12 independent points are plain heads of 8 points.
  const auto study = [](const std::string& stages) {
    return allocate(two_ways(1, 1, stages), 2, {.backend = "cpu", .threads = 2},
                    {.replicates = 4096});
  };
  Condition fewer = two_ways(1);
  fewer.n = 8;
  std::vector<double> exact;
  for (Condition one : allocation_conditions(fewer, 2, BandwidthRule::fixed)) {
    one.moments = MomentMode::pairwise;
    exact.push_back(compute_theory(one, TheorySource::exact, 1).figures.mse.value);
  }
  const AllocationStudy windows = study("{window=8}");
  const AllocationStudy plain = study("{}");
  const AllocationStudy everything = study("{window=12, keep={fraction=1}}");
  for (std::size_t i = 0; i < exact.size(); ++i) {
    EXPECT_LE(std::abs(windows.rows[i].mse.value - exact[i]), 4.5 * windows.rows[i].mse.mcse);
    EXPECT_GT(std::abs(plain.rows[i].mse.value - exact[i]), 4.5 * plain.rows[i].mse.mcse);
    EXPECT_EQ(everything.rows[i].mse.value, plain.rows[i].mse.value);
  }
}

TEST(Allocate, GivesTheSameBitsForAnyNumberOfThreads) {
  const Session session{.backend = "cpu", .threads = 1};
  const AllocateOptions options{.replicates = 4096};
  const AllocationStudy one = allocate(four_ways(5), 4, session, options);
  const AllocationStudy three =
      allocate(four_ways(5), 4, {.backend = "cpu", .threads = 3}, options);
  for (std::size_t i = 0; i < one.rows.size(); ++i) {
    EXPECT_EQ(one.rows[i].mse.value, three.rows[i].mse.value);
    EXPECT_EQ(one.rows[i].mse.mcse, three.rows[i].mse.mcse);
    EXPECT_EQ(one.rows[i].in_best_set, three.rows[i].in_best_set);
  }
  EXPECT_NE(allocate(four_ways(6), 4, session, options).rows[0].mse.value, one.rows[0].mse.value);
}

TEST(Allocate, CallsATieATieOrTooClose) {
  const Condition condition = two_ways(near_tie());
  const AllocationStudy tie =
      allocate(condition, 2, {.threads = 2}, {.replicates = 16384, .guarantee = {.zone = 0.2}});
  EXPECT_EQ(tie.kind, AdviceKind::within_zone);
  EXPECT_LE(tie.largest_loss, 0.2);
  EXPECT_NE(advice_text(tie).find("none has an MSE lower by more than 20 %"), std::string::npos);

  const AllocationStudy close =
      allocate(condition, 2, {.threads = 2}, {.replicates = 2048, .guarantee = {.zone = 1e-3}});
  ASSERT_EQ(close.kind, AdviceKind::too_close);
  EXPECT_TRUE(close.outcome.complete);
  EXPECT_TRUE(close.rows[0].in_best_set && close.rows[1].in_best_set);
  EXPECT_GT(close.replicates_needed, 2048);
  EXPECT_TRUE(advice_text(close).starts_with("Too close to call: ")) << advice_text(close);
}

TEST(Allocate, OneCandidateNeedsNoSelection) {
  const AllocationStudy study = allocate(two_ways(0.5), 1, {.threads = 1}, {.replicates = 1024});
  ASSERT_EQ(study.rows.size(), 1u);
  EXPECT_EQ(study.kind, AdviceKind::best);
  EXPECT_EQ(advice_text(study), "1 head of dimension 1: there is no other allocation.");
}

TEST(Allocate, StopsWhereTimeIsUp) {
  const AllocationStudy study = allocate(two_ways(0.5), 2, {.deadline = deadline_in(0)});
  EXPECT_FALSE(study.outcome.complete);
  EXPECT_FALSE(study.outcome.interrupted);
  EXPECT_EQ(study.kind, AdviceKind::unfinished);
  EXPECT_FALSE(study.advised);
  EXPECT_EQ(advice_text(study), "Time was up before the first look: nothing is known.");
  // What is not known is null, and no number that is none gets through.
  const auto json = nlohmann::json::parse(allocation_json({{study, "again"}}, {}));
  EXPECT_TRUE(json["advice"]["heads"].is_null());
  EXPECT_TRUE(json["allocations"][0]["mse"]["value"].is_null());

  std::atomic<bool> stop = true;
  const AllocationStudy interrupted = allocate(two_ways(0.5), 2, {.stop = &stop});
  EXPECT_TRUE(interrupted.outcome.interrupted);
  EXPECT_EQ(advice_text(interrupted), "Interrupted before the first look: nothing is known.");
}

TEST(Allocate, RefusesBeforeItSimulates) {
  EXPECT_THROW(allocate(two_ways(0.5), 2, {.backend = "none"}), InvalidInput);
}

TEST(BlockRuns, RandomHeadsAreDrawnAnewAndGivenOnesAreNot) {
  // With the design fixed and the noise integrated, heads are all that is left to chance.
  Condition condition = four_ways(3);
  condition.fixed_design = true;
  for (const bool random : {true, false}) {
    if (!random) condition.subspaces = OrthogonalSubspaces{};
    BlockRuns runs(allocation_conditions(condition, 4, BandwidthRule::fixed),
                   {.backend = "cpu", .threads = 1});
    const std::vector<std::size_t> members = {1};
    runs.advance(members, 16);
    EXPECT_EQ(runs.mse(1).figure(runs.node_counts(1)).mcse > 1e-6 * runs.mse(1).value, random);
  }
}

TEST(BlockRuns, GoOnWhereTheyEnded) {
  const auto all = allocation_conditions(four_ways(3), 4, BandwidthRule::fixed);
  const Session session{.backend = "cpu", .threads = 1};
  BlockRuns whole(all, session), parts(all, session), others(all, session, 1000);
  const std::vector<std::size_t> members = {0, 1, 2, 3}, some = {1, 3};
  whole.advance(members, 12);
  parts.advance(members, 5);
  parts.advance(some, 12);
  others.advance(members, 12);
  for (const std::size_t member : some) {
    EXPECT_EQ(whole.mse(member).value, parts.mse(member).value);
    EXPECT_EQ(whole.mse(member).leave_one_out, parts.mse(member).leave_one_out);
    EXPECT_NE(whole.mse(member).value, others.mse(member).value);
  }
  EXPECT_EQ(parts.replicates(0), 5 * block_replicates);
}

}  // namespace
}  // namespace headlab
