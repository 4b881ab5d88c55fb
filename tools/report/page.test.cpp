// SPDX-License-Identifier: Apache-2.0
#include "tools/report/page.h"

#include <algorithm>
#include <regex>

#include <gtest/gtest.h>

#include "engine/files/error.h"
#include "engine/results/summary_json.h"
#include "engine/testing/hand_made_result.h"
#include "tools/report/figure.h"
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

std::string page_of_document(const std::string& text) {
  return report_page({source_of_document(text)});
}

/// Of a run with one condition that has these queries.
std::string page_of_queries(const std::string& queries) {
  return page_of_document(R"({"headlab": {}, "results_id": "x", "conditions": [{"queries": [)" +
                          queries + "]}]}");
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
                              ">Performance measures<", ">Provenance<"}) {
    const std::size_t next = page.find(heading);
    ASSERT_NE(next, std::string::npos) << heading;
    EXPECT_GT(next, at) << heading;
    at = next;
  }
  EXPECT_TRUE(contains(page, "default-src 'none'; style-src 'unsafe-inline'"));
  EXPECT_TRUE(contains(page, "<math "));
  EXPECT_TRUE(
      contains(page, "<span>hand_made.toml</span> <span>--backend</span> <span>cpu</span>"));
  EXPECT_FALSE(contains(page, ">Verdicts<"));  // nothing was put to the test
}

TEST(ReportPage, EscapesTheTextsOfAScenario) {
  const std::string page =
      page_of({"scenario.name=\"<script>alert(1)</script>\"", "scenario.aims=\"</title>&<b>\""});
  EXPECT_FALSE(contains(page, "<script"));
  EXPECT_FALSE(contains(page, "<b>"));
  EXPECT_TRUE(contains(page, "<h1 id=\"title\">&lt;script&gt;alert(1)&lt;/script&gt;</h1>"));
}

TEST(ReportPage, SaysThatARunEndedEarly) {
  EXPECT_TRUE(contains(page_of({}, "", 992), "of 1000 training sets there are 992."));
  EXPECT_TRUE(
      contains(page_of({}, swept_sizes, 992), "of 1000 training sets some conditions have 992."));
  EXPECT_FALSE(contains(page_of({}, "", 1000), "ended early"));  // the control
}

TEST(ReportPage, SaysWhatStandardErrorsCover) {
  const std::string page = page_of({"heads.subspaces={ law = \"haar\", redraw = true }"}, "", 1000);
  EXPECT_TRUE(contains(page, "The heads were drawn again for every 8 training sets"));
  EXPECT_TRUE(contains(page, ">Precision against the replicates</title>"));
  EXPECT_FALSE(contains(page_of({}), "drawn again"));  // the control
}

TEST(ReportPage, KeepsSignsWithTheirNumbers) {
  const std::string page = page_of({}, swept_sizes);
  const std::size_t caption = page.find("<figcaption>");
  const std::string text = page.substr(caption, page.find("</figcaption>") - caption);
  EXPECT_TRUE(contains(text, "\u00a0±\u00a0"));
  EXPECT_FALSE(contains(text, "± "));
  EXPECT_TRUE(contains(page, " ± "));  // tables can be copied
}

