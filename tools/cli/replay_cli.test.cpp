// SPDX-License-Identifier: Apache-2.0
// headlab replay.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/files/netcdf_file.h"
#include "tools/cli/testing/command_line_fixture.h"

namespace headlab {
namespace {

using Arguments = std::vector<std::string>;
using Json = nlohmann::ordered_json;

class ReplayCommand : public ProgramTest {};

TEST_F(ReplayCommand, WritesTheReplicateAskedFor) {
  ASSERT_EQ(
      headlab({"replay", "s.toml", "--replicate", "124", "--condition", "1", "--out", "r"}).code,
      0);
  const NetcdfInput file((folder_ / "r/replay.nc").string());
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

}  // namespace
}  // namespace headlab
