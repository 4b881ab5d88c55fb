// SPDX-License-Identifier: Apache-2.0
#include "tools/report/markup.h"

#include <regex>

#include <gtest/gtest.h>

#include "tools/report/canvas.h"
#include "tools/report/formula_text.h"
#include "tools/report/mathml.h"
#include "tools/report/testing/pages.h"

namespace headlab::tools {
namespace {

TEST(Markup, EscapesWhateverATextHolds) {
  EXPECT_EQ(escaped("<b a=\"1\">x & y</b>"), "&lt;b a=&quot;1&quot;&gt;x &amp; y&lt;/b&gt;");
  EXPECT_EQ(escaped("e\x01\x1b[31m\x7f"), "e\\u0001\\u001b[31m\\u007f");
  EXPECT_EQ(escaped("± \xff ²"), "± \xef\xbf\xbd ²");
  EXPECT_EQ(escaped("two\nlines\tkept"), "two\nlines\tkept");
  EXPECT_EQ(element("p", {{"title", "a\"<"}}, "<b>x</b>"), "<p title=\"a&quot;&lt;\"><b>x</b></p>");
  EXPECT_EQ(empty_element("meta", {{"name", "x"}}), "<meta name=\"x\"/>");
}

TEST(Markup, EscapesTheCellsOfATable) {
  const std::string text =
      table_element({.caption = "<c>", .headings = {"<h>"}, .rows = {{"<r>", "<d>"}}});
  for (const char* cell : {"<c>", "<h>", "<r>", "<d>"}) {
    EXPECT_EQ(text.find(cell), std::string::npos) << cell;
  }
  EXPECT_NE(text.find("<th scope=\"row\" class=\"n\">&lt;r&gt;</th><td>&lt;d&gt;</td>"),
            std::string::npos);
}

TEST(Markup, ACaptionSaysWhatErrorsAreWhereOneIsShown) {
  Table table{.caption = "c", .error = "MCSE", .headings = {"h"}, .rows = {{"1"}}};
  EXPECT_EQ(table_element(table).find("MCSE"), std::string::npos);
  table.rows = {{"1 ± 0.1"}};
  EXPECT_TRUE(contains(table_element(table), ">c: value ± MCSE<"));
}

TEST(Markup, NamesOfRowsStayOnALineAndLongWordsBreak) {
  const std::string word(41, 'x');
  const std::string text = as_read(table_element(
      {.headings = {"a", "b"},
       .rows = {{"angles 0.3927", word}, {"a name that needs more than a line", "b c"}}}));
  EXPECT_NE(text.find("<th scope=\"row\" class=\"n\">angles 0.3927</th><td class=\"long\">"),
            std::string::npos);
  EXPECT_NE(text.find("<th scope=\"row\">a name that needs more than a line</th><td>b c</td>"),
            std::string::npos);
}

TEST(Markup, KeepsEstimatesInOnePiece) {
  const std::string text =
      table_element({.headings = {"a"}, .rows = {{"r", "1 ± 2", "12", "(1 ± 2)·10^−9"}}});
  EXPECT_NE(text.find("<td class=\"n\">1 <span class=\"whole\">± 2</span></td><td>12</td>"),
            std::string::npos);
  EXPECT_NE(text.find("<span class=\"whole\">(1 ± 2)·10<sup>−9</sup></span>"), std::string::npos)
      << text;
}

TEST(Markup, KeepsRemaindersWithTheirValues) {
  const std::string text =
      table_element({.headings = {"a"}, .rows = {{"r", "1 (< 0.2)", "1 (2)"}}});
  EXPECT_NE(text.find("<td class=\"n\">1 "), std::string::npos) << text;
  EXPECT_NE(text.find("<td>1 (2)</td>"), std::string::npos) << text;
}

TEST(Markup, PutsDecimalPointsOfAColumnUnderOneAnother) {
  const std::string text = table_element(
      {.headings = {"a", "b", "c"},
       .rows = {{"r", "−36.05 ± 0.19", "12 heads"}, {"s", "2.5 ± 0.1", "1"}, {"t", "–", "2"}}});
  const std::regex padded("<td class=\"n\" style=\"padding-left:calc\\(.35rem \\+ 2ch\\)\">2.5");
  EXPECT_TRUE(std::regex_search(text, padded)) << text;
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find("2ch", at)) != std::string::npos; ++at) ++count;
  EXPECT_EQ(count, 2u) << text;  // and the undefined one; none in the column with words
}

