// SPDX-License-Identifier: Apache-2.0
// Pages of documents: verdicts, allocations, diversity, curves.
#include <algorithm>

#include <gtest/gtest.h>

#include "engine/files/error.h"
#include "tools/report/figure.h"
#include "tools/report/sections.h"
#include "tools/report/testing/pages.h"

namespace headlab::tools {
namespace {

/// Of a run with one condition that has these queries.
std::string page_of_queries(const std::string& queries) {
  return page_of_document(R"({"headlab": {}, "results_id": "x", "conditions": [{"queries": [)" +
                          queries + "]}]}");
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
  EXPECT_TRUE(contains(page_of_queries(query), "<td class=\"n\">1.00 ± 0.20</td>"));
  EXPECT_FALSE(contains(page_of_queries(query + "," + query), "0.20"));
  EXPECT_TRUE(contains(page_with("[[1.2,1],[1,1.2]]"), ">variances</text>"));
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
  EXPECT_TRUE(contains(page_with("gaussian", "gaussian"), ">f (gaussian) in two</text>"));
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
  EXPECT_TRUE(contains(early, "<td class=\"n\">± 1</td>"));
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
  EXPECT_TRUE(contains(page_with("7.123456"), "<li>f by chordal, overlap: z = 7.12</li>"));
  EXPECT_TRUE(
      contains(page_with("9"), "<li>f by chordal: z = 7.12</li><li>f by overlap: z = 9</li>"));
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
  EXPECT_TRUE(contains(between, "± 2 standard errors"));
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
  EXPECT_TRUE(contains(page, "<td class=\"n\">−0.50 ± 0.10</td>"));
  EXPECT_FALSE(
      contains(page_with(condition(5, 1, none) + "," + condition(9, 1, none)), "Differences from"));
}

TEST(ReportPage, ShowsStagesOfAnotherVersion) {
  const char* document = R"({"headlab": {}, "conditions": [{"parameters": {"heads":
    {"mechanism": {"later": 3}}}}]})";
  EXPECT_TRUE(contains(page_of_document(document), "<strong>later</strong>"));
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

TEST(ReportPage, NamesTheFiguresOfACounterexample) {
  const std::string before = R"({"headlab": {"version": "1"}, "claims": [{"claim": "c", "form": "f",
    "verdict": "refuted", "certificate": {"figures": )";
  const std::string after = R"(, "conditions": [0, 1],
    "values": [{"value": 1, "mcse": 0.1}, {"value": 2, "mcse": 0.1}], "z": 7}}]})";
  const auto page_with = [&](const std::string& figures) {
    return page_of_document(before + figures + after);
  };
  EXPECT_TRUE(
      contains(page_with(R"(["mse", "mse"])"), "MSE 1.00 ± 0.10 against 2.00 ± 0.10, z = 7"));
  EXPECT_TRUE(contains(page_with(R"(["mse", "variance_term"])"),
                       "MSE 1.00 ± 0.10 against variance term 2.00 ± 0.10, z = 7"));
}

TEST(ReportPage, VerdictsHaveWholeLabelsAndSayWhatIsAlgebra) {
  const auto verdict = [](const char* claim, const char* outcome, const char* file) {
    return std::string(R"({"claim": ")") + claim +
           R"(", "form": "growth, sqrt_dim", "kernel": "softmax", "signal": true, "margin": 0.1,
      "effect": {"value": 50, "mcse": 0.01, "of": "x", "zone": "one-sided"}, "verdict": ")" +
           outcome + R"(", "scenario": "a/)" + file + ".toml\"}";
  };
  const std::string page = page_of_document(
      R"({"headlab": {}, "claims": [)" +
      verdict("scaling_law", "supported", "scaling_law_growth_sqrt_dim_single_index") + "," +
      verdict("scaling_law", "supported", "scaling_law_growth_sqrt_dim_additive") + "," +
      verdict("identity", "identity", "one") + "]}");
  EXPECT_FALSE(contains(page, "…"));
  const std::string words = as_read(page);
  EXPECT_TRUE(contains(words, "identity: growth, sqrt_dim (softmax, signal): true by algebra"));
}

