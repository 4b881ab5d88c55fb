// SPDX-License-Identifier: Apache-2.0
#include "tools/report/page.h"

#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/files/error.h"
#include "engine/results/summary_json.h"
#include "engine/scenario/law_reader.h"
#include "engine/testing/hand_made_result.h"
#include "tools/report/law_formulas.h"
#include "tools/report/read_sources.h"

namespace headlab::tools {
namespace {

std::string summary_of(const Scenario& scenario, const RunResult& result) {
  std::string text;
  write_summary_json([&](std::string_view part) { text += part; }, scenario, result,
                     hand_made::indices(result), hand_made::program);
  return text;
}

std::string page_of(const std::vector<std::string>& sets, const std::string& more = "",
                    std::uint64_t replicates = 1000) {
  const Scenario scenario = hand_made::scenario(sets, more);
  const RunResult result = hand_made::result(scenario, replicates);
  return report_page({source_of_run(scenario, result, summary_of(scenario, result))});
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

bool contains(const std::string& text, const std::string& part) {
  return count(text, part) > 0;
}

bool has_word(const std::string& text, const std::string& word) {
  return std::regex_search(text, std::regex("\\b" + word + "\\b"));
}

const std::string swept_sizes = "[sweep]\n\"data.n\" = [20, 50, 100]\n";

TEST(ReportPage, HasTheSameBytesForTheSameResults) {
  const std::string page = page_of({}, swept_sizes);
  EXPECT_EQ(page, page_of({}, swept_sizes));
  EXPECT_NE(page, page_of({}, swept_sizes, 999));  // the control
}

TEST(ReportPage, DoesNotSayHowLongItTook) {
  const Scenario scenario = hand_made::scenario();
  RunResult result = hand_made::result(scenario);
  const std::string page =
      report_page({source_of_run(scenario, result, summary_of(scenario, result))});
  result.conditions[0].seconds = 77;
  result.conditions[0].weights_per_second = 5;
  result.machine.threads = 64;
  EXPECT_EQ(page, report_page({source_of_run(scenario, result, summary_of(scenario, result))}));
}

TEST(ReportPage, FollowsTheOrderOfAdemp) {
  const std::string page = page_of({}, swept_sizes);
  std::size_t at = 0;
  for (const char* heading : {">Aims<", ">Data-generating mechanisms<", ">Estimands<", ">Methods<",
                              ">Performance measures<", ">Verdicts<", ">Provenance<"}) {
    const std::size_t next = page.find(heading);
    ASSERT_NE(next, std::string::npos) << heading;
    EXPECT_GT(next, at) << heading;
    at = next;
  }
  EXPECT_TRUE(contains(page, "default-src 'none'; style-src 'unsafe-inline'"));
  EXPECT_TRUE(contains(page, "<math "));
  EXPECT_TRUE(contains(page, "headlab run hand_made.toml --backend cpu --out DIR"));
}

TEST(ReportPage, DescribesEveryFigure) {
  const std::string page = page_of({}, swept_sizes);
  const std::size_t figures = count(page, "<figure ");
  EXPECT_EQ(figures, 4u);
  EXPECT_EQ(count(page, "role=\"img\""), figures);
  EXPECT_EQ(count(page, "<title id="), figures);
  EXPECT_EQ(count(page, "<desc id="), figures);
  EXPECT_EQ(count(page, "<summary>Table of figure"), figures);
  EXPECT_FALSE(contains(page, "<desc id=\"figure-1-desc\"></desc>"));
}

TEST(ReportPage, EscapesTheTextsOfAScenario) {
  const std::string page =
      page_of({"scenario.name=\"<script>alert(1)</script>\"", "scenario.aims=\"</title>&<b>\""});
  EXPECT_FALSE(contains(page, "<script"));
  EXPECT_FALSE(contains(page, "<b>"));
  EXPECT_TRUE(contains(page, "<h1 id=\"title\">&lt;script&gt;alert(1)&lt;/script&gt;</h1>"));
}

TEST(ReportPage, HasNoNumbersWhereThereAreNone) {
  for (const std::uint64_t replicates : {0u, 1u, 7u, 8u}) {
    for (const char* heads : {"heads.count=1", "heads.count=2"}) {
      const std::string page = page_of({heads}, "", replicates);
      EXPECT_FALSE(has_word(page, "nan")) << replicates << " " << heads;
      EXPECT_FALSE(has_word(page, "inf")) << replicates << " " << heads;
      EXPECT_TRUE(contains(page, "</html>"));
      EXPECT_TRUE(has_word(page + " nan", "nan"));
    }
  }
}

TEST(ReportPage, ThinsManyConditionsAndSaysSo) {
  const auto document_of = [](std::size_t conditions) {
    std::string text = R"({"headlab": {"version": "1"}, "results_id": "x", "conditions": [)";
    for (std::size_t i = 0; i < conditions; ++i) {
      text += std::string(i == 0 ? "" : ",") + R"({"parameters": {"data": {"n": )" +
              std::to_string(i + 1) + R"(}}, "replicates": 9, "filler": ")" +
              std::string(500, 'x') + R"(", "mse": {"value": )" + std::to_string(1.0 + double(i)) +
              R"(, "mcse": 0.0}, "queries": [{"x": [1]}]})";
    }
    return text + "]}";
  };
  const Source many = source_of_document(document_of(max_conditions + 7));
  EXPECT_EQ(many.conditions, max_conditions + 7);
  ASSERT_EQ(many.shown_conditions().size(), max_conditions);
  EXPECT_EQ(many.shown_conditions().back()["parameters"]["data"]["n"], max_conditions + 7);
  const std::string page = report_page({many});
  EXPECT_TRUE(contains(page, "The report is of 4000 of 4007 conditions"));
  EXPECT_TRUE(contains(page, "Shows 60 of 4000 conditions"));
  EXPECT_LT(page.size(), 100 * max_conditions);
  const Source few = source_of_document(document_of(3));
  EXPECT_FALSE(contains(report_page({few}), "The report is of"));
}

TEST(ReportPage, OpensWithWhatSurvives) {
  const char* verdicts = R"({"headlab": {"version": "1"}, "complete": true, "alpha": 0.01,
    "comparisons": 3, "claims": [
    {"claim": "c<1>", "form": "one reading", "index": "chordal", "kernel": "gaussian",
     "signal": false, "statement": "It holds.", "verdict": "supported", "expected": "supported",
     "margin": 0.05, "effect": {"value": 0.01, "mcse": 0.001, "of": "x", "zone": "two-sided"}},
    {"claim": "c<1>", "form": "another", "index": null, "statement": "It fails.",
     "verdict": "refuted", "expected": "supported", "margin": 0.0,
     "effect": {"value": -2, "mcse": null, "of": "x", "zone": "one-sided"},
     "certificate": {"mse": [{"value": 1, "mcse": 0.1}, {"value": 2, "mcse": 0.1}], "z": 7},
     "replay": "headlab run c.toml"},
    {"claim": "mine", "form": "", "verdict": "unresolved", "expected": ""}]})";
  const std::string page = report_page({source_of_document(verdicts)});
  EXPECT_LT(page.find("What survives"), page.find("Aims"));
  EXPECT_TRUE(contains(page, "1 hold in some readings only, 1 are open"));
  EXPECT_TRUE(contains(page, "c&lt;1&gt;"));
  EXPECT_TRUE(contains(page, "1 not as expected beforehand"));
  EXPECT_TRUE(contains(page, "MSE 1.00 ± 0.10 against 2.00 ± 0.10, z 7"));
  EXPECT_TRUE(contains(page, "<code>headlab run c.toml</code>"));
  EXPECT_TRUE(contains(page, "refuted (expected supported)"));
  // The control: a run has nothing that could survive.
  EXPECT_FALSE(contains(page_of({}), "What survives"));
}

