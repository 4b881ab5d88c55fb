// SPDX-License-Identifier: Apache-2.0
// Studies of depth, command by command.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/results/results_reader.h"
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
  void expect_refused(const std::vector<std::string>& arguments, const std::string& why) const {
    const ProgramResult outcome = headlab(arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.out;
    EXPECT_NE(outcome.err.find(why), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
  }
};

TEST_F(DepthCommands, ShowWhereFloat64EndsAndAgreeWithTheKnownAnswers) {
  const std::string shipped = test::scenario_dir() + "/rank_collapse.toml";
  const ProgramResult table = headlab({"run", shipped, "--set", "run.replicates=200", "--quiet"});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_NE(table.out.find("below the rounding of plain float64"), std::string::npos) << table.out;
  // The control: with a skip tokens stay apart.
  const ProgramResult skip =
      headlab({"run", shipped, "--set", "run.replicates=200", "--set", "layers.skip=1", "--quiet"});
  EXPECT_EQ(skip.out.find("below the rounding"), std::string::npos) << skip.out;

  // A case of the known answers by the same way, which falls far below float64's smallest number.
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

TEST_F(DepthCommands, ResumeWithTheBitsOfOneRun) {
  const auto run = [&](const std::string& folder, const std::string& replicates,
                       const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {
        "run",      "stack.toml", "--out",
        folder,     "--quiet",    "--replicates",
        replicates, "--set",      "sweep.\"layers.count\"=[2, 3]"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult outcome = headlab(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
  };
  run("one", "400", {"--threads", "1"});
  run("two", "136", {"--threads", "4"});
  run("two", "400", {"--threads", "2", "--resume"});
  for (std::size_t c = 0; c < 2; ++c) {
    EXPECT_EQ(summary("one")["conditions"][c]["layers"], summary("two")["conditions"][c]["layers"]);
  }
  EXPECT_EQ(summary("one")["results_id"], summary("two")["results_id"]);
  const ProgramResult same = headlab({"diff", "one", "two"});
  EXPECT_EQ(same.code, 0) << same.out;
  EXPECT_NE(same.out.find("same bits"), std::string::npos) << same.out;
  // The control: another seed has other bits.
  run("three", "400", {"--set", "run.seed=4"});
  const ProgramResult other = headlab({"diff", "one", "three"});
  EXPECT_EQ(other.out.find("same bits: nodes"), std::string::npos) << other.out;
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

  const ProgramResult theory = headlab({"theory", "logits.toml"});
  EXPECT_EQ(theory.code, 0) << theory.err;
  EXPECT_NE(theory.out.find("expected energies"), std::string::npos) << theory.out;
  expect_refused({"theory", "stack.toml"}, "have no closed form");
  expect_refused({"theory", "logits.toml", "--source", "first_order"}, "no form of first order");
}

TEST_F(DepthCommands, DryRunsPrintTheSameStudy) {
  const ProgramResult dry = headlab({"run", "stack.toml", "--dry-run"});
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_NE(dry.out.find("branch = 1.0"), std::string::npos) << dry.out;
  write("resolved.toml", dry.out);
  EXPECT_EQ(run_json({"resolved.toml"})["conditions"][0]["layers"],
            run_json({"stack.toml"})["conditions"][0]["layers"]);
}

TEST_F(DepthCommands, RefuseWhatIsForRegressionAlone) {
  expect_refused({"run", "stack.toml", "--until", "mse=1%"}, "--until");
  expect_refused({"dataset", "stack.toml", "--out", "x", "--replicates", "8"},
                 "is for studies of depth");
  expect_refused({"allocate", "--data", "stack.toml", "--budget", "4"}, "is for studies of depth");
  expect_refused({"replay", "stack.toml", "--replicate", "0", "--out", "x"},
                 "is for studies of depth");
  std::string mixed = stack_text;
  write("mixed.toml", mixed + "[data]\nn = 5\n");
  expect_refused({"run", "mixed.toml"}, "cannot stand next to [tokens]");
  expect_refused({"run", "stack.toml", "--set", "tokens.n=65536", "--set", "layers.memory=0.5",
                  "--set", "heads.count=1024"},
                 "tokens.n");
}

TEST_F(DepthCommands, ReportsShowLayers) {
  const ProgramResult outcome =
      headlab({"run", "stack.toml", "--report", "r.html", "--quiet", "--out", "o"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string page = contents(folder_ / "r.html");
  EXPECT_NE(page.find("What is left of the differences between tokens"), std::string::npos);
  EXPECT_EQ(page.find("bias²"), std::string::npos);
  EXPECT_EQ(headlab({"report", "o", "--out", "again.html"}).code, 0);
}

}  // namespace
}  // namespace headlab