TEST(ReportPage, ACounterexampleNamesItsComparisonAndScenario) {
  const auto verdict = [](const char* file, const char* more) {
    return std::string(R"({"claim": "c", "form": "f", "kernel": "gaussian", "verdict": "refuted",
      "margin": 0.1, "effect": {"value": -0.5, "mcse": 0.01, "of": "mse at n = 5, relative",
      "zone": "one-sided"}, "scenario": "a/)") +
           file + ".toml\"" + more + "}";
  };
  const std::string page = page_of_document(
      R"({"headlab": {}, "claims": [)" +
      verdict("one", R"(, "certificate": {"z": 7, "closed_form": {"index": [0.75, 0.25]}})") + "," +
      verdict("two", R"(, "effects": [{"of": "mse at n = 5, relative", "margin": 0.1, "observed": 3,
        "reference": 2}])") +
      "]}");
  const std::string words = as_read(page);
  EXPECT_TRUE(contains(
      words, "f (gaussian) in one: MSE at n = 5, relative: z = 7; index 0.75 against 0.25"));
  EXPECT_TRUE(contains(words,
                       "f (gaussian) in two: effect −0.500 ± 0.010 where ≥ −0.1 is allowed, "
                       "of MSE at n = 5, relative, 3 against 2"));
}

TEST(ReportPage, SaysWhatEffectsRestOn) {
  const auto page_with = [](const char* effect) {
    return page_of_document(R"({"headlab": {}, "comparisons": 3, "claims": [{"claim": "c",
      "form": "f", "verdict": "supported", "comparisons": 5, "replicates": 2048, "margin": 1,
      "effect": {"value": 0)" +
                            std::string(effect) + "}}]}");
  };
  EXPECT_TRUE(contains(page_with(""), "<td>2048</td>"));
  EXPECT_TRUE(contains(page_with(R"(, "replicates": 512)"), "<td>512</td>"));
  EXPECT_TRUE(contains(page_with(R"(, "replicates": 0)"), "<td>none: computed</td>"));
  // Identities are algebra.
  EXPECT_TRUE(
      contains(page_with(""), "all 3 comparisons of the call (without the 2 of identities)"));
}

TEST(ReportPage, SaysFiguresInWords) {
  EXPECT_EQ(comparison_words("mse at heads.count = 4 less than mse at heads.count = 2"),
            "MSE at number of heads H = 4 less than MSE at number of heads H = 2");
  EXPECT_EQ(comparison_words("n head_covariance_mean / s2 equal to 2.718281828459045"),
            "n times mean covariance C of pairs of heads / s2 equal to 2.71828");
  EXPECT_EQ(comparison_words("layers[4].cosine less than layers[0].cosine"),
            "mean cosine after layer 4 less than mean cosine of the tokens");
  EXPECT_EQ(comparison_words("head_bias[0,2] over head_covariance[1,0,2]"),
            "bias of head 2 at query 0 over covariance of heads 0 and 2 at query 1");
  EXPECT_EQ(comparison_words("data.n = 1, heads.kernel = kq_svd"),
            "training points n = 1, kernel = kq_svd");
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
    "min_over": "bandwidth", "min_over_key": "heads.kernel.bandwidth",
    "min_over_values": [0.5, 1, 2], "figure": "mse", "replay": "headlab along DIR", "curves": [
    {"name": "dim = 1", "lowest": 1, "points": [
      {"x": 1, "figure": {"value": 2, "mcse": 0.25}, "may_be_lowest": true},
      {"x": 2, "figure": {"value": 4, "mcse": 0.25}, "may_be_lowest": false}],
     "slope": {"value": 1, "mcse": 0.1}, "slope_low": 0.8, "slope_high": 1.2},
    {"name": "dim = 2", "lowest": 1, "points": [{"x": 1, "figure": {"value": 3, "mcse": 0.25}}]}],
    "crossings": [{"a": "dim = 1", "b": "dim = 2", "at": 1.5, "low": 1, "high": 2}]})";
  const std::string page = page_of_document(document);
  EXPECT_TRUE(contains(page, "The lowest point of dim = 1 is at 1; of dim = 2 is at 1."));
  EXPECT_TRUE(contains(page, "dim = 1 and dim = 2 cross between 1 and 2."));
  EXPECT_TRUE(contains(page, "heads.kernel.bandwidth, searched: 0.5 to 2 (3 values)"));
  // One curve has a slope; both have their points.
  EXPECT_EQ(count(page, "0.80 to 1.20"), 1u);
  EXPECT_EQ(count(page, "2.00 ± 0.25") + count(page, "3.00 ± 0.25"), 2u);
  EXPECT_TRUE(contains(page, "<span>along</span> <span>DIR</span>"));
  EXPECT_FALSE(has_word(page, "NaN") || has_word(page, "nan"));
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
                       ">sample size 100, kernel = epanechnikov, spread = epanechnikov100<"));
}

