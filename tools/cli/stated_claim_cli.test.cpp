// SPDX-License-Identifier: Apache-2.0
// headlab validate on a scenario that states claims of its own.
#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tools/cli/testing/command_line_fixture.h"

namespace headlab {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* two_or_three = R"([sweep]
"heads.subspaces" = [{ law = "orthogonal" }, { law = "aligned" }]
"data.n" = [20, 30]
)";

constexpr const char* more_keys_help = R"([[claim.compare]]
name = "more keys help"
less = { figure = "mse", at = { "data.n" = 30 } }
than = { figure = "mse", at = { "data.n" = 20 } }
for_each = ["heads.subspaces"]
margin = 0
expected = "supported"
)";

// False: one of them does not see the signal.
constexpr const char* right_angles_are_better = R"([[claim.compare]]
name = "right angles are better"
less = { figure = "mse", at = { "heads.subspaces" = "orthogonal" } }
than = { figure = "mse", at = { "heads.subspaces" = "aligned" } }
for_each = ["data.n"]
margin = { relative = 0.01 }
expected = "refuted"
)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

class StatedClaimCommands : public ProgramTest {
 protected:
  void write(const std::string& file, const std::string& claims) const {
    std::ofstream(folder_ / file) << replaced(scenario_text, "= 300", "= 8192") << two_or_three
                                  << claims;
  }

  Json verdicts_of(const std::string& file) const {
    const ProgramResult result =
        headlab({"validate", file, "--json", "-", "--quiet", "--threads", "2"});
    EXPECT_EQ(result.err, "");
    return Json::parse(result.out);
  }
};

TEST_F(StatedClaimCommands, JsonHasAnEntryEachWithItsComparisons) {
  write("c.toml", std::string(more_keys_help) + right_angles_are_better);
  const Json json = verdicts_of("c.toml");
  EXPECT_EQ(json["comparisons"], 4);
  const Json& claims = json["claims"];
  ASSERT_EQ(claims.size(), 2u);
  const char* names[] = {"more keys help", "right angles are better"};
  const char* verdicts[] = {"supported", "refuted"};
  for (const std::size_t i : {0u, 1u}) {
    EXPECT_EQ(claims[i]["claim"], "cli test");
    EXPECT_EQ(claims[i]["form"], names[i]);
    EXPECT_EQ(claims[i]["verdict"], verdicts[i]);
    EXPECT_EQ(claims[i]["expected"], verdicts[i]);
    EXPECT_EQ(claims[i]["replay"], "headlab validate c.toml");
    EXPECT_EQ(claims[i]["certificate"].is_null(), i == 0);
    EXPECT_EQ(claims[i]["comparisons"], 2);
    ASSERT_EQ(claims[i]["effects"].size(), 2u);
    for (const Json& effect : claims[i]["effects"]) {
      EXPECT_EQ(effect["zone"], "one-sided");
      EXPECT_TRUE(effect["of"].get<std::string>().starts_with("mse at ")) << effect;
      const double sign = i == 0 ? 1 : -1;
      EXPECT_GT(sign * effect["value"].get<double>(), 0) << effect;
      EXPECT_GT(effect["mcse"].get<double>(), 0);
      EXPECT_GT(sign * (effect["reference"].get<double>() - effect["observed"].get<double>()), 0);
    }
  }
}

TEST_F(StatedClaimCommands, ExitCodeOfAnOpenVerdictIsOfWhatWasExpected) {
  // An open verdict: the margin is far below the MCSE, and the number is what is observed.
  Json run =
      Json::parse((write("r.toml", ""), headlab({"run", "r.toml", "--json", "-", "--quiet"})).out);
  std::ostringstream mse;
  mse.precision(17);
  mse << run["conditions"][0]["mse"]["value"].get<double>();
  const std::string open =
      "[[claim.compare]]\nname = \"open\"\nof = { figure = \"mse\", at = { \"data.n\" = 20, "
      "\"heads.subspaces\" = \"orthogonal\" } }\nequals = " +
      mse.str() + "\nmargin = 1e-9\n";
  struct Case {
    std::string claims;
    int code;
    const char* table;
  };
  const std::string wrong = replaced(right_angles_are_better, "\"refuted\"", "\"supported\"");
  const std::vector<Case> cases = {
      {open, 0, "1 unresolved"},
      {open + "expected = \"unresolved\"\n", 0, "1 unresolved"},
      {open + "expected = \"supported\"\n", 6, "unresolved (expected supported)"},
      {open + "expected = \"refuted\"\n" + wrong, 3, "unresolved (expected refuted)"}};
  for (const Case& one : cases) {
    write("c.toml", one.claims);
    const ProgramResult table = headlab({"validate", "c.toml", "--quiet"});
    EXPECT_EQ(table.code, one.code) << one.claims << table.err;
    EXPECT_NE(table.out.find(one.table), std::string::npos) << one.table << "\n" << table.out;
  }
}

// The figures of a counterexample are those of a run, bit by bit.
TEST_F(StatedClaimCommands, CounterexampleReplaysToTheBit) {
  const std::string name = "it's mine.toml";  // a shell would split it
  write(name, right_angles_are_better);
  const Json verdict = verdicts_of(name)["claims"][0];
  ASSERT_EQ(verdict["verdict"], "refuted");
  const Json& certificate = verdict["certificate"];
  EXPECT_EQ(certificate["scenario"], contents(folder_ / name));
  EXPECT_EQ(certificate["seed"], 7);
  EXPECT_EQ(certificate["figures"], Json({"mse", "mse"}));
  const std::string command = certificate["replay"];
  EXPECT_EQ(command, "headlab run 'it'\\''s mine.toml' --seed 7 --replicates 2048");
  const auto replay = [&](const std::string& seed) {
    return Json::parse(headlab({"run", name, "--seed", seed, "--replicates", "2048", "--json", "-",
                                "--quiet", "--threads", "1"})
                           .out)["conditions"];
  };
  const Json again = replay("7");
  for (const std::size_t i : {0u, 1u}) {
    const Json& mse = again[certificate["conditions"][i].get<std::size_t>()]["mse"];
    EXPECT_EQ(certificate["values"][i]["value"], mse["value"]);
    EXPECT_EQ(certificate["values"][i]["mcse"], mse["mcse"]);
    EXPECT_NE(replay("8")[i]["mse"]["value"], again[i]["mse"]["value"]);
  }
  const double first = certificate["values"][0]["value"],
               second = certificate["values"][1]["value"];
  const Json& difference = certificate["difference"];
  EXPECT_GT(first, second);
  EXPECT_NEAR(difference["value"].get<double>(), first - second, 1e-15);
  EXPECT_GT(certificate["z"].get<double>(), 10);
  // No file is written beside the user's own, which could be replaced by it.
  ASSERT_EQ(headlab({"validate", name, "--out", "."}).code, 0);
  std::vector<std::string> expected = {name, "report.md", "units_1_of_1.nc", "verdicts.json"};
  std::vector<std::string> found = files();
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace headlab
