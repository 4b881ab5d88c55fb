// SPDX-License-Identifier: Apache-2.0
// headlab theory, run --compare and validate.
#include <algorithm>
#include <cmath>
#include <cstddef>
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

class TheoryCommands : public ProgramTest {};

TEST_F(TheoryCommands, ComputesClosedForms) {
  const Json json = Json::parse(headlab({"theory", "a.toml", "--set", "data.n=20000", "--source",
                                         "first_order", "--json", "-"})
                                    .out);
  const Json& condition = json["conditions"][0];
  EXPECT_EQ(condition["source"], "first_order");
  EXPECT_TRUE(condition["replicates"].is_null());
  const double of_mse = condition["mse"]["remainder"];
  EXPECT_GT(of_mse, 0);
  EXPECT_LT(of_mse, 0.1 * condition["mse"]["value"].get<double>());
  EXPECT_GT(condition["queries"][0]["head_bias_remainder"][0].get<double>(), 0);
  const double value = condition["head_variance_mean"]["value"];
  const double remainder = condition["head_variance_mean"]["remainder"];
  EXPECT_GT(value, 0);
  EXPECT_GT(std::abs(remainder), 1e-6 * value);
  EXPECT_LT(std::abs(remainder), 0.1 * value);
  EXPECT_EQ(condition["queries"][0]["head_covariance_remainder"].size(), 2u);
  EXPECT_EQ(json.dump().find("mcse"), std::string::npos);
  // The same keys as a simulation's, in the same order, except what only one of them has.
  const Json run = Json::parse(headlab({"run", "a.toml", "--json", "-"}).out);
  std::vector<std::string> keys, expected = {"source", "certificate"};
  for (const auto& [key, one] : condition.items()) keys.push_back(key);
  for (const auto& [key, one] : run["conditions"][0].items()) {
    if (key != "extremes" && key != "few_carriers") expected.push_back(key);
  }
  EXPECT_EQ(keys, expected);
}

TEST_F(TheoryCommands, SetsTheoryBesideTheSimulation) {
  const Json json = Json::parse(
      headlab({"run", "a.toml", "--compare", "--set", "data.n=4000", "--json", "-"}).out);
  const Json& theory = json["conditions"][0]["theory"];
  for (const char* figure : {"variance_term", "covariance_term", "output_correlation"}) {
    EXPECT_LT(std::abs(theory["z"][figure].get<double>()), 5) << figure;
  }
  ASSERT_EQ(theory["largest_z"].size(), 3u);
  for (const Json& largest : theory["largest_z"]) {
    EXPECT_LT(std::abs(largest["z"].get<double>()), 5) << largest;
  }
  const Json simulated = Json::parse(headlab({"run", "a.toml", "--json", "-"}).out);
  EXPECT_FALSE(simulated["conditions"][0].contains("theory"));
}

TEST_F(TheoryCommands, ComparesToRoundingWhereNothingIsRandom) {
  const Json json =
      Json::parse(headlab({"run", "a.toml", "--compare", "--set", "data.fixed_design=true",
                           "--backend", "reference", "--json", "-"})
                      .out);
  const Json& condition = json["conditions"][0];
  EXPECT_EQ(condition["theory"]["source"], "exact");
  EXPECT_TRUE(condition["theory"]["z"]["mse"].is_null());
  EXPECT_NEAR(condition["theory"]["mse"]["value"], condition["mse"]["value"], 1e-15);
}

TEST_F(TheoryCommands, ValidatesAndItsCertificateReplaysToTheBit) {
  const ProgramResult verdicts =
      headlab({"validate", "angles", "--out", "v", "--json", "-", "--quiet"});
  ASSERT_EQ(verdicts.code, 0) << verdicts.err;
  EXPECT_EQ(verdicts.err, "");
  EXPECT_EQ(verdicts.out, contents(folder_ / "v/verdicts.json"));
  const Json json = Json::parse(verdicts.out);
  EXPECT_EQ(json["claims"][0]["effect"]["zone"], "two-sided");  // centre
  EXPECT_EQ(json["claims"][1]["effect"]["zone"], "one-sided");  // query average
  const auto refuted =
      std::find_if(json["claims"].begin(), json["claims"].end(),
                   [](const Json& claim) { return !claim["certificate"].is_null(); });
  ASSERT_NE(refuted, json["claims"].end());
  EXPECT_EQ((*refuted)["verdict"], "refuted");
  const std::string report = contents(folder_ / "v/report.md");
  EXPECT_NE(report.find((*refuted)["statement"].get<std::string>()), std::string::npos);

  // The words of the replay command, behind "headlab".
  std::istringstream words((*refuted)["replay"].get<std::string>());
  Arguments replay{std::istream_iterator<std::string>(words), {}};
  ASSERT_EQ(replay.front(), "headlab");
  replay.erase(replay.begin());
  replay.insert(replay.end(), {"--json", "-", "--quiet"});
  const ProgramResult again = headlab(replay);
  ASSERT_EQ(again.code, 0) << again.err;
  const Json conditions = Json::parse(again.out)["conditions"];
  const Json& mse = (*refuted)["certificate"]["values"];
  ASSERT_EQ(conditions.size(), 2u);
  for (const std::size_t i : {0u, 1u}) {
    EXPECT_EQ(conditions[i]["mse"]["value"], mse[i]["value"]);
    EXPECT_EQ(conditions[i]["mse"]["mcse"], mse[i]["mcse"]);
  }
  // Another seed gives other bits.
  replay[std::find(replay.begin(), replay.end(), "--seed") - replay.begin() + 1] = "1";
  EXPECT_NE(Json::parse(headlab(replay).out)["conditions"][0]["mse"]["value"], mse[0]["value"]);
}

}  // namespace
}  // namespace headlab
