// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/scenario_argument.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tools/cli/testing/command_line_fixture.h"

namespace headlab::tools {
namespace {

using Arguments = std::vector<std::string>;
using Json = nlohmann::ordered_json;

class StandardInput : public ProgramTest {
 protected:
  ProgramResult with(const std::string& text, const Arguments& arguments) {
    input_ = (folder_ / ".in").string();
    std::ofstream(input_) << text;
    return headlab(arguments);
  }
};

TEST_F(StandardInput, IsAScenarioLikeAFile) {
  const Json file = Json::parse(headlab({"run", "a.toml", "--json", "-"}).out);
  const Json stream = Json::parse(with(scenario_text, {"run", "-", "--json", "-"}).out);
  EXPECT_EQ(stream["results_id"], file["results_id"]);
  EXPECT_EQ(stream["conditions"][0]["mse"], file["conditions"][0]["mse"]);
  for (const Arguments& arguments :
       {Arguments{"theory", "-"},
        {"allocate", "--data", "-", "--budget", "2", "--replicates", "1024", "--quiet"},
        {"dataset", "-", "--replicates", "2", "--out", "d"}}) {
    EXPECT_EQ(with(scenario_text, arguments).code, 0) << arguments[0];
  }
  EXPECT_EQ(Json::parse(contents(folder_ / "d/manifest.json"))["scenario_file"], "<stdin>");
}

TEST_F(StandardInput, HasPathsFromTheWorkingFolder) {
  std::ofstream(folder_ / "d.csv") << "x,y\n0.1,1\n0.2,3\n0.4,5\n";
  const ProgramResult outcome =
      with(scenario_text, {"run", "-", "--set", "data.design={law=\"file\",path=\"d.csv\"}",
                           "--set", "data.regression={law=\"zero\"}", "--set", "heads.dim=1",
                           "--set", "queries.points=[[0, 0]]"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST_F(StandardInput, IsNamedInMessages) {
  const auto error = [&](const std::string& text) { return with(text, {"run", "-"}).err; };
  EXPECT_TRUE(error("[scenario]\nname = \n").starts_with("headlab: <stdin>:2:"))
      << error("[scenario]\nname = \n");
  EXPECT_EQ(error(""), "headlab: <stdin>: is empty - give a scenario on standard input\n");
  std::string text = scenario_text;
  text.replace(text.find("count = 2"), 9, "count = 0");
  EXPECT_TRUE(error(text).starts_with("headlab: <stdin>:9:")) << error(text);
}

}  // namespace
}  // namespace headlab::tools