TEST(ReportPage, NamesTheFiguresOfACounterexample) {
  const std::string before = R"({"headlab": {"version": "1"}, "claims": [{"claim": "c", "form": "f",
    "verdict": "refuted", "certificate": {"figures": )";
  const std::string after = R"(, "conditions": [0, 1],
    "values": [{"value": 1, "mcse": 0.1}, {"value": 2, "mcse": 0.1}], "z": 7}}]})";
  const auto page_with = [&](const std::string& figures) {
    return report_page({source_of_document(before + figures + after)});
  };
  EXPECT_TRUE(contains(page_with(R"(["mse", "mse"])"), "MSE 1.00 ± 0.10 against 2.00 ± 0.10, z 7"));
  EXPECT_TRUE(contains(page_with(R"(["mse", "variance_term"])"),
                       "MSE 1.00 ± 0.10 against variance_term 2.00 ± 0.10, z 7"));
}

TEST(ReportPage, StandsWhateverADocumentLacks) {
  for (const char* document :
       {R"({"headlab": {}, "conditions": []})", R"({"headlab": {}, "conditions": [{}, 3, null]})",
        R"({"headlab": {}, "conditions": [{"queries": [{"head_covariance": [[1], 2]}]}]})",
        R"({"headlab": {}, "claims": [{}]})", R"({"headlab": {}, "claims": 7})",
        R"({"headlab": {}, "cells": [{}, {"setting": {"a": 1}}]})",
        R"({"headlab": {}, "layers": [{}]})", R"({"headlab": {}, "allocations": [{}]})",
        R"({"headlab": {}, "studies": [{"allocations": 1}]})"}) {
    EXPECT_TRUE(report_page({source_of_document(document)}).ends_with("</html>\n")) << document;
  }
  EXPECT_FALSE(read_document(R"({"a": 1})", "x").has_value());
  EXPECT_FALSE(read_document("[]", "x").has_value());
  EXPECT_THROW(read_document("{", "x"), InvalidInput);
}

TEST(LawFormulas, AreThereForEveryLawOfData) {
  for (const LawDescription& law : describe_laws()) {
    if (law.family == "subspaces" || law.family == "queries" || law.family == "weights") continue;
    EXPECT_FALSE(law_formula(law.family, law.name).empty()) << law.family << " " << law.name;
  }
  EXPECT_TRUE(law_formula("kernel", "none").empty());
}

TEST(LawFormulas, ShowTheSummaryOfALawWithoutOne) {
  const Json law = Json::parse(R"({"law": "haar", "seed": 3})");
  const Json other = Json::parse(R"({"law": "haar", "seed": 4})");
  const std::string text = law_html("subspaces", {&law, &other});
  EXPECT_TRUE(contains(text, "independent and uniformly distributed heads"));
  EXPECT_TRUE(contains(text, "seed = 3 or 4"));
}

}  // namespace
}  // namespace headlab::tools