TEST(ReportPage, TellsHeadsApartOnlyWhereTheyAre) {
  const auto page_with = [](const std::string& rows) {
    return page_of_queries(R"({"head_covariance": )" + rows + "}");
  };
  EXPECT_TRUE(contains(page_with("[[2,1],[1,2]]"), "The two heads have a covariance of 1."));
  EXPECT_TRUE(
      contains(page_with("[[2,1,1],[1,2,1],[1,1,2]]"), "Any two heads have a covariance of 1."));
  EXPECT_TRUE(contains(page_with("[[2,1,-3],[1,2,1],[-3,1,2]]"), "the smallest, −3."));
  EXPECT_TRUE(contains(page_with("[[2,1,-3],[1,2,1],[-3,1,2]]"), ">−3.0</text>"));
  // Numbers that would touch their neighbors are left out.
  const auto of_eight = [](const std::string& number) {
    std::string row = number, rows;
    for (int l = 1; l < 8; ++l) row += "," + number;
    for (int h = 0; h < 8; ++h) rows += (h == 0 ? "[" : ",[") + row + "]";
    return "[" + rows + "]";
  };
  EXPECT_TRUE(contains(page_with(of_eight("0.5")), "class=\"ground\">0.50</text>"));
  EXPECT_FALSE(contains(page_with(of_eight("0.0005")), ">0.00050</text>"));
  // With one query the MCSE is known, with two it is not.
  const std::string query =
      R"({"head_covariance": [[2,1],[1,2]], "head_covariance_mcse": [[0.1,0.2],[0.2,0.1]]})";
  EXPECT_TRUE(contains(page_of_queries(query), "<td class=\"n\">1.00 <span>± 0.20</span></td>"));
  EXPECT_FALSE(contains(page_of_queries(query + "," + query), "0.20"));
  // A diagonal that is larger by less than can be seen has no shade of its own.
  EXPECT_FALSE(contains(page_with("[[1.001,1],[1,1.001]]"), "larger (the diagonal)"));
  EXPECT_TRUE(contains(page_with("[[1.2,1],[1,1.2]]"), "larger (the diagonal)"));
}

TEST(ReportPage, TellsRowsOfVerdictsApart) {
  const auto page_with = [](const char* first, const char* second) {
    const auto verdict = [](const char* kernel, const char* file) {
      return std::string(R"({"claim": "c", "form": "f", "verdict": "supported", "margin": 1,)") +
             R"("effect": {"value": 0}, "kernel": ")" + kernel + R"(", "scenario": "a/)" + file +
             R"(.toml"})";
    };
    return page_of_document(R"({"headlab": {}, "claims": [)" + verdict(first, "one") + "," +
                            verdict(second, "two") + "]}");
  };
  EXPECT_TRUE(contains(page_with("gaussian", "gaussian"), ">f (two)</text>"));
  EXPECT_TRUE(contains(page_with("gaussian", "softmax"), ">f (softmax)</text>"));
}

TEST(ReportPage, TellsReadingsOfTheSameWordsApart) {
  const auto verdict = [](const char* outcome, const char* file, const char* more = "") {
    return std::string(
               R"({"claim": "c", "form": "f", "kernel": "gaussian", "margin": 1, "verdict": ")") +
           outcome + R"(", "expected": "supported", "scenario": "a/)" + file + ".toml\"" + more +
           "}";
  };
  const auto page_with = [&](const std::string& second) {
    return page_of_document(R"({"headlab": {}, "claims": [)" + verdict("supported", "one") + "," +
                            second + "]}");
  };
  const std::string both = page_with(verdict("refuted", "two"));
  EXPECT_TRUE(contains(both, "<strong>f</strong> (gaussian) in one<"));
  EXPECT_TRUE(contains(both, "<strong>f</strong> (gaussian) in two<"));
  EXPECT_TRUE(contains(both, ">1 not as expected beforehand<"));
  EXPECT_TRUE(contains(page_with(verdict("supported", "two")), "<strong>f</strong> (gaussian)<"));
  // What was not reached is neither as expected nor otherwise.
  const std::string early = page_with(verdict("unresolved", "two", ", \"complete\": false"));
  EXPECT_FALSE(contains(early, "not as expected"));
  EXPECT_TRUE(contains(early, "<td><p>Open:</p>"));
  EXPECT_TRUE(contains(early, "<td class=\"n\"><span>± 1</span></td>"));
}

TEST(ReportPage, GathersIndicesOfOneCounterexample) {
  const auto verdict = [](const char* index, const char* z) {
    return std::string(R"({"claim": "c", "form": "f", "verdict": "refuted", "index": ")") + index +
           R"(", "certificate": {"z": )" + z + "}}";
  };
  const auto page_with = [&](const char* z) {
    return page_of_document(R"({"headlab": {}, "claims": [)" + verdict("chordal", "7.123456") +
                            "," + verdict("overlap", z) + "]}");
  };
  EXPECT_TRUE(contains(page_with("7.123456"), "<li>f by chordal, overlap: z 7.12</li>"));
  EXPECT_TRUE(contains(page_with("9"), "<li>f by chordal: z 7.12</li><li>f by overlap: z 9</li>"));
}