TEST(Markup, ShortensByCharactersAndNotByBytes) {
  EXPECT_EQ(shortened("±±±", 3), "±±±");
  EXPECT_EQ(shortened("±±±±", 3), "±±…");
  EXPECT_EQ(shortened("abc", 1), "…");
  EXPECT_EQ(character_count("a±…"), 3u);
}

TEST(Markup, CommandsBreakBetweenShortWords) {
  const std::string path = "/a/folder/of/more/than/24/characters.toml";
  EXPECT_EQ(
      code_element("headlab run " + path + " --replicates 8 --set 'a=<1'"),
      "<code><span>headlab</span> <span>run</span> "
      "/<wbr/>a/<wbr/>folder/<wbr/>of/<wbr/>more/<wbr/>than/<wbr/>24/<wbr/>characters.<wbr/>toml"
      " <span>--replicates</span> <span>8</span> <span>--set</span> "
      "<span>'a=&lt;1'</span></code>");
  // What is copied from a page is the command.
  EXPECT_EQ(code_element("a  b"), "<code><span>a</span> <span></span> <span>b</span></code>");
}

TEST(Mathml, ReadsScriptsFractionsAndSums) {
  EXPECT_EQ(mathml("a_h^2"),
            "<math xmlns=\"http://www.w3.org/1998/Math/MathML\"><mrow><msubsup><mi>a</mi><mi>h</mi>"
            "<mn>2</mn></msubsup></mrow></math>");
  const auto has = [](const char* formula, const char* part) {
    return mathml(formula).find(part) != std::string::npos;
  };
  EXPECT_TRUE(has("a_{hl}", "<msub><mi>a</mi><mrow><mi>hl</mi></mrow></msub>"));
  EXPECT_TRUE(has("x^T", "<msup><mi>x</mi><mi>T</mi></msup>"));
  EXPECT_TRUE(has("sum_{j = 1}^n j", "<munderover><mo>∑</mo>"));
  EXPECT_TRUE(has("frac{a}{b}", "<mfrac><mrow><mi>a</mi></mrow><mrow><mi>b</mi></mrow></mfrac>"));
  EXPECT_TRUE(has("sqrt{2}", "<msqrt><mrow><mn>2</mn></mrow></msqrt>"));
  EXPECT_TRUE(has("\"a < b\"", "<mtext>a &lt; b</mtext>"));
  EXPECT_TRUE(has("a < b - θ", "<mo>&lt;</mo><mi>b</mi><mo>−</mo><mi>θ</mi>"));
  EXPECT_TRUE(has("U(-1, 1)", "<mo form=\"prefix\">−</mo><mn>1</mn>"));
  EXPECT_FALSE(has("a_h", "<msup>"));
  // Brackets enclose, a power is of what they enclose, and only a fraction makes them high.
  EXPECT_TRUE(has("(a - b)^2", "<msup><mrow><mo stretchy=\"false\">(</mo><mi>a</mi><mo>−</mo>"));
  EXPECT_TRUE(has("(a - b)^2", "<mo stretchy=\"false\">)</mo></mrow><mn>2</mn></msup>"));
  EXPECT_TRUE(has("(frac{a}{b})", "<mo>(</mo><mfrac>"));
  EXPECT_TRUE(has("f(x) = frac{a}{b}", "<mi>x</mi><mo stretchy=\"false\">)</mo></mrow><mo>=</mo>"));
  EXPECT_TRUE(has("|x|^2", "<msup><mo stretchy=\"false\" lspace=\"0\" rspace=\"0\">|</mo>"));
  EXPECT_TRUE(has("E[e | X]", "<mi>e</mi><mo stretchy=\"false\">|</mo><mi>X</mi>"));
  // Words stand apart from their neighbors, but not from brackets.
  const char* space = "<mspace width=\"0.25em\"/>";
  for (const char* apart : {"s log n", "2 bandwidth", "Var f", "a_j exp(x)", "k \"or\" i",
                            "\"mean of\" b", "b \"mean\"_h A_h"}) {
    EXPECT_TRUE(has(apart, space)) << apart;
  }
  for (const char* together : {"exp(x)", "a b", "2 a", "a + log(n)"}) {
    EXPECT_FALSE(has(together, space)) << together;
  }
  // What is not finished ends, and does not run on.
  for (const char* broken : {"a_", "frac{a}", "sqrt", "{a", "\"a", "^", "(a", "f(", "[a}"}) {
    EXPECT_TRUE(mathml(broken).ends_with("</mrow></math>")) << broken;
  }
}

TEST(Markup, BreaksNoLineWithinTheBracketsOfATerm) {
  EXPECT_EQ(prose("formula = cos(pi*x1)*cos(pi*x2 + 0.5)"),
            "formula <span class=\"whole\">= cos(pi*x1)*cos(pi*x2 + 0.5)</span>");
}