TEST(ReportPage, HasTheCommandsOfVerdicts) {
  const std::string page = page_of_document(R"({"headlab": {"version": "1"}, "claims": [
    {"claim": "a", "form": "f", "verdict": "supported", "replay": "headlab validate a"},
    {"claim": "a", "form": "g", "verdict": "supported", "replay": "headlab validate a"},
    {"claim": "b", "form": "f", "verdict": "supported", "replay": "headlab validate b"}]})");
  EXPECT_TRUE(contains(page, "<dd>" + code_element("headlab validate a") + "<br/>" +
                                 code_element("headlab validate b") + "</dd>"));
}

TEST(ReportPage, AllowsWhatTheComparisonThatDecidedAllows) {
  const auto page_with = [](const char* margin) {
    return page_of_document(
        std::string(R"({"headlab": {}, "alpha": 0.01, "comparisons": 1, "claims": [{"claim": "a",
      "form": "f", "verdict": "refuted", "margin": 0.2,
      "effect": {"value": -0.114, "mcse": 0.012, "of": "rise", "zone": "one-sided"},
      "effects": [{"value": 0.5, "of": "fall", "margin": 0.3}, {"value": -0.114, "of": "rise",
      "margin": )") +
        margin + "}]}]}");
  };
  EXPECT_TRUE(contains(page_with("0"), "≥ 0"));
  EXPECT_FALSE(contains(page_with("0"), "≥ −0.2"));
  EXPECT_TRUE(contains(page_with("0.25"), "≥ −0.25"));
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
  EXPECT_TRUE(contains(one, "MSE at angles = [1.5708, 0.5] and n = 123456789"));
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
                       "<dd>pruned, of gaussian, hidden 16 or 24"));
  EXPECT_TRUE(contains(page_with(R"({"law": "gaussian"})"),
                       "<dd>pruned, of gaussian, hidden 16 or gaussian"));
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
  EXPECT_TRUE(contains(page_with("-1"), "within ± 2 sd of random heads in every layer"));
  EXPECT_TRUE(contains(page_with("-3"), "below random heads by more than 2 sd in 1 of 1 layer;"));
  EXPECT_TRUE(contains(page_with("3"), "above random heads by more than 2 sd in 1 of 1 layer;"));
  EXPECT_TRUE(contains(page_with("-3"), "(z −3.00)"));
}

TEST(ReportPage, HasTheMechanismsOfAnAllocation) {
  const std::string page = page_of_document(R"({"headlab": {}, "budget": 4, "n": 50,
    "parameters": {"data": {"n": 7, "noise": {"law": "normal", "sd": 0.5}}},
    "allocations": [{"heads": 1, "dim": 4, "mse": {"value": 1, "mcse": 0.1}}]})");
  EXPECT_TRUE(contains(page, "sd = 0.5"));
  EXPECT_TRUE(contains(page, "<dd>50</dd>"));
  EXPECT_FALSE(contains(page, "that the command names"));
}

TEST(AllocationFigure, SpeaksOfStandardErrorsWhereThereAreSome) {
  const auto page_with = [](const std::string& error) {
    return page_of_document(
        R"({"headlab": {}, "budget": 4, "n": 50, "allocations": [{"heads": 1, "dim": 4, "mse": {"value": 1)" +
        error + "}}]}");
  };
  EXPECT_TRUE(contains(page_with(R"(, "mcse": 0.1)"), "Error of each allocation: value ± MCSE<"));
  EXPECT_TRUE(contains(page_with(""), "Error of each allocation<"));
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
  EXPECT_TRUE(contains(page_with("50"),
                       "An arrow stands for an effect beyond the axis; beside it "
                       "stands its value ± MCSE."));
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

}  // namespace
}  // namespace headlab::tools
