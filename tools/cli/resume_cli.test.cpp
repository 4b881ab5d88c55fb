// SPDX-License-Identifier: Apache-2.0
// Kills the program and resumes.
#include <regex>

#include <nlohmann/json.hpp>

#include "engine/results/results_id.h"
#include "tools/cli/testing/command_line_fixture.h"

namespace headlab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Arguments = std::vector<std::string>;

const std::string enough = "1000000000000";

class ResumeCommand : public ProgramTest {
 protected:
  Json summary() const { return Json::parse(contents(folder_ / "o/summary.json")); }

  /// What the conditions of the folder have, without how long it took.
  Json figures() const {
    Json conditions = summary()["conditions"];
    for (Json& condition : conditions) {
      condition.erase("seconds");
      condition.erase("weights_per_second");
    }
    return conditions;
  }
};

TEST_F(ResumeCommand, EndsAKilledRunWithTheBitsOfOneThatWasNot) {
  for (const std::string file : {"a.toml", "s.toml"}) {
    const pid_t child =
        start({"run", file, "--replicates", enough, "--out", "o", "--checkpoint", "0.05"});
    for (int i = 0; i < 3000 && !fs::exists(folder_ / "o/summary.json"); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ::kill(child, SIGKILL);
    EXPECT_EQ(finish(child).code, -1);
    // A file under a temporary name may be left of what was being written.
    Json before = summary();
    EXPECT_EQ(before["complete"], false);
    std::uint64_t count = before["conditions"][0]["replicates"];
    EXPECT_GT(count, 0u);

    const ProgramResult interrupted = headlab({"run", file, "--replicates", enough, "--out", "o",
                                               "--resume", "--max-time", "0.2", "--threads", "1"});
    EXPECT_EQ(interrupted.code, 6);
    EXPECT_TRUE(std::regex_match(
        interrupted.err,
        std::regex(
            "headlab: resumes from \\d+ of \\d+ replicates in o/results.nc\nheadlab: "
            "--max-time reached: kept \\d+ of 1000000000000 replicates (of conditions #0 to #1 "
            "of 2 )?in o/results.nc, o/summary.json; --resume continues\n")))
        << interrupted.err;
    const std::uint64_t further = summary()["conditions"][0]["replicates"];
    EXPECT_GT(further, count);

    const std::string all = std::to_string(further + 1003);
    const ProgramResult last =
        headlab({"run", file, "--replicates", all, "--out", "o", "--resume"});
    EXPECT_EQ(last.code, 0);
    EXPECT_EQ(summary()["complete"], true);
    const Json resumed = figures();
    ASSERT_EQ(headlab({"run", file, "--replicates", all, "--out", "o", "--overwrite"}).code, 0);
    EXPECT_EQ(resumed, figures());
    fs::remove_all(folder_ / "o");
  }
}

TEST_F(ResumeCommand, MendsFilesOfTwoStatesOfARun) {
  ASSERT_EQ(headlab({"run", "a.toml", "--out", "o"}).code, 0);
  const std::string nodes = contents(folder_ / "o/results.nc");
  const std::string id = summary()["results_id"];
  EXPECT_EQ(id.size(), 64u);
  const Arguments resume = {"run", "a.toml", "--out", "o", "--resume", "--replicates", "500"};
  const ProgramResult whole = headlab(resume);
  EXPECT_EQ(whole.err,
            "headlab: resumes from 300 of 500 replicates in o/results.nc\n"
            "headlab: wrote o/results.nc, o/summary.json\n");
  const std::string last = summary()["results_id"];
  EXPECT_NE(last, id);
  // As if the disk had been full for one of the two files.
  std::ofstream(folder_ / "o/results.nc", std::ios::binary) << nodes;
  const ProgramResult mended = headlab(resume);
  EXPECT_EQ(mended.code, 0);
  EXPECT_EQ(
      mended.err,
      "headlab: o/summary.json is of another state of the run than o/results.nc (results_id): "
      "resumes from o/results.nc and writes both\n"
      "headlab: resumes from 300 of 500 replicates in o/results.nc\n"
      "headlab: wrote o/results.nc, o/summary.json\n");
  EXPECT_EQ(summary()["results_id"], last);
  EXPECT_EQ(results_id_of_netcdf((folder_ / "o/results.nc").string()), last);
  fs::remove(folder_ / "o/summary.json");
  EXPECT_TRUE(
      headlab(resume).err.starts_with("headlab: o/summary.json is missing next to o/results.nc: "));
  EXPECT_EQ(summary()["results_id"], last);
  // One thread has the same name for the same state.
  ASSERT_EQ(
      headlab({"run", "a.toml", "--out", "one", "--replicates", "500", "--threads", "1"}).code, 0);
  EXPECT_EQ(results_id_of_netcdf((folder_ / "one/results.nc").string()), last);
}

TEST_F(ResumeCommand, KeepsASecondRunOutOfItsFolder) {
  const pid_t first =
      start({"run", "a.toml", "--replicates", enough, "--out", "o", "--checkpoint", "0.05"});
  for (int i = 0; i < 3000 && !fs::exists(folder_ / "o/results.nc"); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const ProgramResult second = headlab({"run", "a.toml", "--out", "o", "--resume"});
  EXPECT_EQ(second.code, 2);
  EXPECT_EQ(second.err,
            "headlab: --out: o: another run is writing there - wait for it, or choose another "
            "folder\n");
  ::kill(first, SIGTERM);
  EXPECT_EQ(finish(first).code, 6);
  const ProgramResult third = headlab({"run", "a.toml", "--out", "o", "--overwrite"});
  EXPECT_EQ(third.code, 0);
  EXPECT_EQ(third.err, "headlab: wrote o/results.nc, o/summary.json\n");
}

TEST_F(ResumeCommand, GoesOnWhereACheckpointCannotBeWritten) {
  // The folder goes away under the run.
  const pid_t child = start({"run", "a.toml", "--replicates", enough, "--out", "o", "--checkpoint",
                             "0.05", "--json", "b.json"});
  for (int i = 0; i < 3000 && !fs::exists(folder_ / "o/results.nc"); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  fs::remove_all(folder_ / "o");
  std::ofstream(folder_ / "o") << "in the way";
  for (int i = 0;
       i < 3000 && contents(folder_ / ".err").find("; the run continues\n") == std::string::npos;
       ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(child, SIGINT);
  const ProgramResult outcome = finish(child);
  EXPECT_EQ(outcome.code, 1);  // files are missing, which is worse than a run that is not finished
  EXPECT_NE(outcome.err.find("headlab: o/results.nc"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("; the run continues\n"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace headlab
