// SPDX-License-Identifier: Apache-2.0
#include "tools/report/page.h"

#include <regex>

#include <gtest/gtest.h>

#include "engine/results/summary_json.h"
#include "engine/testing/hand_made_result.h"
#include "tools/report/figure.h"
#include "tools/report/read_sources.h"
#include "tools/report/testing/pages.h"

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
  EXPECT_TRUE(std::regex_search(text, std::regex("<span class=\"whole\">[^<]*± [^<]*</span>")));
  EXPECT_EQ(as_read(text).find("<span class=\"whole\">"), std::string::npos);  // the control
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
  EXPECT_FALSE(contains(page, "Only "));

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
  EXPECT_TRUE(contains(swept, "Only where keep is top 3."));
  EXPECT_TRUE(contains(swept, "Only where keep is ratio 0.1."));
  EXPECT_TRUE(contains(swept, "mean key of"));
  EXPECT_TRUE(contains(swept, "<mi>ratio</mi>"));
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
  EXPECT_TRUE(contains(page, "MSE 1.00 ± 0.10 against 2.00 ± 0.10, z = 7"));
  EXPECT_TRUE(contains(page, code_element("headlab run c.toml")));
  EXPECT_TRUE(contains(page, "refuted (expected supported)"));
  // The control: a run has nothing that could survive.
  EXPECT_FALSE(contains(page_of({}), "What survives"));
}

TEST(ReportPage, ShowsMeasuresAsOtherFigures) {
  const std::string measured = "[measures]\nshare = \"covariance_term / mse\"\n" + swept_sizes;
  const std::string page = page_of({}, measured);
  EXPECT_TRUE(contains(page, "share against training points n."));
  EXPECT_TRUE(contains(page, "aria-label=\"share\""));
  EXPECT_FALSE(contains(page_of({}, swept_sizes), "share against"));
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

TEST(ReportPage, ShowsNoCovarianceOfASingleHead) {
  const auto figures = [](const char* count) {
    const std::string page = page_of({std::string("heads.count=") + count}, swept_sizes);
    return page.substr(page.find("<figure"), page.find("</svg>") - page.find("<figure"));
  };
  EXPECT_FALSE(contains(figures("1"), ">covariance<"));
  EXPECT_TRUE(contains(figures("2"), ">covariance<"));  // the control
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
