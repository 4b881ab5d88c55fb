// SPDX-License-Identifier: Apache-2.0
// Shards by the program itself, killed, merged, and used wrongly.
#include <regex>

#include <nlohmann/json.hpp>

#include "tools/cli/testing/command_line_fixture.h"

namespace headlab {
namespace {

namespace fs = std::filesystem;

class ShardsCommand : public ProgramTest {};

TEST_F(ShardsCommand, EndAKilledStudyWithTheBitsOfOneRun) {
  const auto started = [&](const std::string& replicates, const std::string& out) {
    const pid_t child = start({"run", "s.toml", "--replicates", replicates, "--shard", "1/3",
                               "--out", out, "--checkpoint", "0.05", "--threads", "1"});
    for (int i = 0; i < 3000 && !fs::exists(folder_ / out / "shard_1_of_3.nc"); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return child;
  };
  // A second writer of a shard is kept out while the first, which never ends, is at work.
  const std::string endless = "4000000000";
  const pid_t first = started(endless, "busy");
  const ProgramResult refused = headlab(
      {"run", "s.toml", "--replicates", endless, "--shard", "1/3", "--out", "busy", "--resume"});
  EXPECT_EQ(refused.code, 2);
  // The table says which of them are at work, before there is a file too.
  const auto is_running = [&](const std::string& out) {
    return std::regex_search(headlab({"status", out}).out, std::regex("1/3 +running"));
  };
  EXPECT_TRUE(is_running("busy"));
  const pid_t early = start({"run", "s.toml", "--replicates", endless, "--shard", "1/3", "--out",
                             "early", "--threads", "1"});
  for (int i = 0; i < 3000 && !is_running("early"); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(is_running("early"));
  EXPECT_FALSE(fs::exists(folder_ / "early/shard_1_of_3.nc"));
  ::kill(early, SIGKILL);
  finish(early);
  EXPECT_FALSE(is_running("early"));
  EXPECT_EQ(refused.err,
            "headlab: --out: busy: another task is writing shard_1_of_3.nc - wait for it, or "
            "choose another folder\n");
  ::kill(first, SIGKILL);
  EXPECT_EQ(finish(first).code, -1);
  // One that resumes waits for a stopped one to end.
  const pid_t stopped = started(endless, "again");
  const pid_t resumed = start({"run", "s.toml", "--replicates", endless, "--shard", "1/3", "--out",
                               "again", "--threads", "1", "--resume"});
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  ::kill(stopped, SIGTERM);
  EXPECT_EQ(finish(stopped).code, 6);
  for (int i = 0; i < 3000 && !is_running("again"); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(is_running("again"));
  ::kill(resumed, SIGTERM);
  EXPECT_EQ(finish(resumed).code, 6);

  const std::string many = "400000";
  const pid_t child = started(many, "o");
  ::kill(child, SIGKILL);
  finish(child);  // killed, or done on a fast machine
  for (const std::string shard : {"3/3", "2/3", "1/3"}) {
    EXPECT_EQ(
        headlab({"run", "s.toml", "--replicates", many, "--shard", shard, "--out", "o", "--resume"})
            .code,
        0);
  }
  EXPECT_EQ(headlab({"status", "o"}).code, 0);
  EXPECT_EQ(headlab({"merge", "o", "--out", "m"}).code, 0);
  EXPECT_EQ(headlab({"run", "s.toml", "--replicates", "400100", "--out", "m", "--resume"}).code, 0);
  EXPECT_EQ(headlab({"run", "s.toml", "--replicates", "400100", "--out", "w"}).code, 0);
  const ProgramResult same = headlab({"diff", "m", "w"});
  EXPECT_NE(same.out.find("same bits: nodes and figures"), std::string::npos) << same.out;
}

// A target has the name that chose it, and bits of its own.
TEST_F(ShardsCommand, ANamedTargetIsTheOneThatRuns) {
  std::vector<nlohmann::json> results;
  for (const char* const simd : {"portable", "avx2"}) {
    const ProgramResult one = headlab({"run", "a.toml", "--simd", simd, "--json", "-"});
    if (std::string(simd) == "avx2" &&
        one.err.find("this machine has no AVX2") != std::string::npos)
      break;
    results.push_back(nlohmann::json::parse(one.out));
  }
  EXPECT_EQ(results[0]["headlab"]["simd"], "portable");
  if (results.size() == 2) {
    EXPECT_EQ(results[1]["headlab"]["simd"], "AVX2");
    EXPECT_NE(results[0]["conditions"][0]["mse"]["value"],
              results[1]["conditions"][0]["mse"]["value"]);
  }
}

}  // namespace
}  // namespace headlab
