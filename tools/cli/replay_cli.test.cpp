// SPDX-License-Identifier: Apache-2.0
// headlab replay.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/files/netcdf_file.h"
#include "kernels/testing/played_machine.h"
#include "tools/cli/testing/command_line_fixture.h"

namespace headlab {
namespace {

using Arguments = std::vector<std::string>;
using Json = nlohmann::ordered_json;

class ReplayCommand : public ProgramTest {};

TEST_F(ReplayCommand, RefusesInOneLineWithExitCodeTwo) {
  const std::string range = " does not fit (allowed: a whole number from 0 to ";
  expect_refusals({
      {{"replay"}, "replay: no scenario given - write headlab replay SCENARIO.toml"},
      {{"replay", "a.toml", "--out", "r"},
       "replay: no replicate given - write --replicate R, counted from 0"},
      {{"replay", "a.toml", "--replicate", "5"}, "replay: no folder given - write --out DIR"},
      {{"replay", "a.toml", "--replicate", "300", "--out", "r"},
       "--replicate: \"300\"" + range + "299)"},
      {{"replay", "a.toml", "--replicate", "20", "--replicates", "20", "--out", "r"},
       "--replicate: \"20\"" + range + "19)"},
      {{"replay", "a.toml", "--replicate", "-1", "--out", "r"},
       "--replicate: \"-1\"" + range + "299)"},
      {{"replay", "a.toml", "--replicate", "nan", "--out", "r"},
       "--replicate: \"nan\"" + range + "299)"},
      {{"replay", "a.toml", "--replicate", "5", "--condition", "1", "--out", "r"},
       "--condition: \"1\"" + range + "0)"},
      {{"replay", "s.toml", "--replicate", "5", "--condition", "2", "--out", "r"},
       "--condition: \"2\"" + range + "1)"},
      {{"replay", "s.toml", "--replicate", "5", "--out", "r"},
       "replay: the scenario has 2 conditions - write --condition C, from 0 to 1"},
      {{"replay", "missing.toml", "--replicate", "5", "--out", "r"},
       "missing.toml: cannot be opened: No such file or directory"},
      {{"replay", "a.toml", "--replicate", "5", "--out", "a.toml"},
       "--out: a.toml: is a file, not a folder - choose a place you may write to"},
      {{"replay", "a.toml", "--replicate", "5", "--out", ""}, "--out: is empty - give a folder"},
      {{"replay", "a.toml", "--replicate", "5", "--out", "r", "--resume"},
       "replay: unknown option --resume (allowed: --help, --set, --replicate, --condition, --out, "
       "--overwrite, --backend, --simd, --threads, --seed, --replicates, --max-time, --quiet)"},
  });
}

TEST_F(ReplayCommand, WritesAFileAndPrintsATable) {
  const Arguments arguments = {"replay", "s.toml", "--replicate", "123",       "--condition",
                               "1",      "--out",  "new/r",       "--backend", "cpu"};
  const ProgramResult outcome = headlab(arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "headlab: wrote new/r/replay.nc\n");
  EXPECT_TRUE(outcome.out.starts_with("replicate 123 of condition #1: n 20, conditional "))
      << outcome.out;
  for (const char* word : {"reference", "cpu", "difference", "effective sample size",
                           "normalisation error", "ensemble", "squared error 0."}) {
    EXPECT_NE(outcome.out.find(word), std::string::npos) << word;
  }
  EXPECT_EQ(files(), (Arguments{"new", "new/r", "new/r/replay.nc"}));

  // Not written over unless told to.
  const std::string before = contents(folder_ / "new/r/replay.nc");
  expect_refusals({{arguments,
                    "--out: new/r/replay.nc: is there already - write --overwrite, or choose "
                    "another place"}});
  EXPECT_EQ(contents(folder_ / "new/r/replay.nc"), before);
  Arguments again = arguments;
  again[3] = "124";
  again.insert(again.end(), {"--overwrite", "--quiet"});
  const ProgramResult other = headlab(again);
  EXPECT_EQ(other.code, 0);
  EXPECT_EQ(other.err, "");
  EXPECT_NE(other.out, outcome.out);
  const NetcdfInput file((folder_ / "new/r/replay.nc").string());
  EXPECT_EQ(file.root().integer_attribute("replicate"), 124);
  EXPECT_EQ(file.root().integer_attribute("condition"), 1);
}

/// The commands that a run prints, without the name of the program.
std::vector<Arguments> printed_commands(const std::string& text) {
  std::vector<Arguments> commands;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    Arguments command{std::istream_iterator<std::string>(words), {}};
    if (command.empty() || command.front() != "headlab") continue;
    command.erase(command.begin());
    commands.push_back(std::move(command));
  }
  return commands;
}

std::string digits_of(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", number);
  return text;
}

TEST_F(ReplayCommand, ShowsTheExtremeReplicatesThatARunNames) {
  const ProgramResult run = headlab({"run", "s.toml", "--set", "data.n=30", "--seed", "4",
                                     "--replicates", "1027", "--backend", "cpu", "--out", "o"});
  ASSERT_EQ(run.code, 0) << run.err;
  const Json conditions = Json::parse(contents(folder_ / "o/summary.json"))["conditions"];
  const std::vector<Arguments> commands = printed_commands(run.out);
  ASSERT_EQ(commands.size(), 2u) << run.out;
  const char* const lists[] = {"max_error", "min_sample_size"};
  for (std::size_t i = 0; i < 2; ++i) {
    const Arguments& command = commands[i];
    const auto value_of = [&](const char* option) {
      return std::stoull(*(std::ranges::find(command, option) + 1));
    };
    const Json& extremes = conditions.at(value_of("--condition"))["extremes"];
    ASSERT_EQ(extremes[lists[i]].size(), 8u);
    const Json& first = extremes[lists[i]][0];
    EXPECT_EQ(first["replicate"], value_of("--replicate"));
    for (const Json& condition : conditions) {
      const double other = condition["extremes"][lists[i]][0]["key"];
      EXPECT_TRUE(i == 0 ? other <= first["key"] : other >= first["key"]);
    }
    const ProgramResult replay = headlab(command);
    EXPECT_EQ(replay.code, 0) << replay.err;
    EXPECT_NE(replay.out.find(digits_of(first["key"])), std::string::npos) << replay.out;
    // Another replicate has another key.
    Arguments other = command;
    *(std::ranges::find(other, "--replicate") + 1) = extremes[lists[i]][1]["replicate"].dump();
    other.push_back("--overwrite");
    const ProgramResult second = headlab(other);
    EXPECT_EQ(second.code, 0) << second.err;
    EXPECT_EQ(second.out.find(digits_of(first["key"])), std::string::npos) << second.out;
    EXPECT_NE(second.out.find(digits_of(extremes[lists[i]][1]["key"])), std::string::npos);
  }
}

TEST_F(ReplayCommand, IsNamedOnlyWhereARunHasAFolder) {
  EXPECT_TRUE(printed_commands(headlab({"run", "a.toml", "--backend", "cpu"}).out).empty());
  const ProgramResult plain = headlab(
      {"run", "a.toml", "--backend", "cpu", "--out", "p", "--set", "run.estimator=\"plain\""});
  EXPECT_EQ(printed_commands(plain.out).size(), 1u) << plain.out;
  const Json extremes =
      Json::parse(contents(folder_ / "p/summary.json"))["conditions"][0]["extremes"];
  EXPECT_EQ(extremes["max_error"].size(), 8u);
  EXPECT_TRUE(extremes["min_sample_size"].is_null());
}

TEST_F(ReplayCommand, KeepsNothingWhereItCannotWrite) {
  const ProgramResult outcome =
      headlab({"replay", "a.toml", "--replicate", "1", "--out", "/dev/full/r"});
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_TRUE(files().empty());
}

TEST_F(ReplayCommand, FitsEightyColumns) {
  const test::PlayedMachine terminal{{"COLUMNS", "80"}};
  const ProgramResult outcome =
      headlab({"replay", "a.toml", "--replicate", "1", "--out", "r", "--backend", "cpu"});
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

}  // namespace
}  // namespace headlab
