// SPDX-License-Identifier: Apache-2.0
// headlab dataset.
#include <filesystem>
#include <fstream>
#include <regex>
#include <signal.h>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tools/cli/testing/command_line_fixture.h"

namespace headlab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Arguments = std::vector<std::string>;

class DatasetCommand : public ProgramTest {};

TEST_F(DatasetCommand, RefusesInOneLineWithExitCodeTwo) {
  const std::string threads = " does not fit (allowed: a whole number from 1 to 4096)";
  const std::string replicates = " does not fit (allowed: a whole number from 1 to 1099511627775)";
  expect_refusals({
      {{"dataset"}, "dataset: no scenario given - write headlab dataset SCENARIO.toml"},
      {{"dataset", "a.toml", "--out", "d"},
       "dataset: no number of training sets given - write --replicates R"},
      {{"dataset", "a.toml", "--replicates", "5"}, "dataset: no folder given - write --out DIR"},
      {{"dataset", "a.toml", "--replicates", "0", "--out", "d"},
       "--replicates: \"0\"" + replicates},
      {{"dataset", "a.toml", "--replicates", "5", "--out", "d", "--shards", "0"},
       "--shards: \"0\"" + replicates},
      {{"dataset", "a.toml", "--replicates", "5", "--out", "d", "--shards", "6"},
       "--shards: is 6, more than there are replicates (allowed: 1 to 5)"},
      {{"dataset", "a.toml", "--replicates", "5", "--out", "d", "--shards", "2", "--only-shard",
        "2"},
       "--only-shard: is 2, but shards are numbered from 0 to 1"},
      {{"dataset", "a.toml", "--replicates", "5", "--out", "d", "--only-shard", "-1"},
       "--only-shard: \"-1\" does not fit (allowed: a whole number from 0 to 1099511627774)"},
      {{"dataset", "a.toml", "--replicates", "5", "--out", "d", "--format", "numpy"},
       "--format: \"numpy\" is unknown (allowed: netcdf, npy) - did you mean \"npy\"?"},
      {{"dataset", "a.toml", "--replicates", "5", "--out", "d", "--threads", "0"},
       "--threads: \"0\"" + threads},
      {{"dataset", "a.toml", "--replicates", "5", "--out", "d", "--weights=3"},
       "dataset: --weights takes no value"},
      {{"dataset", "a.toml", "--replicates", "5", "--out", ""}, "--out: is empty - give a folder"},
      {{"dataset", "a.toml", "--replicates", "5", "--out", "a.toml"},
       "--out: a.toml: is a file, not a folder - choose a place you may write to"},
      {{"dataset", "missing.toml", "--replicates", "5", "--out", "d"},
       "missing.toml: cannot be opened: No such file or directory"},
      {{"dataset", "a.toml", "--replicates", "5", "--out", "d", "--set",
        "heads.mechanism.window=10"},
       "--set heads.mechanism.window=10: heads.mechanism: cannot be given here: a data set has the "
       "weights and estimates of plain heads"},
      {{"dataset", "a.toml", "--replicates", "5", "--out", "d", "--backend", "cpu"},
       "dataset: unknown option --backend (allowed: --help, --set, --replicates, --out, "
       "--overwrite, "
       "--shards, --only-shard, --format, --estimates, --weights, --threads, --seed, --quiet)"},
  });
}

/// A data set of 40 shards that take so long that a signal always comes before they are there.
const Arguments slow_shards = {"dataset",    "a.toml",   "--replicates",
                               "20000",      "--shards", "40",
                               "--out",      "d",        "--format",
                               "npy",        "--set",    "queries={law=\"design\", count=1000}",
                               "--estimates"};

