// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/stack/stack_setting.h"

#include <cmath>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/moments/layer_estimates.h"
#include "engine/run/simulate.h"
#include "engine/scenario/testing/known_world.h"
#include "engine/testing/refusal.h"
#include "kernels/backends.h"
#include "kernels/plan.h"
#include "kernels/stack/layers.h"
#include "kernels/stack/worker.h"
#include "kernels/testing/known_cases.h"

namespace headlab {
namespace {

using nlohmann::json;

/// The tables of a known scenario.
std::string stack_toml(const json& scenario) {
  std::string text = "[scenario]\nname = \"known\"\n";
  for (const auto& [table, members] : scenario.items()) {
    text += "[" + table + "]\n";
    for (const auto& [key, value] : members.items()) {
      text += key + " = " + test::toml_line(value) + "\n";
    }
  }
  return text;
}

StackSetting parse_stack(const std::string& text) {
  DataFiles files(".");
  const Value root = parse_toml(text, "depth.toml");
  EXPECT_TRUE(is_study_of_depth(root));
  return read_stack_setting(root, files);
}

/// Metrics of a row by their names.
struct NamedMetrics {
  json values;
  void operator()(const char* name, double value, const char*) { values[name] = value; }
};

TEST(stack_setting, reads_the_known_answers_and_gives_them) {
  std::set<std::string> kinds;
  for (const json& known : test::known_cases("depth")) {
    if (!known.contains("scenario")) continue;
    const Plan plan = make_stack_plan(parse_stack(stack_toml(known["scenario"])));
    kinds.insert(known["kind"]);
    if (!known.contains("tolerance")) continue;
    const auto rows = stack_metrics(*plan.stack, {plan.seed, 0}, stack_tokens(plan, 0));
    const json& expected = known["expected"]["layers"];
    ASSERT_EQ(rows.size(), expected.size());
    for (std::size_t l = 0; l < rows.size(); ++l) {
      NamedMetrics got;
      rows[l].fields(got);
      for (const auto& [name, value] : expected[l].items()) {
        const double right = value;
        const double tolerance = known["tolerance"]["relative"].get<double>() * std::abs(right) +
                                 known["tolerance"]["absolute"].get<double>();
        EXPECT_TRUE(std::abs(got.values.at(name).get<double>() - right) <= tolerance)
            << known["kind"] << l << name;
      }
    }
  }
  EXPECT_EQ(kinds,
            (std::set<std::string>{"simplex", "simplex_split_values", "log_residual_without_skip",
                                   "layers_explicit", "fixed_attention", "independent_logits",
                                   "gaussian_stack_monte_carlo"}));
}

TEST(stack_setting, simulates_to_the_known_expectations) {
  // One case by the way of a run: reader, plan, worker, tree, jackknife.
  for (const json& known : test::known_cases("depth")) {
    if (known["kind"] != "fixed_attention") continue;
    const Plan plan = make_stack_plan(parse_stack(stack_toml(known["scenario"])));
    const auto backend = make_backend("cpu");
    const LayerEstimates e = estimate_layers(simulate(plan, *backend, 2, 1024), plan.n);
    const auto& names = layer_metric_descriptions();
    double squares = 0;
    int count = 0;
    for (std::size_t l = 1; l < e.rows.size(); ++l) {
      for (std::size_t m = 0; m < names.size(); ++m) {
        const json& expected = known["expected"]["layers"][l];
        if (!expected.contains(names[m].name)) continue;
        const Estimate got = e.rows[l].metrics[m];
        const double z = (got.value - expected[names[m].name].get<double>()) / got.mcse;
        EXPECT_LE(std::abs(z), 4.5) << names[m].name;
        squares += z * z;
        ++count;
      }
    }
    EXPECT_EQ(count, 6);
    EXPECT_LE(std::sqrt(squares / count), 2.2);  // chi of six, of which one in 10^4 is above
  }
}

/// A scenario that is accepted, some of its lines replaced.
std::string depth_text(const std::string& from = "", const std::string& to = "") {
  std::string text =
      "[scenario]\nname = \"depth\"\n"
      "[tokens]\nn = 4\ndesign = { law = \"normal\", dim = 3 }\n"
      "[heads]\ncount = 2\ndim = 2\nkernel = { law = \"softmax\", temperature = 1.5 }\n"
      "maps = { law = \"gaussian\", query_key = 2, value = 1 }\n"
      "[layers]\ncount = 3\nskip = 1\nnorm = { law = \"rms\", place = \"pre\" }\n"
      "[run]\nseed = 3\nreplicates = 10\n";
  if (from.empty()) return text;
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string depth_refusal(const std::string& text) {
  return refusal_line([&] { parse_stack(text); });
}

TEST(stack_setting, has_the_documented_defaults) {
  const StackSetting s = parse_stack(depth_text("skip = 1\n", ""));
  EXPECT_EQ(s.skip, 0);
  EXPECT_EQ(s.branch, 1);
  EXPECT_EQ(s.memory, 0);
  EXPECT_EQ(s.value_dim, 2);
  EXPECT_FALSE(s.averaged || s.alternating || s.causal || s.shared_weights || s.spectra);
  EXPECT_TRUE(std::holds_alternative<NoMlp>(s.mlp));
}

TEST(stack_setting, refuses_what_does_not_fit_with_one_line) {
  EXPECT_EQ(depth_refusal(depth_text()), "accepted");
  struct Case {
    std::string from, to, expected;
  };
  const std::string scaled =
      "maps = { law = \"scaled_identity\", query_key = [1, 1], value = [1, 1] }";
  const std::string drawn =
      "dim = 2\nkernel = { law = \"softmax\", temperature = 1.5 }\n"
      "maps = { law = \"gaussian\", query_key = 2, value = 1 }\n";
  const std::string softmax = "kernel = { law = \"softmax\", temperature = 1.5 }\n";
  const std::vector<Case> cases = {
      {"n = 4", "n = 0", "tokens.n: is 0"},
      {"n = 4\n", "", "tokens.n: is missing"},
      {"design = {", "design_seed = 1\ndesign = {", "tokens.design_seed: has no effect"},
      {"{ law = \"normal\", dim = 3 }", "{ law = \"points\", points = [[1, 2, 3]] }",
       "tokens.design.points: has 1 row, tokens.n is 4"},
      {"{ law = \"normal\", dim = 3 }", "{ law = \"simplex\", dim = 3, rho = 1, mu = 1 }",
       "tokens.design.dim: is 3, 4 tokens need 4 or more"},
      {"{ law = \"normal\", dim = 3 }",
       "{ law = \"simplex\", dim = 3, rho = 1, mu = 0, centred = true }",
       "tokens.design.dim: is 3, 4 tokens need 4 or more"},
      {"{ law = \"normal\", dim = 3 }", "{ law = \"normal\", dim = 3, mean = [1e9, 0, 0] }",
       "tokens.design.mean"},
      {"law = \"softmax\"", "law = \"gaussian\"", "heads.kernel.law: is \"gaussian\""},
      {"temperature = 1.5", "temperature = 0", "heads.kernel.temperature: is 0"},
      {"[heads]", "[heads]\nsubspaces = { law = \"haar\" }", "heads.subspaces: unknown key"},
      {"[heads]", "[heads]\nweights = { law = \"uniform\" }", "heads.weights: unknown key"},
      {"[run]", "[run]\nestimator = \"plain\"", "run.estimator: unknown key"},
      {"[run]", "[run]\nmoments = \"aggregate\"", "run.moments: unknown key"},
      {"[heads]", "[heads]\nvalues = \"averaged\"\norder = \"alternating\"", "heads.order: is"},
      {"dim = 2\n", "", "heads.dim: is missing"},
      {drawn, "dim = 2\n" + softmax + scaled + "\n", "heads.dim: has no effect"},
      {drawn, softmax + "maps = { law = \"scaled_identity\", value = [1, 1] }\n",
       "heads.maps.query_key: is missing"},
      {drawn, softmax + "maps = { law = \"scaled_identity\", query_key = [1], value = [1, 1] }\n",
       "heads.maps.query_key: has 1 element, must have 2"},
      {drawn, "kernel = { law = \"uniform\" }\n" + scaled + "\n",
       "heads.maps.query_key: has no effect"},
      {softmax, "kernel = { law = \"uniform\" }\n", "heads.maps.query_key: has no effect"},
      {drawn,
       softmax + "maps = { law = \"explicit\", query_key = [[[1]], [[1]]], value = [[[1]], "
                 "[[1]]] }\n",
       "heads.maps.value[0]: is 1 x 1, must be 3 x 3"},
      {"{ law = \"gaussian\", query_key = 2, value = 1 }",
       "{ law = \"pruned\", of = { law = \"gaussian\" }, hidden = 10 }",
       "heads.maps.hidden: is 10, must be 1 to 20 times the dim 3"},
      {"{ law = \"gaussian\", query_key = 2, value = 1 }",
       "{ law = \"pruned\", of = { law = \"explicit\" }, hidden = 9 }",
       "heads.maps.of.law: is \"explicit\""},
      {"[layers]\ncount = 3", "[layers]\ncount = 5000", "layers.count: is 5000"},
      {"skip = 1", "skip = nan", "layers.skip"},
      {"skip = 1", "memory = 1.5", "layers.memory: is 1.5"},
      {"skip = 1", "mask = \"full\"", "layers.mask: is \"full\""},
      {"\"rms\", place = \"pre\"", "\"rms\"", "layers.norm.place: is missing"},
      {"place = \"pre\"", "place = \"in\"", "layers.norm.place: is \"in\""},
      {"\"rms\", place = \"pre\"", "\"none\", place = \"pre\"", "layers.norm.place: unknown key"},
      {"place = \"pre\"", "place = \"pre\", epsilon = -1", "layers.norm.epsilon: is -1"},
      {"place = \"pre\"", "place = \"pre\", gain = [1]", "layers.norm.gain: has 1 element"},
      {"skip = 1", "mlp = { law = \"explicit\", input = [[1]], bias = [1], output = [[1, 1, 1]] }",
       "layers.mlp.input: is 1 x 1, must be 3 x 1"},
      {"[tokens]", "[data]\nn = 4\n[tokens]", "data: cannot stand next to [tokens]"},
      {"[tokens]", "[queries]\nn = 4\n[tokens]", "queries: cannot stand next to [tokens]"},
  };
  for (const Case& one : cases) {
    const std::string line = depth_refusal(depth_text(one.from, one.to));
    EXPECT_NE(line.find(one.expected), std::string::npos) << one.to << "\n" << line;
    EXPECT_EQ(line.find('\n'), std::string::npos);
    EXPECT_EQ(line.rfind("depth.toml:", 0), 0u) << line;
  }
}

TEST(stack_setting, refuses_kernels_that_other_keys_do_not_go_with) {
  const std::string from =
      "dim = 2\nkernel = { law = \"softmax\", temperature = 1.5 }\n"
      "maps = { law = \"gaussian\", query_key = 2, value = 1 }\n";
  auto fixed = [&](const std::string& row, const std::string& layers) {
    const std::string matrix = "[" + row + ", " + row + "]";
    std::string text =
        depth_text(from, "kernel = { law = \"fixed\", matrices = [" + matrix + ", " + matrix +
                             "] }\n" + "maps = { law = \"scaled_identity\", value = [1, 1] }\n");
    text.replace(text.find("n = 4"), 5, "n = 2");
    return depth_refusal(text.replace(text.find("skip = 1"), 8, layers));
  };
  EXPECT_EQ(fixed("[0.5, 0.5]", "skip = 1"), "accepted");
  EXPECT_NE(fixed("[0.5, 0.6]", "skip = 1").find("heads.kernel.matrices[0]: row 1 sums to"),
            std::string::npos);
  EXPECT_NE(fixed("[1.5, -0.5]", "skip = 1").find("heads.kernel.matrices"), std::string::npos);
  EXPECT_NE(fixed("[0.5, 0.5]", "memory = 0.5").find("layers.memory: needs scores"),
            std::string::npos);
  EXPECT_NE(fixed("[0.5, 0.5]", "mask = \"causal\"").find("layers.mask"), std::string::npos);
}

TEST(stack_setting, lays_a_centred_simplex_across_the_ones) {
  const Plan plan = make_stack_plan(
      parse_stack(depth_text("{ law = \"normal\", dim = 3 }",
                             "{ law = \"simplex\", dim = 6, rho = 2, mu = 0.5, centred = true }")));
  const Eigen::MatrixXd& x = plan.stack->tokens;
  ASSERT_EQ(x.cols(), 6);
  EXPECT_LE(x.rowwise().sum().cwiseAbs().maxCoeff(), 1e-14);
  EXPECT_NEAR(x.colwise().mean().squaredNorm(), 0.5, 1e-14);
  const Eigen::MatrixXd r = x.rowwise() - x.colwise().mean();
  EXPECT_NEAR(r.row(2).squaredNorm(), 2, 1e-14);
  EXPECT_NEAR(r.row(1).dot(r.row(3)), -2.0 / 3, 1e-14);
}

}  // namespace
}  // namespace headlab
