// SPDX-License-Identifier: Apache-2.0
// The command report, and --report of the commands that have results.
#include <fstream>

#include <gtest/gtest.h>

#include "tools/cli/testing/command_line_fixture.h"

namespace headlab {
namespace {

class ReportCommand : public ProgramTest {};

TEST_F(ReportCommand, GivesTheBytesOfReportForTheFolder) {
  const ProgramResult run = headlab({"run", "s.toml", "--out", "o", "--report", "a.html"});
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.err, "headlab: wrote o/results.nc, o/summary.json, a.html\n");
  const ProgramResult report = headlab({"report", "o"});
  EXPECT_EQ(report.code, 0);
  EXPECT_EQ(report.out, "");
  EXPECT_EQ(report.err, "headlab: wrote report.html\n");
  EXPECT_EQ(contents(folder_ / "a.html"), contents(folder_ / "report.html"));
  EXPECT_GT(contents(folder_ / "a.html").size(), 10000u);

  // Neither threads nor the place of the folder make another page; another seed does.
  std::filesystem::rename(folder_ / "o", folder_ / "moved");
  headlab({"report", "moved", "--out", "b.html"});
  headlab({"run", "s.toml", "--threads", "1", "--report", "c.html"});
  headlab({"run", "s.toml", "--seed", "8", "--report", "d.html"});
  EXPECT_EQ(contents(folder_ / "a.html"), contents(folder_ / "b.html"));
  EXPECT_EQ(contents(folder_ / "a.html"), contents(folder_ / "c.html"));
  EXPECT_NE(contents(folder_ / "a.html"), contents(folder_ / "d.html"));
}

TEST_F(ReportCommand, ReadsWhatEveryCommandWrites) {
  ASSERT_EQ(headlab({"run", "a.toml", "--out", "o", "--nodes", "none"}).code, 0);
  ASSERT_EQ(headlab({"validate", "identity", "--out", "o", "--report", "v.html"}).code, 0);
  ASSERT_EQ(headlab({"theory", "a.toml", "--set", "data.n=5000", "--json", "o/theory.json"}).code,
            0);
  ASSERT_EQ(headlab({"allocate", "--data", "a.toml", "--set", "heads.subspaces={ law = \"haar\" }",
                     "--budget", "4", "--replicates", "1024", "--json", "o/allocation.json"})
                .code,
            0);
  const ProgramResult report = headlab({"report", "o", "o/summary.json"});
  EXPECT_EQ(report.code, 0) << report.err;
  EXPECT_NE(report.err.find("no precision is shown"), std::string::npos) << report.err;
  const std::string page = contents(folder_ / "report.html");
  for (const char* title : {"What survives", "Error of the allocations", "cli test"}) {
    EXPECT_NE(page.find(title), std::string::npos) << title;
  }
  EXPECT_NE(contents(folder_ / "v.html").find("What survives"), std::string::npos);
}

TEST_F(ReportCommand, DoesNotUseResultsOfAnotherState) {
  headlab({"run", "a.toml", "--out", "o"});
  headlab({"run", "a.toml", "--out", "p", "--seed", "9"});
  std::filesystem::copy_file(folder_ / "p/results.nc", folder_ / "o/results.nc",
                             std::filesystem::copy_options::overwrite_existing);
  const ProgramResult report = headlab({"report", "o"});
  EXPECT_EQ(report.code, 0);
  EXPECT_NE(report.err.find("is of another state of the run"), std::string::npos) << report.err;
}

TEST_F(ReportCommand, ShowsAFileOnceThatIsGivenTwice) {
  headlab({"run", "a.toml", "--out", "o"});
  headlab({"report", "o", "--out", "once.html"});
  const ProgramResult twice = headlab({"report", "o", "./o", "o/summary.json"});
  EXPECT_EQ(twice.code, 0);
  EXPECT_EQ(twice.err,
            "headlab: ./o/summary.json: is given twice, and shown once\n"
            "headlab: o/summary.json: is given twice, and shown once\n"
            "headlab: wrote report.html\n");
  EXPECT_EQ(contents(folder_ / "report.html"), contents(folder_ / "once.html"));
  // The control: another study has its place.
  headlab({"run", "a.toml", "--out", "p", "--seed", "9"});
  EXPECT_EQ(headlab({"report", "o", "p"}).err, "headlab: wrote report.html\n");
  EXPECT_GT(contents(folder_ / "report.html").size(), contents(folder_ / "once.html").size());
}

TEST_F(ReportCommand, IsOfVerdictsAlone) {
  ASSERT_EQ(headlab({"validate", "identity", "--out", "o"}).code, 0);
  const ProgramResult report = headlab({"report", "o"});
  EXPECT_EQ(report.code, 0) << report.err;
  EXPECT_EQ(report.err, "headlab: wrote report.html\n");
  EXPECT_NE(contents(folder_ / "report.html").find("What survives"), std::string::npos);
}

TEST_F(ReportCommand, ShowsDifferencesAndTheCommandThatMakesThem) {
  for (const auto& [option, value] :
       {std::pair("--against", "#1"), std::pair("--difference", "heads.kernel.bandwidth")}) {
    const ProgramResult run = headlab({"run", "s.toml", option, value, "--report", "a.html"});
    ASSERT_EQ(run.code, 0) << run.err;
    const std::string page = contents(folder_ / "a.html");
    EXPECT_NE(page.find("Differences from "), std::string::npos) << option;
    const std::string again =
        value[0] == '#' ? "--against '#1'" : "--against heads.kernel.bandwidth=0.4";
    EXPECT_NE(page.find(again), std::string::npos) << option;
  }
  headlab({"run", "s.toml", "--report", "a.html"});  // the control
  EXPECT_EQ(contents(folder_ / "a.html").find("Differences from "), std::string::npos);
}

TEST_F(ReportCommand, SaysThatClosedFormsAreCompared) {
  headlab({"run", "a.toml", "--set", "data.n=2000", "--compare", "--report", "a.html"});
  EXPECT_NE(contents(folder_ / "a.html").find(" --compare --out DIR"), std::string::npos);
  headlab({"run", "a.toml", "--set", "data.n=2000", "--report", "a.html"});
  EXPECT_EQ(contents(folder_ / "a.html").find(" --compare --out DIR"), std::string::npos);
}

TEST_F(ReportCommand, RefusesInOneLine) {
  std::filesystem::create_directory(folder_ / "empty");
  std::filesystem::create_directory(folder_ / "damaged");
  std::ofstream(folder_ / "damaged" / "summary.json") << "{\"headlab\": ";
  std::filesystem::create_directory(folder_ / "wrong");
  std::ofstream(folder_ / "wrong" / "verdicts.json") << "<html>";
  std::ofstream(folder_ / "types.json") << R"({"headlab": {}, "conditions": "x"})";
  std::ofstream(folder_ / "notes.html") << "mine";
  std::ofstream(folder_ / "other.json") << "{}";
  ASSERT_EQ(headlab({"dataset", "a.toml", "--replicates", "2", "--out", "set"}).code, 0);
  expect_refusals({
      {{"report", "set"},
       "set: holds a data set, of which there is no report - give the folder of headlab run --out"},
      {{"report", "set/manifest.json"},
       "set/manifest.json: is no document of run, theory, validate, allocate or hdi - give what "
       "--out or --json wrote"},
      {{"report"}, "report: no folder given - write headlab report DIR"},
      {{"report", "nowhere"}, "nowhere: is not there - give the folder of --out"},
      {{"report", "empty"},
       "empty: holds no summary.json, verdicts.json or other JSON of headlab - give the folder of "
       "--out, or a file of --json"},
      {{"report", "other.json"},
       "other.json: is no document of run, theory, validate, allocate or hdi - give what --out or "
       "--json wrote"},
      {{"report", "damaged"},
       "damaged/summary.json: is not JSON, or is damaged - give a folder of --out or a file of "
       "--json, or make it again"},
      {{"report", "wrong"},
       "wrong/verdicts.json: is not JSON, or is damaged - give a folder of --out or a file of "
       "--json, or make it again"},
      {{"report", "types.json"}, "types.json: its conditions are no list - make it again"},
      {{"report", "other.json", "--out", "nowhere/x.html"},
       "--out: nowhere/x.html: there is no folder nowhere - choose a place you may write to"},
      {{"report", "empty", "--out", "-"},
       "--out: needs the name of a file - write --out report.html"},
      {{"report", "empty", "--out", "notes.html"},
       "--out: notes.html: is there already and is no report - choose another place"},
      {{"report", "other.json", "--out", "other.json"},
       "--out: would write over other.json, which is read here - choose another place"},
      {{"run", "a.toml", "--report", "a.toml"},
       "--report: would write over a.toml, which is read here - choose another place"},
      {{"run", "a.toml", "--report", ""},
       "--report: needs the name of a file - write --report report.html"},
      {{"run", "a.toml", "--out", "o", "--report", "o/summary.json"},
       "--report: is where --out writes summary.json - choose another place"},
      {{"validate", "identity", "--report", "nowhere/x.html"},
       "--report: nowhere/x.html: there is no folder nowhere - choose a place you may write to"},
      {{"validate", "--calibrate", "--report", "x.html"},
       "--report: is for verdicts, not with --calibrate - use --out"},
  });
}

TEST_F(ReportCommand, LeavesAnEarlierReportWhereTheNewOneFails) {
  headlab({"run", "a.toml", "--report", "a.html"});
  const std::string before = contents(folder_ / "a.html");
  std::ofstream(folder_ / "b.json") << "{";
  EXPECT_EQ(headlab({"report", "b.json", "--out", "a.html"}).code, 2);
  EXPECT_EQ(contents(folder_ / "a.html"), before);
}

}  // namespace
}  // namespace headlab
