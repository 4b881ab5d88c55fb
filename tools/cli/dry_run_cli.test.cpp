// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "kernels/testing/played_machine.h"
#include "tools/cli/testing/command_line_fixture.h"

namespace headlab {
namespace {

namespace fs = std::filesystem;

class DryRun : public ProgramTest {
 protected:
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }

  /// Expects that two scenarios have the same results to the bit.
  void expect_same_results(const std::string& a, const std::string& b) const {
    for (const auto& [scenario, out] : {std::pair(a, "one"), std::pair(b, "two")}) {
      const ProgramResult outcome =
          headlab({"run", scenario, "--out", out, "--overwrite", "--quiet"});
      ASSERT_EQ(outcome.code, 0) << outcome.err;
    }
    const ProgramResult difference = headlab({"diff", "one", "two"});
    EXPECT_EQ(difference.code, 0) << difference.out << difference.err;
  }
};

TEST_F(DryRun, PrintsAScenarioThatRunsWithTheSameBitsAndWritesNothing) {
  const auto before = files();
  const ProgramResult outcome = headlab({"run", "s.toml", "--dry-run", "--out", "there/new",
                                         "--json", "new.json", "--set", "data.n=30"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(files(), before);
  for (const char* line :
       {"# dry run of s.toml: nothing was written\n",
        "# conditions: 2, each of 300 replicates; swept: heads.kernel.bandwidth\n",
        "# memory: ", "# disk: about ", " free\n", "# time: reference, ",
        " (this run): ", "n = 30\n", "weights = { law = \"uniform\" }\n"}) {
    EXPECT_NE(outcome.out.find(line), std::string::npos) << line << "\n" << outcome.out;
  }
  write("resolved.toml", outcome.out);
  write("thirty.toml", contents(folder_ / "s.toml"));
  const ProgramResult again =
      headlab({"run", "thirty.toml", "--set", "data.n=30", "--out", "one", "--quiet"});
  ASSERT_EQ(again.code, 0);
  ASSERT_EQ(headlab({"run", "resolved.toml", "--out", "two", "--quiet"}).code, 0);
  EXPECT_EQ(headlab({"diff", "one", "two"}).code, 0);
  // The comparison sees a scenario that is not the same.
  ASSERT_EQ(headlab({"run", "s.toml", "--out", "three", "--quiet"}).code, 0);
  EXPECT_EQ(headlab({"diff", "two", "three"}).code, 5);
}

TEST_F(DryRun, CountsTheFileThatIsPutTogetherInMemory) {
  write("many.toml", scenario_text + std::string("[sweep]\n\"heads.kernel.bandwidth\" = "
                                                 "{ linspace = [0.1, 1, 3000] }\n"));
  const auto memory = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"run", "many.toml", "--replicates", "8", "--dry-run"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const std::string text = headlab(arguments).out;
    const std::string line = text.substr(text.find("# memory: ") + 10);
    return line.substr(0, line.find(','));
  };
  const std::string without = memory({});
  EXPECT_NE(without, memory({"--out", "o"}));
  EXPECT_EQ(without, memory({"--json", "o.json"}));
}

TEST_F(DryRun, ReadsDataFilesFromAnywhere) {
  fs::create_directory(folder_ / "data");
  write("data/rows.csv", "a,b,c,d\n1,2,3,4\n2,1,0,1\n0,1,1,0\n");
  std::string text = scenario_text;
  const std::string design = "{ law = \"normal\", dim = 4 }";
  text.replace(text.find(design), design.size(), "{ law = \"file\", path = \"rows.csv\" }");
  write("data/f.toml", text);
  const ProgramResult outcome = headlab({"run", "data/f.toml", "--dry-run"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  write("resolved.toml", outcome.out);
  expect_same_results("data/f.toml", "resolved.toml");
}

TEST_F(DryRun, RefusesWhatARunRefuses) {
  write("bad.toml", "");
  expect_refusals({
      {{"run", "missing.toml", "--dry-run"},
       "missing.toml: cannot be opened: No such file or directory"},
      {{"run", "--dry-run"}, "run: no scenario given - write headlab run SCENARIO.toml"},
      {{"run", "a.toml", "--dry-run=yes"}, "run: --dry-run takes no value"},
      {{"run", "a.toml", "--dry-run", "--set", "heads.count=0"},
       "--set heads.count=0: heads.count: is 0, must be in [1, 1024]"},
  });
  const test::PlayedMachine machine{{"HEADLAB_MEMORY_LIMIT", "1000"}};
  const ProgramResult small = headlab({"run", "a.toml", "--dry-run"});
  EXPECT_EQ(small.code, 2);
  EXPECT_NE(small.err.find("1000 bytes available"), std::string::npos) << small.err;
}

class Init : public DryRun {};

TEST_F(Init, WritesAScenarioThatRunsAsItIs) {
  const ProgramResult outcome = headlab({"init"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "headlab: wrote scenario.toml; next: headlab run scenario.toml\n");
  EXPECT_EQ(headlab({"init", "-"}).out, contents(folder_ / "scenario.toml"));
  const ProgramResult run = headlab({"run", "scenario.toml"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.err, "");
}

TEST_F(Init, HasCommentsThatAreTrue) {
  const std::string text = headlab({"init", "-"}).out;
  write("all.toml", text);
  // "Others to try"
  for (const char* law : {"{ law = \"aligned\" }", "{ law = \"haar\", seed = 1 }"}) {
    EXPECT_NE(text.find(law), std::string::npos) << law;
    EXPECT_EQ(headlab({"run", "all.toml", "--set", "heads.subspaces=" + std::string(law)}).code, 0);
  }
  EXPECT_EQ(headlab({"run", "all.toml", "--set", "run.estimator=\"plain\""}).code, 0);
  // "This is the default", "optional"
  std::string without = text;
  for (const char* key : {"weights = { law = \"uniform\" }\n", "aims = "}) {
    const std::size_t at = without.find(key);
    ASSERT_NE(at, std::string::npos);
    without.erase(at, without.find('\n', at) + 1 - at);
  }
  write("without.toml", without);
  expect_same_results("all.toml", "without.toml");
  // "One condition for each value"
  EXPECT_NE(headlab({"run", "all.toml", "--dry-run"}).out.find("# conditions: 3, each of 4000"),
            std::string::npos);
  // "At most d"
  EXPECT_EQ(headlab({"run", "all.toml", "--set", "heads.dim=5"}).code, 2);
}

TEST_F(Init, DoesNotWriteOverAFile) {
  fs::create_directory(folder_ / "folder");
  expect_refusals({
      {{"init", "a.toml"},
       "init: a.toml: is there already - name another file, or - for standard output"},
      {{"init", "folder"},
       "init: folder: is a folder, not a file - choose a place you may write to"},
      {{"init", "no/where.toml"},
       "init: no/where.toml: there is no folder no - choose a place you may write to"},
      {{"init", "x.toml", "y.toml"},
       "init: unexpected argument \"y.toml\" - try headlab help init"},
  });
  EXPECT_EQ(contents(folder_ / "a.toml"), scenario_text);
}

}  // namespace
}  // namespace headlab
