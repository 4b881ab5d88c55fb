// SPDX-License-Identifier: Apache-2.0
/// \file Every symbol of a formula is defined in the report that shows it.
#include <algorithm>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/files/document.h"
#include "engine/files/json_reader.h"
#include "engine/files/json_writer.h"
#include "engine/moments/layer_estimates.h"
#include "engine/scenario/law_reader.h"
#include "engine/scenario/stack/stack_setting.h"
#include "tools/report/scenario_sections.h"
#include "tools/report/testing/undefined_symbols.h"

namespace headlab::tools {
namespace {

/// The tables of a scenario by their dotted names, each as TOML.
using Tables = std::map<std::string, std::string>;

const Tables regression = {{"data.n", "9"},
                           {"data.design", "{ law = \"normal\", dim = 4 }"},
                           {"data.regression", "{ law = \"zero\" }"},
                           {"data.noise", "{ law = \"normal\", sd = 1 }"},
                           {"heads.count", "2"},
                           {"heads.dim", "2"},
                           {"heads.subspaces", "{ law = \"orthogonal\" }"},
                           {"heads.kernel", "{ law = \"gaussian\", bandwidth = 1 }"},
                           {"queries", "{ law = \"design\", count = 2 }"}};

const Tables depth = {{"tokens.n", "4"},
                      {"tokens.design", "{ law = \"normal\", dim = 4 }"},
                      {"heads.count", "2"},
                      {"heads.dim", "2"},
                      {"heads.kernel", "{ law = \"softmax\", temperature = 1 }"},
                      {"heads.maps", "{ law = \"gaussian\" }"},
                      {"layers.count", "3"}};

std::string parameters_of(const Tables& tables) {
  std::string text;
  for (const auto& [key, value] : tables) text += key + " = " + value + "\n";
  return to_json(parse_toml(text, "s.toml"));
}

/// The sections of a run with these parameters.
std::string run_text(const Tables& tables, const std::string& results, bool layers) {
  const Source source{.document = parse_json(R"({"conditions": [{"parameters": )" +
                                             parameters_of(tables) + ", " + results + "}]}")
                                      .value()};
  std::string text;
  for (const Section& section : layers ? depth_sections(source) : run_sections(source)) {
    text += section.html;
  }
  return text;
}

std::set<std::string> undefined_of_run(const Tables& changed, const std::string& results) {
  Tables tables = regression;
  for (const auto& [key, value] : changed) tables[key] = value;
  return undefined_symbols(run_text(tables, results, false));
}

std::set<std::string> undefined_of_depth(const Tables& changed) {
  Tables tables = depth;
  for (const auto& [key, value] : changed) tables[key] = value;
  std::string metrics;
  for (const LayerMetricDescription& one : layer_metric_descriptions()) {
    metrics += (metrics.empty() ? "\"" : ", \"") + std::string(one.name) + R"(": {"value": 1})";
  }
  return undefined_symbols(
      run_text(tables, R"("replicates": 9, "layers": [{)" + metrics + "}]", true));
}

std::string table_of(const LawDescription& law) {
  return "{ law = \"" + law.name + "\"" + (law.example.empty() ? "" : ", " + law.example) + " }";
}

TEST(Symbols, AreDefinedWhereALawUsesThem) {
  const std::map<std::string, std::string> places = {
      {"design", "data.design"},        {"regression", "data.regression"},
      {"noise", "data.noise"},          {"sequence", "data.sequence"},
      {"subspaces", "heads.subspaces"}, {"kernel", "heads.kernel"},
      {"weights", "heads.weights"},     {"queries", "queries"}};
  const std::string covariances = R"("replicates": 9, "head_covariance": [[1, 1], [1, 1]])";
  std::size_t laws = 0;
  for (const LawDescription& law : describe_laws()) {
    if (!places.contains(law.family)) continue;
    ++laws;
    EXPECT_EQ(undefined_of_run({{places.at(law.family), table_of(law)}}, covariances),
              std::set<std::string>())
        << law.family << " " << law.name;
  }
  EXPECT_GT(laws, 30u);
}

TEST(Symbols, AreDefinedWhereAStageUsesThem) {
  std::size_t stages = 0;
  for (const LawDescription& stage : describe_laws()) {
    if (stage.family != "mechanism") continue;
    ++stages;
    std::vector<std::string> settings = {stage.example};
    if (stage.name == "keep") {
      settings = {"top = 1",
                  "fraction = 0.5",
                  "ratio = 0.5",
                  "top = 1, block = 2",
                  "top = 1, block = 2, by = \"pooled\"",
                  "top = 1, union = true"};
    } else if (stage.name == "transform") {
      settings = {"mix = 0.5", "matrix = [[1, 2], [2, 1]]"};
    } else if (stage.name == "merge") {
      settings = {"stride = 2", "stride = 2, gate = 0.5"};
    }
    for (const std::string& one : settings) {
      EXPECT_EQ(undefined_of_run({{"heads.mechanism", "{ " + stage.name + " = { " + one + " } }"},
                                  {"heads.kernel", "{ law = \"softmax\", temperature = 1 }"}},
                                 R"("replicates": 9)"),
                std::set<std::string>())
          << stage.name << " " << one;
    }
  }
  EXPECT_GT(stages, 5u);
}

TEST(Symbols, AreDefinedWhereALayerUsesThem) {
  const std::string norm = "{ law = \"rms\", place = \"pre\" }";
  for (const Tables& changed : std::vector<Tables>{
           {},
           {{"layers.memory", "0.5"}},
           {{"heads.order", "\"alternating\""}},
           {{"heads.values", "\"averaged\""}},
           {{"layers.mask", "\"causal\""}},
           {{"layers.norm", norm}},
           {{"layers.norm", "{ law = \"layer\", place = \"post\" }"}},
           {{"layers.mlp", "{ law = \"relu\", width = 8 }"}, {"layers.norm", norm}},
           {{"layers.mlp", "{ law = \"explicit\", input = [[1]], bias = [1], output = [[1]] }"}},
           {{"heads.kernel", "{ law = \"uniform\" }"}},
           {{"heads.kernel", "{ law = \"independent_logits\", sd = 1 }"}},
           {{"heads.kernel", "{ law = \"fixed\", matrices = [[[1]]] }"}},
           {{"heads.maps", "{ law = \"scaled_identity\", query_key = [1], value = [1] }"}},
           {{"heads.maps", "{ law = \"explicit\", query_key = [[[1]]], value = [[[1]]] }"}},
           {{"heads.maps", "{ law = \"pruned\", of = { law = \"gaussian\" }, hidden = 8 }"}},
           {{"tokens.design", "{ law = \"simplex\", dim = 4, rho = 1, mu = 0 }"}},
           {{"tokens.design", "{ law = \"student_t\", dim = 4, df = 3 }"}}}) {
    EXPECT_EQ(undefined_of_depth(changed), std::set<std::string>())
        << (changed.empty() ? "" : changed.begin()->first + " = " + changed.begin()->second);
  }
}

/// What stands in the list of symbols of a page, without its markup.
std::set<std::string> symbols_listed(const std::string& page) {
  const std::regex term("<dt><math.*?</math></dt>"), tag("<[^>]*>");
  std::set<std::string> found;
  for (std::sregex_iterator at(page.begin(), page.end(), term); at != std::sregex_iterator();
       ++at) {
    found.insert(std::regex_replace(at->str(), tag, ""));
  }
  return found;
}

using Names = std::set<std::string>;  ///< of symbols

std::set<std::string> listed_of_run(const Tables& changed) {
  Tables tables = regression;
  for (const auto& [key, value] : changed) tables[key] = value;
  return symbols_listed(run_text(tables, R"("replicates": 9)", false));
}

std::set<std::string> listed_of_depth(const Tables& changed) {
  Tables tables = depth;
  for (const auto& [key, value] : changed) tables[key] = value;
  return symbols_listed(run_text(tables, R"("replicates": 9, "layers": [{}])", true));
}

/// Those of `some` that are listed.
Names picked(const Names& all, const Names& some) {
  Names both;
  std::ranges::set_intersection(all, some, std::inserter(both, both.end()));
  return both;
}

TEST(Symbols, AreListedExactlyWhereAFormulaOrAnEntryUsesThem) {
  // One head has no covariance with another; its matrix is no formula with d in it.
  const Tables one = {{"heads.count", "1"},
                      {"data.design", "{ law = \"uniform\", dim = 4 }"},
                      {"heads.subspaces", "{ law = \"haar\" }"}};
  EXPECT_EQ(picked(listed_of_run(one), {"Cov", "Chl", "l", "d", "dk", "Var", "Wh", "Xc", "xc"}),
            (Names{"Var", "Wh", "dk", "Xc"}));
  EXPECT_EQ(picked(listed_of_run({{"data.regression",
                                   "{ law = \"random_cosines\", terms = 3, "
                                   "length_scale = 1, seed = 1 }"}}),
                   {"I", "l"}),
            (Names{"I", "l"}));
  const Names of_mlp = {"X''", "Z'", "W1", "W2", "b1", "relu"};
  EXPECT_EQ(picked(listed_of_depth({}), of_mlp), Names());
  EXPECT_EQ(picked(listed_of_depth({{"layers.mlp", "{ law = \"relu\", width = 8 }"}}), of_mlp),
            of_mlp);
  EXPECT_EQ(picked(listed_of_depth({}), {"d", "dk", "dv", "Mh", "WQ,h"}),
            (Names{"d", "dk", "dv", "Mh", "WQ,h"}));
  EXPECT_EQ(
      picked(listed_of_depth({{"heads.kernel", "{ law = \"uniform\" }"}}), {"Mh", "WQ,h", "t"}),
      Names());
}

TEST(Symbols, ThatAreDefinedNowhereAreFound) {
  EXPECT_EQ(undefined_symbols("<p>" + mathml("y = sum_i a_i z") + "</p>"),
            (std::set<std::string>{"a", "z"}));
}

}  // namespace
}  // namespace headlab::tools
