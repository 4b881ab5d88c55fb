// SPDX-License-Identifier: Apache-2.0
// headlab dataset.
#include <filesystem>
#include <regex>
#include <signal.h>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tools/cli/testing/command_line_fixture.h"

namespace headlab {
namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

class DatasetCommand : public ProgramTest {};

/// A data set of 40 shards that take so long that a signal always comes before they are there.
const Arguments slow_shards = {"dataset",    "a.toml",   "--replicates",
                               "20000",      "--shards", "40",
                               "--out",      "d",        "--format",
                               "npy",        "--set",    "queries={law=\"design\", count=1000}",
                               "--estimates"};

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

}  // namespace
}  // namespace headlab
