// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include <gtest/gtest.h>

#include "engine/testing/refusal.h"
#include "tools/tables/write_table.h"

namespace headlab::tools {
namespace {

std::string compact(double value, double mcse, int digits = 2) {
  return number_in_table({value, mcse}, "mcse", digits).compact();
}

TEST(NumberInTable, HasTheDigitsThatItsStandardErrorSupports) {
  EXPECT_EQ(compact(0.0124357, 0.0000661), "0.012436(66)");
  EXPECT_EQ(compact(0.0124357, 0.0000661, 1), "0.01244(7)");
  EXPECT_EQ(compact(-3.26, 0.996), "-3.3(10)");  // 0.996 is 1.0 to two digits
  EXPECT_EQ(compact(12.34, 1.23), "12.3(12)");
  EXPECT_EQ(compact(1234, 56), "1234(56)");
  EXPECT_EQ(compact(0.3, 0), "0.3");
}

TEST(NumberInTable, HasAPowerOfTenFarFromOne) {
  EXPECT_EQ(compact(1.234e-9, 5.6e-11), "1.234(56)e-9");
  EXPECT_EQ(compact(4.6e-15, 4.5e-15), "4.6(45)e-15");
  EXPECT_EQ(compact(123456, 789), "1.2346(79)e5");  // 789 has no digit after the point
  EXPECT_EQ(compact(5e-310, 1e-310), "5.0(10)e-310");
  EXPECT_EQ(compact(1.5e300, 2.5e299), "1.50(25)e300");
}

TEST(NumberInTable, ShowsNoDigitsOfAnErrorThatIsNone) {
  EXPECT_EQ(number_in_table({0.1234567891, 1e-17}, "mcse", 2).compact(), "0.1234567891");
  EXPECT_EQ(number_in_table({0.12345678, 1e-5}, "remainder", 2).compact(), "0.123457");
  EXPECT_EQ(number_in_table({0.12345678, no_number}, "mcse", 2).compact(), "0.123457");
  EXPECT_EQ(number_in_table({no_number, 1}, "mcse", 2).compact(), "");
  EXPECT_EQ(number_in_table({std::numeric_limits<double>::infinity(), 1}, "mcse", 2).compact(),
            "inf");
}

/// A table of texts, a key and a figure.
ShownTable small_table() {
  static const std::string texts[] = {"plain", "a_b & 50 %, \"c\" | <d>", "two\nlines"};
  static const double keys[] = {0.1, -2, 1e-300};
  static const Estimate figures[] = {
      {0.0124357, 0.0000661}, {no_number, no_number}, {-1.5e-7, 2e-8}};
  ShownTable table{.columns = {}, .rows = 3};
  table.columns.push_back(
      {.name = "law", .text = true, .cell = [](std::size_t i) { return texts[i]; }});
  table.columns.push_back({.name = "x_1", .key = true, .cell = [](std::size_t i) {
                             return Estimate{keys[i], no_number};
                           }});
  table.columns.push_back(
      {.name = "mse", .error = "mcse", .cell = [](std::size_t i) { return figures[i]; }});
  return table;
}

std::string written(TableFormat format, const TableStyle& style = {}) {
  std::string text;
  write_table(small_table(), format, style, [&](std::string_view part) { text += part; });
  return text;
}

TEST(WriteTable, QuotesFieldsOfCsv) {
  EXPECT_EQ(written(TableFormat::csv),
            "law,x_1,mse,mse_mcse\r\n"
            "plain,0.1,0.0124357,6.61e-05\r\n"
            "\"a_b & 50 %, \"\"c\"\" | <d>\",-2,,\r\n"
            "\"two\nlines\",1e-300,-1.5e-07,2e-08\r\n");
}

TEST(WriteTable, WritesColumnsOfSiunitx) {
  EXPECT_EQ(written(TableFormat::latex),
            "% \\usepackage{booktabs, siunitx}\n"
            "\\begin{tabular}{l S[table-format=-1.1e-3] S[table-format=-1.6(2)e-1]}\n"
            "\\toprule\n"
            "{law} & {x\\_1} & {mse} \\\\\n"
            "\\midrule\n"
            "plain & 0.1 & 0.012436(66) \\\\\n"
            "a\\_b \\& 50 \\%, \"c\" | <d> & -2 & {--} \\\\\n"
            "two lines & 1e-300 & -1.50(20)e-7 \\\\\n"
            "\\bottomrule\n"
            "\\end{tabular}\n");
  const std::string plus_minus = written(TableFormat::latex, {.digits = 1, .plus_minus = true});
  EXPECT_NE(plus_minus.find("{l S[table-format=-1.1e-3] r}"), std::string::npos) << plus_minus;
  EXPECT_NE(plus_minus.find("$0.01244 \\pm 0.00007$"), std::string::npos) << plus_minus;
  EXPECT_NE(plus_minus.find("$(-1.5 \\pm 0.2) \\times 10^{-7}$"), std::string::npos) << plus_minus;
}

TEST(WriteTable, EscapesPipesOfMarkdown) {
  EXPECT_EQ(written(TableFormat::markdown),
            "| law | x_1 | mse |\n"
            "| --- | --: | --: |\n"
            "| plain | 0.1 | 0.012436(66) |\n"
            "| a_b &amp; 50 %, \"c\" \\| &lt;d> | -2 | – |\n"
            "| two lines | 1e-300 | -1.50(20)e-7 |\n");
}

/// Four conditions of two keys.
std::shared_ptr<const TableSource> grid() {
  std::string text = R"({"headlab": {}, "results_id": "x", "conditions": [)";
  int number = 0;
  for (const char* n : {"50", "100"}) {
    for (const char* bandwidth : {"0.5", "1.5"}) {
      ++number;
      text += std::string(number == 1 ? "" : ", ") + R"({"parameters": {"data": {"n": )" + n +
              R"(}, "heads": {"kernel": {"bandwidth": )" + bandwidth + R"(}}}, "n": )" + n +
              R"(, "mse": {"value": )" + std::to_string(number) +
              R"(, "mcse": 0.25}, "indices": {"chordal": {"value": 0.5, "ceiling": 1.0}}})";
    }
  }
  return table_of_text(text + "]}");
}

std::string csv_of(const TableRequest& request) {
  std::string text;
  write_csv(select_table(grid(), request), [&](std::string_view part) { text += part; });
  std::erase(text, '\r');
  return text;
}

std::string refusal(const TableRequest& request) {
  return refusal_line([&] { select_table(grid(), request); });
}

TEST(SelectTable, PutsKeysBeforeFigures) {
  EXPECT_EQ(csv_of({.figures = {"mse", "index_chordal_ceiling", "n"}}),
            "n,bandwidth,mse,mse_mcse,index_chordal_ceiling\n"
            "50,0.5,1,0.25,1\n50,1.5,2,0.25,1\n100,0.5,3,0.25,1\n100,1.5,4,0.25,1\n");
  EXPECT_EQ(csv_of({.figures = {"mse"}, .where = {{"data.n", "1e2"}, {"bandwidth", "1.50"}}}),
            "n,bandwidth,mse,mse_mcse\n100,1.5,4,0.25\n");
  EXPECT_EQ(csv_of({.figures = {"mse"}, .where = {{"condition", "2"}}}),
            "n,bandwidth,mse,mse_mcse\n100,0.5,3,0.25\n");
}

TEST(SelectTable, LaysAFigureOutAlongTwoKeys) {
  EXPECT_EQ(csv_of({.figures = {"mse"}, .rows = {"bandwidth"}, .columns = "n"}),
            "bandwidth,n=50,n=50_mcse,n=100,n=100_mcse\n0.5,1,0.25,3,0.25\n1.5,2,0.25,4,0.25\n");
  EXPECT_EQ(refusal({.figures = {"mse"}, .rows = {"condition"}, .columns = "n"}), "accepted");
  EXPECT_EQ(refusal({.figures = {"mse"}, .rows = {"n"}, .columns = "index_chordal_ceiling"}),
            "--rows and --columns: index_chordal_ceiling = 1 would hold several conditions in one "
            "cell, which differ in bandwidth - write --where 'bandwidth=0.5'");
  EXPECT_EQ(csv_of({.figures = {"mse"},
                    .rows = {"n"},
                    .columns = "index_chordal_ceiling",
                    .where = {{"bandwidth", "0.5"}}}),
            "n,index_chordal_ceiling=1,index_chordal_ceiling=1_mcse\n50,1,0.25\n100,3,0.25\n");
}

TEST(SelectTable, WritesOneFigureARow) {
  // Degrees of freedom are not in JSON: no interval.
  EXPECT_EQ(csv_of({.figures = {"mse", "index_chordal"},
                    .one_figure_a_row = true,
                    .where = {{"condition", "3"}}}),
            "condition,n,bandwidth,figure,value,mcse,lower,upper\n"
            "3,100,1.5,mse,4,0.25,,\n3,100,1.5,index_chordal,0.5,,,\n");
}

TEST(SelectTable, RefusesWhatIsNotThere) {
  EXPECT_EQ(refusal({.figures = {"mses"}}),
            "--figures: unknown figure \"mses\" (allowed: mse, index_chordal, "
            "index_chordal_ceiling) - did you mean \"mse\"?");
}

TEST(Stacked, KeepsWhatEitherHas) {
  std::vector<std::unique_ptr<TableSource>> parts;
  for (const char* figure : {"mse", "bias_squared"}) {
    parts.push_back(table_of_text(
        R"({"headlab": {}, "results_id": "x", "conditions": [{"parameters": {"n": 1}, ")" +
        std::string(figure) + R"(": {"value": 2.5, "mcse": 0.5}}]})"));
  }
  std::string text;
  write_csv(select_table(stacked(std::move(parts), {"a", "b"}), {.figures = {"all"}}),
            [&](std::string_view part) { text += part; });
  EXPECT_EQ(text,
            "result,mse,mse_mcse,bias_squared,bias_squared_mcse\r\n"
            "a,2.5,0.5,,\r\nb,,,2.5,0.5\r\n");
}

TEST(Stacked, TakesNoStandardErrorForARemainder) {
  std::vector<std::unique_ptr<TableSource>> parts;
  for (const char* error : {"mcse", "remainder"}) {
    parts.push_back(table_of_text(
        R"({"headlab": {}, "results_id": "x", "conditions": [{"parameters": {"n": 1}, "mse": {"value": 2.5, ")" +
        std::string(error) + R"(": 0.5}}]})"));
  }
  std::string text;
  write_csv(select_table(stacked(std::move(parts), {"a", "b"}), {}),
            [&](std::string_view part) { text += part; });
  EXPECT_EQ(text, "result,mse,mse_mcse,mse_remainder\r\na,2.5,0.5,\r\nb,2.5,,0.5\r\n");
}

}  // namespace
}  // namespace headlab::tools
