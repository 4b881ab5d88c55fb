// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/scenario.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/files/json_writer.h"
#include "engine/files/npy_file.h"
#include "engine/scenario/law_reader.h"
#include "engine/scenario/setup_laws.h"
#include "engine/scenario/stack/stack_setting.h"
#include "engine/testing/folder_test.h"
#include "kernels/laws.h"
#include "kernels/testing/paths.h"

namespace headlab {
namespace {

/// A scenario with d = 4, H = 2, k = 2; `laws` replaces the law of some families.
std::string text_with(const std::map<std::string, std::string>& laws = {}) {
  const auto law = [&](const char* family, const char* otherwise) {
    const auto found = laws.find(family);
    return found == laws.end() ? otherwise : found->second;
  };
  return "[scenario]\nname = \"base\"\n[data]\nn = 50\ndesign = " +
         law("design", "{ law = \"normal\", dim = 4 }") +
         "\nregression = " + law("regression", "{ law = \"zero\" }") +
         "\nnoise = " + law("noise", "{ law = \"normal\", sd = 0.5 }") +
         "\n[heads]\ncount = 2\ndim = 2\nsubspaces = " +
         law("subspaces", "{ law = \"orthogonal\" }") +
         "\nkernel = " + law("kernel", "{ law = \"gaussian\", bandwidth = 0.5 }") +
         "\nweights = " + law("weights", "{ law = \"uniform\" }") + "\n[run]\nreplicates = 100\n" +
         "[queries]\n" + law("queries", "law = \"points\"\npoints = [[0, 0, 0, 0]]") + "\n";
}

double bandwidth(const Condition& condition) {
  return std::get<GaussianKernel>(*condition.kernel).bandwidth;
}

class ConditionOfFiles : public FolderTest {};

TEST(condition, defaults) {
  const auto scenario = parse_scenario(
      "[scenario]\nname = \"least\"\n[data]\nn = 1e3\ndesign = { law = \"uniform\", dim = 1 }\n"
      "regression = { law = \"zero\" }\nnoise = { law = \"normal\", sd = 1 }\n"
      "[heads]\ncount = 1\ndim = 1\nsubspaces = { law = \"haar\" }\n"
      "kernel = { law = \"gaussian\", bandwidth = 1 }\n"
      "[queries]\nlaw = \"design\"\ncount = 3\n[run]\nreplicates = 10\n",
      "least.toml");
  EXPECT_EQ(scenario.file, "least.toml");
  EXPECT_TRUE(scenario.swept.empty());
  ASSERT_EQ(scenario.conditions.size(), 1u);
  const Condition& s = scenario.conditions[0];
  EXPECT_EQ(s.name, "least");
  EXPECT_EQ(s.aims, "");
  EXPECT_EQ(s.n, 1000u);
  EXPECT_FALSE(s.fixed_design);
  EXPECT_EQ(s.design_seed, 0u);
  EXPECT_EQ(std::get<HaarSubspaces>(*s.subspaces).seed, 0u);
  EXPECT_TRUE(std::holds_alternative<UniformWeights>(*s.weights));
  EXPECT_EQ(std::get<DesignQueries>(*s.queries).seed, 0u);
  EXPECT_EQ(s.seed, 0u);
  EXPECT_EQ(s.replicates, 10u);
  EXPECT_EQ(s.estimator, Estimator::conditional);
  EXPECT_EQ(s.moments, MomentMode::pairwise);
  EXPECT_TRUE(s.swept.empty());
}

TEST(condition, everything_that_is_written_is_read) {
  const auto scenario = parse_scenario(
      text_with({{"design", "{ law = \"normal\", dim = 4, mean = [1, 2, 3, 4.5], ar1 = -0.5 }"},
                 {"noise",
                  "{ law = \"student_t\", df = 4, sd = 2 }\nfixed_design = true\n"
                  "design_seed = 9007199254740991"},
                 {"subspaces",
                  "{ law = \"explicit\", orthonormalise = true, matrices = "
                  "[[[1, 0], [1, 1], [0, 0], [0, 0]], "
                  "[[0, 0], [0, 0], [2, 0], [0, 1]]] }"}}) +
          "[claim]\nname = \"hdi\"\nform = \"between configurations\"\nindex = \"chordal\"\n"
          "expected = \"refuted\"\nmargin = 0.1\n",
      "s.toml", {"run.estimator=\"plain\"", "run.moments=\"aggregate\"", "run.seed=11"});
  const Condition& s = scenario.conditions[0];
  const auto& design = std::get<NormalDesign>(*s.design);
  EXPECT_EQ(design.dim, 4);
  EXPECT_EQ(design.mean, (std::vector<double>{1, 2, 3, 4.5}));
  EXPECT_EQ(design.ar1, -0.5);
  EXPECT_EQ(std::get<StudentNoise>(*s.noise).df, 4);
  EXPECT_TRUE(s.fixed_design);
  EXPECT_EQ(s.design_seed, 9007199254740991u);
  const auto& explicit_law = std::get<ExplicitSubspaces>(*s.subspaces);
  EXPECT_TRUE(explicit_law.orthonormalise);
  EXPECT_EQ(explicit_law.matrices[1][2][0], 2);
  EXPECT_EQ(s.estimator, Estimator::plain);
  EXPECT_EQ(s.moments, MomentMode::aggregate);
  EXPECT_EQ(s.seed, 11u);
  EXPECT_EQ(std::get<double>(s.parameters.tree().find("claim")->find("margin")->data), 0.1);
}

TEST(condition, a_crossed_sweep_varies_the_last_key_fastest) {
  const auto scenario = parse_scenario(text_with() +
                                           "[sweep]\n\"heads.kernel.bandwidth\" = [0.5, 1, 2]\n"
                                           "\"data.n\" = [10, 20]\n",
                                       "s.toml");
  EXPECT_EQ(scenario.swept, (std::vector<std::string>{"heads.kernel.bandwidth", "data.n"}));
  ASSERT_EQ(scenario.conditions.size(), 6u);
  const double bandwidths[] = {0.5, 0.5, 1, 1, 2, 2};
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(bandwidth(scenario.conditions[i]), bandwidths[i]);
    EXPECT_EQ(scenario.conditions[i].n, i % 2 == 0 ? 10u : 20u);
    EXPECT_EQ(scenario.conditions[i].parameters.tree().find("sweep"), nullptr);
  }
  EXPECT_EQ(scenario.conditions[3].swept, (std::vector<std::string>{"1", "20"}));
}

TEST(condition, a_sweep_takes_progressions_in_place_of_arrays) {
  const auto scenario =
      parse_scenario(text_with() +
                         "[sweep]\n\"heads.kernel.bandwidth\" = { linspace = [0.2, 0.6, 3] }\n"
                         "data.n = { logspace = [10, 1000, 3] }\n",
                     "s.toml");
  ASSERT_EQ(scenario.conditions.size(), 9u);
  EXPECT_EQ(bandwidth(scenario.conditions[3]), 0.4);
  EXPECT_EQ(scenario.conditions[4].n, 100u);
  EXPECT_EQ(scenario.conditions[4].swept, (std::vector<std::string>{"0.4", "100"}));
}

TEST(condition, a_zipped_sweep_varies_all_keys_together) {
  const auto scenario =
      parse_scenario(text_with() +
                         "[sweep]\nzip = true\nheads.kernel.bandwidth = [0.5, 2.0]\n"
                         "\"data.n\" = [10, 20]\n",
                     "s.toml");
  EXPECT_EQ(scenario.swept, (std::vector<std::string>{"heads.kernel.bandwidth", "data.n"}));
  ASSERT_EQ(scenario.conditions.size(), 2u);
  EXPECT_EQ(bandwidth(scenario.conditions[0]), 0.5);
  EXPECT_EQ(scenario.conditions[0].n, 10u);
  EXPECT_EQ(bandwidth(scenario.conditions[1]), 2);
  EXPECT_EQ(scenario.conditions[1].n, 20u);
  EXPECT_EQ(scenario.conditions[1].swept, (std::vector<std::string>{"2.0", "20"}));
}

TEST(condition, law_tables_and_absent_optional_keys_can_be_swept) {
  const auto scenario =
      parse_scenario(text_with() +
                         "[sweep]\n\"heads.kernel\" = [{ law = \"softmax\", temperature = 2 }, "
                         "{ law = \"laplace\", bandwidth = 3 }]\n\"data.design.ar1\" = [0.1]\n"
                         "\"run.seed\" = [1]\n",
                     "s.toml");
  ASSERT_EQ(scenario.conditions.size(), 2u);
  EXPECT_EQ(std::get<SoftmaxKernel>(*scenario.conditions[0].kernel).temperature, 2);
  EXPECT_EQ(std::get<LaplaceKernel>(*scenario.conditions[1].kernel).bandwidth, 3);
  EXPECT_EQ(std::get<NormalDesign>(*scenario.conditions[1].design).ar1, 0.1);
  EXPECT_EQ(scenario.conditions[1].seed, 1u);
  EXPECT_EQ(scenario.conditions[0].swept[0], "{ law = \"softmax\", temperature = 2 }");
}

TEST(condition, equal_stages_are_held_once) {
  const auto held = [](const std::string& sweep) {
    const auto scenario = parse_scenario(text_with() + "[sweep]\n" + sweep, "s.toml",
                                         {"heads.kernel={ law = 'softmax' }"});
    std::vector<const void*> places;
    for (const Condition& one : scenario.conditions) {
      const MechanismStages& stages = one.mechanism;
      EXPECT_EQ(stage<WindowStage>(stages)->tokens[0], places.size() % 2 == 0 ? 5u : 6u);
      places.push_back(&stages);
    }
    return places;
  };
  const std::string window = "\"heads.mechanism.window\" = [5, 6]\n";
  for (const std::string more : {"",
                                 "\"heads.mechanism.compress\" = [{ by = 'kq_svd', rank = 1 }]\n"
                                 "\"data.design.ar1\" = [0.3]\n"}) {
    const auto places = held(more + "\"heads.kernel.temperature\" = [1, 2]\n" + window);
    ASSERT_EQ(places.size(), 4u);
    EXPECT_EQ(places[0], places[2]);
    EXPECT_EQ(places[1], places[3]);
    EXPECT_NE(places[0], places[1]);
  }
  // Fitted to other points.
  const auto places = held(
      "\"heads.mechanism.compress\" = [{ by = 'kq_svd', rank = 1 }]\n"
      "\"heads.kernel.temperature\" = [1]\n\"data.design.ar1\" = [0.1, 0.2]\n" +
      window);
  EXPECT_NE(places[0], places[2]);
}

TEST(condition, settings_come_before_the_sweep_and_may_change_it) {
  const std::string text = text_with() + "[sweep]\n\"data.n\" = [10, 20]\n";
  const std::vector<std::string> sets = {"sweep.\"data.n\"=[7]", "heads.kernel.bandwidth = 3",
                                         "scenario.name=\"other\"",
                                         "heads.weights={law=\"geometric\", ratio=0.5}"};
  const auto scenario = parse_scenario(text, "s.toml", sets);
  EXPECT_EQ(scenario.sets, sets);
  EXPECT_EQ(scenario.text, text);
  ASSERT_EQ(scenario.conditions.size(), 1u);
  EXPECT_EQ(scenario.conditions[0].n, 7u);
  EXPECT_EQ(bandwidth(scenario.conditions[0]), 3);
  EXPECT_EQ(scenario.conditions[0].name, "other");
  EXPECT_EQ(std::get<GeometricWeights>(*scenario.conditions[0].weights).ratio, 0.5);
}

TEST(condition, a_table_may_be_set_around_what_is_swept) {
  const std::string text = text_with() + "[sweep]\n\"heads.kernel.bandwidth\" = [1, 2]\n";
  const auto scenario = parse_scenario(text, "s.toml", {"heads.kernel={law=\"laplace\"}"});
  EXPECT_EQ(std::get<LaplaceKernel>(*scenario.conditions.at(1).kernel).bandwidth, 2);
}

TEST(condition, parameters_survive_json) {
  const auto scenario = parse_scenario(text_with() + "[sweep]\n\"data.n\" = [10, 20]\n", "s.toml",
                                       {"data.noise.sd=0.1"});
  const auto parsed = nlohmann::json::parse(to_json(scenario.conditions[1].parameters.tree()));
  EXPECT_EQ(parsed, nlohmann::json::parse(R"({
    "scenario": {"name": "base"},
    "data": {"n": 20, "design": {"law": "normal", "dim": 4}, "regression": {"law": "zero"},
             "noise": {"law": "normal", "sd": 0.1}},
    "heads": {"count": 2, "dim": 2, "subspaces": {"law": "orthogonal"},
              "kernel": {"law": "gaussian", "bandwidth": 0.5}, "weights": {"law": "uniform"}},
    "queries": {"law": "points", "points": [[0, 0, 0, 0]]},
    "run": {"replicates": 100}})"));
}

std::string name_of(const Condition& condition, const std::string& family) {
  const auto name = [](const auto& law) {
    return std::visit([](const auto& one) { return std::string(one.name); }, law);
  };
  if (family == "design") return name(*condition.design);
  if (family == "regression") return name(*condition.regression);
  if (family == "noise") return name(*condition.noise);
  if (family == "subspaces") return name(*condition.subspaces);
  if (family == "kernel") return name(*condition.kernel);
  if (family == "weights") return name(*condition.weights);
  if (family == "sequence") return name(*condition.sequence);
  if (family == "controls") return name(*condition.controls);
  return name(*condition.queries);
}

std::string key_of(const std::string& family) {
  if (family == "queries") return family;
  if (family == "controls") return "run." + family;
  const bool data =
      family == "design" || family == "regression" || family == "noise" || family == "sequence";
  return (data ? "data." : "heads.") + family;
}

TEST_F(ConditionOfFiles, every_law_is_read_from_its_example) {
  write("rows.csv", "1,2,3,4,5\n6,7,8,9,0\n");
  write("heads.npy", npy_bytes({2, 4, 2}, std::vector<double>{1, 0, 0, 1, 0, 0, 0, 0,  //
                                                              0, 0, 0, 0, 1, 0, 0, 1}));
  for (const auto& law : describe_laws()) {
    SCOPED_TRACE(law.family + " law " + law.name);
    const bool is_stage = law.family == "mechanism";
    const std::string table = is_stage ? "{ " + law.example + " }"
                                       : "{ law = \"" + law.name + "\"" +
                                             (law.example.empty() ? "" : ", " + law.example) + " }";
    std::vector<std::string> sets = {key_of(law.family) + (is_stage ? "." + law.name : "") + "=" +
                                     table};
    if (law.name == "rows") {
      sets.push_back("data.n=2");
      sets.push_back("data.design={ law = \"file\", path = \"rows.csv\" }");
      sets.push_back("queries.points=[[0,0,0,0,0]]");
    }
    if (law.name == "sinks") sets.push_back("heads.mechanism.window=1");
    if (law.name == "compress") {
      sets.push_back("data.design={ law = \"normal\", dim = 4, ar1 = 0.5 }");
      sets.push_back("heads.kernel={ law = \"softmax\", temperature = 1 }");
    }
    if (law.family == "regression" && law.name == "file") {
      sets.push_back("data.design={ law = \"file\", path = \"rows.csv\" }");
      sets.push_back("queries={ law = \"design\", count = 2 }");
    }
    if (law.family == "weights" && law.name == "learned") {
      sets.push_back("heads.subspaces={ law = \"learned\" }");
    }
    if (law.family == "design" && law.name == "file")
      sets.push_back("queries.points=[[0,0,0,0,0]]");
    const auto scenario = parse_scenario(text_with(), at("s.toml"), sets, folder_.string());
    if (!is_stage) {
      EXPECT_EQ(name_of(scenario.conditions[0], law.family), law.name);
    }
    // With its defaults written out it is accepted as well, from any folder.
    const std::string resolved = resolved_toml(scenario);
    const auto again = parse_scenario(resolved, "resolved.toml", {}, "/");
    if (!is_stage) {
      EXPECT_EQ(name_of(again.conditions[0], law.family), law.name);
    }
    EXPECT_EQ(resolved_toml(again), resolved);
  }
}

TEST(condition, every_law_and_parameter_says_what_it_is) {
  std::vector<LawDescription> laws = describe_laws();
  for (LawDescription& law : describe_stack_laws()) laws.push_back(std::move(law));
  for (const LawDescription& law : laws) {
    EXPECT_FALSE(law.summary.empty()) << law.name;
    for (const auto& parameter : law.parameters)
      EXPECT_FALSE(parameter.doc.empty()) << parameter.key;
  }
}

TEST(condition, the_example_of_the_documentation_runs) {
  std::ifstream in(test::source_dir() + "/docs/scenario.md");
  std::stringstream page;
  page << in.rdbuf();
  const std::string text = page.str();
  const auto begin = text.find("```toml\n") + 8;
  const auto scenario =
      parse_scenario(text.substr(begin, text.find("```", begin) - begin), "s.toml");
  EXPECT_EQ(scenario.conditions.size(), 2u);
}

TEST_F(ConditionOfFiles, data_files_are_relative_to_the_scenario) {
  write("rows.csv", "a,b,c\n1,5,10\n3,5,20\n5,5,60\n");
  write("s.toml",
        text_with({{"design", "{ law = \"file\", path = \"rows.csv\", standardise = true }"},
                   {"regression", "{ law = \"file\", column = 2 }"},
                   {"queries", "law = \"design\"\ncount = 4"}}));
  const auto scenario = read_scenario(at("s.toml"), {"heads.dim=1"});
  const auto& design = std::get<FileDesign>(*scenario.conditions[0].design);
  ASSERT_EQ(design.rows.size(), 3u);
  const auto unit = static_cast<float>(std::sqrt(1.5));
  EXPECT_EQ(design.rows[0][0], -unit);
  EXPECT_EQ(design.rows[1][0], 0);
  EXPECT_EQ(design.rows[2][0], unit);
  ASSERT_EQ(design.rows.columns(), 2u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(design.rows[i][1], 0);
  const auto& regression = std::get<FileRegression>(*scenario.conditions[0].regression);
  EXPECT_EQ(regression.values, (Table{10, 20, 60}));

  const auto chosen = read_scenario(
      at("s.toml"),
      {"data.design={ law = \"file\", path = \"rows.csv\", columns = [2, 0] }", "heads.dim=1"});
  EXPECT_EQ(std::get<FileDesign>(*chosen.conditions[0].design).rows,
            (FileRows{{10, 1}, {20, 3}, {60, 5}}));
}

TEST_F(ConditionOfFiles, standardising_survives_numbers_whose_squares_overflow) {
  write("rows.csv", "1e300,1e-300\n-1e300,3e-300\n");
  const auto scenario = parse_scenario(
      text_with({{"design", "{ law = \"file\", path = \"rows.csv\", standardise = true }"},
                 {"queries", "law = \"design\"\ncount = 1"}}),
      "s.toml", {"heads.dim=1"}, folder_.string());
  const auto& rows = std::get<FileDesign>(*scenario.conditions[0].design).rows;
  EXPECT_EQ(rows, (FileRows{{1, -1}, {-1, 1}}));
}

TEST_F(ConditionOfFiles, standardising_survives_numbers_that_hardly_differ) {
  write("rows.csv", "1,0\n1.0000000000000002,0\n");
  const auto scenario = parse_scenario(
      text_with({{"design", "{ law = \"file\", path = \"rows.csv\", standardise = true }"},
                 {"queries", "law = \"design\"\ncount = 1"}}),
      "s.toml", {"heads.dim=1"}, folder_.string());
  const auto& rows = std::get<FileDesign>(*scenario.conditions[0].design).rows;
  EXPECT_EQ(rows, (FileRows{{-1, 0}, {1, 0}}));
}

TEST(condition, a_missing_scenario_is_refused) {
  EXPECT_EQ(refusal_line([&] { read_scenario("no/folder/s.toml"); }),
            "no/folder/s.toml: cannot be opened: No such file or directory");
}

TEST(law_reader, closest) {
  const std::vector<std::string> words = {"bandwidth", "law", "temperature"};
  EXPECT_EQ(closest("bandwith", words), "bandwidth");
  EXPECT_EQ(closest("badnwidth", words), "bandwidth");
  EXPECT_EQ(closest("lw", words), "law");
  EXPECT_EQ(closest("x", words), "");
  EXPECT_EQ(closest("LAW", words), "law");
  EXPECT_EQ(closest("", words), "");
  EXPECT_EQ(closest("height", words), "");
  EXPECT_EQ(closest(std::string(100000, 'a'), words), "");
}

TEST(law_reader, range_text) {
  EXPECT_EQ(range_text(finite()), "");
  EXPECT_EQ(range_text(above(0)), "> 0");
  EXPECT_EQ(range_text(at_least(1)), ">= 1");
  EXPECT_EQ(range_text(inside(-1, 1)), "inside (-1, 1)");
  EXPECT_EQ(range_text(within(0, 1e6)), "in [0, 1000000]");
  EXPECT_EQ(range_text(seeds()), "in [0, 9007199254740992)");
  EXPECT_EQ(range_text({.high = 2, .high_open = false}), "<= 2");
}

}  // namespace
}  // namespace headlab
