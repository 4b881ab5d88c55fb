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

TEST_F(ShardsCommand, SayInOneLineWhatIsWrong) {
  ASSERT_EQ(headlab({"run", "a.toml", "--shard", "1/2", "--out", "o"}).code, 0);
  ASSERT_EQ(headlab({"run", "a.toml", "--out", "w", "--quiet"}).code, 0);
  ASSERT_EQ(
      headlab({"run", "a.toml", "--replicates", "8", "--shard", "3/2000", "--out", "begun"}).code,
      0);
  ASSERT_EQ(headlab({"run", "a.toml", "--shard", "3/4", "--out", "quarters"}).code, 0);
  expect_refusals({
      {{"run", "a.toml", "--shard", "1/2"}, "--shard: needs --out DIR, the folder of all shards"},
      {{"run", "a.toml", "--shard", "1/2", "--out", "o"},
       "--out: o/shard_1_of_2.nc: is there already - write --resume or --overwrite, or choose "
       "another place"},
      {{"run", "a.toml", "--shard", "1/4", "--out", "o"},
       "--shard: o has shards of 2, not of 4 - write --shard I/2, or choose another folder"},
      {{"run", "a.toml", "--seed", "8", "--shard", "2/2", "--out", "o"},
       "--shard: o/shard_1_of_2.nc: is of another scenario, seed or number of replicates - choose "
       "another folder"},
      {{"run", "a.toml", "--out", "o", "--resume"},
       "--out: o has shards of a study - join them with headlab merge o --out DIR, or choose "
       "another folder"},
      {{"run", "a.toml", "--shard", "1/2", "--out", "w"},
       "--shard: w has results.nc, the results of a run - choose another folder"},
      {{"merge", "begun", "--out", "m", "--allow-missing"},
       "merge: no shard in begun has replicates - wait for the first"},
      {{"run", "a.toml", "--seed", "8", "--shard", "1/2", "--out", "o", "--resume", "--quiet"},
       "--resume: o/shard_1_of_2.nc: is a shard of another scenario, seed or number of "
       "replicates - choose another folder, or write --overwrite instead to replace the results "
       "there"},
      {{"run", "a.toml", "--shard", "1/2", "--out", "o", "--until", "mse=1%"},
       "--until: not with --shard - one shard does not know the standard errors of all"},
      {{"merge", "o", "--out", "m"},
       "merge: shard 2 of 2 is missing or not complete - write headlab run a.toml --shard 2/2 "
       "--out o --resume, or --allow-missing for what is there"},
      {{"merge", "o", "o", "--out", "m"}, "merge: o is given twice - leave one of them out"},
      {{"merge", "o", "quarters", "--out", "m"},
       "merge: shard 4 of 4 is missing or not complete - write headlab run a.toml --shard 4/4 "
       "--out quarters --resume, or --allow-missing for what is there"},
      {{"merge"}, "merge: no folder given - write headlab merge DIR --out DIR2"},
      {{"run", "a.toml", "--simd", "sse"},
       "--simd: \"sse\" is unknown (allowed: avx2, avx512, portable)"},
      {{"run", "a.toml", "--simd", "portable", "--backend", "reference"},
       "--simd: is of the backend cpu, and this one is reference - leave it out, or write "
       "--backend cpu"},
  });
  EXPECT_EQ(headlab({"run", "a.toml", "--shard", "1/2", "--out", "/proc/headlab"}).code, 2);
  const ProgramResult other_backend =
      headlab({"run", "a.toml", "--backend", "reference", "--shard", "2/2", "--out", "o"});
  EXPECT_EQ(other_backend.code, 2);
  EXPECT_TRUE(other_backend.err.starts_with("headlab: --shard: o/shard_1_of_2.nc: is by cpu/"))
      << other_backend.err;

  // A target has the name that chose it, and bits of its own.
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

  // A share without replicates is rejected for what the others are rejected for.
  const std::vector<std::string> before = files();
  for (const std::string share : {"1/8", "4/8"}) {
    const ProgramResult large =
        headlab({"run", "a.toml", "--replicates", "2", "--shard", share, "--out", "large",
                 "--quiet", "--set", "heads.count=1024", "--set", "heads.subspaces={law=\"haar\"}",
                 "--set", "queries={law=\"design\",count=1000000}"});
    EXPECT_EQ(large.code, 2) << share;
    EXPECT_NE(large.err.find(": queries.count: needs "), std::string::npos) << large.err;
  }
  EXPECT_EQ(files(), before);

  // A complete one is left as it is.
  const fs::path shard = folder_ / "o/shard_1_of_2.nc";
  const auto written = fs::last_write_time(shard);
  const ProgramResult again =
      headlab({"run", "a.toml", "--shard", "1/2", "--out", "o", "--resume"});
  EXPECT_EQ(again.code, 0);
  EXPECT_TRUE(again.err.ends_with("headlab: complete already: o/shard_1_of_2.nc\n")) << again.err;
  EXPECT_EQ(fs::last_write_time(shard), written);
  // A file whose name is written in another way is ignored.
  fs::copy_file(shard, folder_ / "o/shard_01_of_2.nc");
  const ProgramResult one_of_two = headlab({"status", "o"});
  EXPECT_EQ(one_of_two.code, 0);
  EXPECT_NE(one_of_two.out.find("1 of 2 shards not begun"), std::string::npos) << one_of_two.out;
  fs::remove(folder_ / "o/shard_01_of_2.nc");

  fs::last_write_time(shard, fs::file_time_type::clock::now() + std::chrono::hours(2));
  const ProgramResult set_back = headlab({"status", "o"});
  EXPECT_EQ(set_back.code, 0);
  EXPECT_EQ(set_back.err,
            "headlab: o/shard_1_of_2.nc: was written in the future: a clock was set back, which "
            "changes no result\n");
  fs::copy_file(shard, folder_ / "o/shard_2_of_2.nc");
  const ProgramResult renamed = headlab({"status", "o"});
  EXPECT_EQ(renamed.code, 2);
  EXPECT_NE(renamed.err.find(
                "(it holds shard_1_of_2.nc) - if it is damaged, remove it and make it again"),
            std::string::npos)
      << renamed.err;
  expect_refusals(
      {{{"run", "a.toml", "--shard", "2/2", "--out", "o", "--resume", "--quiet"},
        "--resume: o/shard_2_of_2.nc: holds shard 1 of 2 of this study, not shard 2 of 2 - choose "
        "another folder, or write --overwrite instead to replace the results there"}});
  fs::remove(folder_ / "o/shard_2_of_2.nc");
  fs::resize_file(shard, 100);
  const ProgramResult damaged = headlab({"status", "o"});
  EXPECT_EQ(damaged.code, 2);
  EXPECT_TRUE(
      damaged.err.starts_with("headlab: status: o/shard_1_of_2.nc: cannot be read as a shard ("))
      << damaged.err;
}

