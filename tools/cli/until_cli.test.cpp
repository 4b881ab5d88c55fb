// SPDX-License-Identifier: Apache-2.0
// headlab run --until, --against and --difference.
#include <nlohmann/json.hpp>

#include "kernels/testing/paths.h"
#include "tools/cli/testing/command_line_fixture.h"

namespace headlab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

class UntilCommand : public ProgramTest {
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

TEST_F(UntilCommand, ResumesAKilledRunToTheSameReplicates) {
  const std::vector<std::string> until = {"run",   "s.toml", "--until",      "mse=0.08%",
                                          "--out", "o",      "--replicates", "1e8"};
  auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> all = until;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const pid_t child = start(with({"--checkpoint", "0.05", "--threads", "1"}));
  for (int i = 0; i < 3000 && !fs::exists(folder_ / "o/results.nc"); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(child, SIGKILL);
  finish(child);
  const ProgramResult stopped = headlab(with({"--resume", "--max-time", "0.3", "--threads", "1"}));
  if (stopped.code == 6) {
    EXPECT_EQ(summary()["complete"], false);
    EXPECT_TRUE(summary()["target_met"].is_null());
  }
  ASSERT_EQ(headlab(with({"--resume"})).code, 0);
  const Json resumed = figures();
  const Json looks = summary()["until"];
  ASSERT_EQ(headlab(with({"--overwrite"})).code, 0);
  EXPECT_EQ(figures(), resumed);
  EXPECT_EQ(summary()["until"], looks);
}

TEST_F(UntilCommand, ShowsDifferencesOfAFinishedRunToo) {
  ASSERT_EQ(headlab({"run", "s.toml", "--out", "o"}).code, 0);
  EXPECT_FALSE(summary()["conditions"][0].contains("difference"));
  const ProgramResult shown = headlab(
      {"run", "s.toml", "--out", "o", "--resume", "--difference", "heads.kernel.bandwidth"});
  EXPECT_EQ(shown.code, 0);
  EXPECT_NE(shown.out.find("MSE difference"), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("differences from heads.kernel.bandwidth = 0.4, paired: both have the "
                           "same draws\n"),
            std::string::npos)
      << shown.out;
  const Json found = summary();
  EXPECT_EQ(found["difference_to"], "heads.kernel.bandwidth = 0.4");
  const Json& first = found["conditions"][0];
  const Json& second = found["conditions"][1];
  EXPECT_TRUE(first["difference"]["against"].is_null());
  EXPECT_TRUE(first["difference"]["mse"]["value"].is_null());
  EXPECT_EQ(second["difference"]["against"], 0);
  EXPECT_EQ(second["difference"]["paired"], true);
  EXPECT_NEAR(second["difference"]["mse"]["value"].get<double>(),
              second["mse"]["value"].get<double>() - first["mse"]["value"].get<double>(), 1e-12);
  const ProgramResult seeds =
      headlab({"run", "a.toml", "--set", "sweep.\"run.seed\"=[1, 2]", "--against", "#1"});
  EXPECT_NE(seeds.out.find("not paired: seeds differ, and the variances are added"),
            std::string::npos)
      << seeds.out << seeds.err;
}

TEST_F(UntilCommand, ThePageOnPrecisionIsRight) {
  const std::string source = test::source_dir();
  std::istringstream page(contents(source + "/docs/precision.md"));
  fs::create_directory_symlink(source + "/scenarios", folder_ / "scenarios");
  ProgramResult last;
  int commands = 0, lines = 0;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("    headlab ")) {
      std::istringstream words(line.substr(12));
      std::vector<std::string> arguments;
      for (std::string word; words >> word;) {
        std::erase(word, '\'');
        arguments.push_back(word);
      }
      last = headlab(arguments);
      EXPECT_EQ(last.code, 0) << line << "\n" << last.err;
      ++commands;
    } else if (line.starts_with("    target ") || line.starts_with("    differences ")) {
      std::string shown = line.substr(4);
      if (shown.ends_with(" ...")) shown.resize(shown.size() - 4);
      EXPECT_NE(last.out.find(shown), std::string::npos) << line << "\n" << last.out;
      ++lines;
    }
  }
  EXPECT_GE(commands, 4);
  EXPECT_GE(lines, 2);
  fs::remove(folder_ / "scenarios");
}

}  // namespace
}  // namespace headlab