TEST(Markup, SetsTheSymbolsOfDimensionsWithSubscripts) {
  EXPECT_EQ(as_read(prose("best d_k, d_v < 3")),
            "best <i>d</i><sub><i>k</i></sub>, <i>d</i><sub><i>v</i></sub> &lt; 3");
  EXPECT_EQ(prose("d_k"), "<i>d</i><sub><i>k</i></sub>");
  for (const char* plain : {"", "d", "d_", "d_kkk", "ad_k", "_d_k", "d_k_2"}) {
    EXPECT_EQ(prose(plain), plain);
  }
  Canvas canvas(100, 100);
  canvas.text({50, 10}, "best d_k");
  canvas.text({50, 20}, "dimension d_k", "end", "soft");
  canvas.text({50, 30}, "d_kk");
  canvas.text({50, 40}, "at sqrt(d_k) one");
  const std::string svg = canvas.svg("id", "", "");
  EXPECT_NE(svg.find(R"(>best d<tspan dy="3" font-size="9">k</tspan></text>)"), std::string::npos);
  EXPECT_NE(svg.find(R"(>dimension d</text>)"), std::string::npos) << svg;
  EXPECT_NE(svg.find(R"(<text x="44.2" y="23" font-size="9" class="soft">k</text>)"),
            std::string::npos)
      << svg;
  EXPECT_NE(svg.find(">d_kk</text>"), std::string::npos) << svg;
  EXPECT_NE(svg.find(R"(>at √(d<tspan dy="3" font-size="9">k</tspan><tspan dy="-3">) one</tspan>)"),
            std::string::npos)
      << svg;
}

TEST(Markup, WritesExponentsAsPowersOfTen) {
  EXPECT_EQ(with_powers("2.5e-07, −1.2e−05 and 3e8"), "2.5·10^−7, −1.2·10^−5 and 3·10^8");
  EXPECT_EQ(with_powers("(1.23 ± 0.12)e-09"), "(1.23 ± 0.12)·10^−9");
  EXPECT_EQ(with_powers("(< 1e-05)"), "(< 10^−5)");
  for (const char* other : {"33cf99505ddaa4e7", "e5", "a1e5", "1e", "1e5a", "1e-x", "x_1e5", ""}) {
    EXPECT_EQ(with_powers(other), other);
  }
  EXPECT_EQ(as_read(prose("± 6.2e−16")), "± 6.2·10<sup>−16</sup>");
  EXPECT_EQ(prose("10^"), "10^");
}

TEST(Markup, NoLineEndsWithinAnExpression) {
  const auto whole = [](const std::string& part) {
    return "<span class=\"whole\">" + part + "</span>";
  };
  EXPECT_EQ(prose("errors fall as 1/√R, and so on"),
            "errors fall as " + whole("1/√R,") + " and so on");
  EXPECT_EQ(prose("off (z −19.2) by 5 %."), "off " + whole("(z −19.2)") + " by " + whole("5 %."));
  EXPECT_EQ(prose("n 200, bandwidth 0.1"), whole("n 200,") + " " + whole("bandwidth 0.1"));
  EXPECT_EQ(prose("of (1 - 1/H) C, X ~ N(0, I)"),
            "of " + whole("(1 − 1/H)") + " C, " + whole("X ~ N(0, I)"));
  EXPECT_EQ(prose("a_name_of_more_than_twenty_letters = 0.25"),
            "a_name_of_more_than_twenty_letters " + whole("= 0.25"));
  EXPECT_EQ(prose("matrices H x d x k"), "matrices " + whole("H x d x k"));
  EXPECT_EQ(prose("100, 200 (few, all) - or more"), "100, 200 (few, all) - or more");
}

TEST(Markup, RaisesPowersOfTenInPictures) {
  Canvas canvas(100, 50);
  canvas.text({50, 10}, "2·10^−5", "middle");
  canvas.text({50, 20}, "10^6", "end");
  canvas.text({50, 30}, "10^6");
  canvas.text({50, 40}, "10^x", "end");
  const std::string svg = canvas.svg("id", "title", "words");
  EXPECT_NE(svg.find(">2·10</text>"), std::string::npos) << svg;
  EXPECT_NE(svg.find(">−5</text>"), std::string::npos) << svg;
  EXPECT_NE(svg.find(">6</text>"), std::string::npos) << svg;
  EXPECT_NE(svg.find(">10<tspan"), std::string::npos) << svg;
  EXPECT_NE(svg.find(">10^x</text>"), std::string::npos) << svg;
}

}  // namespace
}  // namespace headlab::tools
