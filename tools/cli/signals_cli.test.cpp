// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <signal.h>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tools/cli/testing/command_line_fixture.h"

namespace headlab {
namespace {

constexpr const char* stopping = "headlab: stopping; again to quit at once\n";

class Signals : public ProgramTest {
 protected:
  bool says(const std::string& text) const {
    return contents(folder_ / ".err").find(text) != std::string::npos;
  }

  /// Waits until the program has said so.
  void expect_to_say(const std::string& text) const {
    for (int i = 0; i < 3000 && !says(text); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_TRUE(says(text)) << contents(folder_ / ".err");
  }

  /// Expects no file that a stopped program should not leave.
  void expect_whole_files() const {
    for (const std::string& name : files()) {
      EXPECT_EQ(name.find(".tmp-"), std::string::npos) << name;
    }
    EXPECT_FALSE(std::filesystem::exists(folder_ / "o/.headlab-lock"));
  }
};

TEST_F(Signals, ALongTrainingSetIsDropped) {
  const pid_t child = start({"run", "a.toml", "--set", "data.n=2e9", "--replicates", "4", "--out",
                             "o", "--threads", "1"});
  // The lock is there once the scenario is read.
  for (int i = 0; i < 3000 && !std::filesystem::exists(folder_ / "o/.headlab-lock"); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  send(child, SIGINT);
  const ProgramResult outcome = finish(child);
  EXPECT_EQ(outcome.code, 6);
  EXPECT_EQ(outcome.err, stopping + std::string("headlab: interrupted: kept nothing\n"));
  expect_whole_files();
}

TEST_F(Signals, WhatCannotEndIsQuitAfterTwoSignals) {
  // Nobody reads what the run writes once it is stopped.
  ASSERT_EQ(::mkfifo((folder_ / "pipe.json").c_str(), 0600), 0);
  const pid_t child = start({"run", "a.toml", "--replicates", "1e12", "--checkpoint", "0.05",
                             "--out", "o", "--json", "pipe.json"});
  for (int i = 0; i < 3000 && !std::filesystem::exists(folder_ / "o/results.nc"); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  send(child, SIGINT);
  expect_to_say(stopping);
  ::kill(child, SIGINT);  // at once: the same request
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  ::kill(child, SIGTERM);
  const ProgramResult outcome = finish(child);
  EXPECT_EQ(outcome.code, 128 + SIGTERM);
  expect_whole_files();
}

TEST_F(Signals, ManyConditionsAreStoppedWhileTheyAreRead) {
  std::ofstream(folder_ / "many.toml")
      << scenario_text << "[sweep]\n\"heads.kernel.bandwidth\" = { linspace = [0.1, 1, 900000] }\n";
  const pid_t child = start({"run", "many.toml", "--out", "o"});
  send(child, SIGINT);
  EXPECT_EQ(finish(child).err, stopping + std::string("headlab: interrupted: kept nothing\n"));
  EXPECT_EQ(files(), std::vector<std::string>{"many.toml"});
  const ProgramResult late = headlab({"run", "many.toml", "--out", "o", "--max-time", "1s"});
  EXPECT_EQ(late.err, "headlab: --max-time reached: kept nothing\n");
}

TEST_F(Signals, VerdictsThatWereInterruptedSaySo) {
  const pid_t child = start({"validate", "angles", "--replicates", "1e9"});
  send(child, SIGINT);
  const ProgramResult outcome = finish(child);
  EXPECT_EQ(outcome.code, 6) << outcome.err;
  EXPECT_NE(outcome.out.find("Interrupted before its first look."), std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("incomplete: interrupted before"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("Time was up"), std::string::npos) << outcome.out;
}

}  // namespace
}  // namespace headlab