TEST(ReportPage, SaysWhereAnEndOfTheRangeIsBest) {
  const auto page_with = [](const char* points) {
    return page_of_document(
        std::string(R"({"headlab": {}, "studies": [], "growth": [{"budget": 4, "points": [)") +
        points + R"(], "at_the_end": [50, 400], "ends": [4, 4]}]})");
  };
  EXPECT_TRUE(contains(page_with(""), "dimension 4, an end of the range, is best at every n"));
  EXPECT_FALSE(contains(page_with(""), "Whiskers"));
  // Other dimensions may have less error, in the picture of the allocations.
  EXPECT_TRUE(contains(page_with(""), "Only dimensions that divide D are compared"));
  const std::string theory = page_of_document(
      R"({"headlab": {}, "source": "theory", "studies": [{"budget": 4, "n": 100, "best_dim":
         {"value": 2, "interpolation": 0.2}}], "growth": [{"budget": 4}]})");
  EXPECT_TRUE(contains(theory, " without rounding."));
  EXPECT_TRUE(contains(theory, "twice the error of the place"));
  EXPECT_FALSE(contains(theory, "Best dimension of a head: value ± MCSE"));
  const std::string between =
      page_with(R"({"n": 100, "best_dim": {"value": 2, "mcse": 0.1}, "interpolation": 0.2})");
  EXPECT_TRUE(contains(between, "the best dimension goes from 4"));
  EXPECT_TRUE(contains(between, "±\u00a02 standard errors"));
}

TEST(ReportPage, HasTheCommandOfAllSelections) {
  const auto study = [](const char* n) {
    return R"({"budget": 4, "n": )" + std::string(n) + R"(, "replay": "headlab allocate --n )" + n +
           R"(", "allocations": [{"heads": 4, "dim": 1, "mse": 1}]})";
  };
  const std::string page =
      page_of_document(R"({"headlab": {}, "replay": "headlab allocate --n 5,9", "studies": [)" +
                       study("5") + "," + study("9") + "]}");
  EXPECT_TRUE(contains(page, "<span>--n</span> <span>5,9</span>"));
  EXPECT_FALSE(contains(page, "<span>--n</span> <span>5</span>"));
}

TEST(ReportPage, HasPicturesForNarrowWindows) {
  const std::string page = page_of({}, swept_sizes);
  EXPECT_EQ(count(page, "<svg "), 2 * count(page, "<figure "));
  EXPECT_EQ(count(page, "viewBox=\"0 0 368 "), count(page, "<figure "));
  EXPECT_TRUE(contains(page, "@media (max-width:36rem){.wide{display:none}"));
}

TEST(ReportPage, KeepsTheWordsOfLongTitles) {
  const std::string page =
      page_of({},
              "[sweep]\n\"data.n\" = [20, 50, 100]\n\"data.noise\" = [{ law = \"normal\", sd = "
              "0.5 }, { law = \"student_t\", df = 3, sd = 0.5 }]\n\"heads.subspaces\" = [{ law "
              "= \"haar\" }, { law = \"orthogonal\" }]\n");
  EXPECT_FALSE(std::regex_search(page, std::regex("<t(ext|span)[^>]*>[^<]*…")));
}

TEST(ReportPage, ShowsDifferencesWithoutWhatIsSubtracted) {
  const char* head = R"({"headlab": {}, "results_id": "x", "difference_to": "data.n = 5",)";
  const auto condition = [](int n, double bandwidth, const char* difference) {
    return R"({"parameters": {"data": {"n": )" + std::to_string(n) +
           R"(}, "heads": {"bandwidth": )" + std::to_string(bandwidth) +
           R"(}}, "mse": {"value": 1, "mcse": 0.1}, "difference": )" + difference + "}";
  };
  const char* none = R"({"against": null, "mse": {"value": null, "mcse": null}})";
  const char* some = R"({"against": 0, "mse": {"value": -0.5, "mcse": 0.1}})";
  const auto page_with = [&](const std::string& conditions) {
    return page_of_document(std::string(head) + R"("conditions": [)" + conditions + "]}");
  };
  const std::string page = page_with(condition(5, 1, none) + "," + condition(9, 1, some) + "," +
                                     condition(5, 2, none) + "," + condition(9, 2, some));
  EXPECT_TRUE(contains(page, "Differences from n 5"));
  EXPECT_TRUE(contains(page, "by more than 2 MCSE in 2 of 2 conditions"));
  EXPECT_TRUE(contains(page, "<td class=\"n\">−0.50 <span>± 0.10</span></td>"));
  EXPECT_FALSE(
      contains(page_with(condition(5, 1, none) + "," + condition(9, 1, none)), "Differences from"));
}

