// SPDX-License-Identifier: Apache-2.0
// headlab theory, run --compare and validate.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
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
  const Arguments many = {"--set", "data.n=20000", "--source", "first_order"};
  Arguments arguments = {"theory", "a.toml"};
  arguments.insert(arguments.end(), many.begin(), many.end());
  const ProgramResult table = headlab(arguments);
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_EQ(table.err, "");
  for (const char* word : {"cli test\n", "sum = MSE", "output correlation C/V", "chordal",
                           "theory: first order in 1/n, "}) {
    EXPECT_NE(table.out.find(word), std::string::npos) << word << "\n" << table.out;
  }
  EXPECT_EQ(table.out.find("±"), std::string::npos);
  // Remainders are explained where there are any.
  EXPECT_NE(table.out.find("(in parentheses: "), std::string::npos) << table.out;
  const ProgramResult given = headlab({"theory", "a.toml", "--set", "data.fixed_design=true"});
  EXPECT_EQ(given.code, 0) << given.err;
  EXPECT_EQ(given.out.find("parentheses"), std::string::npos) << given.out;

  arguments.insert(arguments.end(), {"--json", "-"});
  const Json json = Json::parse(headlab(arguments).out);
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
  const Arguments arguments = {"run", "a.toml", "--compare", "--set", "data.n=4000"};
  const ProgramResult table = headlab(arguments);
  EXPECT_EQ(table.code, 0) << table.err;
  for (const char* word :
       {"simulation", "theory", "largest |z|: bias of head ", "V, mean over heads",
        "z = (simulation - theory)/sqrt(MCSE² + remainder² + rounding²)"}) {
    EXPECT_NE(table.out.find(word), std::string::npos) << word << "\n" << table.out;
  }
  Arguments as_json = arguments;
  as_json.insert(as_json.end(), {"--json", "-"});
  const Json json = Json::parse(headlab(as_json).out);
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

TEST_F(TheoryCommands, RefusesWhatHasNoClosedFormBeforeSimulating) {
  // So many replicates that a run which had begun would not come back.
  const std::string forever = "--replicates=1000000000000";
  const ProgramResult compare =
      headlab({"run", "a.toml", forever, "--compare", "--set", "data.design.law=\"sphere\""});
  EXPECT_EQ(compare.code, 2);
  EXPECT_EQ(compare.out, "");
  EXPECT_EQ(std::count(compare.err.begin(), compare.err.end(), '\n'), 1);
  EXPECT_NE(compare.err.find("data.design: closed forms need a normal or mixture design; law "
                             "\"sphere\" is neither - simulate with headlab run"),
            std::string::npos)
      << compare.err;
  const ProgramResult narrow = headlab({"theory", "s.toml", "--source", "first_order", "--set",
                                        "data.n=12", "--set", "queries.points=[[3, 3, 3, 3]]"});
  EXPECT_EQ(narrow.code, 2);
  EXPECT_TRUE(narrow.err.starts_with("headlab: condition #0 of 2: first order in 1/n: "))
      << narrow.err;
  EXPECT_TRUE(files().empty());
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

TEST_F(TheoryCommands, ValidateSaysByItsCodeThatAVerdictIsOpen) {
  const ProgramResult few =
      headlab({"validate", "decomposition", "--replicates", "8192", "--quiet"});
  EXPECT_EQ(few.code, 6);
  EXPECT_NE(few.out.find("unresolved (expected supported)"), std::string::npos) << few.out;
  EXPECT_NE(few.out.find("replicates would decide"), std::string::npos) << few.out;
  const ProgramResult cut =
      headlab({"validate", "decomposition", "--max-time", "0.001", "--quiet"});
  EXPECT_EQ(cut.code, 6);
  EXPECT_EQ(cut.err, "headlab: --max-time reached: verdicts not reached are unresolved\n");
}

TEST_F(TheoryCommands, ValidateRefusesWhatItCannotDo) {
  const std::vector<std::pair<Arguments, std::string>> table = {
      {{"validate", "angels"}, "unknown claim \"angels\" (allowed: "},
      {{"validate", "--replicates", "10"}, "--replicates 10: too few for a verdict"},
      {{"validate", "--level", "ful"}, "--level: \"ful\" is unknown (allowed: quick, full) - did"},
      {{"validate", "--calibrate", "angles"}, "--calibrate"},
      {{"validate", "angles", "--level", "full", "--replicates", "2000"},
       "--replicates: not with --level full, which says how many"},
      {{"validate", "--json", "no/such/folder.json"}, "--json"},
      {{"validate", "angles", "--overwrite"}, "--overwrite: needs --out"},
      {{"validate", "angles", "--out", "v"}, "--out: v/report.md: is there already - write "},
      {{"validate", "angles", "--out", "c"}, "--out: c/angles_off_centre_chordal.toml: is there"},
      {{"validate", "--calibrate", "--out", "k"}, "--out: k/calibration.md: is there already"}};
  for (const char* file : {"v/report.md", "c/angles_off_centre_chordal.toml", "k/calibration.md"}) {
    fs::create_directories((folder_ / file).parent_path());
    std::ofstream(folder_ / file) << "earlier";
  }
  const std::vector<std::string> before = files();
  for (const auto& [arguments, message] : table) {
    const ProgramResult outcome = headlab(arguments);
    EXPECT_EQ(outcome.code, 2) << message;
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
  EXPECT_EQ(files(), before);
}

}  // namespace
}  // namespace headlab
