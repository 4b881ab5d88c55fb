// SPDX-License-Identifier: Apache-2.0
// Scenarios whose heads or queries are drawn again for every leaf, command by command.
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/testing/paths.h"
#include "tools/cli/testing/command_line_fixture.h"

namespace headlab {
namespace {

class RedrawCommands : public ProgramTest {
 protected:
  /// Arguments of a.toml with random heads and queries that are drawn again.
  static std::vector<std::string> redrawn(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(),
                     {"a.toml", "--set", "heads.subspaces={law=\"haar\", redraw=true}", "--set",
                      "queries={law=\"design\", count=2, redraw=true}"});
    return arguments;
  }
  nlohmann::json summary(const std::string& folder) const {
    return nlohmann::json::parse(contents(folder_ / folder / "summary.json"));
  }
};

TEST_F(RedrawCommands, RunTheShippedScenario) {
  const std::string scenario = test::scenario_dir() + "/random_heads.toml";
  const ProgramResult outcome =
      headlab({"run", scenario, "--replicates", "256", "--out", "o", "--quiet"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("heads and queries were drawn again"), std::string::npos)
      << outcome.out;
  for (const auto& condition : summary("o")["conditions"]) {
    EXPECT_EQ(condition["redraw"], "heads and queries");
    EXPECT_GT(condition["mse"]["mcse"], 0);
    EXPECT_TRUE(condition["indices"]["chordal"]["value"].is_null());
    EXPECT_TRUE(condition["queries"][0]["mse"]["value"].is_null());
  }
}

TEST_F(RedrawCommands, ResumeWithTheBitsOfOneRun) {
  const auto run = [&](const std::string& folder, const std::string& replicates,
                       const std::vector<std::string>& more) {
    std::vector<std::string> arguments =
        redrawn({"run", "--out", folder, "--quiet", "--replicates", replicates});
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult outcome = headlab(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
  };
  run("one", "400", {"--threads", "1"});
  run("two", "136", {"--threads", "4"});
  run("two", "400", {"--threads", "2", "--resume"});
  EXPECT_EQ(summary("one")["conditions"][0]["mse"], summary("two")["conditions"][0]["mse"]);
  EXPECT_EQ(summary("one")["results_id"], summary("two")["results_id"]);
}

TEST_F(RedrawCommands, AreForecastAndReported) {
  const ProgramResult dry = headlab(redrawn({"run", "--replicates", "304", "--dry-run"}));
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_NE(dry.out.find(" (this run): "), std::string::npos) << dry.out;
  const ProgramResult run =
      headlab(redrawn({"run", "--replicates", "304", "--out", "o", "--report", "a.html"}));
  EXPECT_EQ(run.code, 0) << run.err;
  const ProgramResult report = headlab({"report", "o", "--out", "b.html"});
  EXPECT_EQ(report.code, 0) << report.err;
  EXPECT_EQ(contents(folder_ / "a.html"), contents(folder_ / "b.html"));
}

TEST_F(RedrawCommands, AreRefusedWhereHeadsAndQueriesMustBeGiven) {
  const std::string where =
      "--set heads.subspaces={law=\"haar\", redraw=true}: heads.subspaces.redraw: is true, but ";
  const std::string advice =
      " - write --set heads.subspaces.redraw=false --set queries.redraw=false";
  const std::string closed = where + "closed forms are for given heads and queries" + advice;
  expect_refusals({
      {redrawn({"theory", "--set", "run.replicates=304"}), closed},
      {redrawn({"run", "--replicates", "304", "--compare", "--out", "o"}), closed},
      {redrawn({"dataset", "--replicates", "304", "--out", "d"}),
       where + "a data set has one draw of heads and queries" + advice},
      {redrawn({"allocate", "--budget", "4", "--set", "run.replicates=304", "--data"}),
       where +
           "an allocation draws haar heads again for every 32 training sets by itself, and queries "
           "once" +
           advice},
      {redrawn({"run", "--replicates", "300"}),
       "--set run.replicates=300: run.replicates: is 300, must be a multiple of 8: heads and "
       "queries are drawn again for every 8 replicates"},
  });
}

}  // namespace
}  // namespace headlab