TEST(ReportPage, DefinesTheStagesInForce) {
  const auto page_with = [](const std::string& mechanism, const std::string& more = "") {
    return page_of({"heads.mechanism=" + mechanism}, more);
  };
  const std::string page =
      page_with("{ merge = 2, window = 5, sinks = [1, 2], keep = { top = 3 } }");
  for (const char* words :
       {"stages of a head, in order", "<strong>merge</strong>", "<strong>window, sinks</strong>",
        "<strong>keep</strong>", "stride = 2", "window = 5; sinks = [1,2]", "top = 3"}) {
    EXPECT_TRUE(contains(page, words)) << words;
  }
  // The ensemble is of the tokens kept, and no stage is shown as JSON.
  EXPECT_TRUE(contains(page, "<mi>ω</mi>"));
  EXPECT_FALSE(contains(page.substr(0, page.find("Provenance")), "{&quot;top&quot;"));
  EXPECT_LT(page.find("<strong>merge"), page.find("<strong>window"));
  EXPECT_LT(page.find("<strong>window"), page.find("<strong>keep"));
  EXPECT_FALSE(contains(page, "In some conditions."));

  // What changes nothing is not shown, and plain heads have none of it.
  EXPECT_FALSE(contains(page_with("{ window = 20, sinks = 3, merge = 1, keep = { top = 20 } }"),
                        "stages of a head"));
  const std::string plain = page_of({});
  EXPECT_FALSE(contains(plain, "stages of a head"));
  EXPECT_FALSE(contains(plain, "<mi>ω</mi>"));

  // Each rule of a sweep has its definition.
  const std::string swept =
      page_with("{ window = 9 }",
                "[sweep]\n\"heads.mechanism.keep\" = [{ top = 20 }, { top = 3 }, { ratio = 0.1 }, "
                "{ block = 2, top = 2, by = \"pooled\", union = true }]\n");
  EXPECT_EQ(count(swept, "<strong>keep</strong>"), 3u);
  EXPECT_EQ(count(swept, "In some conditions."), 3u);
  EXPECT_TRUE(contains(swept, "mean key of"));
  EXPECT_TRUE(contains(swept, "<mi>ratio</mi>"));
}

TEST(ReportPage, ShowsStagesOfAnotherVersion) {
  const char* document = R"({"headlab": {}, "conditions": [{"parameters": {"heads":
    {"mechanism": {"later": 3}}}}]})";
  EXPECT_TRUE(contains(page_of_document(document), "<strong>later</strong>"));
}

TEST(ReportPage, ShortensALongName) {
  const auto heading = [](std::size_t length) {
    const std::string page = page_of({"scenario.name=\"" + std::string(length, 'x') + "\""});
    const std::size_t at = page.find("<h1");
    return page.substr(at, page.find("</h1>") - at);
  };
  EXPECT_LT(heading(5000).size(), 250u);
  EXPECT_TRUE(contains(heading(5000), "…"));
  EXPECT_FALSE(contains(heading(100), "…"));
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
  const Value& last = member(many.shown_conditions().back(), "parameters");
  EXPECT_EQ(number_of(member(member(last, "data"), "n")), max_conditions + 7);
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
  const std::string page = page_of_document(verdicts);
  EXPECT_LT(page.find("What survives"), page.find("Aims"));
  EXPECT_TRUE(contains(page, "1 holds in some readings only, 1 is open"));
  EXPECT_TRUE(contains(page, "c&lt;1&gt;"));
  EXPECT_TRUE(contains(page, "1 not as expected beforehand"));
  EXPECT_TRUE(contains(page, "MSE 1.00 ± 0.10 against 2.00 ± 0.10, z 7"));
  EXPECT_TRUE(contains(page, code_element("headlab run c.toml")));
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
    return page_of_document(before + figures + after);
  };
  EXPECT_TRUE(contains(page_with(R"(["mse", "mse"])"), "MSE 1.00 ± 0.10 against 2.00 ± 0.10, z 7"));
  EXPECT_TRUE(contains(page_with(R"(["mse", "variance_term"])"),
                       "MSE 1.00 ± 0.10 against variance_term 2.00 ± 0.10, z 7"));
}

