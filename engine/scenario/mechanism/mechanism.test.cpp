// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/mechanism/mechanism.h"

#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/run/run.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/testing/known_world.h"
#include "engine/testing/refusal.h"
#include "kernels/reference/ensemble.h"
#include "kernels/reference/training_set.h"
#include "kernels/testing/known_cases.h"

namespace headlab {
namespace {

using nlohmann::json;

std::vector<json> known_mechanisms() {
  return test::known_cases("mechanisms");
}

std::string scenario_text(const json& known, std::uint64_t replicates) {
  World world = test::known_world(known);
  world.run = "seed = 5\nreplicates = " + std::to_string(replicates);
  return world.text();
}

Condition condition_of(const std::string& text) {
  return parse_scenario(text, "known.toml").conditions.at(0);
}

double largest_difference(const json& known, const Plan& plan, const json& expected) {
  const TrainingSet tokens = tokens_of(plan, test::given_sample(known, plan));
  const MomentLayout layout = plan.layout();
  std::vector<std::vector<double>> weights;
  WindowCounts windows;
  for (int h = 0; h < plan.heads; ++h) {
    weights.push_back(nw_weights(plan, tokens, h, 0, windows));
  }
  std::vector<double> statistics(layout.per_query());
  query_statistics(plan, tokens, weights, statistics.data());
  double largest = 0;
  const auto compare = [&](double found, double wanted) {
    const double difference = std::abs(found - wanted);
    largest = difference <= largest ? largest : difference;  // NaN stays
  };
  for (std::size_t h = 0; h < weights.size(); ++h) {
    compare(statistics[h], expected["conditional_mean"][h]);
    for (std::size_t l = h; l < weights.size(); ++l) {
      compare(statistics[layout.noise_offset() + layout.pair(h, l)],
              expected["conditional_covariance"][h][l]);
    }
    const Merge& merge = plan.mechanism.merge;
    for (std::uint64_t i = 0; i < plan.n; ++i) {
      const std::uint64_t token = i / merge.stride;
      const std::uint64_t points = std::min(merge.stride, plan.n - token * merge.stride);
      compare(weights[h][token] * merge.weight(points), expected["weights_on_responses"][h][i]);
    }
  }
  return largest;
}

TEST(Mechanism, ReproducesTheKnownGivenDesigns) {
  int count = 0;
  for (const json& known : known_mechanisms()) {
    if (known["kind"] != "given_design") continue;
    const json& scenario = known["scenario"];
    json given = scenario;
    given.erase("sequence");  // the points are put in by hand
    const Plan plan = make_plan(condition_of(scenario_text(given, 1)));
    EXPECT_LE(largest_difference(scenario, plan, known["expected"]), 1e-10)
        << scenario["mechanism"].dump();
    // The control: without its stages the head is another one.
    json without = scenario;
    without.erase("mechanism");
    without.erase("sequence");
    const bool has_effect = !plan.mechanism.off() || scenario["mechanism"].contains("transform");
    const Plan plain = make_plan(condition_of(scenario_text(without, 1)));
    EXPECT_EQ(largest_difference(scenario, plain, known["expected"]) > 1e-6, has_effect)
        << scenario["mechanism"].dump();
    ++count;
  }
  EXPECT_EQ(count, 26);
}

TEST(Sequence, HasTheKnownBits) {
  for (const json& known : known_mechanisms()) {
    if (known["kind"] != "ar1_arithmetic") continue;
    std::vector<float> z;
    for (const json& normal : known["input"]["normals"]) z.push_back(normal.get<float>());
    const std::size_t count = z.size();
    z.resize((count + ar1_tile - 1) / ar1_tile * ar1_tile);
    const Ar1 ar1(known["input"]["correlation"].get<double>());
    float last = 0;
    double before = 0;
    for (std::size_t i = 0; i < count; i += ar1_tile) ar1(&z[i], 1, last, i == 0);
    double largest = 0;
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(z[i], known["expected"]["x"][i].get<float>()) << i;
      // And the plain recurrence, to rounding.
      const double phi = known["input"]["correlation"];
      const double normal = known["input"]["normals"][i];
      before = i == 0 ? normal : phi * before + std::sqrt(1 - phi * phi) * normal;
      largest = std::max(largest, std::abs(before - static_cast<double>(z[i])));
    }
    EXPECT_GT(largest, 0);
    EXPECT_LT(largest, 1e-6);
  }
}

/// Squares of the differences between simulated and known figures, in standard errors.
struct JointZ {
  double squares = 0;
  int count = 0;
  double largest = 0;