TEST_F(DatasetCommand, WritesADataSetAndKeepsItTheNextTime) {
  const Arguments arguments = {"dataset", "s.toml", "--replicates", "10",
                               "--out",   "new/d",  "--shards",     "2"};
  const ProgramResult first = headlab(arguments);
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(first.out, "");
  EXPECT_TRUE(std::regex_match(
      first.err, std::regex("headlab: 2 conditions, 4 shards, [0-9.]+ KiB to write\n"
                            "headlab: wrote 4 shards in [0-9.]+ s and new/d/manifest.json\n")))
      << first.err;
  EXPECT_EQ(files(), (std::vector<std::string>{
                         "new", "new/d", "new/d/condition_000", "new/d/condition_000/shard_000.nc",
                         "new/d/condition_000/shard_001.nc", "new/d/condition_001",
                         "new/d/condition_001/shard_000.nc", "new/d/condition_001/shard_001.nc",
                         "new/d/manifest.json"}));
  const ProgramResult second = headlab(arguments);
  EXPECT_EQ(second.code, 0);
  EXPECT_EQ(second.err,
            "headlab: 2 conditions, 4 shards, 0 bytes to write\n"
            "headlab: kept 4 shards, intact by their SHA-256\n");
  fs::resize_file(folder_ / "new/d/condition_001/shard_000.nc", 100);
  const ProgramResult third = headlab(arguments);
  EXPECT_NE(third.err.find("headlab: 1 shard missing or changed since they were written: written "
                           "again\n"),
            std::string::npos)
      << third.err;
  Arguments quiet = arguments;
  quiet.push_back("--quiet");
  EXPECT_EQ(headlab(quiet).err, "");
  quiet.insert(quiet.end(), {"--seed", "8"});
  const ProgramResult other = headlab(quiet);
  EXPECT_EQ(other.code, 2);
  EXPECT_EQ(
      other.err,
      "headlab: new/d/manifest.json: is of another data set "
      "(conditions/0/parameters/run/seed differs) - write --overwrite, or choose another folder\n");

  // Another data set of fewer shards takes its place, and nothing is left of the first one.
  const ProgramResult replaced = headlab({"dataset", "a.toml", "--replicates", "10", "--out",
                                          "new/d", "--quiet", "--format", "npy", "--overwrite"});
  EXPECT_EQ(replaced.code, 0) << replaced.err;
  std::vector<std::string> left;
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "new/d")) {
    if (entry.is_directory()) left.push_back(entry.path().filename().string());
  }
  std::sort(left.begin(), left.end());
  EXPECT_EQ(left, (std::vector<std::string>{"condition_000", "shard_000"}));
  const Json manifest = Json::parse(contents(folder_ / "new/d/manifest.json"));
  EXPECT_EQ(manifest["complete"], true);
  EXPECT_EQ(manifest["format"], "npy");
}

TEST_F(DatasetCommand, DataSetsAndRunsDoNotShareAFolder) {
  ASSERT_EQ(headlab({"run", "a.toml", "--out", "o"}).code, 0);
  ASSERT_EQ(headlab({"dataset", "a.toml", "--replicates", "2", "--out", "d"}).code, 0);
  expect_refusals({
      {{"dataset", "a.toml", "--replicates", "2", "--out", "o"},
       "--out: o/results.nc: is there already - write --overwrite, or choose another place"},
      {{"run", "a.toml", "--out", "d"},
       "--out: d/manifest.json: is there already - write --resume or --overwrite, or choose "
       "another "
       "place"},
  });
  fs::remove(folder_ / "d/manifest.json");
  const ProgramResult shard = headlab({"run", "a.toml", "--out", "d"});
  EXPECT_EQ(shard.code, 2);
  EXPECT_TRUE(shard.err.starts_with("headlab: --out: d/condition_0")) << shard.err;
}

/// The name of a file that is still being written, or nothing.
std::string half_written(const std::vector<std::string>& files) {
  for (const std::string& name : files) {
    if (name.find(".tmp-") != std::string::npos) return name;
  }
  return "";
}

TEST_F(DatasetCommand, InterruptedDataSetsLeaveNothingHalfWritten) {
  const pid_t child = start(slow_shards);
  for (int i = 0; i < 3000 && half_written(files()).empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  send(child, SIGINT);
  const ProgramResult outcome = finish(child);
  EXPECT_EQ(outcome.code, 6);
  EXPECT_TRUE(std::regex_search(
      outcome.err, std::regex("headlab: interrupted: d has \\d+ shards? of 40 - the same command "
                              "resumes there\n$")))
      << outcome.err;
  EXPECT_EQ(half_written(files()), "");
}

TEST_F(DatasetCommand, KilledDataSetsGoOn) {
  const pid_t child = start(slow_shards);
  // In the midst of a shard, whose files it leaves.
  for (int i = 0; i < 3000 && half_written(files()).empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(child, SIGKILL);
  EXPECT_EQ(finish(child).code, -1);
  const std::string left = half_written(files());
  const std::string shard = "d/condition_000/shard_";
  ASSERT_TRUE(left.starts_with(shard)) << left;
  Arguments again = slow_shards;
  again.insert(again.end(), {"--only-shard", left.substr(shard.size(), 3)});
  const ProgramResult outcome = headlab(again);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(half_written(files()), "");
  EXPECT_TRUE(fs::exists(folder_ / left.substr(0, shard.size() + 3) / "X.npy"));
}

TEST_F(DatasetCommand, DataSetsSayWhatKeepsThemFromBeingWritten) {
  fs::create_directory(folder_ / "d");
  std::ofstream(folder_ / "d/condition_000") << "in the way";
  const ProgramResult outcome = headlab(slow_shards);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(
      outcome.err.ends_with("\nheadlab: d/condition_000: cannot be written (Not a directory)\n"))
      << outcome.err;
  EXPECT_EQ(files(), (std::vector<std::string>{"d", "d/condition_000"}));
}

}  // namespace
}  // namespace headlab