TEST(ReportPage, StandsWhateverADocumentLacks) {
  for (const char* document :
       {R"({"headlab": {}, "conditions": []})", R"({"headlab": {}, "conditions": [{}, 3, null]})",
        R"({"headlab": {}, "conditions": [{"queries": [{"head_covariance": [[1], 2]}]}]})",
        R"({"headlab": {}, "conditions": [{"parameters": {"heads": {"mechanism": {"keep": 1}}}}]})",
        R"({"headlab": {}, "conditions": [{"parameters": {"heads": {"mechanism": [1]}}}]})",
        R"({"headlab": {}, "claims": [{}]})", R"({"headlab": {}, "claims": 7})",
        R"({"headlab": {}, "cells": [{}, {"setting": {"a": 1}}]})",
        R"({"headlab": {}, "layers": [{}], "random_sets": 3})",
        R"({"headlab": {}, "allocations": [{}]})",
        R"({"headlab": {}, "studies": [{"allocations": 1}]})",
        R"({"headlab": {}, "over": 1, "curves": [{}, {"points": [1, {}]}], "crossings": [{}]})",
        R"({"headlab": {}, "over": "n", "curves": 1})"}) {
    EXPECT_TRUE(page_of_document(document).ends_with("</html>\n")) << document;
  }
  EXPECT_FALSE(read_document(R"({"a": 1})", "x").has_value());
  EXPECT_FALSE(read_document("[]", "x").has_value());
  // Of headlab compress, which has no figures.
  EXPECT_FALSE(
      read_document(R"({"headlab": {}, "layers": [{"methods": {}}], "rank": 2})", "x").has_value());
  EXPECT_THROW(read_document("{", "x"), InvalidInput);
}

TEST(ReportPage, ShowsMeasuresAsOtherFigures) {
  const std::string measured = "[measures]\nshare = \"covariance_term / mse\"\n" + swept_sizes;
  const std::string page = page_of({}, measured);
  EXPECT_TRUE(contains(page, "share against training points n."));
  EXPECT_TRUE(contains(page, "share: value ± MCSE"));
  EXPECT_FALSE(contains(page_of({}, swept_sizes), "share against"));
}

TEST(ReportPage, SaysWhereTheErrorOfAMeasureSaysLittle) {
  const std::string condition =
      R"({"parameters": {"measures": {"gain": "mse"}}, "gain": {"value": 1, "mcse": 1})";
  const auto page = [&](const std::string& more) {
    return page_of_document(R"({"headlab": {}, "results_id": "x", "conditions": [)" + condition +
                            more + "}]}");
  };
  const std::string words = "What it divides by is less than 6 standard errors from 0";
  EXPECT_TRUE(contains(page(R"(, "doubtful_measures": ["gain"])"), words));
  EXPECT_FALSE(contains(page(R"(, "doubtful_measures": ["share"])"), words));
  EXPECT_FALSE(contains(page(""), words));
}

TEST(ReportPage, ShowsSlopesAndCrossingsAlongAKey) {
  const std::string document = R"({"headlab": {}, "over": "sd", "over_key": "data.noise.sd",
    "figure": "mse", "replay": "headlab along DIR", "curves": [
    {"name": "dim = 1", "lowest": 1, "points": [
      {"x": 1, "figure": {"value": 2, "mcse": 0.25}, "may_be_lowest": true},
      {"x": 2, "figure": {"value": 4, "mcse": 0.25}, "may_be_lowest": false}],
     "slope": {"value": 1, "mcse": 0.1}, "slope_low": 0.8, "slope_high": 1.2},
    {"name": "dim = 2", "lowest": 1, "points": [{"x": 1, "figure": {"value": 3, "mcse": 0.25}}]}],
    "crossings": [{"a": "dim = 1", "b": "dim = 2", "at": 1.5, "low": 1, "high": 2}]})";
  const std::string page = page_of_document(document);
  EXPECT_TRUE(contains(page, "The lowest point of dim = 1 is at 1 (slope 1.00\u00a0±\u00a00.10)"));
  EXPECT_TRUE(contains(page, "dim = 1 and dim = 2 cross between 1 and 2."));
  // One curve has a slope; both have their points.
  EXPECT_EQ(count(page, "0.80 to 1.20"), 1u);
  EXPECT_EQ(count(page, "2.00 <span>± 0.25") + count(page, "3.00 <span>± 0.25"), 2u);
  EXPECT_TRUE(contains(page, "<span>along</span> <span>DIR</span>"));
  EXPECT_FALSE(has_word(page, "NaN") || has_word(page, "nan"));
}

