// SPDX-License-Identifier: Apache-2.0
// headlab allocate --map, and what --growth says of budgets.
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tools/cli/growth_text.h"
#include "tools/cli/testing/command_line_fixture.h"

namespace headlab {
namespace {

using Arguments = std::vector<std::string>;
using Json = nlohmann::ordered_json;

class MapCommand : public ProgramTest {
 protected:
  /// A map of one swept bandwidth, with `more`.
  ProgramResult map(const Arguments& more) const {
    Arguments all = {"allocate", "--map",       "--data",       "s.toml", "--budget", "2,4",
                     "--n",      "5,20,80,320", "--replicates", "1024",   "--quiet"};
    all.insert(all.end(), more.begin(), more.end());
    return headlab(all);
  }
};

TEST_F(MapCommand, WritesNetcdfAndJsonOfTheSameCells) {
  const ProgramResult outcome = map({"--out", "new", "--json", "-"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  ASSERT_EQ(json["cells"].size(), 4u);
  EXPECT_EQ(json["cells"][2]["setting"]["heads.kernel.bandwidth"], "0.8");
  EXPECT_EQ(json["cells"][3]["budget"], 4);
  for (const Json& cell : json["cells"]) {
    EXPECT_TRUE(cell["words"].is_string());
    EXPECT_EQ(cell["points"].size() + cell["at_the_end"].size(), 4u);
    EXPECT_EQ(cell["at_the_end"].size(), cell["ends"].size());
  }
  EXPECT_TRUE(std::filesystem::exists(folder_ / "new" / "map.nc"));
  const ProgramResult again = map({"--out", "new"});
  EXPECT_EQ(again.code, 2);
  EXPECT_EQ(again.err,
            "headlab: --out: new/map.nc: is there already - write --overwrite, or choose another "
            "place\n");
  EXPECT_EQ(map({"--out", "new", "--overwrite"}).code, 0);
}

TEST_F(MapCommand, GrowthOverBudgetsIsFittedWithoutASweep) {
  const Arguments arguments = {"allocate", "--data",   "a.toml",       "--budget", "2,3,4",  "--n",
                               "20",       "--growth", "--replicates", "1024",     "--quiet"};
  const ProgramResult outcome = headlab(arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("growth of the best H with D, n 20\n"), std::string::npos);
  Arguments with_json = arguments;
  with_json.insert(with_json.end(), {"--json", "-"});
  const Json json = Json::parse(headlab(with_json).out);
  ASSERT_EQ(json["head_growth"].size(), 1u);
  EXPECT_EQ(json["head_growth"][0]["n"], 20);
  EXPECT_EQ(json["head_growth"][0]["points"].size() + json["head_growth"][0]["at_the_end"].size(),
            3u);
}

TEST(SettingValueText, IsAShortFormOfToml) {
  EXPECT_EQ(tools::setting_value_text("0.5"), "0.5");
  EXPECT_EQ(tools::setting_value_text("\"haar\""), "haar");
  EXPECT_EQ(tools::setting_value_text("{ dim = 12, law = \"normal\" }"), "dim=12 normal");
  EXPECT_EQ(tools::setting_value_text("{ a = [ 1, [ 2, 3 ] ], law = \"x\" }"), "a=[…] x");
}

}  // namespace
}  // namespace headlab
