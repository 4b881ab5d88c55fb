// SPDX-License-Identifier: Apache-2.0
#include "engine/results/summary_json.h"

#include <bit>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/scenario/scenario.h"
#include "engine/testing/hand_made_result.h"

namespace headlab {
namespace {

using Json = nlohmann::ordered_json;
using Keys = std::vector<std::string>;

Keys keys_of(const Json& object) {
  Keys keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

Json summary(const Scenario& scenario, const RunResult& result) {
  std::string text;
  write_summary_json([&](std::string_view part) { text += part; }, scenario, result,
                     hand_made::indices(result), hand_made::program);
  return Json::parse(text);
}

Json summary(const std::vector<std::string>& sets = {}) {
  const Scenario scenario = hand_made::scenario(sets);
  return summary(scenario, hand_made::result(scenario));
}

const Keys figure_keys = {"value", "mcse"};

TEST(SummaryJson, HasTheDocumentedKeysInOrder) {
  const Json json = summary();
  EXPECT_EQ(keys_of(json), (Keys{"headlab", "results_id", "complete", "conditions", "sha256"}));
  EXPECT_EQ(keys_of(json["headlab"]),
            (Keys{"version", "git", "backend", "simd", "device", "threads", "seed"}));
  ASSERT_EQ(json["conditions"].size(), 1u);
  const Json& condition = json["conditions"][0];
  Keys keys = {"parameters", "replicates", "n", "estimator", "head_weights"};
  const ErrorTerms<Estimate> terms;
  for (const auto& figure : numbers_of(terms)) {
    keys.emplace_back(figure.name);
    EXPECT_EQ(keys_of(condition[figure.name]), figure_keys) << figure.name;
  }
  keys.insert(keys.end(), {"indices", "queries", "empty_windows", "narrow_windows", "seconds",
                           "weights_per_second", "extremes"});
  EXPECT_EQ(keys_of(condition), keys);
  EXPECT_EQ(keys_of(condition["indices"]), (Keys{"chordal", "qk", "output"}));
  EXPECT_EQ(keys_of(condition["indices"]["chordal"]), (Keys{"value", "ceiling"}));
  EXPECT_EQ(keys_of(condition["indices"]["output"]), (Keys{"value", "mcse", "ceiling"}));
  ASSERT_EQ(condition["queries"].size(), 2u);
  EXPECT_EQ(keys_of(condition["queries"][1]),
            (Keys{"x", "truth", "mse", "head_bias", "head_bias_mcse", "head_covariance",
                  "head_covariance_mcse"}));
}

TEST(SummaryJson, SaysWhatMadeIt) {
  const Json json = summary();
  EXPECT_EQ(json["headlab"].dump(),
            R"({"version":"9.8.7","git":"abc1234","backend":"cpu","simd":"AVX2",)"
            R"("device":"a processor","threads":3,"seed":7})");
  EXPECT_EQ(json["complete"], true);
  const Json& parameters = json["conditions"][0]["parameters"];
  EXPECT_EQ(parameters["scenario"]["name"], "hand made ± \"quoted\"");
  EXPECT_EQ(parameters["heads"]["kernel"]["bandwidth"], 0.5);
}

void expect_same_bits(const Json& json, double number) {
  EXPECT_EQ(std::bit_cast<std::uint64_t>(json.get<double>()), std::bit_cast<std::uint64_t>(number));
}

TEST(SummaryJson, KeepsTheBitsOfEveryFigure) {
  const Scenario scenario = hand_made::scenario();
  const RunResult result = hand_made::result(scenario);
  const ConditionEstimates& estimates = result.conditions[0].estimates;
  const Json json = summary(scenario, result)["conditions"][0];
  expect_same_bits(json["mse"]["value"], estimates.mse.value);
  expect_same_bits(json["mse"]["mcse"], estimates.mse.mcse);
  expect_same_bits(json["output_correlation"]["mcse"], estimates.output_correlation.mcse);
  for (std::size_t q = 0; q < 2; ++q) {
    const QueryEstimates& at = estimates.queries[q];
    const Json& query = json["queries"][q];
    expect_same_bits(query["x"][0], result.conditions[0].plan.query_points[4 * q]);
    expect_same_bits(query["truth"], result.conditions[0].plan.truth[q]);
    for (std::size_t h = 0; h < 2; ++h) {
      expect_same_bits(query["head_bias"][h], at.head_bias[h].value);
      for (std::size_t l = 0; l < 2; ++l) {
        expect_same_bits(query["head_covariance"][h][l], at.head_covariance[2 * h + l].value);
        expect_same_bits(query["head_covariance_mcse"][h][l], at.head_covariance[2 * h + l].mcse);
      }
    }
  }
}

TEST(SummaryJson, GivesNullForWhatIsUndefined) {
  const Json one_head = summary({"heads.count=1"})["conditions"][0];
  EXPECT_TRUE(one_head["output_correlation"]["value"].is_null());
  EXPECT_TRUE(one_head["head_covariance_mean"]["value"].is_null());
  EXPECT_TRUE(one_head["indices"]["qk"]["value"].is_null());
  EXPECT_TRUE(one_head["indices"]["qk"]["ceiling"].is_null());
  EXPECT_TRUE(one_head["mse"]["value"].is_number());
}

TEST(SummaryJson, GivesNullForFiguresOfHeadsAndQueriesThatAreRedrawn) {
  const Json json = summary({"heads.subspaces={law=\"haar\", redraw=true}"})["conditions"][0];
  EXPECT_EQ(json["redraw"], "heads");
  EXPECT_TRUE(json["mse"]["mcse"].is_number());
  ASSERT_EQ(json["queries"].size(), 2u);
  EXPECT_TRUE(json["queries"][0]["mse"]["value"].is_null());
  EXPECT_EQ(json["queries"][0]["head_bias"].dump(), "[null,null]");
  EXPECT_TRUE(json["queries"][0]["head_covariance"].is_null());
  EXPECT_TRUE(json["queries"][0]["truth"].is_number());
  const Json queries = summary({"queries={law=\"design\", count=2, redraw=true}"})["conditions"][0];
  EXPECT_EQ(queries["redraw"], "queries");
  EXPECT_TRUE(queries["queries"][0]["truth"].is_null());
  EXPECT_EQ(queries["queries"][0]["x"].dump(), "[null,null,null,null]");
  EXPECT_TRUE(queries["mse"]["query_se"].is_null());
  EXPECT_FALSE(summary()["conditions"][0].contains("redraw"));
}

TEST(SummaryJson, GivesNoStandardErrorBelowEightReplicates) {
  const Scenario scenario = hand_made::scenario();
  const Json json = summary(scenario, hand_made::result(scenario, 7));
  EXPECT_EQ(json["complete"], false);
  EXPECT_TRUE(json["conditions"][0]["mse"]["value"].is_number());
  EXPECT_TRUE(json["conditions"][0]["mse"]["mcse"].is_null());
}

TEST(SummaryJson, IsWholeForAConditionStoppedBeforeItsFirstReplicate) {
  const Scenario scenario = hand_made::scenario();
  const Json json = summary(scenario, hand_made::result(scenario, 0))["conditions"][0];
  EXPECT_EQ(json["replicates"], 0);
  EXPECT_TRUE(json["mse"]["value"].is_null());
  ASSERT_EQ(json["queries"].size(), 2u);
  EXPECT_EQ(json["queries"][0]["head_bias"].dump(), "[null,null]");
  EXPECT_TRUE(json["queries"][0]["head_covariance"].is_null());
}

TEST(SummaryJson, LeavesMatricesToResultsWhereThereAreMany) {
  const Json aggregate = summary({"run.moments=\"aggregate\""})["conditions"][0];
  EXPECT_TRUE(aggregate["queries"][0]["head_covariance"].is_null());
  EXPECT_TRUE(aggregate["queries"][0]["head_covariance_mcse"].is_null());

  // 25000 queries of two heads make 10^5 numbers, one more query makes more.
  for (const int queries : {25000, 25001}) {
    const Scenario scenario = hand_made::scenario(
        {"queries={ law = \"design\", count = " + std::to_string(queries) + " }"});
    const Json json = summary(scenario, hand_made::result(scenario, 2))["conditions"][0];
    ASSERT_EQ(json["queries"].size(), static_cast<std::size_t>(queries));
    EXPECT_EQ(json["queries"][0]["head_covariance"].is_null(), queries == 25001);
  }
}

TEST(SummaryJson, ShowsTheErrorOverQueriesDrawnFromTheDesign) {
  const Json json = summary({"queries={ law = \"design\", count = 5 }"})["conditions"][0];
  EXPECT_EQ(keys_of(json["mse"]), (Keys{"value", "mcse", "query_se"}));
  EXPECT_GT(json["mse"]["query_se"], 0.0);
}

TEST(SummaryJson, CountsEmptyWindowsWhereTheKernelHasThem) {
  EXPECT_TRUE(summary()["conditions"][0]["empty_windows"].is_number());
  const Json softmax = summary({"heads.kernel={ law = \"softmax\", temperature = 1.0 }"});
  EXPECT_TRUE(softmax["conditions"][0]["empty_windows"].is_null());
  EXPECT_TRUE(softmax["conditions"][0]["narrow_windows"].is_number());
}

TEST(SummaryJson, RecordsTheHeadWeightsUsed) {
  const Json json = summary({"heads.weights={ law = \"explicit\", values = [0.25, 0.5] }"});
  EXPECT_EQ(json["conditions"][0]["head_weights"].dump(), "[0.25,0.5]");
}

TEST(SummaryJson, HasNoSingleSeedWhereTheSweepVariesIt) {
  const Scenario scenario = hand_made::scenario({}, "[sweep]\n\"run.seed\" = [1, 2]\n");
  const Json json = summary(scenario, hand_made::result(scenario));
  EXPECT_TRUE(json["headlab"]["seed"].is_null());
  EXPECT_EQ(json["conditions"][1]["parameters"]["run"]["seed"], 2);
}

}  // namespace
}  // namespace headlab