TEST(ReportPage, OpensWithItsFirstPicture) {
  const std::string page = page_of({}, swept_sizes);
  const std::size_t aims = page.find(">Aims<");
  EXPECT_EQ(count(page.substr(0, aims), "<figure"), 1u);
  EXPECT_GT(count(page.substr(aims), "<figure"), 1u);
}

TEST(ReportPage, PrintsWhatIsFolded) {
  const std::string page = page_of({});
  const std::string print = page.substr(page.find("@media print"));
  EXPECT_TRUE(contains(print, "details::details-content{content-visibility:visible"));
  EXPECT_TRUE(contains(print, "svg{max-height:"));
  EXPECT_FALSE(contains(print.substr(0, print.find("</style>")), "details{display:none}"));
}

TEST(ReportPage, WritesANormalDesignByWhatItStates) {
  const auto page_with = [](const char* design) {
    return page_of_document(
        std::string(R"({"headlab": {}, "conditions": [{"parameters": {"data": {"design": )") +
        design + "}}}]}");
  };
  const std::string identity = "<msub><mi>I</mi><mrow><mn>4</mn></mrow></msub>";
  EXPECT_TRUE(contains(page_with(R"({"law": "normal", "dim": 4})"), identity));
  EXPECT_TRUE(
      contains(page_with(R"({"law": "normal", "dim": 4, "mean": [0, 0, 0, 0]})"), identity));
  EXPECT_FALSE(contains(page_with(R"({"law": "normal", "dim": 4, "ar1": 0.5})"), identity));
  EXPECT_FALSE(
      contains(page_with(R"({"law": "normal", "dim": 2, "covariance": [[1, 0.5], [0.5, 1]]})"),
               "<mi>I</mi>"));
  EXPECT_TRUE(contains(page_with(R"({"law": "normal", "dim": 2, "covariance": [[1, 0], [0, 1]]})"),
                       "<mi>I</mi>"));
}

TEST(ReportPage, NamesBarsInFull) {
  std::string conditions;
  for (const char* n : {"100", "200"}) {
    for (const char* law : {"lognormal", "epanechnikov"}) {
      conditions += std::string(conditions.empty() ? "" : ",") +
                    R"({"parameters": {"sample_size": )" + n +
                    R"(, "regression": "additive_cosines", "kernel": ")" + law +
                    R"(", "spread": ")" + law + n +
                    R"("}, "mse": {"value": 3}, "bias_squared": {"value": 1},
                       "variance_term": {"value": 1}, "covariance_term": {"value": 1}})";
    }
  }
  const std::string page =
      page_of_document(R"({"headlab": {}, "results_id": "x", "conditions": [)" + conditions + "]}");
  const std::string bars = page.substr(page.find("id=\"figure-2\""));
  EXPECT_TRUE(contains(bars.substr(0, bars.find("</svg>")),
                       ">sample_size 100, kernel epanechnikov, spread epanechnikov100<"));
}

TEST(ReportPage, ShowsNoCovarianceOfASingleHead) {
  const auto figures = [](const char* count) {
    const std::string page = page_of({std::string("heads.count=") + count}, swept_sizes);
    return page.substr(page.find("<figure"), page.find("</svg>") - page.find("<figure"));
  };
  EXPECT_FALSE(contains(figures("1"), ">covariance<"));
  EXPECT_TRUE(contains(figures("2"), ">covariance<"));  // the control
}

