// SPDX-License-Identifier: Apache-2.0
// headlab diff of numbers.
#include <cmath>
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
  /// Runs a.toml into a folder.
  void run(const std::string& out, const Arguments& more = {}) const {
    Arguments arguments = {"run", "a.toml", "--out", out, "--quiet"};
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

}  // namespace
}  // namespace headlab
