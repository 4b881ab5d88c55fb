// SPDX-License-Identifier: Apache-2.0
#include "engine/run/ranks.h"

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/run/message_bytes.h"
#include "engine/run/run.h"
#include "engine/testing/hand_made_result.h"
#include "engine/testing/refusal.h"
#include "engine/testing/thread_channel.h"

namespace headlab {
namespace {

Scenario ranked_scenario(const std::vector<std::string>& sets) {
  return hand_made::plane(sets, "", {"n = 30", "seed = 5", "replicates = 3001"});
}

/// Runs a scenario on ranks that are threads. `sets_of` gives each rank its scenario.
RunResult run_on_ranks(int size, const std::function<std::vector<std::string>(int)>& sets_of,
                       const RunOptions& options = {}, const Session& session = {.threads = 1}) {
  ThreadJob job(size);
  std::vector<std::jthread> others;
  for (int rank = 1; rank < size; ++rank) {
    others.emplace_back([&, rank] {
      ThreadChannel channel(job, rank);
      Ranks ranks(channel);
      try {
        RunOptions of_rank{.ranks = &ranks};
        of_rank.until = options.until;
        const RunResult none = run(ranked_scenario(sets_of(rank)), {.threads = 2}, of_rank);
        EXPECT_TRUE(none.conditions.empty());
      } catch (const std::exception& error) {
        ranks.decline(error.what());
      }
      ranks.end();
    });
  }
  ThreadChannel channel(job, 0);
  Ranks ranks(channel);
  RunOptions of_rank = options;
  of_rank.ranks = &ranks;
  RunResult result;
  try {
    result = run(ranked_scenario(sets_of(0)), session, of_rank);
  } catch (...) {
    ranks.end();
    throw;
  }
  ranks.end();
  return result;
}

RunResult run_on_ranks(int size, const std::vector<std::string>& sets,
                       const RunOptions& options = {}) {
  return run_on_ranks(
      size, [&](int) { return sets; }, options);
}

/// All numbers of the nodes and extremes of a run.
std::vector<double> numbers_of(const RunResult& result) {
  std::vector<double> all;
  for (const ConditionResult& one : result.conditions) {
    for (const Node& node : one.tree.nodes()) {
      all.push_back(static_cast<double>(node.first));
      all.push_back(static_cast<double>(node.moments.windows.narrow));
      all.insert(all.end(), node.moments.mean.begin(), node.moments.mean.end());
      all.insert(all.end(), node.moments.comoment.begin(), node.moments.comoment.end());
    }
    if (!one.tree.extremes()) continue;
    Extremes extremes = *one.tree.extremes();
    extremes.for_each([&](const ExtremeList& list) {
      for (const Extreme& extreme : list.all()) {
        all.push_back(extreme.key);
        all.push_back(static_cast<double>(extreme.replicate));
      }
    });
  }
  return all;
}

TEST(Ranks, HaveTheBitsOfOneProcess) {
  const std::vector<std::vector<std::string>> scenarios = {
      {},
      {"run.replicates=100"},
      {"run.replicates=1"},
      {"run.replicates=1600", "heads.subspaces={law=\"haar\",redraw=true}"},
      {"sweep={\"data.n\"=[10,20,40],\"heads.kernel.bandwidth\"=[0.5,1.0]}", "run.replicates=600"},
      {"heads.weights={law=\"optimal\",seed=3,replicates=128}"},
      {"run.estimator=\"plain\"", "run.moments=\"aggregate\""},
  };
  for (const std::vector<std::string>& sets : scenarios) {
    const std::vector<double> one = numbers_of(run(ranked_scenario(sets), {.threads = 1}));
    for (const int size : {1, 2, 5}) {
      const RunResult result = run_on_ranks(size, sets);
      EXPECT_TRUE(result.outcome.complete);
      EXPECT_EQ(numbers_of(result), one) << size << " ranks" << (sets.empty() ? "" : sets[0]);
    }
  }
  // Other numbers are seen.
  EXPECT_NE(numbers_of(run_on_ranks(2, {"run.seed=6"})),
            numbers_of(run(ranked_scenario({}), {.threads = 1})));
}

TEST(Ranks, RunUntilATargetIsMet) {
  const RunOptions until{.until = parse_until("mse=2%")};
  const std::vector<std::string> sets = {"run.replicates=100000"};
  const RunResult one = run(ranked_scenario(sets), {.threads = 2}, until);
  const RunResult ranked = run_on_ranks(3, sets, until);
  ASSERT_TRUE(ranked.precision);
  EXPECT_LT(ranked.conditions[0].tree.count(), 100000u);
  EXPECT_EQ(numbers_of(ranked), numbers_of(one));
}

TEST(Ranks, StopWithWhatIsThere) {
  std::atomic<bool> stop = false;
  Session session{.threads = 1, .stop = &stop};
  session.report = [&](const Progress& progress) { stop = progress.done > 0; };
  const std::vector<std::string> sets = {"run.replicates=100000000"};
  const RunResult part = run_on_ranks(
      3, [&](int) { return sets; }, {}, session);
  EXPECT_FALSE(part.outcome.complete);
  const std::uint64_t count = part.conditions.at(0).tree.whole_count();
  ASSERT_GT(count, 0u);
  const RunResult one =
      run(ranked_scenario({"run.replicates=" + std::to_string(count)}), {.threads = 2});
  EXPECT_EQ(numbers_of(part), numbers_of(one));
}

TEST(Ranks, RejectARankThatDiffers) {
  const auto other_seed = [](int rank) {
    return std::vector<std::string>{"run.seed=" + std::to_string(rank == 2 ? 1 : 0)};
  };
  EXPECT_EQ(refusal_line([&] { run_on_ranks(3, other_seed); }),
            "rank 2: reads another scenario or data file than rank 0 - give all ranks the same "
            "files");
  const auto faulty = [](int rank) {
    return std::vector<std::string>{rank == 1 ? "run.replicates=-1" : "run.seed=5"};
  };
  EXPECT_TRUE(refusal_line([&] { run_on_ranks(3, faulty); }).starts_with("rank 1: "));
}

TEST(Ranks, EndWhereRankZeroFails) {
  const auto faulty = [](int rank) {
    return std::vector<std::string>{rank == 0 ? "run.replicates=-1" : "run.seed=5"};
  };
  EXPECT_FALSE(refusal_line([&] { run_on_ranks(3, faulty); }).starts_with("rank"));
}

TEST(MessageBytes, ReadWhatWasWritten) {
  MessageWriter writer;
  writer.put(std::string("text"));
  writer.put(std::vector<double>{0.5, -1});
  writer.put(7);
  const std::string bytes = std::move(writer).bytes();
  MessageReader reader(bytes);
  EXPECT_EQ(reader.text(), "text");
  EXPECT_EQ(reader.numbers<double>(), (std::vector<double>{0.5, -1}));
  EXPECT_EQ(reader.number<int>(), 7);
  EXPECT_TRUE(reader.at_end());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    MessageReader cut(std::string_view(bytes).substr(0, size));
    EXPECT_THROW((cut.text(), cut.numbers<double>(), cut.number<int>()), std::invalid_argument);
  }
}

}  // namespace
}  // namespace headlab
