// SPDX-License-Identifier: Apache-2.0
// Studies of depth, command by command.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/testing/paths.h"
#include "tools/cli/testing/command_line_fixture.h"

namespace headlab {
namespace {

/// Random tokens and maps.
constexpr const char* stack_text = R"([scenario]
name = "a stack"
[tokens]
n = 5
design = { law = "normal", dim = 4 }
[heads]
count = 2
dim = 2
kernel = { law = "softmax", temperature = 1.5 }
maps = { law = "gaussian" }
[layers]
count = 3
[run]
seed = 3
replicates = 400
)";

class DepthCommands : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    write("stack.toml", stack_text);
  }
  /// The scenario with one text in place of another.
  static std::string stack_with(const std::string& from, const std::string& to) {
    std::string text = stack_text;
    return text.replace(text.find(from), from.size(), to);
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  nlohmann::json run_json(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "run");
    arguments.insert(arguments.end(), {"--json", "-", "--quiet"});
    const ProgramResult outcome = headlab(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  }
  nlohmann::json summary(const std::string& folder) const {
    return nlohmann::json::parse(contents(folder_ / folder / "summary.json"));
  }
};

// They fall far below float64's smallest number.
TEST_F(DepthCommands, AgreeWithTheKnownAnswers) {
  const auto folder = std::filesystem::path(test::known_answers()).parent_path();
  int cases = 0;
  const auto all = nlohmann::json::parse(std::ifstream(folder / "known-answers-depth.json"));
  for (const auto& known : all["cases"]) {
    if (known["kind"] != "log_residual_without_skip") continue;
    nlohmann::json scenario = known["scenario"];
    std::string text = "[scenario]\nname = \"known\"\n";
    for (const char* section : {"tokens", "heads", "layers", "run"}) {
      text += "[" + std::string(section) + "]\n";
      for (const auto& [key, value] : scenario[section].items()) {
        std::string toml = value.dump();
        if (value.is_object()) {
          toml = "{";
          for (const auto& [name, of] : value.items()) {
            toml += (toml.size() == 1 ? "" : ", ") + name + " = " + of.dump();
          }
          toml += "}";
        }
        text += key + " = " + toml + "\n";
      }
    }
    write("known.toml", text);
    const nlohmann::json layers = run_json({"known.toml"})["conditions"][0]["layers"];
    const nlohmann::json& expected = known["expected"]["layers"];
    ASSERT_EQ(layers.size(), expected.size());
    const double relative = known["tolerance"]["relative"],
                 absolute = known["tolerance"]["absolute"];
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const double right = expected[l]["log_residual"];
      const double got = layers[l]["log_residual"]["value"];
      EXPECT_LE(std::abs(got - right), relative * std::abs(right) + absolute) << l;
    }
    ++cases;
  }
  EXPECT_GT(cases, 0);
}

TEST_F(DepthCommands, WriteEveryLayerWithItsErrors) {
  const nlohmann::json one = run_json({"stack.toml"})["conditions"][0];
  EXPECT_EQ(one["replicates"], 400);
  EXPECT_FALSE(one.contains("mse"));
  EXPECT_FALSE(one.contains("queries"));
  ASSERT_EQ(one["layers"].size(), 4u);
  EXPECT_TRUE(one["layers"][0]["entropy"]["value"].is_null());
  EXPECT_EQ(one["layers"][0]["rollout_dobrushin"]["value"], 1.0);
  for (const nlohmann::json& layer : one["layers"]) {
    EXPECT_GT(layer["log_residual"]["mcse"], 0);
    EXPECT_EQ(layer["collapsed"], 0);
    EXPECT_FALSE(layer.contains("rank_at_least"));
    EXPECT_FALSE(layer.contains("target_distance"));
  }
  const nlohmann::json spectra =
      run_json({"stack.toml", "--set", "run.spectra=true"})["conditions"][0];
  EXPECT_EQ(spectra["layers"][0]["rank_at_least"]["value"], 4.0);
}

TEST_F(DepthCommands, ResumeWhereAMetricIsUndefined) {
  const std::string text =
      stack_with("n = 5\ndesign = { law = \"normal\", dim = 4 }",
                 "n = 2\ndesign = { law = \"points\", points = [[1, 1, 1, 1], [1, 1, 1, 1]] }");
  write("equal.toml", text);
  for (const char* replicates : {"16", "40"}) {
    const ProgramResult outcome =
        headlab({"run", "equal.toml", "--out", "equal", "--quiet", "--replicates", replicates,
                 replicates[0] == '1' ? "--overwrite" : "--resume"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
  }
  const nlohmann::json layer = summary("equal")["conditions"][0]["layers"][1];
  EXPECT_TRUE(layer["log_residual"]["value"].is_null());
  EXPECT_EQ(layer["collapsed"], 40);
  EXPECT_EQ(layer["cosine"]["value"], 1.0);
}

TEST_F(DepthCommands, PairConditionsThatDifferInLayersAlone) {
  const nlohmann::json all = run_json(
      {"stack.toml", "--set", "sweep.\"layers.skip\"=[0, 1]", "--against", "#0"})["conditions"];
  const nlohmann::json& difference = all[1]["difference"];
  EXPECT_EQ(difference["paired"], true);
  const auto at = [&](const nlohmann::json& one, std::size_t l) {
    return one["layers"][l]["cosine"];
  };
  EXPECT_DOUBLE_EQ(at(difference, 3)["value"],
                   at(all[1], 3)["value"].get<double>() - at(all[0], 3)["value"].get<double>());
  // Tokens are the same in both, replicate by replicate.
  EXPECT_EQ(at(difference, 0)["mcse"], 0.0);
  EXPECT_GT(at(difference, 3)["mcse"], 0.0);
}

TEST_F(DepthCommands, CompareWithClosedForms) {
  const std::string text = stack_with("{ law = \"softmax\", temperature = 1.5 }",
                                      "{ law = \"independent_logits\", sd = 1.5 }");
  write("logits.toml", text);
  const nlohmann::json closed =
      run_json({"logits.toml", "--compare", "--replicates", "100000"})["conditions"][0]["theory"];
  EXPECT_EQ(closed["source"], "exact");
  int compared = 0;
  for (const auto& [name, z] : closed["z"].items()) {
    if (z.is_null()) continue;
    EXPECT_LT(std::abs(z.get<double>()), 4.5) << name;
    ++compared;
  }
  // Three metrics of four layers, products of many factors, of which few replicates carry most.
  EXPECT_EQ(compared, 12);
}

}  // namespace
}  // namespace headlab
