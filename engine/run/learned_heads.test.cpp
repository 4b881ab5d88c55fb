// SPDX-License-Identifier: Apache-2.0
#include "engine/run/learned_heads.h"

#include <atomic>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/files/error.h"
#include "engine/files/models/head_file.h"
#include "engine/files/netcdf/file.h"
#include "engine/files/provenance.h"
#include "engine/results/results_netcdf.h"
#include "engine/results/summary_json.h"
#include "engine/run/run.h"
#include "engine/run/simulate.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/subspaces.h"
#include "engine/testing/folder_test.h"
#include "kernels/cpu/backend.h"
#include "kernels/decompositions.h"

namespace headlab {
namespace {

/// Two heads of dimension 1 in three coordinates, of which the truth sees two.
std::string text_with(const std::string& subspaces,
                      const std::string& kernel = "{ law = \"gaussian\", bandwidth = 0.4 }",
                      const std::string& weights = "{ law = \"uniform\" }",
                      const std::string& estimator = "conditional") {
  return "[scenario]\nname = \"learned\"\n[data]\nn = 60\n"
         "design = { law = \"normal\", dim = 3 }\n"
         "regression = { law = \"linear\", coefficients = [1, 1, 0] }\n"
         "noise = { law = \"normal\", sd = 0.1 }\n"
         "[heads]\ncount = 2\ndim = 1\nsubspaces = " +
         subspaces + "\nkernel = " + kernel + "\nweights = " + weights +
         "\n[queries]\nlaw = \"points\"\npoints = [[0.5, 0, 0]]\n"
         "[run]\nseed = 3\nreplicates = 6\nestimator = \"" +
         estimator + "\"\n";
}

std::string learned(const std::string& parameters) {
  return "{ law = \"learned\", steps = 20, batch = 8" +
         (parameters.empty() ? std::string() : ", " + parameters) + " }";
}

Scenario learned_scenario(const std::string& text, const std::string& directory = ".") {
  return parse_scenario(text, "s.toml", {}, directory);
}

/// What is learned for the first condition of a scenario.
Preparation learn(const Condition& condition, int threads = 1) {
  return learn_heads(condition, {.backend = "cpu", .threads = threads}).value();
}

Plan learned_plan(const std::string& text) {
  const Condition condition = learned_scenario(text).conditions[0];
  return make_plan(condition, learn(condition));
}

std::string refusal(const std::string& text) {
  return refusal_line([&] { learned_scenario(text); });
}

TEST(LearnedHeads, AreRefusedInOneLineWhereTheyCannotBeLearned) {
  const std::string softmax = "{ law = \"softmax\", temperature = 1.0 }";
  const std::string explicit_law =
      "{ law = \"explicit\", matrices = [[[1], [0], [0]], [[0], [1], [0]]], query_matrices = ";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {text_with("{ law = \"learned\", fit = \"twice\" }"),
       "s.toml:11:38: heads.subspaces.fit: is \"twice\" (allowed: once, per_replicate)"},
      {text_with("{ law = \"learned\", start = \"har\" }"),
       "s.toml:11:40: heads.subspaces.start: is \"har\" (allowed: identical, haar, orthogonal) - "
       "did you mean \"haar\"?"},
      {text_with("{ law = \"learned\", matrices = \"any\" }"),
       "s.toml:11:43: heads.subspaces.matrices: is \"any\" (allowed: orthonormal, free, "
       "query_key)"},
      {text_with("{ law = \"learned\", steps = -1 }"),
       "s.toml:11:40: heads.subspaces.steps: is -1, must be in [0, 1000000]"},
      {text_with("{ law = \"learned\", learning_rate = nan }"),
       "s.toml:11:48: heads.subspaces.learning_rate: is nan, needs a finite number"},
      {text_with("{ law = \"learned\", points = 3, held_out = 0.5 }"), "accepted"},
      {text_with("{ law = \"learned\", points = 2, held_out = 0.5 }"),
       "s.toml:11:41: heads.subspaces.points: leaves 1 of 2 points to learn on, needs 2"},
      {text_with("{ law = \"learned\", points = 4, held_out = 0.1 }"),
       "s.toml:11:55: heads.subspaces.held_out: of 4 points is less than one - use held_out = 0"},
      {text_with("{ law = \"learned\", spread = 0 }"),
       "s.toml:11:41: heads.subspaces.spread: is 0, must be in [1e-06, 1]"},
      {text_with("{ law = \"learned\", learning_rate = 11 }"),
       "s.toml:11:48: heads.subspaces.learning_rate: is 11, must be in [1e-09, 10]"},
      {text_with("{ law = \"learned\", fit = \"per_replicate\", points = 9 }"),
       "s.toml:11:64: heads.subspaces.points: has no effect with fit = \"per_replicate\" - remove "
       "it"},
      {text_with("{ law = \"learned\", fit = \"per_replicate\" }"),
       "s.toml:20:13: run.estimator: must be \"plain\": heads that are learned in every replicate "
       "depend on its noise"},
      {text_with("{ law = \"learned\", fit = \"per_replicate\" }",
                 "{ law = \"gaussian\", bandwidth = 0.4 }", "{ law = \"optimal\" }", "plain"),
       "s.toml:13:11: heads.weights: of law \"optimal\" need the same heads in every replicate - "
       "use uniform or learned weights, or fit = \"once\""},
      {text_with("{ law = \"learned\" }", "{ law = \"laplace\", bandwidth = 1 }"),
       "s.toml:12:10: heads.kernel: cannot be learned through (allowed with law \"learned\": "
       "gaussian, softmax)"},
      {text_with("{ law = \"learned\", matrices = \"query_key\" }"),
       "s.toml:12:10: heads.kernel: must have law \"softmax\", because matrices of their own "
       "project the queries"},
      {text_with("{ law = \"haar\" }", "{ law = \"gaussian\", bandwidth = 0.4 }",
                 "{ law = \"learned\" }"),
       "s.toml:13:11: heads.weights: have law \"learned\", which needs subspaces of law "
       "\"learned\" too"},
      {text_with(explicit_law + "[[[1], [0], [0]]] }", softmax),
       "s.toml:11:97: heads.subspaces.query_matrices: has 1 matrix, needs 2, one for each "
       "head"},
      {text_with(explicit_law + "[[[1], [0], [0]], [[3], [1], [0]]] }"),
       "s.toml:12:10: heads.kernel: must have law \"softmax\", because matrices of their own "
       "project the queries"}};
  for (const auto& [text, line] : cases) EXPECT_EQ(refusal(text), line);
}

TEST(LearnedHeads, DoNotDependOnTheRun) {
  const std::string text = text_with(learned(""));
  Condition condition = learned_scenario(text).conditions[0];
  const Preparation found = learn(condition);
  const auto keys = make_plan(condition, found).projections;
  EXPECT_EQ(found.heads->points, 60u);

  condition.seed = 99;
  condition.replicates = 7;
  EXPECT_EQ(make_plan(condition, learn(condition, 3)).projections, keys);

  EXPECT_NE(learned_plan(text_with(learned("seed = 1"))).projections, keys);
  EXPECT_NE(learned_plan(text_with(learned("points = 61"))).projections, keys);
}

TEST(LearnedHeads, StartAlikeButNotTheSame) {
  const Condition condition = learned_scenario(text_with(learned("spread = 0.001"))).conditions[0];
  const auto keys = make_learning(condition).start.keys;
  double cosine = 0;
  for (std::size_t c = 0; c < 3; ++c) cosine += keys[c] * keys[3 + c];
  EXPECT_LT(cosine, 1);
  EXPECT_GT(cosine, 1 - 1e-4);
}

TEST(LearnedHeads, OfAFixedDesignAreLearnedOnThatDesign) {
  const auto keys_on = [&](const std::string& design_seed) {
    std::string text = text_with(learned(""));
    text.replace(text.find("n = 60"), 6,
                 "n = 60\nfixed_design = true\ndesign_seed = " + design_seed);
    return learned_plan(text).projections;
  };
  EXPECT_NE(keys_on("0"), keys_on("1"));
}

TEST(LearnedHeads, WeightsAreLearnedWithThem) {
  const Condition condition =
      learned_scenario(text_with(learned(""), "{ law = \"gaussian\", bandwidth = 0.4 }",
                                 "{ law = \"learned\" }"))
          .conditions[0];
  const Preparation prepared = learn(condition);
  const Plan plan = make_plan(condition, prepared);
  EXPECT_EQ(plan.head_weights, prepared.heads->fit.heads.weights);
  EXPECT_NE(plan.head_weights, (std::vector<double>{0.5, 0.5}));
}

Eigen::MatrixXd head(const std::vector<double>& numbers, int h, int d, int k) {
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<const RowMajor>(numbers.data() + h * d * k, d, k);
}

TEST(LearnedHeads, AreLearnedForTheWeightsOfTheScenario) {
  const std::string gaussian = "{ law = \"gaussian\", bandwidth = 0.4 }";
  const auto keys = [&](const std::string& weights) {
    return learned_plan(text_with(learned(""), gaussian, weights)).projections;
  };
  const auto equal = keys("{ law = \"uniform\" }");
  EXPECT_EQ(keys("{ law = \"explicit\", values = [0.5, 0.5] }"), equal);
  EXPECT_NE(keys("{ law = \"explicit\", values = [0.9, 0.1] }"), equal);
}

TEST(LearnedHeads, OfEveryReplicateKeepGivenWeightsInAggregateMoments) {
  const auto mse = [&](const std::string& moments) {
    const std::string text =
        text_with(learned("fit = \"per_replicate\""), "{ law = \"gaussian\", bandwidth = 0.4 }",
                  "{ law = \"explicit\", values = [0.9, 0.1] }", "plain") +
        "moments = \"" + moments + "\"\n";
    return run(learned_scenario(text), {.backend = "cpu", .threads = 1})
        .conditions[0]
        .estimates.mse.value;
  };
  EXPECT_NEAR(mse("aggregate"), mse("pairwise"), 1e-6);
}

TEST(LearnedHeads, OfEveryReplicateStopWhileTheyAreLearned) {
  const Scenario scenario = learned_scenario(
      text_with(learned("fit = \"per_replicate\", held_out = 0"),
                "{ law = \"gaussian\", bandwidth = 0.4 }", "{ law = \"uniform\" }", "plain"));
  const Plan plan = make_plan(scenario.conditions[0]);
  // Three replicates take 60 steps, each of which asks once; the fourth is given up.
  std::atomic<int> asked = 0;
  const MomentTree tree =
      simulate(plan, *make_cpu_backend(), 1, 6, {.stop = [&] { return ++asked > 70; }});
  EXPECT_LT(tree.count(), 6u);
}

TEST(LearnedHeads, SeparateMatricesKeepTheirLogits) {
  const Condition condition =
      learned_scenario(text_with(learned("matrices = \"query_key\""),
                                 "{ law = \"softmax\", temperature = 1.0 }"))
          .conditions[0];
  const Preparation prepared = learn(condition);
  const HeadParameters& found = prepared.heads->fit.heads;
  EXPECT_NE(found.queries, found.keys);
  const Plan plan = make_plan(condition, prepared);
  for (int h = 0; h < 2; ++h) {
    const Eigen::MatrixXd w = head(plan.projections, h, 3, 1);
    EXPECT_NEAR((w.transpose() * w)(0, 0), 1, 1e-14);
    const Eigen::MatrixXd logits = w * head(plan.query_projections, h, 3, 1).transpose();
    const Eigen::MatrixXd wanted =
        head(found.keys, h, 3, 1) * head(found.queries, h, 3, 1).transpose();
    EXPECT_TRUE(((logits - wanted).cwiseAbs().maxCoeff() <= 1e-14 * wanted.norm()));
  }
}

TEST(LearnedHeads, FreeMatricesHaveSubspacesAllTheSame) {
  const Condition condition =
      learned_scenario(text_with(learned("matrices = \"free\""))).conditions[0];
  const Preparation found = learn(condition);
  const Eigen::MatrixXd w = head(make_plan(condition, found).projections, 0, 3, 1);
  EXPECT_GT(std::abs(w.norm() - 1), 1e-3);
  const Eigen::MatrixXd basis = subspace_bases(condition, found)[0];
  EXPECT_NEAR(basis.norm(), 1, 1e-14);
  EXPECT_NEAR(std::abs((basis.transpose() * w)(0, 0)), w.norm(), 1e-14);
}

TEST(LearnedHeads, OfEveryReplicateHaveTheSameBitsOnAnyNumberOfThreads) {
  const Scenario scenario = learned_scenario(text_with(learned("fit = \"per_replicate\""),
                                                       "{ law = \"gaussian\", bandwidth = 0.4 }",
                                                       "{ law = \"learned\" }", "plain"));
  const RunResult one = run(scenario, {.backend = "cpu", .threads = 1});
  const RunResult three = run(scenario, {.backend = "cpu", .threads = 3});
  EXPECT_EQ(one.conditions[0].estimates.mse.value, three.conditions[0].estimates.mse.value);
  EXPECT_GT(one.conditions[0].estimates.mse.value, 0);
}

/// Separate matrices fitted to few noisy keys learn these keys: held-out points seen from others
/// have a larger error.
TEST(LearnedHeads, HaveALargerErrorAtFreshKeys) {
  double held_out = 0, fresh = 0;
  for (int seed = 0; seed < 8; ++seed) {
    const std::string law =
        "{ law = \"learned\", steps = 300, batch = 16, matrices = \"query_key\", held_out = 0.5, "
        "patience = 1000, seed = " +
        std::to_string(seed) + " }";
    const Condition condition =
        learned_scenario(text_with(law, "{ law = \"softmax\", temperature = 0.3 }")).conditions[0];
    const auto heads = learn(condition).heads;
    held_out += *heads->fit.held_out_error;
    fresh += *heads->fresh_key_error;
    EXPECT_NE(*heads->fit.held_out_error, *heads->fresh_key_error);
  }
  EXPECT_GT(fresh, held_out);
}

class LearnedFiles : public FolderTest {};

TEST_F(LearnedFiles, AreInTheResultsWithTheirCourse) {
  const Scenario scenario = learned_scenario(text_with(learned("")));
  const RunResult result = run(scenario, {.backend = "cpu", .threads = 1});
  std::string text;
  write_summary_json([&](std::string_view part) { text += part; }, scenario, result, {},
                     provenance());
  const auto json = nlohmann::json::parse(text)["conditions"][0];
  EXPECT_EQ(json["learned"]["fit"], "once");
  EXPECT_EQ(json["learned"]["points"], 60);
  EXPECT_EQ(json["learned"]["held_out"], 12);
  EXPECT_TRUE(json["learned"]["held_out_error"].is_number());
  EXPECT_TRUE(json["learned"]["fresh_key_error"].is_number());

  write_results(at("learned.nc"), scenario, result, {}, provenance());
  {
    const NetcdfInput file(at("learned.nc"));
    EXPECT_EQ(file.root().doubles("projections"), result.conditions[0].plan.projections);
    EXPECT_EQ(file.root().doubles("fresh_key_error")[0],
              result.conditions[0].found.heads->fresh_key_error);
    const NetcdfGroup history = file.root().find_group("history");
    const auto steps = history.integers("step");
    const Fit& fit = result.conditions[0].found.heads->fit;
    ASSERT_EQ(steps.size(), fit.history.size());
    EXPECT_EQ(steps.back(), static_cast<std::int64_t>(fit.history.back().step));
    const std::vector<std::size_t> shape = {steps.size(), 2, 3, 1};
    EXPECT_EQ(history.shape("projections"), shape);
    EXPECT_TRUE(std::isnan(history.doubles("batch_error")[0]));
  }
}

TEST_F(LearnedFiles, HaveQueryMatricesThatHaveTheLogitsOfItsMatrices) {
  Eigen::MatrixXd w_q(3, 1), w_k(3, 1);
  w_q << 1, -2, 0.5;
  w_k << 0.3, 0, 4;
  HeadFile file;
  file.layers.push_back({.number = 0,
                         .subspaces = {signed_qr(w_k).q, signed_qr(w_k).q},
                         .w_q = {w_q, 2 * w_q},
                         .w_k = {w_k, w_k},
                         .query_subspaces = {},
                         .singular_values = {},
                         .condition_numbers = {}});
  file.temperature = 1;
  const std::string name = "query_key.nc";
  write_head_file(at(name), file);
  const std::string softmax = "{ law = \"softmax\", temperature = 1.0 }";
  const Plan plan = make_plan(
      learned_scenario(
          text_with("{ law = \"file\", query_key = true, path = \"" + name + "\" }", softmax),
          folder_.string())
          .conditions[0]);
  for (int h = 0; h < 2; ++h) {
    const Eigen::MatrixXd logits =
        head(plan.projections, h, 3, 1) * head(plan.query_projections, h, 3, 1).transpose();
    const Eigen::MatrixXd wanted = w_k * ((h + 1) * w_q).transpose();
    EXPECT_TRUE(((logits - wanted).cwiseAbs().maxCoeff() <= 1e-14 * wanted.norm()));
  }
  // Of two layers one is to be named.
  file.layers.push_back(file.layers[0]);
  file.layers[1].number = 1;
  write_head_file(at(name), file);
  const std::string law = "{ law = \"file\", query_key = true, path = \"" + name + "\"";
  EXPECT_THROW(learned_scenario(text_with(law + " }", softmax), folder_.string()), InvalidInput);
  EXPECT_NO_THROW(learned_scenario(text_with(law + ", layer = 1 }", softmax), folder_.string()));
}

TEST(QueryMatrices, ThatAreTheKeysChangeNothing) {
  const std::string softmax = "{ law = \"softmax\", temperature = 1.0 }";
  const std::string matrices = "[[[1], [0], [0]], [[0], [0.6], [0.8]]]";
  const auto mse = [&](const std::string& more) {
    const Scenario scenario = learned_scenario(
        text_with("{ law = \"explicit\", matrices = " + matrices + more + " }", softmax));
    return run(scenario, {.backend = "cpu", .threads = 1}).conditions[0].estimates.mse.value;
  };
  EXPECT_EQ(mse(""), mse(", query_matrices = " + matrices));
  EXPECT_NE(mse(""), mse(", query_matrices = [[[1], [0], [0]], [[0.3], [0.8], [0.6]]]"));
}

}  // namespace
}  // namespace headlab
