// SPDX-License-Identifier: Apache-2.0
// headlab allocate, except its maps.
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tools/cli/testing/command_line_fixture.h"

namespace headlab {
namespace {

using Json = nlohmann::ordered_json;
using Arguments = std::vector<std::string>;

class AllocateCommand : public ProgramTest {};

TEST_F(AllocateCommand, WritesAdviceAsJsonThatItsReplayGivesAgain) {
  const Arguments arguments = {"allocate", "--data",           "a.toml", "--budget",
                               "4",        "--bandwidth-rule", "rate",   "--replicates",
                               "2048",     "--json",           "-"};
  const ProgramResult outcome = headlab(arguments);
  EXPECT_EQ(outcome.code, 0);
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["budget"], 4);
  EXPECT_EQ(json["n"], 20);
  EXPECT_EQ(json["complete"], true);
  EXPECT_EQ(json["headlab"]["seed"], 7);
  ASSERT_EQ(json["allocations"].size(), 4u);
  const Json& last = json["allocations"][3];
  EXPECT_EQ(last["heads"], 1);
  EXPECT_EQ(last["dim"], 4);
  EXPECT_NEAR(last["bandwidth"].get<double>(), std::pow(20, -1.0 / 8), 1e-12);
  EXPECT_TRUE(last["mse"]["mcse"].get<double>() > 0);
  EXPECT_TRUE(last["in_best_set"].is_boolean());
  EXPECT_TRUE(json["pilot"].is_null());
  // What is advised is in the set.
  for (const Json& one : json["allocations"]) {
    EXPECT_TRUE(one["dim"] != json["advice"]["dim"] || one["in_best_set"] == true);
  }
  EXPECT_TRUE(json["advice"]["text"].is_string());

  std::istringstream words(json["replay"].get<std::string>());
  Arguments again{std::istream_iterator<std::string>(words), {}};
  ASSERT_EQ(again.front(), "headlab");
  again.erase(again.begin());
  for (const char* more : {"--json", "b.json", "--threads", "1", "--quiet"}) again.push_back(more);
  const ProgramResult replayed = headlab(again);
  EXPECT_EQ(replayed.code, 0) << replayed.err;
  const Json twice = Json::parse(contents(folder_ / "b.json"));
  EXPECT_EQ(twice["allocations"], json["allocations"]);
  EXPECT_EQ(twice["advice"], json["advice"]);
}

TEST_F(AllocateCommand, AdvisesForSeveralBudgetsAndSizes) {
  const ProgramResult outcome =
      headlab({"allocate", "--data", "a.toml", "--budget", "2,3", "--n", "10,20", "--replicates",
               "1024", "--json", "-", "--set", "heads.kernel={law=\"softmax\",temperature=2}"});
  EXPECT_EQ(outcome.code, 0);
  const Json json = Json::parse(outcome.out);
  ASSERT_EQ(json["studies"].size(), 4u);
  EXPECT_EQ(json["studies"][1]["budget"], 2);
  EXPECT_EQ(json["studies"][1]["n"], 20);
  EXPECT_EQ(json["studies"][2]["allocations"].size(), 3u);
  EXPECT_EQ(json["studies"][0]["allocations"][0]["temperature"], 2);
  const std::string replay = json["studies"][3]["replay"];
  EXPECT_TRUE(replay.ends_with(" --set 'heads.kernel={law=\"softmax\",temperature=2}'")) << replay;
}

TEST_F(AllocateCommand, SaysHowTheBestDimensionGrows) {
  const Arguments arguments = {"allocate",    "--data",       "a.toml", "--budget", "4",      "--n",
                               "5,20,80,320", "--replicates", "1024",   "--growth", "--json", "-"};
  const ProgramResult outcome = headlab(arguments);
  EXPECT_EQ(outcome.code, 0);
  const Json json = Json::parse(outcome.out);
  ASSERT_EQ(json["growth"].size(), 1u);
  const Json& growth = json["growth"][0];
  EXPECT_EQ(growth["dims"], (std::vector<int>{1, 2, 4}));
  EXPECT_EQ(growth["points"].size() + growth["at_the_end"].size(), 4u);
  EXPECT_TRUE(growth["verdict"].is_string());
}

TEST_F(AllocateCommand, AllocatesByTheory) {
  const Arguments arguments = {"allocate",
                               "--data",
                               "a.toml",
                               "--budget",
                               "2",
                               "--n",
                               "100,1e9",
                               "--source",
                               "theory",
                               "--set",
                               "queries={law=\"design\",count=1}",
                               "--set",
                               "data.regression={law=\"random_cosines\",length_scale=2}",
                               "--json",
                               "-"};
  const ProgramResult outcome = headlab(arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["source"], "theory");
  ASSERT_EQ(json["studies"].size(), 2u);
  EXPECT_EQ(json["studies"][1]["n"], 1000000000);
  const Json& allocations = json["studies"][0]["allocations"];
  ASSERT_EQ(allocations.size(), 2u);
  EXPECT_GT(allocations[0]["mse"].get<double>(), 0);
  EXPECT_LE(json["growth"][0]["certificate"].get<double>(), 1e-7);
}

TEST_F(AllocateCommand, AllocatesExactly) {
  const Arguments arguments = {"allocate", "--data",   "a.toml", "--budget", "4", "--n",
                               "20,50",    "--source", "exact",  "--json",   "-"};
  const ProgramResult outcome = headlab(arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["source"], "exact");
  ASSERT_EQ(json["studies"].size(), 2u);
  EXPECT_EQ(json["studies"][0]["allocations"].size(), 4u);
}

}  // namespace
}  // namespace headlab
