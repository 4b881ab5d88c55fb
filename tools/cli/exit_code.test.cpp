// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/exit_code.h"

#include <new>
#include <signal.h>
#include <stdexcept>

#include <gtest/gtest.h>

#include "engine/files/error.h"
#include "kernels/testing/paths.h"
#include "tools/cli/testing/command_line_fixture.h"

namespace headlab::tools {
namespace {

Validation validation_of(const std::vector<std::pair<Verdict, std::string>>& verdicts) {
  Validation validation;
  for (const auto& [verdict, expected] : verdicts) {
    VerdictRow row;
    row.verdict = verdict;
    row.expected = expected;
    row.complete = true;
    validation.rows.push_back(row);
  }
  return validation;
}

TEST(MessageText, IsWrappedWhereItIsTooLongWithItsAdviceBelow) {
  const std::string error =
      "run: unknown option --replicate (allowed: --a, --b) - did you mean --r?";
  EXPECT_EQ(message_text(error, 0), "headlab: " + error);
  EXPECT_EQ(message_text(error, 80), "headlab: " + error);
  EXPECT_EQ(
      message_text(error, 40),
      "headlab: run: unknown option --replicate\n  (allowed: --a, --b)\n  - did you mean --r?");
  EXPECT_EQ(message_text("one two three", 16), "headlab: one two\n  three");
  // A command can be copied.
  EXPECT_EQ(message_text("a - write --set 'sweep={ }' --set 'data.n=3'", 20),
            "headlab: a\n  - write --set 'sweep={ }' --set 'data.n=3'");
}

TEST(ExitCodeOf, AVerdictThatIsNotTheOneFixedBeforehand) {
  const auto code = [](const std::vector<std::pair<Verdict, std::string>>& verdicts,
                       bool complete = true) {
    Validation validation = validation_of(verdicts);
    validation.outcome.complete = complete;
    return exit_code_of(validation);
  };
  EXPECT_EQ(code({{Verdict::supported, "supported"}}), ExitCode::done);
  EXPECT_EQ(code({{Verdict::unresolved, "unresolved"}}), ExitCode::done);
  EXPECT_EQ(code({{Verdict::unresolved, ""}, {Verdict::refuted, ""}}), ExitCode::done);
  EXPECT_EQ(code({{Verdict::refuted, "supported"}}), ExitCode::differs);
  EXPECT_EQ(code({{Verdict::supported, "unresolved"}}), ExitCode::differs);
  EXPECT_EQ(code({{Verdict::limited_by_theory, "supported"}}), ExitCode::differs);
  EXPECT_EQ(code({{Verdict::unresolved, "supported"}}), ExitCode::unfinished);
  EXPECT_EQ(code({{Verdict::unresolved, "supported"}, {Verdict::refuted, "supported"}}),
            ExitCode::differs);
  EXPECT_EQ(code({{Verdict::supported, "supported"}}, false), ExitCode::unfinished);
  EXPECT_EQ(code({{Verdict::refuted, "supported"}}, false), ExitCode::differs);
}

TEST(ExitCodeOf, ACalibrationThatDoesNotPass) {
  // At most 1 % false alarms are required.
  Calibration calibration{.rates = {{.measured = RateKind::false_alarm, .trials = 100}}};
  calibration.rates[0].interval = {0, 0.02};
  EXPECT_EQ(exit_code_of(calibration), ExitCode::done);
  calibration.rates[0].interval = {0.02, 0.04};
  EXPECT_EQ(exit_code_of(calibration), ExitCode::differs);
  calibration.outcome.complete = false;
  EXPECT_EQ(exit_code_of(calibration), ExitCode::unfinished);
}

template <class Error>
ExitCode code_of(const Error& error) {
  try {
    throw error;
  } catch (...) {
    return report_exception();
  }
}

TEST(ReportException, IsOneLineWithItsCode) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(code_of(InvalidInput("a")), ExitCode::rejected);
  EXPECT_EQ(code_of(RunFailed("b")), ExitCode::failed);
  EXPECT_EQ(code_of(Unfinished("c")), ExitCode::unfinished);
  EXPECT_EQ(code_of(std::runtime_error("d")), ExitCode::failed);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "headlab: a\nheadlab: b\nheadlab: c\nheadlab: d\n");
  testing::internal::CaptureStderr();
  EXPECT_EQ(code_of(std::bad_alloc()), ExitCode::failed);
  EXPECT_TRUE(testing::internal::GetCapturedStderr().starts_with("headlab: out of memory - "));
}

class ExitCodes : public ProgramTest {};

TEST_F(ExitCodes, HelpAndThePageHaveOneTable) {
  const std::string help = headlab({"help"}).out;
  const std::string page = contents(test::source_dir() + "/docs/resuming.md");
  for (const auto& [code, meaning] : exit_code_meanings()) {
    EXPECT_NE(help.find("  " + code + std::string(9 - code.size(), ' ') + meaning + "\n"),
              std::string::npos)
        << help;
    EXPECT_NE(page.find("| " + code + " | " + meaning + " |\n"), std::string::npos) << meaning;
  }
}

TEST_F(ExitCodes, DataSetsThatWereInterruptedBeforeTheFirstShardAreNotFinished) {
  // Heads that are learned once come before the first shard.
  const pid_t child =
      start({"dataset", "a.toml", "--replicates", "1", "--out", "d", "--set",
             "heads.subspaces={law=\"learned\",fit=\"once\",steps=1000000,held_out=0}"});
  send(child, SIGINT);
  const ProgramResult outcome = finish(child);
  EXPECT_EQ(outcome.code, 6) << outcome.err;
  EXPECT_EQ(outcome.err,
            "headlab: stopping; again to quit at once\n"
            "headlab: interrupted while heads were learned: nothing was written\n");
  EXPECT_TRUE(files().empty());
}

}  // namespace
}  // namespace headlab::tools
