// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/table.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include <gtest/gtest.h>

#include "engine/files/error.h"
#include "engine/testing/hand_made_result.h"
#include "kernels/testing/played_machine.h"
#include "tools/cli/allocations.h"
#include "tools/cli/columns.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/figure_text.h"
#include "tools/cli/options.h"
#include "tools/cli/progress.h"
#include "tools/cli/supervise.h"

namespace headlab::tools {
namespace {

const double undefined = std::nan("");

TEST(FigureText, GivesTwoDigitsOfTheErrorAndTheValueToMatch) {
  EXPECT_EQ(figure_text({0.123456, 0.00123}), "0.1235 ± 0.0012");
  EXPECT_EQ(figure_text({0.123456, 0.000996}), "0.1235 ± 0.0010");
  EXPECT_EQ(figure_text({-0.0123456, 0.2}), "-0.01 ± 0.20");
  EXPECT_EQ(figure_text({12345.6, 12.3}), "12346 ± 12");
  EXPECT_EQ(figure_text({12345.6, 1234.5}), "12346 ± 1234");
  EXPECT_EQ(figure_text({1.23456e-9, 1.2e-11}), "(1.235 ± 0.012)e-09");
  EXPECT_EQ(figure_text({1.23456e12, 1.2e10}), "(1.235 ± 0.012)e+12");
  EXPECT_EQ(figure_text({0, 1.2e-11}), "(0.0 ± 1.2)e-11");
}

TEST(FigureText, ShowsWhatIsExactUndefinedOrWithoutError) {
  EXPECT_EQ(figure_text({0.25, 0}), "0.25 ± 0");
  EXPECT_EQ(figure_text({0.5, 1.234e-17}), "0.5 ± 1.2e-17");
  EXPECT_EQ(figure_text({0.123456, undefined}), "0.1235 ± –");
  EXPECT_EQ(figure_text({undefined, undefined}), "–");
  EXPECT_EQ(figure_text({undefined, 0.1}), "–");
}

TEST(FigureText, AlignsPointsAndSigns) {
  std::vector<std::string> cells = {"0.1235 ± 0.0012", "-12.3 ± 1.2", "–", "12346 ± 12"};
  align_figures(cells);
  EXPECT_EQ(cells[0], "    0.1235 ± 0.0012");
  EXPECT_EQ(cells[1], "  -12.3    ± 1.2   ");
  EXPECT_EQ(cells[2], "    –              ");
  EXPECT_EQ(cells[3], "12346      ± 12    ");
}

TEST(FigureText, IsCompactInUnitsOfTheLastDigit) {
  EXPECT_EQ(compact_figure_text({0.123456, 0.00123}, 0), "0.1235(12)");
  EXPECT_EQ(compact_figure_text({0.123456, 0.000996}, 0), "0.1235(10)");
  EXPECT_EQ(compact_figure_text({0.0046240, 0.0000064}, -3), "4.6240(64)");
  EXPECT_EQ(compact_figure_text({-0.0123456, 0.2}, 0), "-0.01(20)");
  EXPECT_EQ(compact_figure_text({12345.6, 12.3}, 0), "12346(12)");
  EXPECT_EQ(compact_figure_text({1.5, 1.23}, 0), "1.5(12)");
  EXPECT_EQ(compact_figure_text({0.25, 0}, 0), "0.25(0)");
  EXPECT_EQ(compact_figure_text({0.123456, undefined}, 0), "0.1235(–)");
  EXPECT_EQ(compact_figure_text({undefined, 0.1}, 0), "–");
}

TEST(CountText, HasThousandsFromAMillionOn) {
  EXPECT_EQ(count_text(12288), "12288");
  EXPECT_EQ(count_text(999999.4), "999999");
  EXPECT_EQ(count_text(1e6), "1,000,000");
  EXPECT_EQ(count_text(1234567, 4), "1,235,000");
  EXPECT_EQ(count_text(123456, 4), "123500");
  EXPECT_EQ(count_text(0), "0");
  EXPECT_EQ(count_text(undefined), "–");
}

TEST(Columns, AlignDecimalPointsOfNumbers) {
  Columns columns;
  columns.add_key("b", {"0.3", "0.5348", "12"}, true);
  columns.add("V", {"0.25", "–", "3.125*"}, true);
  columns.add("time", {"12 s", "3 min 20 s", "1.5 s"}, true);
  EXPECT_EQ(columns.text(""),
            "      b       V        time\n"
            " 0.3     0.25          12 s\n"
            " 0.5348  –       3 min 20 s\n"
            "12       3.125*       1.5 s\n");
}

TEST(Wrapped, BreaksAtSpaces) {
  EXPECT_EQ(wrapped("one two three", 0), "one two three");
  EXPECT_EQ(wrapped("one two three", 13), "one two three");
  EXPECT_EQ(wrapped("one two three", 12), "one two\nthree");
  EXPECT_EQ(wrapped("one two three", 7, 2), "one two\n  three");
  EXPECT_EQ(wrapped("  one two\nthree four\n", 9), "  one two\nthree\nfour\n");
  EXPECT_EQ(wrapped("extraordinary ± word", 6), "extraordinary\n± word");
}

TEST(Wrapped, KeepsTheLastColumn) {
  const std::string text = "usage\n  --seed S    one two three\n  --set\n";
  EXPECT_EQ(wrapped_columns(text, 0), text);
  EXPECT_EQ(wrapped_columns(text, 22),
            "usage\n  --seed S    one two\n              three\n  --set\n");
}

TEST(Columns, ShowFewDigitsOfKeysThatStayApart) {
  const auto shown = [](const std::vector<std::string>& keys) {
    Columns columns;
    columns.add_key("b", keys, false);
    return columns.text("");
  };
  EXPECT_EQ(shown({"0.0316227766016838", "1.0", "12345.678901"}), "b\n0.03162\n1.0\n1.235e+04\n");
  EXPECT_EQ(shown({"0.0316227766016838", "0.0316227766016839"}),
            "b\n0.0316227766016838\n0.0316227766016839\n");
  EXPECT_EQ(shown({"0.25", "100000000", "[0.3927, 0.392700001]"}),
            "b\n0.25\n100000000\n[0.3927, 0.392700001]\n");
}

TEST(Columns, FitTheWidth) {
  const auto table = [](std::size_t width) {
    Columns columns(width);
    columns.add_key("b", {"0.5", "12.5"}, true);
    columns.add_figures("bias²", std::vector<Estimate>{{0.0046240, 0.0000064}, {0.0031, 0.0002}});
    columns.add_figures("MSE", std::vector<Estimate>{{0.0124, 0.00012}, {0.02, 0.003}});
    return columns.text("");
  };
  const std::string wide =
      "   b  bias²                  MSE\n"
      " 0.5  0.0046240 ± 0.0000064  0.01240 ± 0.00012\n"
      "12.5  0.00310   ± 0.00020    0.0200  ± 0.0030\n";
  EXPECT_EQ(table(0), wide);
  EXPECT_EQ(table(46), wide);
  EXPECT_EQ(table(45),
            "   b  bias² /1e-3  MSE /1e-3\n"
            " 0.5  4.6240(64)   12.40(12)\n"
            "12.5  3.10(20)     20.0(30)\n");
  EXPECT_EQ(table(24),
            "   b  bias² /1e-3\n"
            " 0.5  4.6240(64)\n"
            "12.5  3.10(20)\n"
            "\n"
            "   b  MSE /1e-3\n"
            " 0.5  12.40(12)\n"
            "12.5  20.0(30)\n");
}

TEST(FigureText, DrawsBarsToAnEighth) {
  EXPECT_EQ(bar(0, 4), "");
  EXPECT_EQ(bar(-0.5, 4), "");
  EXPECT_EQ(bar(undefined, 4), "");
  EXPECT_EQ(bar(0.5, 4), "██");
  EXPECT_EQ(bar(0.53125, 4), "██▏");
  EXPECT_EQ(bar(7, 4), "████");
}

TEST(FigureText, SaysTimesInWords) {
  EXPECT_EQ(duration_text(0.04), "0.0 s");
  EXPECT_EQ(duration_text(9.949), "9.9 s");
  EXPECT_EQ(duration_text(9.96), "10 s");
  EXPECT_EQ(duration_text(59.6), "1 min 00 s");
  EXPECT_EQ(duration_text(3599.6), "1 h 00 min");
  EXPECT_EQ(duration_text(9000), "2 h 30 min");
  EXPECT_EQ(duration_text(undefined), "–");
}

TEST(SettingValueText, IsAShortFormOfToml) {
  EXPECT_EQ(setting_value_text("0.5"), "0.5");
  EXPECT_EQ(setting_value_text("\"haar\""), "haar");
  EXPECT_EQ(setting_value_text("{ dim = 12, law = \"normal\" }"), "dim=12 normal");
  EXPECT_EQ(setting_value_text("{ a = [ 1, [ 2, 3 ] ], law = \"x\" }"), "a=[…] x");
}

TEST(Options, ReadTimes) {
  const std::vector<std::pair<const char*, double>> times = {
      {"45s", 45}, {"30m", 1800}, {"2h", 7200}, {"90", 90}, {"0.5", 0.5}, {"1h30m", 5400}};
  for (const auto& [text, seconds] : times) {
    EXPECT_EQ(parse_duration("--max-time", text), seconds) << text;
  }
  for (const char* text : {"", "s", "h30m", "-5", "1e3", "inf", "nan", "1 h", "1m1m", "30m1h",
                           "1h30", "5d", "0s", "0"}) {
    EXPECT_THROW(parse_duration("--max-time", text), InvalidInput) << text;
  }
}

TEST(Options, ReadWholeNumbers) {
  EXPECT_EQ(parse_whole_number("--seed", "2e4", 0, 1000000), 20000u);
  EXPECT_EQ(parse_whole_number("--seed", "9007199254740991", 0, 9007199254740991),
            9007199254740991u);
  for (const char* text : {"", "1.5", "-1", "11", "1x", " 1", "nan", "inf", "0x5"}) {
    EXPECT_THROW(parse_whole_number("--seed", text, 0, 10), InvalidInput) << text;
  }
}

std::string table_of(const Scenario& scenario, std::uint64_t replicates = 1000) {
  const RunResult result = hand_made::result(scenario, replicates);
  return result_table(scenario, result, hand_made::indices(result));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(Table, SaysWhichDrawsTheStandardErrorDoesNotCover) {
  // What follows the line on the standard error, as one line.
  const auto draws = [](const std::vector<std::string>& settings, std::uint64_t replicates = 1000) {
    std::string text;
    const auto lines = lines_of(table_of(hand_made::scenario(settings), replicates));
    const auto error = std::ranges::find(lines, "± is one Monte Carlo standard error");
    EXPECT_NE(error, lines.end());
    for (auto line = error + 1; line != lines.end(); ++line) {
      text += (text.empty() ? "" : " ") + line->substr(line->find_first_not_of(' '));
    }
    return text;
  };
  EXPECT_EQ(draws({}), "");
  const std::string haar = "heads.subspaces={law=\"haar\"}";
  const std::string drawn = "queries={law=\"design\", count=2}";
  const std::string once = " drawn once: standard errors do not cover that draw";
  const std::string in_heads = " (they do with redraw = true in heads.subspaces)";
  EXPECT_EQ(draws({haar}), "heads were" + once + in_heads);
  EXPECT_EQ(draws({"heads.subspaces={law=\"coordinates\"}"}), "heads were" + once + in_heads);
  EXPECT_EQ(draws({drawn}), "queries were" + once + " (they do with redraw = true in queries)");
  EXPECT_EQ(draws({haar, drawn}), "heads and queries were" + once +
                                      " (they do with redraw = true in heads.subspaces and "
                                      "queries)");

  const std::string heads_again = "heads.subspaces={law=\"haar\", redraw=true}";
  const std::string queries_again = "queries={law=\"design\", count=2, redraw=true}";
  const std::string again =
      " were drawn again for every 8 replicates: standard errors cover these draws";
  EXPECT_EQ(draws({heads_again}), "heads" + again);
  EXPECT_EQ(draws({heads_again, queries_again}), "heads and queries" + again);
  EXPECT_EQ(draws({heads_again, drawn}),
            "heads" + again + " queries were" + once + " (they do with redraw = true in queries)");
  EXPECT_EQ(draws({heads_again}, 120),
            "heads" + again + " no standard errors below 16 draws, which take 128 replicates");
}

TEST(Table, SaysWhatEmptyWindowsAndSmallBiasesMean) {
  const Scenario scenario = hand_made::scenario();
  RunResult result = hand_made::result(scenario);
  const auto holds = [&](const char* text) {
    return result_table(scenario, result, {}).find(text) != std::string::npos;
  };
  const char* nearest = "\nsuch a head takes the value of the nearest key: ";
  const char* near_zero = "\nbias² below 4 standard errors is not normal: ";
  ConditionEstimates& estimates = result.conditions[0].estimates;
  estimates.bias_squared = {0.39, 0.1};
  EXPECT_TRUE(holds(nearest));
  EXPECT_TRUE(holds(near_zero));
  estimates.windows.empty = 0;
  estimates.bias_squared = {0.41, 0.1};
  EXPECT_FALSE(holds(nearest));
  EXPECT_FALSE(holds(near_zero));
  estimates.bias_squared = {0, 0};
  EXPECT_FALSE(holds(near_zero));
}

TEST(Table, ShowsTheEndsOfALongSweep) {
  const auto lines = [](int conditions) {
    return lines_of(
        table_of(hand_made::scenario({}, "[sweep]\n\"heads.kernel.bandwidth\" = { range = [1, " +
                                             std::to_string(conditions) + ", 1] }\n")));
  };
  const auto with = [](const std::vector<std::string>& all, const std::string& start) {
    return std::ranges::count_if(all, [&](const auto& line) { return line.starts_with(start); });
  };
  EXPECT_EQ(with(lines(40), "  ... "), 0);
  const std::vector<std::string> long_table = lines(61);
  EXPECT_EQ(with(long_table, "  ... 21 more conditions: --json FILE or --out DIR has all"), 1);
  EXPECT_EQ(lines(40).size() + 1, long_table.size());
}

TEST(Table, ShowsASweepWithARowACondition) {
  const Scenario scenario =
      hand_made::scenario({},
                          "[sweep]\n\"heads.kernel.bandwidth\" = [0.5, 12.5]\n"
                          "\"heads.count\" = [1, 2]\n");
  const std::vector<std::string> lines = lines_of(table_of(scenario));
  // What varies is in the rows alone.
  EXPECT_EQ(lines[1], "n 20, d_k 1");
  EXPECT_TRUE(lines[4].starts_with("  bandwidth  count  bias²")) << lines[4];
  EXPECT_TRUE(lines[5].starts_with("        0.5      1  ")) << lines[5];
  EXPECT_TRUE(lines[8].starts_with("       12.5      2  ")) << lines[8];
  EXPECT_NE(lines[5].find(" – "), std::string::npos) << lines[5];  // one head has no correlation
  // The share of empty windows marks rows whose figures are in part the nearest key's.
  EXPECT_TRUE(lines[4].ends_with("no weight")) << lines[4];
  EXPECT_TRUE(lines[5].ends_with(" %")) << lines[5];
  // Every ± of a column stands under the one above.
  EXPECT_EQ(lines[5].find("±"), lines[8].find("±"));
}

TEST(Table, SaysHowFarAStoppedRunCame) {
  EXPECT_NE(table_of(hand_made::scenario(), 7).find("7 of 1000 replicates"), std::string::npos);
  EXPECT_NE(table_of(hand_made::scenario(), 0).find("0 of 1000 replicates"), std::string::npos);
  const Scenario scenario = hand_made::scenario();
  EXPECT_NE(result_table(scenario, RunResult(), {}).find("nothing was simulated"),
            std::string::npos);
}

Progress some_progress() {
  return {.condition = 1,
          .conditions = 4,
          .done = 999,
          .total = 1000,
          .share = 0.999,
          .seconds_left = 75,
          .estimate = {0.1234, 0.0012}};
}

TEST(Progress, DrawsABarThatFits) {
  EXPECT_EQ(progress_bar_line(some_progress(), 120),
            "condition #1 of 4  ▕████████████████████▏ 99 %  1 min 15 s left  MSE 0.1234 ± 0.0012  "
            "999 of 1000 replicates");
  for (std::size_t width = 0; width < 130; ++width) {
    EXPECT_LE(display_width(progress_bar_line(some_progress(), width)), width);
  }
}

TEST(Progress, NamesConditionsThatAdvanceTogether) {
  Progress progress = some_progress();
  progress.last_condition = 3;
  progress.together = 3;
  EXPECT_EQ(progress_log_line(progress),
            "conditions #1 to #3 of 4, 99 %, 999 of 1000 replicates, MSE 0.1234 ± 0.0012 in "
            "condition #1, 1 min 15 s left");
  EXPECT_EQ(progress_bar_line(progress, 120),
            "conditions #1 to #3 of 4  ▕████████████████████▏ 99 %  1 min 15 s left  MSE 0.1234 ± "
            "0.0012 in condition #1");
  progress.together = 2;
  EXPECT_EQ(progress_log_line(progress).rfind("2 conditions of 4, 99 %", 0), 0u);
}

TEST(Progress, NamesTheTargetOfARun) {
  Progress progress = some_progress();
  progress.until = "look 2, until mse=1%";
  EXPECT_EQ(progress_log_line(progress),
            "condition #1 of 4, 99 %, 999 of 1000 replicates, look 2, until mse=1%, MSE 0.1234 ± "
            "0.0012, 1 min 15 s left");
  EXPECT_EQ(progress_bar_line(progress, 130),
            "condition #1 of 4  ▕████████████████████▏ 99 %  1 min 15 s left  MSE 0.1234 ± 0.0012  "
            "999 of 1000 replicates  look 2, until mse=1%");
}

TEST(Progress, RedrawsTheBarAndEndsWithAWord) {
  std::ostringstream out;
  ProgressDisplay display(ProgressDisplay::Kind::bar, out, [] { return std::size_t{40}; });
  show_run(display, some_progress(), 5);
  EXPECT_EQ(out.str(), "\r" + progress_bar_line(some_progress(), 39) + "\x1b[K");
  out.str("");
  display.finish("done");
  EXPECT_EQ(out.str(), "\r\x1b[Kheadlab: done\n");
}

TEST(Progress, WritesALineEveryTenSecondsToALog) {
  std::ostringstream out;
  ProgressDisplay display(ProgressDisplay::Kind::log, out, nullptr);
  Progress progress = some_progress();
  std::vector<double> spoke;
  for (double seconds = 0; seconds < 35; seconds += 0.5) {
    out.str("");
    const bool due = display.is_due(seconds);
    show_run(display, progress, seconds);
    EXPECT_EQ(due, !out.str().empty());
    if (due) spoke.push_back(seconds);
  }
  EXPECT_EQ(spoke, (std::vector<double>{10, 20, 30}));
  out.str("");
  progress.estimate = {};
  progress.seconds_left = undefined;
  show_run(display, progress, 50);
  EXPECT_EQ(out.str(), "headlab: condition #1 of 4, 99 %, 999 of 1000 replicates\n");
}

TEST(Progress, IsAskedForAtTheRateOfTheDisplay) {
  const test::PlayedMachine log{{"TERM", "dumb"}};
  Session session;
  bool had_somebody = false, was_due = true;
  supervise(session, {}, show_run, [&](ProgressDisplay&) {
    had_somebody = session.report != nullptr;
    was_due = session.reports();
    struct {
      Outcome outcome;
    } done;
    return done;
  });
  EXPECT_TRUE(had_somebody);
  EXPECT_FALSE(was_due);
}

TEST(Progress, IsSilentWhereAskedOrShort) {
  std::ostringstream out;
  ProgressDisplay quiet(ProgressDisplay::Kind::none, out, nullptr);
  show_run(quiet, some_progress(), 5);
  quiet.finish("done");
  ProgressDisplay log(ProgressDisplay::Kind::log, out, nullptr);
  show_run(log, some_progress(), 5);
  log.finish("done");
  EXPECT_EQ(out.str(), "");
}

TEST(SelfTest, SeesWhatIsWrong) {
  EXPECT_TRUE(compare_estimate("", {1.0, 0.1}, 1.39).passed);
  EXPECT_FALSE(compare_estimate("", {1.0, 0.1}, 1.41).passed);
  EXPECT_FALSE(compare_estimate("", {1.0, 0}, 1.0).passed);
  EXPECT_FALSE(compare_estimate("", {undefined, 0.1}, 1.0).passed);
  EXPECT_FALSE(compare_estimate("", {1.0, undefined}, 1.0).passed);
  EXPECT_TRUE(compare_exact("", 1.0, 1.1, 0.11).passed);
  EXPECT_FALSE(compare_exact("", 1.0, 1.1, 0.09).passed);
  EXPECT_FALSE(compare_exact("", undefined, 1.0, 0.1).passed);
}

}  // namespace
}  // namespace headlab::tools
