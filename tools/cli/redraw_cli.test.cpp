// SPDX-License-Identifier: Apache-2.0
// Scenarios whose heads or queries are drawn again for every leaf, command by command.
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/testing/paths.h"
#include "tools/cli/testing/command_line_fixture.h"

namespace headlab {
namespace {

class RedrawCommands : public ProgramTest {
 protected:
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

}  // namespace
}  // namespace headlab
