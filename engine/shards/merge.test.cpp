// SPDX-License-Identifier: Apache-2.0
#include "engine/shards/merge.h"

#include <filesystem>
#include <new>
#include <random>
#include <string>
#include <vector>

#include <netcdf.h>

#include "engine/files/error.h"
#include "engine/files/netcdf/calls.h"
#include "engine/results/results_netcdf.h"
#include "engine/results/results_nodes.h"
#include "engine/run/run.h"
#include "engine/scenario/scenario.h"
#include "engine/shards/cut.h"
#include "engine/shards/shard_files.h"
#include "engine/testing/folder_test.h"

namespace headlab {
namespace {

std::string study_text(std::uint64_t replicates, const std::string& more = "",
                       const std::string& weights = "{ law = \"uniform\" }",
                       const std::string& subspaces = "{ law = \"haar\" }") {
  return "[scenario]\nname = \"shards\"\n[data]\nn = 6\n"
         "design = { law = \"normal\", dim = 3 }\n"
         "regression = { law = \"linear\", coefficients = [1, 0, 0] }\n"
         "noise = { law = \"normal\", sd = 0.5 }\n"
         "[heads]\ncount = 2\ndim = 1\nsubspaces = " +
         subspaces + "\nkernel = { law = \"gaussian\", bandwidth = 0.4 }\nweights = " + weights +
         "\n[queries]\nlaw = \"points\"\npoints = [[0.5, 0, 0]]\n[run]\nseed = 3\nreplicates = " +
         std::to_string(replicates) + "\n" + more;
}

/// What a run keeps of each condition.
struct Kept {
  std::vector<std::string> nodes;
  std::vector<std::optional<Extremes>> extremes;
  bool operator==(const Kept&) const = default;
};

Kept kept_of(const RunResult& result) {
  Kept kept;
  for (const ConditionResult& one : result.conditions) {
    kept.nodes.push_back(nodes_sha256(one.tree.nodes()));
    kept.extremes.push_back(one.tree.kept_extremes());
  }
  return kept;
}

class ShardsTest : public FolderTest {
 protected:
  Scenario parse(const std::string& text) const {
    return parse_scenario(text, "s.toml", {}, folder_.string());
  }

  /// Simulates a shard, in two goes where it is killed in between, and writes it.
  void make_shard(const Scenario& scenario, std::uint64_t shard, std::uint64_t shards, int threads,
                  const std::string& folder = "o", bool stopped = false) const {
    const Session session{.backend = "cpu", .threads = threads};
    Share share = ScenarioCut(scenario, session.backend->plans_together()).share(shard, shards);
    share.directory = folder_.string();
    const auto part = std::make_shared<const Scenario>(scenario_of(scenario, share));
    std::filesystem::create_directories(folder_ / folder);
    const std::string path = at(folder + "/" + shard_file_name(shard, shards));
    if (share.parts.empty()) {
      write_results(path, *part, {.machine = session.machine(), .share = share}, {}, provenance());
      return;
    }
    std::optional<Checkpoint> begun;
    if (stopped) {
      Session short_session = session;
      short_session.deadline = deadline_in(0.001);
      const RunResult first = run(part, short_session, {.share = &share});
      if (!first.conditions.empty()) {
        write_results(path, *part, first, {}, provenance());
        begun = read_checkpoint(path, *part, provenance(), &share);
      }
    }
    const RunResult result =
        run(part, session, {.begun = begun ? &*begun : nullptr, .share = &share});
    EXPECT_TRUE(result.outcome.complete);
    write_results(path, *part, result, {}, provenance());
  }

  RunResult merged(const std::vector<std::string>& folders, bool allow_missing = false) const {
    MergedShards all = merge_shards(folders, provenance(), allow_missing);
    return run(all.scenario, {.backend = "cpu"}, {.begun = &all.run, .simulates = false});
  }