TEST(ReportPage, HasTheCommandsOfVerdicts) {
  const std::string page = page_of_document(R"({"headlab": {"version": "1"}, "claims": [
    {"claim": "a", "form": "f", "verdict": "supported", "replay": "headlab validate a"},
    {"claim": "a", "form": "g", "verdict": "supported", "replay": "headlab validate a"},
    {"claim": "b", "form": "f", "verdict": "supported", "replay": "headlab validate b"}]})");
  EXPECT_TRUE(contains(page, "<dd>" + code_element("headlab validate a") + "<br/>" +
                                 code_element("headlab validate b") + "</dd>"));
}

TEST(ReportPage, CountsClaimsAndComparisons) {
  const auto page_with = [](const char* comparisons, const char* other) {
    return page_of_document(std::string(R"({"headlab": {}, "alpha": 0.01, "comparisons": )") +
                            comparisons + R"(, "claims": [{"claim": "a", "form": "f",
      "verdict": "supported", "margin": 1, "effect": {"value": 0,
      "of": "mse at angles = [1.5707963267948966, 0.5] and n = 123456789"}})" +
                            other + "]}");
  };
  const std::string one = page_with("1", "");
  EXPECT_TRUE(contains(one, "In which readings does this claim hold: a?"));
  EXPECT_TRUE(contains(one, "the only comparison of the call is rejected"));
  EXPECT_TRUE(contains(one, "mse at angles = [1.5708, 0.5] and n = 123456789"));
  const std::string two = page_with("2", R"(, {"claim": "b", "form": "f", "verdict": "refuted"})");
  EXPECT_TRUE(contains(two, "Which of these claims hold, and in which readings: a, b?"));
  EXPECT_TRUE(contains(two, "over all 2 comparisons"));
  EXPECT_TRUE(contains(two, ">a: f</text>"));
}

TEST(ReportPage, HasWhatVariesInAStudyOfDepth) {
  const auto page_with = [](const char* other) {
    const auto condition = [](const std::string& maps) {
      return R"({"parameters": {"heads": {"maps": )" + maps +
             R"(}}, "replicates": 9, "layers": [{"log_residual": {"value": 1, "mcse": 0.1}}]})";
    };
    return page_of_document(
        R"({"headlab": {}, "results_id": "x", "conditions": [)" +
        condition(R"({"law": "pruned", "of": {"law": "gaussian"}, "hidden": 16})") + "," +
        condition(other) + "]}");
  };
  EXPECT_TRUE(contains(page_with(R"({"law": "pruned", "of": {"law": "gaussian"}, "hidden": 24})"),
                       "<dd>pruned, of gaussian, hidden 16 or 24</dd>"));
  EXPECT_TRUE(contains(page_with(R"({"law": "gaussian"})"),
                       "<dd>pruned, of gaussian, hidden 16 or gaussian</dd>"));
}

TEST(ReportPage, DrawsSlopesOfLogarithmsOnLogarithmicAxes) {
  const auto page_with = [](const char* slope) {
    return page_of_document(std::string(R"({"headlab": {}, "over": "n", "over_key": "data.n",
      "figure": "mse", "curves": [{"name": "", "lowest": 4, "points": [
      {"x": 2, "figure": {"value": 40, "mcse": 1}}, {"x": 4, "figure": {"value": 20, "mcse": 1}},
      {"x": 12, "figure": {"value": 14, "mcse": 1}}])") +
                            slope + "}]}");
  };
  // From 2 to 12 a linear axis has 12 among its ticks, a logarithmic one 2, 5 and 10 alone.
  EXPECT_TRUE(contains(page_with(R"(, "slope": {"value": -1, "mcse": 0.1})"), ">2</text>"));
  EXPECT_FALSE(contains(page_with(R"(, "slope": {"value": -1, "mcse": 0.1})"), ">12</text>"));
  EXPECT_TRUE(contains(page_with(""), ">12</text>"));
}

TEST(ReportPage, TellsDiversityFromNoise) {
  const auto page_with = [](const char* z) {
    return page_of_document(std::string(R"({"headlab": {}, "random_sets": 9, "d": 4, "layers": [
      {"layer": 0, "indices": {"chordal": {"value": 0.5, "random_mean": 0.6, "random_sd": 0.1,
       "z": )") + z + "}}}]}");
  };
  EXPECT_TRUE(contains(page_with("-1"), "within\u00a0±\u00a02 sd of random heads in every layer"));
  EXPECT_TRUE(contains(page_with("-3"), "below random heads by more than 2 sd in 1 of 1 layer;"));
  EXPECT_TRUE(contains(page_with("3"), "above random heads by more than 2 sd in 1 of 1 layer;"));
  EXPECT_TRUE(contains(page_with("-3"), "(z −3)"));
}

TEST(ReportPage, HasTheMechanismsOfAnAllocation) {
  const std::string page = page_of_document(R"({"headlab": {}, "budget": 4, "n": 50,
    "parameters": {"data": {"n": 7, "noise": {"law": "normal", "sd": 0.5}}},
    "allocations": [{"heads": 1, "dim": 4, "mse": {"value": 1, "mcse": 0.1}}]})");
  EXPECT_TRUE(contains(page, "sd = 0.5"));
  EXPECT_TRUE(contains(page, "<dd>50</dd>"));
  EXPECT_FALSE(contains(page, "that the command names"));
}

