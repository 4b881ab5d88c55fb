// SPDX-License-Identifier: Apache-2.0
#include "engine/learned_heads.h"

#include <atomic>
#include <cmath>
#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/error.h"
#include "engine/head_file.h"
#include "engine/netcdf_file.h"
#include "engine/provenance.h"
#include "engine/results_netcdf.h"
#include "engine/run.h"
#include "engine/simulate.h"
#include "engine/subspaces.h"
#include "engine/summary_json.h"
#include "kernels/cpu/backend.h"
#include "kernels/signed_qr.h"

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

Study study_of(const std::string& text, const std::string& directory = ".") {
  return parse_study(text, "s.toml", {}, directory);
}

/// The scenario with its heads learned.
Scenario resolved(const std::string& text, int threads = 1) {
  Scenario scenario = study_of(text).conditions[0];
  EXPECT_TRUE(resolve_heads(scenario, *make_cpu_backend(), threads));
  return scenario;
}

std::string refusal(const std::string& text) {
  try {
    study_of(text);
  } catch (const Refused& error) {
    return error.what();
  }
  return "accepted";
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
       "s.toml:11:97: heads.subspaces.query_matrices: has 1 matrices, needs one for each of the 2 "
       "heads"},
      {text_with(explicit_law + "[[[1], [0], [0]], [[3], [1], [0]]] }"),
       "s.toml:12:10: heads.kernel: must have law \"softmax\", because matrices of their own "
       "project the queries"}};
  for (const auto& [text, line] : cases) EXPECT_EQ(refusal(text), line);
}

TEST(LearnedHeads, DoNotDependOnTheRun) {
  const std::string text = text_with(learned(""));
  const Scenario scenario = resolved(text);
  const auto keys = make_plan(scenario).projections;
  EXPECT_EQ(learned_heads(scenario)->points, 60u);

  Scenario other = study_of(text).conditions[0];
  other.seed = 99;
  other.replicates = 7;
  resolve_heads(other, *make_cpu_backend(), 3);
  EXPECT_EQ(make_plan(other).projections, keys);

  EXPECT_NE(make_plan(resolved(text_with(learned("seed = 1")))).projections, keys);
  EXPECT_NE(make_plan(resolved(text_with(learned("points = 61")))).projections, keys);
}

TEST(LearnedHeads, StartAlikeButNotTheSame) {
  const Scenario scenario = study_of(text_with(learned("spread = 0.001"))).conditions[0];
  const auto keys = make_learning(scenario).start.keys;
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
    return make_plan(resolved(text)).projections;
  };
  EXPECT_NE(keys_on("0"), keys_on("1"));
}

TEST(LearnedHeads, WeightsAreLearnedWithThem) {
  const Scenario scenario = resolved(
      text_with(learned(""), "{ law = \"gaussian\", bandwidth = 0.4 }", "{ law = \"learned\" }"));
  const Plan plan = make_plan(scenario);
  EXPECT_EQ(plan.head_weights, learned_heads(scenario)->fit.heads.weights);
  EXPECT_NE(plan.head_weights, (std::vector<double>{0.5, 0.5}));
}

Eigen::MatrixXd head(const std::vector<double>& numbers, int h, int d, int k) {
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<const RowMajor>(numbers.data() + h * d * k, d, k);
}

TEST(LearnedHeads, AreLearnedForTheWeightsOfTheScenario) {
  const std::string gaussian = "{ law = \"gaussian\", bandwidth = 0.4 }";
  const auto keys = [&](const std::string& weights) {
    return make_plan(resolved(text_with(learned(""), gaussian, weights))).projections;
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
    return run(study_of(text), {.backend = "cpu", .threads = 1}).conditions[0].estimates.mse.value;
  };
  EXPECT_NEAR(mse("aggregate"), mse("pairwise"), 1e-6);
}

TEST(LearnedHeads, OfEveryReplicateStopWhileTheyAreLearned) {
  const Study study = study_of(text_with(learned("fit = \"per_replicate\", held_out = 0"),
                                         "{ law = \"gaussian\", bandwidth = 0.4 }",
                                         "{ law = \"uniform\" }", "plain"));
  const Plan plan = make_plan(study.conditions[0]);
  // Three replicates take 60 steps, each of which asks once; the fourth is given up.
  std::atomic<int> asked = 0;
  const MomentTree tree =
      simulate(plan, *make_cpu_backend(), 1, 6, {.stop = [&] { return ++asked > 70; }});
  EXPECT_LT(tree.count(), 6u);
}

