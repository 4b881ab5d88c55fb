// SPDX-License-Identifier: Apache-2.0
// Exact controls by the program itself.
#include <nlohmann/json.hpp>

#include "tools/cli/testing/command_line_fixture.h"

namespace headlab {
namespace {

class ControlsCommand : public ProgramTest {
 protected:
  ProgramResult controlled(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"run", "s.toml", "--set", "run.controls=\"exact\""});
    return headlab(arguments);
  }
};

TEST_F(ControlsCommand, SaysWhatTheyBought) {
  const ProgramResult run = controlled({"--replicates", "500", "--out", "o"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find(" statistics are adjusted, and their adjustments tested"),
            std::string::npos)
      << run.out;
  EXPECT_NE(run.out.find("controls: the variance falls by a factor of "), std::string::npos)
      << run.out;
  const auto summary = nlohmann::json::parse(contents(folder_ / "o/summary.json"));
  for (const auto& condition : summary.at("conditions")) {
    const auto& controls = condition.at("controls");
    EXPECT_EQ(controls.at("pilot"), 1024);
    EXPECT_EQ(controls.at("refused"), false);
    EXPECT_GT(controls.at("tested"), 0);
    EXPECT_GT(controls.at("gain").at("mse"), 1.0);
  }
  EXPECT_FALSE(nlohmann::json::parse(headlab({"run", "a.toml", "--json", "-"}).out)
                   .at("conditions")
                   .at(0)
                   .contains("controls"));
}

TEST_F(ControlsCommand, DryRunsCountTheirMeans) {
  const std::string line = "# time: the exact means of controls take at most 1 s on top\n";
  EXPECT_NE(controlled({"--dry-run"}).out.find(line), std::string::npos);
  EXPECT_EQ(headlab({"run", "s.toml", "--dry-run"}).out.find(line), std::string::npos);
}

TEST_F(ControlsCommand, DifferencesAreThoseOfTheFigures) {
  ASSERT_EQ(controlled({"--replicates", "400", "--out", "a"}).code, 0);
  ASSERT_EQ(controlled({"--replicates", "400", "--seed", "8", "--out", "b"}).code, 0);
  const auto figure = [&](const std::string& folder) {
    return nlohmann::json::parse(contents(folder_ / folder / "summary.json"))
        .at("conditions")
        .at(0)
        .at("mse")
        .at("value")
        .get<double>();
  };
  const ProgramResult run = headlab({"diff", "a", "b", "--json", "-"});
  const auto difference = nlohmann::json::parse(run.out);
  EXPECT_NE(difference.dump().find("mse"), std::string::npos) << run.out;
  EXPECT_NE(figure("a"), figure("b"));
}

TEST_F(ControlsCommand, HaveTheSameBitsResumedOrInShards) {
  ASSERT_EQ(controlled({"--replicates", "1000", "--out", "w"}).code, 0);
  ASSERT_EQ(controlled({"--replicates", "300", "--out", "r"}).code, 0);
  ASSERT_EQ(controlled({"--replicates", "1000", "--out", "r", "--resume"}).code, 0);
  for (const std::string shard : {"2/3", "1/3", "3/3"}) {
    ASSERT_EQ(controlled({"--replicates", "1000", "--shard", shard, "--out", "o"}).code, 0);
  }
  ASSERT_EQ(headlab({"merge", "o", "--out", "m"}).code, 0);
  for (const std::string other : {"r", "m"}) {
    const ProgramResult same = headlab({"diff", "w", other});
    EXPECT_NE(same.out.find("same bits: nodes and figures"), std::string::npos) << same.out;
  }
  // Controls are part of what a run is.
  expect_refusals({{{"run", "s.toml", "--replicates", "2000", "--out", "r", "--resume"},
                    "--resume: r/results.nc: condition #0: run.controls was \"exact\" and is not "
                    "given - choose another folder, or write --overwrite instead to replace the "
                    "results there"}});
}

}  // namespace
}  // namespace headlab