TEST_F(ShardsCommand, OfAScenarioFromStandardInputAreMadeByTheCommandThatMergeNames) {
  input_ = (folder_ / "a.toml").string();
  ASSERT_EQ(headlab({"run", "-", "--shard", "1/2", "--out", "o"}).code, 0);
  expect_refusals({{{"merge", "o", "--out", "m"},
                    "merge: shard 2 of 2 is missing or not complete - write headlab run - --shard "
                    "2/2 --out o --resume < SCENARIO.toml, or --allow-missing for what is there"}});
  ASSERT_EQ(headlab({"run", "-", "--shard", "2/2", "--out", "o", "--resume"}).code, 0);
  EXPECT_EQ(headlab({"merge", "o", "--out", "m"}).code, 0);
}

TEST_F(ShardsCommand, ShareAFolderWithShardsOfOtherCommands) {
  const std::vector<std::string> map = {"allocate",     "--map", "--data", "a.toml",
                                        "--budget",     "4",     "--n",    "5,20,80,320",
                                        "--replicates", "1024",  "--quiet"};
  const auto map_with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), map.begin(), map.end());
    return headlab(more);
  };
  for (const std::string shard : {"1/2", "2/2"}) {
    EXPECT_EQ(headlab({"run", "a.toml", "--shard", shard, "--out", "o", "--quiet"}).code, 0);
    EXPECT_EQ(map_with({"--shard", shard, "--out", "o"}).code, 0);
  }
  const ProgramResult status = headlab({"status", "o"});
  EXPECT_EQ(status.code, 0) << status.err;
  EXPECT_TRUE(std::regex_search(status.out, std::regex("2/2 +complete +headlab allocate --map")))
      << status.out;
  EXPECT_TRUE(std::regex_search(status.out, std::regex("2/2 +complete +148 of 148"))) << status.out;

  EXPECT_EQ(headlab({"merge", "o", "--out", "m", "--quiet"}).code, 0);
  EXPECT_EQ(headlab({"run", "a.toml", "--out", "w", "--quiet"}).code, 0);
  const ProgramResult same = headlab({"diff", "m", "w"});
  EXPECT_NE(same.out.find("same bits: nodes and figures"), std::string::npos) << same.out;

  const ProgramResult joined = map_with({"--out", "o", "--resume", "--json", "-"});
  const ProgramResult alone = map_with({"--json", "-"});
  EXPECT_EQ(joined.code, 0) << joined.err;
  const auto points = [](const ProgramResult& outcome) {
    return nlohmann::json::parse(outcome.out)["cells"][0]["points"].dump();
  };
  EXPECT_EQ(points(joined), points(alone));
}

}  // namespace
}  // namespace headlab
