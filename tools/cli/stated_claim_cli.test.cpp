// SPDX-License-Identifier: Apache-2.0
// headlab validate on a scenario that states claims of its own.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tools/cli/testing/command_line_fixture.h"

namespace headlab {
namespace {

using Json = nlohmann::ordered_json;
using Arguments = std::vector<std::string>;

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

TEST_F(StatedClaimCommands, TableHasAVerdictForEachClaim) {
  write("c.toml", std::string(more_keys_help) + right_angles_are_better);
  const ProgramResult table = headlab({"validate", "c.toml", "--quiet"});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_EQ(table.err, "");
  for (const char* words :
       {"cli test", "more keys help", "supported", "right angles are better", "refuted",
        "1 supported, 1 refuted; 4 comparisons", "decided by: ", "counterexample: MSE ",
        "headlab run c.toml --seed 7 --replicates 2048"}) {
    EXPECT_NE(table.out.find(words), std::string::npos) << words << "\n" << table.out;
  }
}

TEST_F(StatedClaimCommands, TableSaysWhatVariesAndWhichStagesAreInForce) {
  std::ofstream(folder_ / "c.toml") << replaced(scenario_text, "= 300", "= 8192") << R"([sweep]
zip = true
"heads.kernel" = [{ law = "gaussian", bandwidth = 0.5 }, { law = "softmax", temperature = 1 }]
"data.regression" = [{ law = "zero" }, { law = "linear", coefficients = [1, 0, 0, 0] }]
"queries.points" = [[[0, 0, 0, 0]], [[0, 0, 0, 0], [1, 0, 0, 0]]]
"heads.mechanism.window" = [20, 15]
[[claim.compare]]
name = "they are alike"
less = { figure = "mse", at = { "heads.kernel" = "gaussian" } }
than = { figure = "mse", at = { "heads.kernel" = "softmax" } }
margin = 0
)";
  const ProgramResult table = headlab({"validate", "c.toml", "--quiet"});
  EXPECT_NE(table.out.find("kernels vary, truths vary, queries vary, window"), std::string::npos)
      << table.out << table.err;
  const Json verdict = verdicts_of("c.toml")["claims"][0];
  EXPECT_EQ(verdict["kernel"], "varies");
  EXPECT_EQ(verdict["stages"], "window");
  // The control.
  write("d.toml", more_keys_help);
  EXPECT_EQ(verdicts_of("d.toml")["claims"][0]["kernel"], "gaussian");
  EXPECT_EQ(verdicts_of("d.toml")["claims"][0]["stages"], nullptr);
}

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

TEST_F(StatedClaimCommands, ExitCodeIsOfWhatWasExpected) {
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
      {std::string(more_keys_help) + right_angles_are_better, 0, "1 supported, 1 refuted"},
      {replaced(right_angles_are_better, "expected = \"refuted\"\n", ""), 0, "1 refuted"},
      {more_keys_help + wrong, 3, "refuted (expected supported)"},
      {replaced(more_keys_help, "\"supported\"", "\"refuted\""), 3, "supported (expected refuted)"},
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
  write("c.toml", more_keys_help);
  const ProgramResult cut = headlab({"validate", "c.toml", "--max-time", "0.000001", "--quiet"});
  EXPECT_EQ(cut.code, 6);
  EXPECT_NE(cut.err.find("--max-time reached"), std::string::npos) << cut.err;
}

TEST_F(StatedClaimCommands, MistakesAreOneLineAndCode2) {
  const std::vector<std::pair<std::string, std::string>> table = {
      {replaced(more_keys_help, "margin = 0\n", ""),
       "headlab: c.toml:22:1: claim.compare[0].margin: is missing"},
      {replaced(more_keys_help, "\"mse\"", "\"msee\""), "figure \"msee\" is unknown"},
      {replaced(more_keys_help, "= 30", "= 31"), "no condition has "},
      {"[[claim.compared]]\nname = \"a\"\n", "claim.compared: unknown key"}};
  for (const auto& [claims, message] : table) {
    write("c.toml", claims);
    const ProgramResult result = headlab({"validate", "c.toml"});
    EXPECT_EQ(result.code, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_NE(result.err.find(message), std::string::npos) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
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

TEST_F(StatedClaimCommands, RunSaysThatClaimsAreThereAndWhatJudgesThem) {
  const auto said = [&](const std::string& file) {
    const ProgramResult result = headlab({"run", file, "--replicates", "300"});
    EXPECT_EQ(result.code, 0) << result.err;
    return result.err;
  };
  write("c.toml", more_keys_help);
  EXPECT_NE(said("c.toml").find("headlab: c.toml states 1 claim, on which a run gives no verdict - "
                                "write headlab validate c.toml\n"),
            std::string::npos)
      << said("c.toml");
  write("two claims", std::string(more_keys_help) + right_angles_are_better);
  EXPECT_NE(said("two claims")
                .find("two claims states 2 claims, on which a run gives no verdict - "
                      "write headlab validate './two claims'\n"),
            std::string::npos)
      << said("two claims");
  write("b.toml", "[claim]\nname = \"angles\"\nform = \"centre\"\n");
  EXPECT_NE(said("b.toml").find("b.toml is of a built-in claim, on which a run gives no verdict - "
                                "write headlab validate b.toml\n"),
            std::string::npos)
      << said("b.toml");
  // The controls.
  EXPECT_EQ(headlab({"run", "c.toml", "--quiet", "--replicates", "300"}).err, "");
  EXPECT_EQ(said("a.toml").find("claim"), std::string::npos);
}

}  // namespace
}  // namespace headlab
