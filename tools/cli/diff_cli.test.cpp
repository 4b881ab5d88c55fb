// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tools/cli/testing/command_line_fixture.h"

namespace headlab {
namespace {

using Json = nlohmann::ordered_json;
using Arguments = std::vector<std::string>;

class DiffCommand : public ProgramTest {
 protected:
  /// Runs a scenario into a folder.
  void run(const std::string& out, const Arguments& more = {},
           const std::string& scenario = "a.toml") const {
    Arguments arguments = {"run", scenario, "--out", out, "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult outcome = headlab(arguments);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }

  /// Expects an exit code; returns the document of --json.
  Json diff(const std::string& a, const std::string& b, int code) const {
    const ProgramResult text = headlab({"diff", a, b});
    EXPECT_EQ(text.code, code) << text.out << text.err;
    EXPECT_EQ(text.err, "");
    const ProgramResult outcome = headlab({"diff", a, b, "--json", "-"});
    EXPECT_EQ(outcome.code, code);
    return Json::parse(outcome.out);
  }

  /// Copies the summary in `from` with a change to it.
  template <class Change>
  void copy_summary(const std::string& from, const std::string& to, const Change& change) const {
    Json summary = Json::parse(contents(folder_ / from / "summary.json"));
    change(summary);
    std::ofstream(folder_ / to) << summary.dump();
  }
};

TEST_F(DiffCommand, ComparesResultsWhoseHeadsAndQueriesAreDrawnAgain) {
  const Arguments redraw = {
      "--replicates", "1024",
      "--set",        "heads.subspaces={ law = \"haar\", redraw = true }",
      "--set",        "queries={ law = \"design\", count = 2, redraw = true }"};
  const auto with = [&](Arguments more) {
    more.insert(more.end(), redraw.begin(), redraw.end());
    return more;
  };
  run("a", with({}));
  run("same", with({"--threads", "1"}));
  run("wide", with({"--set", "heads.kernel.bandwidth=1.6"}));

  EXPECT_EQ(diff("a", "same", 0)["outcome"], "same bits");
  const Json wide = diff("a", "wide", 5);
  EXPECT_EQ(wide["differences"][0]["mcse_of_difference"], "paired");
}

TEST_F(DiffCommand, TellsTheSameBitsFromNoDifferenceAndADifference) {
  run("a");
  run("same", {"--threads", "1"});
  run("seed", {"--seed", "8"});
  run("wide", {"--set", "heads.kernel.bandwidth=0.81"});
  run("reference", {"--backend", "reference"});

  const Json same = diff("a", "same", 0);
  EXPECT_EQ(same["outcome"], "same bits");
  EXPECT_EQ(same["nodes"], "same");
  EXPECT_EQ(same["counts"]["compared"], same["counts"]["same_bits"]);
  // The two files of one run are the same.
  EXPECT_EQ(diff("a/results.nc", "same/summary.json", 0)["nodes"], "unknown");

  const Json seed = diff("a", "seed", 4);
  EXPECT_EQ(seed["outcome"], "no figure differs");
  EXPECT_EQ(seed["keys"], Json::parse(R"([{"key":"run.seed","a":7,"b":8,"conditions":1}])"));
  EXPECT_EQ(seed["differences"][0]["mcse_of_difference"], "independent");

  const Json wide = diff("a", "wide", 5);
  EXPECT_EQ(wide["keys"][0]["key"], "heads.kernel.bandwidth");
  EXPECT_EQ(wide["keys"][0]["b"], 0.81);
  EXPECT_EQ(wide["differences"].back()["mcse_of_difference"], "paired");
  EXPECT_GT(wide["counts"]["differ"], 0);

  const Json reference = diff("a", "reference", 4);
  EXPECT_EQ(reference["made_by"][0]["key"], "backend");
  EXPECT_EQ(reference["nodes"], "different");
  EXPECT_EQ(reference["differences"][0]["mcse_of_difference"], "same problem");
}

TEST_F(DiffCommand, FindsOneFigureThatIsOffByManyMcseAndNotOneThatIsOffByABit) {
  run("a");
  copy_summary("a", "bit.json", [](Json& summary) {
    Json& value = summary["conditions"][0]["mse"]["value"];
    value = std::nextafter(value.get<double>(), 1.0);
  });
  EXPECT_EQ(diff("a/summary.json", "bit.json", 4)["counts"]["differ"], 0);
  copy_summary("a", "far.json", [](Json& summary) {
    Json& bias = summary["conditions"][0]["queries"][0]["head_bias"][1];
    const Json& error = summary["conditions"][0]["queries"][0]["head_bias_mcse"][1];
    bias = bias.get<double>() + 20 * error.get<double>();
  });
  const Json far = diff("a/summary.json", "far.json", 5);
  EXPECT_EQ(far["counts"]["differ"], 1);
  EXPECT_EQ(far["differences"][0]["figure"], "queries[0].head_bias[1]");
  EXPECT_EQ(far["differences"][0]["differs"], true);
  const std::string text = headlab({"diff", "a/summary.json", "far.json"}).out;
  EXPECT_NE(text.find("+14.14 *"), std::string::npos) << text;
  EXPECT_NE(text.find("1 figure differs (*): Holm over"), std::string::npos) << text;
}

TEST_F(DiffCommand, IsConservativeWhereDrawsAreSharedAndNodesAreNot) {
  run("a");
  run("wide", {"--set", "heads.kernel.bandwidth=0.81"});
  run("none", {"--set", "heads.kernel.bandwidth=0.81", "--nodes", "none"});
  const auto mse = [](const Json& json) {
    for (const Json& row : json["differences"]) {
      if (row["figure"] == "mse") return row;
    }
    return Json();
  };
  const Json paired = mse(diff("a", "wide", 5));
  const ProgramResult text = headlab({"diff", "a", "none"});
  EXPECT_NE(text.out.find("which is conservative"), std::string::npos) << text.out;
  const Json joint = mse(Json::parse(headlab({"diff", "a", "none", "--json", "-"}).out));
  EXPECT_EQ(joint["mcse_of_difference"], "conservative");
  EXPECT_EQ(joint["difference"]["value"], paired["difference"]["value"]);
  EXPECT_GT(joint["difference"]["mcse"].get<double>(),
            3 * paired["difference"]["mcse"].get<double>());
}

TEST_F(DiffCommand, MatchesConditionsByTheirSweptValues) {
  run("sweep", {}, "s.toml");
  run("single");
  const Json json = diff("sweep", "single", 4);
  EXPECT_EQ(json["matching"], 1);
  EXPECT_EQ(json["a_alone"], Json::parse(R"(["bandwidth = 0.4"])"));
  EXPECT_EQ(json["b_alone"], Json::array());
  // The condition itself has the bits that it has alone.
  EXPECT_EQ(json["counts"]["compared"], json["counts"]["same_bits"]);
  EXPECT_NE(headlab({"diff", "sweep", "single"}).out.find("only in A: bandwidth = 0.4\n"),
            std::string::npos);
}

TEST_F(DiffCommand, CountsWhatItCannotCompare) {
  run("a");
  run("three", {"--set", "heads.count=3", "--set", "heads.subspaces={law=\"haar\"}"});
  const Json heads = diff("a", "three", 5);
  EXPECT_EQ(heads["counts"]["in_one"], 4);  // bias and covariances of the third head
  run("moved", {"--set", "queries.points=[[1,0,0,0]]"});
  EXPECT_EQ(diff("a", "moved", 5)["counts"]["other_queries"], 6);
  run("few", {"--replicates", "4"});
  run("few2", {"--replicates", "4"});
  EXPECT_EQ(diff("few", "few2", 0)["outcome"], "same bits");
  EXPECT_GT(diff("a", "few", 4)["counts"]["undefined"], 10);
}

}  // namespace
}  // namespace headlab