  std::string refusal(const std::vector<std::string>& folders) const {
    return refusal_here([&] { merge_shards(folders, provenance(), false); });
  }
};

TEST_F(ShardsTest, HaveTheBitsOfOneRunInAnyLayout) {
  const std::string sweep =
      "[sweep]\n\"data.n\" = [3, 40]\n\"heads.kernel.bandwidth\" = [0.2, 0.4]\n";
  const std::vector<std::string> studies = {
      study_text(1),
      study_text(97),
      study_text(256),
      study_text(2111),
      study_text(20001),
      study_text(8, "[sweep]\n\"run.replicates\" = [8, 300, 2064]\n"),
      study_text(1001, sweep),
      study_text(64, "", "{ law = \"uniform\" }", "{ law = \"haar\", redraw = true }"),
      study_text(333, sweep, "{ law = \"optimal\", replicates = 104 }"),
      study_text(50, "", "{ law = \"uniform\" }", "{ law = \"learned\", steps = 3, batch = 4 }")};
  std::mt19937_64 random(5);
  for (std::size_t i = 0; i < studies.size(); ++i) {
    const Scenario scenario = parse(studies[i]);
    const Kept expected = kept_of(run(scenario, {.backend = "cpu", .threads = 1}));
    {
      const std::uint64_t shards = 2 + random() % 5;
      SCOPED_TRACE("study " + std::to_string(i) + ", " + std::to_string(shards) + " shards");
      const std::string folder = std::to_string(i);
      for (std::uint64_t shard = shards; shard >= 1; --shard) {
        make_shard(scenario, shard, shards, 1 + static_cast<int>(random() % 3), folder, shard == 1);
      }
      EXPECT_TRUE(kept_of(merged({at(folder)})) == expected);
    }
  }
}

TEST_F(ShardsTest, AreCutByCostBetweenConditionsAndLeaves) {
  const Scenario scenario = parse(study_text(800, "[sweep]\n\"data.n\" = [10, 30]\n"));
  const ScenarioCut cut(scenario, 16);
  EXPECT_EQ(cut.leaves(), 200u);
  // The second condition takes three quarters.
  EXPECT_EQ(cut.end_of(1, 4), 100u);
  EXPECT_EQ(cut.share(1, 4).parts.size(), 1u);
  EXPECT_EQ(cut.share(2, 2).parts,
            (std::vector<SharePart>{{1, {264, 536, 800}, cut.share(2, 2).parts[0].work}}));
  for (std::uint64_t i = 0; i <= 4; ++i) EXPECT_EQ(cut.end_of(i, 4), cut.end_of(3 * i, 12));
  // More shards than leaves: some are empty, none lacks anything.
  std::uint64_t replicates = 0;
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    for (const SharePart& part : cut.share(i, 1000).parts) replicates += part.range.replicates;
  }
  EXPECT_EQ(replicates, 1600u);
}

TEST_F(ShardsTest, OfTwoCutsJoinWhereTheyMeet) {
  const Scenario scenario = parse(study_text(2111));
  make_shard(scenario, 1, 2, 1);
  make_shard(scenario, 3, 4, 1);
  make_shard(scenario, 4, 4, 1, "other");
  EXPECT_TRUE(kept_of(merged({at("o"), at("other")})) ==
              kept_of(run(scenario, {.backend = "cpu"})));
}

TEST_F(ShardsTest, AreRefusedInOneLineWhereTheyAreNotThoseOfOneRun) {
  EXPECT_EQ(refusal({at("none")}).substr(0, 20), "none: cannot be read");
  EXPECT_TRUE(refusal({folder_.string()}).starts_with("merge: no shard in "));
  const Scenario scenario = parse(study_text(400));
  make_shard(scenario, 1, 3, 1, "a");
  make_shard(scenario, 1, 3, 1, "b");
  EXPECT_EQ(refusal({at("a")}),
            "merge: shards 2 and 3 of 3 are missing or not complete - write headlab run s.toml "
            "--shard 2/3 --out a --resume, the others likewise, or --allow-missing for what is "
            "there");
  EXPECT_EQ(refusal({at("a"), at("b")}),
            "merge: b/shard_1_of_3.nc: has replicates that a/shard_1_of_3.nc has too - leave one "
            "of them out");
  std::string other = study_text(400);
  other.replace(other.find("seed = 3"), 8, "seed = 4");
  make_shard(parse(other), 2, 3, 1, "seed");
  EXPECT_EQ(refusal({at("a"), at("seed")}),
            "merge: seed/shard_2_of_3.nc: has seed 4, and a/shard_1_of_3.nc has 3 - merge shards "
            "of one study alone");
  make_shard(parse(study_text(408)), 2, 3, 1, "more");
  EXPECT_TRUE(
      refusal({at("a"), at("more")}).starts_with("merge: more/shard_2_of_3.nc: has scenario "));
  std::filesystem::resize_file(folder_ / "b/shard_1_of_3.nc", 5000);
  EXPECT_TRUE(refusal({at("b")}).starts_with("b/shard_1_of_3.nc: cannot be read as a shard ("));
}

TEST_F(ShardsTest, OfAnotherProgramBackendOrTargetAreRefused) {
  const Scenario scenario = parse(study_text(400));
  const Session session{.backend = "cpu"};
  Share share = ScenarioCut(scenario, session.backend->plans_together()).share(2, 2);
  share.directory = folder_.string();
  const auto part = std::make_shared<const Scenario>(scenario_of(scenario, share));
  const RunResult result = run(part, session, {.share = &share});
  make_shard(scenario, 1, 2, 1, "first");
  const auto write = [&](const std::string& folder, const Machine& machine,
                         const Provenance& program) {
    std::filesystem::create_directories(folder_ / folder);
    RunResult made = result;
    made.machine = machine;
    write_results(at(folder + "/shard_2_of_2.nc"), *part, made, {}, program);
    return refusal({at("first"), at(folder)});
  };
  EXPECT_EQ(write("same", result.machine, provenance()), "accepted");

  Machine machine = result.machine;
  machine.backend = "reference";
  EXPECT_EQ(write("backend", machine, provenance()),
            "merge: backend/shard_2_of_2.nc: has backend reference, and first/shard_1_of_2.nc has "
            "cpu - merge shards of one study alone");
  machine = result.machine;
  machine.simd = "other";
  EXPECT_EQ(write("simd", machine, provenance()),
            "merge: simd/shard_2_of_2.nc: has SIMD target other, and first/shard_1_of_2.nc has " +
                result.machine.simd + " - merge shards of one study alone");
  Provenance program = provenance();
  program.git = "0123abc";
  EXPECT_EQ(write("git", result.machine, program),
            "merge: git/shard_2_of_2.nc: has git 0123abc, and first/shard_1_of_2.nc has " +
                provenance().git + " - merge shards of one study alone");
  // Shards that agree are of another program than the one that merges.
  EXPECT_THROW(merge_shards({at("first"), at("same")}, program, false), InvalidInput);
}

TEST(UnreadableShards, AreNotSaidToBeDamagedWhereMemoryMayBeShort) {
  EXPECT_THROW(check_netcdf(NC_ENOMEM, "mean"), std::bad_alloc);
  try {
    check_netcdf(NC_EHDFERR, "mean");
    FAIL();
  } catch (const NetcdfError& error) {
    EXPECT_EQ(no_shard(error),
              "cannot be read as a shard (mean: NetCDF: HDF error) - if memory is not short, "
              "remove it and make it again");
  }
  EXPECT_EQ(no_shard(NetcdfError("its share is none")),
            "cannot be read as a shard (its share is none) - if it is damaged, remove it and make "
            "it again");
}

TEST_F(ShardsTest, ThatAreThereMakeAnHonestPart) {
  const Scenario scenario = parse(study_text(2111));
  for (const std::uint64_t shard : {1, 2, 4}) make_shard(scenario, shard, 4, 1);
  const RunResult part = merged({at("o")}, true);
  EXPECT_FALSE(part.outcome.complete);
  const Share third = ScenarioCut(scenario, 16).share(3, 4);
  EXPECT_EQ(part.conditions[0].estimates.replicates, 2111 - third.parts[0].range.replicates);
}

}  // namespace
}  // namespace headlab
