// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tools/cli/testing/command_line_fixture.h"

namespace headlab {
namespace {

namespace fs = std::filesystem;
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

TEST_F(DiffCommand, RefusesWhatIsNotAResult) {
  run("a");
  run("b", {"--seed", "9"});
  run("c", {"--set", "heads.kernel.bandwidth=0.5"});
  run("s", {}, "s.toml");
  fs::create_directory(folder_ / "empty");
  fs::create_directory(folder_ / "mixed");
  fs::copy(folder_ / "a/results.nc", folder_ / "mixed/results.nc");
  fs::copy(folder_ / "b/summary.json", folder_ / "mixed/summary.json");
  ASSERT_EQ(headlab({"theory", "a.toml", "--json", "theory.json"}).code, 0);
  std::ofstream(folder_ / "other.json") << "{\"a\": 1}";
  std::ofstream(folder_ / "broken.json") << "{\"a\": ";
  copy_summary("a", "no_mse.json", [](Json& s) { s["conditions"][0].erase("mse"); });
  const std::string not_results = ": no results of headlab run, or damaged";
  expect_refusals({
      {{"diff"}, "diff: needs two results - write headlab diff A B"},
      {{"diff", "a"}, "diff: needs two results - write headlab diff A B"},
      {{"diff", "a", "b", "c"}, "diff: unexpected argument \"c\" - try headlab help diff"},
      {{"diff", "a", "nowhere"}, "nowhere: there is no such file or folder"},
      {{"diff", "empty", "a"}, "empty: has no results of headlab run (results.nc or summary.json)"},
      {{"diff", "a", "mixed"},
       "mixed: results.nc and summary.json are of different states of a run (results_id) - name "
       "one of the files, or resume the run"},
      {{"diff", "a", "theory.json"},
       "theory.json: has closed forms of headlab theory, not results of headlab run"},
      {{"diff", "a", "other.json"}, "other.json" + not_results},
      {{"diff", "a", "broken.json"}, "broken.json: no results of headlab run (is not JSON)"},
      {{"diff", "a", "no_mse.json"}, "no_mse.json" + not_results},
      {{"diff", "c", "s"},
       "c/results.nc and s/results.nc: have no condition in common (A: bandwidth = 0.5; B: "
       "bandwidth = 0.4 and 1 more)"},
      {{"diff", "a", "b", "--json", "a/results.nc"},
       "--json: would write over a/results.nc, which is read here - choose another place"},
  });
  EXPECT_EQ(headlab({"diff", "a", "a.toml"}).code, 2);
  // A file cut short.
  fs::copy(folder_ / "a/results.nc", folder_ / "cut.nc");
  fs::resize_file(folder_ / "cut.nc", fs::file_size(folder_ / "cut.nc") / 2);
  const ProgramResult cut = headlab({"diff", "a", "cut.nc"});
  EXPECT_EQ(cut.code, 2);
  EXPECT_EQ(std::count(cut.err.begin(), cut.err.end(), '\n'), 1) << cut.err;
}

}  // namespace
}  // namespace headlab