  void add(const Estimate& figure, const json& known, double error = 0) {
    if (known.is_null()) return;
    const double mcse = std::hypot(figure.mcse, error);
    const double difference = figure.value - known.get<double>();
    const double z = mcse > 0 ? difference / mcse : std::abs(difference) / 1e-6;
    squares += z * z;
    largest = std::max(largest, std::isnan(z) ? 1e9 : std::abs(z));
    ++count;
  }
  double rms() const { return std::sqrt(squares / count); }
};

JointZ simulate_known(const std::string& backend, std::uint64_t replicates, bool stages) {
  JointZ joint;
  for (const json& known : known_mechanisms()) {
    const json scenario = known.value("scenario", json::object());
    const json mechanism = scenario.value("mechanism", json::object());
    if ((mechanism.empty() && !scenario.contains("sequence")) || scenario.contains("X") ||
        scenario.contains("covariance") || mechanism.contains("compress") ||
        scenario["n"].get<int>() > 400) {
      continue;
    }
    json altered = scenario;
    if (!stages) altered.erase("mechanism");
    if (!stages) altered.erase("sequence");
    const Scenario parsed = parse_scenario(scenario_text(altered, replicates), "known.toml");
    const ConditionEstimates estimates =
        run(parsed, {.backend = backend, .threads = 2}).conditions.at(0).estimates;
    const json& expected = known["expected"];
    for (std::size_t h = 0; h < expected["bias"].size(); ++h) {
      joint.add(estimates.queries[0].head_bias[h], expected["bias"][h]);
    }
    if (expected.contains("mse")) joint.add(estimates.mse, expected["mse"]);
  }
  return joint;
}

TEST(Mechanism, SimulatesTheKnownExactFigures) {
  const JointZ joint = simulate_known("cpu", 20000, true);
  EXPECT_GE(joint.count, 30);
  EXPECT_GT(joint.rms(), 0.7);
  EXPECT_LT(joint.rms(), 1.35);
  EXPECT_LT(joint.largest, 4.5);
  // The control: plain heads have other figures.
  EXPECT_GT(simulate_known("cpu", 20000, false).rms(), 10);
}

/// Mean over training sets of what head 0 keeps: the weight that its tokens have before `keep`, or
/// their number.
Estimate kept_by_first_head(const Plan& plan, bool count, std::uint64_t replicates) {
  Plan all = plan;
  all.mechanism.keep = {};
  double sum = 0, squares = 0;
  for (std::uint64_t r = 0; r < replicates; ++r) {
    const TrainingSet tokens = tokens_of(plan, draw_training_set(plan, r));
    WindowCounts windows;
    const std::vector<double> kept = nw_weights(plan, tokens, 0, 0, windows);
    const std::vector<double> weights = nw_weights(all, tokens, 0, 0, windows);
    double one = 0;
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (kept[i] > 0) one += count ? 1 : weights[i];
    }
    sum += one;
    squares += one * one;
  }
  const auto n = static_cast<double>(replicates);
  const double mean = sum / n;
  return {mean, std::sqrt((squares / n - mean * mean) / (n - 1))};
}

TEST(Mechanism, KeepsTheKnownShares) {
  std::vector<json> blocks, unions;
  for (const json& known : known_mechanisms()) {
    if (known["kind"] == "block_choice") blocks.push_back(known);
    if (known["kind"] == "union") unions.push_back(known);
  }
  ASSERT_EQ(blocks.size(), 4u);
  ASSERT_EQ(unions.size(), 1u);
  const auto z_of = [](const Estimate& kept, const json& known, const char* figure) {
    return (kept.value - known["expected"][figure].get<double>()) /
           std::hypot(kept.mcse, known["se"][figure].get<double>());
  };
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Plan plan = make_plan(condition_of(scenario_text(blocks[i]["scenario"], 1)));
    const Estimate kept = kept_by_first_head(plan, false, 1000);
    EXPECT_LE(std::abs(z_of(kept, blocks[i], "mass_kept")), 4.5) << i;
    // The control: the other score of a block keeps another share.
    EXPECT_GT(std::abs(z_of(kept, blocks[i ^ 1], "mass_kept")), 4.5) << i;
  }
  Plan plan = make_plan(condition_of(scenario_text(unions[0]["scenario"], 1)));
  EXPECT_LE(std::abs(z_of(kept_by_first_head(plan, true, 1000), unions[0], "mean_number_kept")),
            4.5);
  plan.mechanism.keep.shared = false;
  EXPECT_EQ(kept_by_first_head(plan, true, 10).value, 4);
}