TEST(LearnedHeads, SeparateMatricesKeepTheirLogits) {
  const Scenario scenario = resolved(
      text_with(learned("matrices = \"query_key\""), "{ law = \"softmax\", temperature = 1.0 }"));
  const HeadParameters& found = learned_heads(scenario)->fit.heads;
  EXPECT_NE(found.queries, found.keys);
  const Plan plan = make_plan(scenario);
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
  const Scenario scenario = resolved(text_with(learned("matrices = \"free\"")));
  const Eigen::MatrixXd w = head(make_plan(scenario).projections, 0, 3, 1);
  EXPECT_GT(std::abs(w.norm() - 1), 1e-3);
  const Eigen::MatrixXd basis = make_subspaces(scenario)[0];
  EXPECT_NEAR(basis.norm(), 1, 1e-14);
  EXPECT_NEAR(std::abs((basis.transpose() * w)(0, 0)), w.norm(), 1e-14);
}

TEST(LearnedHeads, OfEveryReplicateHaveTheSameBitsOnAnyNumberOfThreads) {
  const Study study = study_of(text_with(learned("fit = \"per_replicate\""),
                                         "{ law = \"gaussian\", bandwidth = 0.4 }",
                                         "{ law = \"learned\" }", "plain"));
  const RunResult one = run(study, {.backend = "cpu", .threads = 1});
  const RunResult three = run(study, {.backend = "cpu", .threads = 3});
  EXPECT_EQ(one.conditions[0].estimates.mse.value, three.conditions[0].estimates.mse.value);
  EXPECT_GT(one.conditions[0].estimates.mse.value, 0);
}

TEST(LearnedHeads, AreInTheResultsWithTheirCourse) {
  const Study study = study_of(text_with(learned("")));
  const RunResult result = run(study, {.backend = "cpu", .threads = 1});
  const auto json =
      nlohmann::json::parse(summary_json(study, result, {}, provenance()))["conditions"][0];
  EXPECT_EQ(json["learned"]["fit"], "once");
  EXPECT_EQ(json["learned"]["points"], 60);
  EXPECT_EQ(json["learned"]["held_out"], 12);
  EXPECT_TRUE(json["learned"]["held_out_error"].is_number());

  const auto path = std::filesystem::temp_directory_path() /
                    ("headlab_learned_" + std::to_string(getpid()) + ".nc");
  write_results(path.string(), study, result, {}, provenance());
  {
    const NetcdfInput file(path.string());
    const NetcdfGroup group = file.root().find_group("condition_000");
    EXPECT_EQ(group.doubles("projections"), result.conditions[0].plan.projections);
    const auto steps = group.integers("course_step");
    const Fit& fit = learned_heads(result.conditions[0].scenario)->fit;
    ASSERT_EQ(steps.size(), fit.course.size());
    EXPECT_EQ(steps.back(), static_cast<std::int64_t>(fit.course.back().step));
    const std::vector<std::size_t> shape = {steps.size(), 2, 3, 1};
    EXPECT_EQ(group.shape("course_projections"), shape);
    EXPECT_TRUE(std::isnan(group.doubles("course_batch_error")[0]));
  }
  std::filesystem::remove(path);
}

TEST(QueryMatrices, OfAFileHaveTheLogitsOfItsMatrices) {
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
  const auto directory = std::filesystem::temp_directory_path();
  const std::string name = "headlab_query_key_" + std::to_string(getpid()) + ".nc";
  write_head_file((directory / name).string(), file);
  const std::string softmax = "{ law = \"softmax\", temperature = 1.0 }";
  const Plan plan = make_plan(
      study_of(text_with("{ law = \"file\", query_key = true, path = \"" + name + "\" }", softmax),
               directory.string())
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
  write_head_file((directory / name).string(), file);
  const std::string law = "{ law = \"file\", query_key = true, path = \"" + name + "\"";
  EXPECT_THROW(study_of(text_with(law + " }", softmax), directory.string()), Refused);
  EXPECT_NO_THROW(study_of(text_with(law + ", layer = 1 }", softmax), directory.string()));
  std::filesystem::remove(directory / name);
}

TEST(QueryMatrices, ThatAreTheKeysChangeNothing) {
  const std::string softmax = "{ law = \"softmax\", temperature = 1.0 }";
  const std::string matrices = "[[[1], [0], [0]], [[0], [0.6], [0.8]]]";
  const auto mse = [&](const std::string& more) {
    const Study study =
        study_of(text_with("{ law = \"explicit\", matrices = " + matrices + more + " }", softmax));
    return run(study, {.backend = "cpu", .threads = 1}).conditions[0].estimates.mse.value;
  };
  EXPECT_EQ(mse(""), mse(", query_matrices = " + matrices));
  EXPECT_NE(mse(""), mse(", query_matrices = [[[1], [0], [0]], [[0.3], [0.8], [0.6]]]"));
}

}  // namespace
}  // namespace headlab