TEST(VerdictFigure, HasArrowsForWhatLiesFarBeyond) {
  const auto page_with = [](const char* effect) {
    std::string verdicts;
    for (const char* one : {"0.01", "-0.02", effect}) {
      verdicts += std::string(verdicts.empty() ? "" : ",") + R"({"claim": "c", "form": ")" + one +
                  R"(", "verdict": "refuted", "margin": 0.05,
                     "effect": {"value": )" +
                  one + R"(, "mcse": 0.001}})";
    }
    return page_of_document(R"({"headlab": {}, "claims": [)" + verdicts + "]}");
  };
  EXPECT_TRUE(contains(page_with("50"), "An arrow stands for an effect beyond the axis."));
  EXPECT_TRUE(contains(page_with("50"), ">1000.000 ± 0.020</text>"));
  EXPECT_FALSE(contains(page_with("0.1"), "An arrow stands"));   // the control
  EXPECT_FALSE(contains(page_with("50"), "in their own unit"));  // but where one of a part is
}

TEST(PrecisionFigure, HasNoPointOfFewGroups) {
  const auto pictures = [](std::size_t fewest) {
    Source source = source_of_document(R"({"headlab": {}, "results_id": "x", "conditions": [
      {"mse": {"value": 3, "mcse": 0.1}}]})");
    source.precision = {
        {0,
         {{fewest * 8, fewest, {.value = 3, .mcse = 0.2}}, {320, 40, {.value = 3, .mcse = 0.1}}}}};
    return figures_of(source);
  };
  const auto has = [](const std::vector<Picture>& all) {
    return std::ranges::any_of(all, [](const Picture& one) { return one.name == "precision"; });
  };
  EXPECT_FALSE(has(pictures(31)));
  EXPECT_TRUE(has(pictures(32)));  // the control
}

TEST(ReportPage, DrawsWholeLinesBelowBrokenOnes) {
  const std::string page = page_of({}, swept_sizes);
  const std::string first = page.substr(0, page.find("</svg>"));
  ASSERT_TRUE(contains(first, "class=\"line c0\""));
  EXPECT_LT(first.rfind("class=\"line c0\""), first.rfind("class=\"line c1\""));
}

TEST(SvgFile, NeedsNoVariables) {
  Canvas canvas(360, 100);
  canvas.line({0, 0}, {9, 9}, "line c2");
  canvas.text({5, 5}, "halo", "start", "halo");
  const std::string svg = canvas.svg_file("a title", "words", 8);
  EXPECT_FALSE(contains(svg, "var("));
  EXPECT_TRUE(contains(svg, "width=\"84.67mm\""));
  EXPECT_TRUE(contains(svg, ".line.c2,.theory.c2,.target.c2,.whisker.c2{stroke:#e69f00;}"));
  EXPECT_EQ(count(svg, ">halo</text>"), 2u);  // its edge, and itself
  EXPECT_TRUE(contains(canvas.svg("id", "a", "b"), "class=\"line c2\""));
  EXPECT_TRUE(contains(page_of({}), "var(--c2)"));  // the control
}

}  // namespace
}  // namespace headlab::tools