Condition with_stages(const std::string& mechanism, const std::string& kernel = "gaussian",
                      const std::string& subspaces = "orthogonal", int n = 12) {
  const std::string width = kernel == "softmax" ? "temperature" : "bandwidth";
  return World{.n = std::to_string(n),
               .design = "{ law = \"normal\", dim = 4 }",
               .heads = "count = 2\ndim = 2\nsubspaces = { law = \"" + subspaces +
                        "\" }\nmechanism = " + mechanism,
               .kernel = "{ law = \"" + kernel + "\", " + width + " = 0.5 }",
               .points = "[[0, 0, 0, 0]]",
               .run = "replicates = 8"}
      .condition();
}

std::string refusal(const std::string& mechanism, const std::string& kernel = "gaussian",
                    const std::string& subspaces = "orthogonal", int n = 12) {
  return refusal_line([&] { with_stages(mechanism, kernel, subspaces, n); });
}

TEST(Mechanism, RefusesWhatCannotBe) {
  const auto expect = [](const std::string& mechanism, const std::string& part,
                         const std::string& kernel = "gaussian") {
    const std::string line = refusal(mechanism, kernel);
    EXPECT_NE(line.find(part), std::string::npos) << mechanism << " -> " << line;
    EXPECT_EQ(line.find('\n'), std::string::npos);
  };
  expect("{ window = 0 }", "heads.mechanism.window: is 0, must be in [1");
  expect("{ window = [4, 5, 6] }", "heads.mechanism.window: has 3 elements");
  expect("{ merge = 0 }", "heads.mechanism.merge: is 0");
  expect("{ merge = { stride = 2, gate = 0 } }", "heads.mechanism.merge.gate: is 0, must be");
  expect("{ skip = -1 }", "heads.mechanism.skip: is -1");
  expect("{ skip = 12 }", "heads.mechanism.skip: leaves out 12 of 12 tokens");
  expect("{ merge = 3, skip = 4 }", "leaves out 4 of 4 tokens");
  expect("{ sinks = 2 }", "heads.mechanism.sinks: has no effect without window");
  expect("{ levels = [0.5, 0.6] }", "heads.mechanism.levels: have the sum 1.1");
  expect("{ levels = [1.5, -0.5] }", "heads.mechanism.levels[1]: is -0.5, must be >= 0");
  expect("{ levels = [0.2, 0.2, 0.2, 0.2, 0.2] }",
         "heads.mechanism.levels: has 5 levels, needs at most 4: blocks of 1, 2, 4 ... tokens have "
         "at most 12, all that there are");
  expect("{ levels = [0.5, 0.5] }", "heads.mechanism.levels: needs the kernel", "laplace");
  expect("{ keep = { top = 0 } }", "heads.mechanism.keep.top: is 0");
  expect("{ keep = { ratio = 1.5 } }", "heads.mechanism.keep.ratio: is 1.5");
  expect("{ keep = { fraction = 0 } }", "heads.mechanism.keep.fraction: is 0");
  expect("{ keep = { top = 2, ratio = 0.5 } }", "heads.mechanism.keep: needs one of");
  expect("{ keep = { block = 2 } }", "heads.mechanism.keep: needs one of");
  expect("{ keep = { top = 2, by = \"pooled\" } }", "give block");
  expect("{ keep = { block = 2, top = 1, by = \"pooled\" } }", "positive everywhere",
         "epanechnikov");
  expect("{ keep = 3 }", "heads.mechanism.keep: is 3, needs a table");
  expect("{ transform = { mix = 0.1, matrix = [[1, 0], [0, 1]] } }", "one of the two");
  expect("{ transform = { matrix = [[1]] } }", "heads.mechanism.transform.matrix: is 1 x 1");
  expect("{ windw = 3 }", "heads.mechanism.windw: unknown key");
  expect("{ window = [] }", "heads.mechanism.window: is an empty array");
  expect("{ window = 2, sinks = -1 }", "heads.mechanism.sinks: is -1");
  expect("{ window = 2, sinks = [1, 2, 3] }", "heads.mechanism.sinks: has 3 elements");
  expect("{ skip = [1, 2, 3] }", "heads.mechanism.skip: has 3 elements");
  expect("{ skip = [1, 12] }", "heads.mechanism.skip: leaves out 12 of 12 tokens");
  expect("{ keep = { top = [1, 2, 3] } }", "heads.mechanism.keep.top: has 3 elements");
  expect("{ merge = { stride = 2, gate = -1 } }", "heads.mechanism.merge.gate: is -1");
  expect("{ merge = { gate = 0.5 } }", "stride");
  expect("{ merge = [2, 3] }", "heads.mechanism.merge: is an array");
  expect("{ levels = [] }", "heads.mechanism.levels: is an empty array");
  expect("{ keep = {} }", "heads.mechanism.keep: needs one of");
  expect("{ keep = { ratio = 0 } }", "heads.mechanism.keep.ratio: is 0");
  expect("{ keep = { fraction = 1.5 } }", "heads.mechanism.keep.fraction: is 1.5");
  expect("{ keep = { block = 0, top = 1 } }", "heads.mechanism.keep.block: is 0");
  expect("{ keep = { block = 2, fraction = 0.5 } }", "heads.mechanism.keep.block: needs top");
  expect("{ keep = { top = 2, by = \"mass\" } }", "give block");
  expect("{ keep = { block = 2, top = 1, by = \"sum\" } }", "allowed: mass, pooled");
  expect("{ transform = {} }", "heads.mechanism.transform: needs matrix or mix");
  expect("{ transform = { matrix = [[0, 0], [0, 0]] } }",
         "heads.mechanism.transform.matrix: is zero");
  EXPECT_EQ(refusal("{ transform = { matrix = [[0, 0], [0, 1]] } }"), "accepted");
  // Two heads on one subspace less one another.
  EXPECT_NE(refusal("{ transform = { mix = -1 } }", "gaussian", "aligned")
                .find("heads.mechanism.transform.mix: leaves nothing of what head 0 projects"),
            std::string::npos);
  EXPECT_EQ(refusal("{ transform = { mix = -0.999 } }", "gaussian", "aligned"), "accepted");
  EXPECT_EQ(refusal("{ transform = { mix = -1 } }"), "accepted");
  // 2^12 tokens, of enough.
  const std::string levels = "{ levels = [0.5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.5] }";
  EXPECT_NE(refusal(levels, "gaussian", "orthogonal", 9000).find("tokens have at most 2048"),
            std::string::npos);
  const std::string twelve = "{ levels = [0.5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.5] }";
  EXPECT_EQ(refusal(twelve, "gaussian", "orthogonal", 9000), "accepted");
  // Gradients are those of plain heads, and so are weights that are learned with them.
  EXPECT_NE(refusal("{ window = 3 }", "gaussian", "learned").find("law \"learned\""),
            std::string::npos);
  // The control: what may be is not refused.
  EXPECT_EQ(
      refusal("{ merge = 5, levels = [0.5, 0.5], window = 99, sinks = 1, keep = { top = 50 } }"),
      "accepted");
  EXPECT_EQ(refusal("{ window = [4, 5], skip = 3, keep = { block = 4, top = 1, union = true } }",
                    "epanechnikov"),
            "accepted");
}

