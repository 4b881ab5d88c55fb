// SPDX-License-Identifier: Apache-2.0
/// \file What pictures and tables of a page hold.
#include "tools/report/figure.h"

#include <cstddef>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "tools/report/testing/pages.h"

namespace headlab::tools {
namespace {

TEST(Bands, AreSaidToBeTooNarrowToBeSeen) {
  EXPECT_EQ(bands_text(6, "the table"), "Bands are ± 2 MCSE.");
  EXPECT_EQ(bands_text(3, "the table"),
            "Bands of ± 2 MCSE are hardly wider than the lines: see the table.");
  EXPECT_EQ(bands_text(1, "the table"),
            "Bands of ± 2 MCSE are narrower than the lines: see the table.");
}

TEST(ReportPage, KeepsTheRowsThatTheFindingNames) {
  constexpr std::size_t least = 97;  // a row that evenly spread ones pass over
  const auto page_with = [](double value) {
    std::string text = R"({"headlab": {"version": "1"}, "results_id": "x", "conditions": [)";
    for (std::size_t i = 0; i < 300; ++i) {
      text += std::string(i == 0 ? "" : ",") + R"({"parameters": {"data": {"n": )" +
              std::to_string(i + 1) + R"(}}, "mse": {"value": )" +
              std::to_string(i == least ? value : 1.0 + double(i)) + R"(, "mcse": 0.1}})";
    }
    return page_of_document(text + "]}");
  };
  const std::string row = R"(<th scope="row" class="n">n 98</th>)";
  EXPECT_TRUE(contains(page_with(0.5), "The smallest MSE is 0.50 ± 0.10 at n 98"));
  EXPECT_TRUE(contains(page_with(0.5), row));
  EXPECT_TRUE(contains(page_with(0.5), "The table has 101 of 300 rows."));
  EXPECT_FALSE(contains(page_with(1.5), row));
}

TEST(ReportPage, ShowsWhatIsComparedWithClosedForms) {
  const auto page_with = [](const char* remainder) {
    return page_of_document(
        std::string(
            R"({"headlab": {"version": "1"}, "results_id": "x", "conditions": [{"parameters": {},
      "mse": {"value": 1.25, "mcse": 0.1}, "variance_term": {"value": 0.5, "mcse": 0.1},
      "theory": {"mse": {"value": 1.1, "remainder": null},
                 "variance_term": {"value": 0.4, "remainder": )") +
        remainder + R"(}, "z": {"mse": 1.5, "variance_term": -0.25}}}]})");
  };
  const std::string page = page_with("0.7");
  EXPECT_TRUE(contains(page, "compared in 2 figures. The largest |z| is 1.5 (MSE)."));
  EXPECT_TRUE(contains(page, "√(MCSE² + remainder² + rounding²)"));
  EXPECT_TRUE(contains(page, "Some remainders exceed the MCSE"));
  for (const char* cell : {">variance</td>", ">0.40</td>", ">0.70</td>", ">−0.25</td>"}) {
    EXPECT_TRUE(contains(page, cell)) << cell;
  }
  EXPECT_FALSE(contains(page_with("0.07"), "Some remainders exceed the MCSE"));
}

TEST(ReportPage, HasNoLowerPartWithoutRelativeErrors) {
  const auto titles_with = [](const char* mcse) {
    std::string text = R"({"headlab": {"version": "1"}, "results_id": "x", "conditions": [)";
    for (const char* fixed : {"false", "true"}) {
      for (const char* n : {"10", "20", "40"}) {
        text += std::string(text.ends_with('[') ? "" : ",") + R"({"parameters": {"data": {"n": )" +
                n + R"(, "fixed_design": )" + fixed + R"(}}, "mse": {"value": 2, "mcse": )" +
                (fixed == std::string("true") ? mcse : "0.1") + "}}";
      }
    }
    return count(page_of_document(text + "]}"), ">relative MCSE, %</text>");
  };
  // Each picture is there for wide and for narrow windows.
  EXPECT_EQ(titles_with("0.1"), 4u);
  EXPECT_EQ(titles_with("0"), 2u);
}

TEST(Panels, WithoutValuesAreLeftOut) {
  const auto svg_with = [](double value) {
    const std::vector<AxesPanel> panels = {
        {"one", ScaleKind::linear, {1, 2}, {3, 4}, [](Canvas&, const Axes&) {}},
        {"other", ScaleKind::linear, {1, 2}, {value, value}, [](Canvas&, const Axes&) {}}};
    return draw_panels(720, panels, {"x", "y", 100}, {}).svg("id", "title", "words");
  };
  EXPECT_TRUE(contains(svg_with(5), ">other<"));
  EXPECT_FALSE(contains(svg_with(std::numeric_limits<double>::quiet_NaN()), ">other<"));
}

TEST(ReportPage, SaysThatReplicatesAreTheMostOfARunWithTargets) {
  const auto page_with = [](const char* until) {
    return page_of_document(
        std::string(R"({"headlab": {"version": "1"}, "results_id": "x", )") + until +
        R"("conditions": [{"parameters": {"run": {"replicates": 5000}}, "replicates": 1024}]})");
  };
  EXPECT_TRUE(contains(page_with(R"("until": {"text": "mse=1%", "most": 5000}, )"),
                       "Parameters as given (at most 5000 replicates)"));
  EXPECT_TRUE(contains(page_with(""), ">Parameters as given<"));
}

}  // namespace
}  // namespace headlab::tools