TEST(Mechanism, IsOffWhereAStageDoesNothing) {
  for (const char* stages : {"{}", "{ merge = 1 }", "{ levels = [1] }", "{ levels = [1, 0] }",
                             "{ window = 12 }", "{ window = 40, sinks = 3, skip = 0 }",
                             "{ window = 2, sinks = 40 }", "{ window = [2, 3], sinks = [12, 9] }",
                             "{ keep = { top = 12 } }", "{ keep = { fraction = 1 } }",
                             "{ keep = { block = 5, top = 3 } }", "{ transform = { mix = 0 } }"}) {
    EXPECT_TRUE(make_plan(with_stages(stages)).mechanism.off()) << stages;
    EXPECT_EQ(stages_in_force(with_stages(stages)), std::vector<std::string>{}) << stages;
  }
  for (const char* stages : {"{ merge = 2 }", "{ merge = { stride = 1, gate = 0.5 } }",
                             "{ levels = [0, 1] }", "{ window = 11 }", "{ skip = 1 }",
                             "{ keep = { top = 11 } }", "{ keep = { ratio = 1e-9 } }"}) {
    EXPECT_FALSE(make_plan(with_stages(stages)).mechanism.off()) << stages;
    EXPECT_EQ(stages_in_force(with_stages(stages)).size(), 1u) << stages;
  }
  // One that another makes idle is not in force, and transform is, though plans have no part for
  // it.
  EXPECT_EQ(stages_in_force(with_stages("{ keep = { top = 4 }, window = 4, sinks = 0, merge = 2, "
                                        "transform = { mix = 0.1 } }")),
            (std::vector<std::string>{"transform", "merge", "window"}));
  // A window whose sinks see every token is idle with them, whatever else there is.
  using Names = std::vector<std::string>;
  EXPECT_EQ(stages_in_force(with_stages("{ window = 4, sinks = 40, skip = 1, merge = 2 }")),
            (Names{"merge", "skip"}));
  EXPECT_EQ(stages_in_force(with_stages("{ window = 4, sinks = [40, 2], keep = { ratio = 0.1 } }")),
            (Names{"window", "sinks", "keep"}));
  EXPECT_EQ(stages_in_force(with_stages("{ window = 4, sinks = 0 }")), Names{"window"});
  EXPECT_EQ(stages_in_force(with_stages("{ transform = { matrix = [[1, 0], [0, 1]] } }")),
            std::vector<std::string>{});
}

}  // namespace
}  // namespace headlab
