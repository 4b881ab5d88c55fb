// SPDX-License-Identifier: Apache-2.0
// Runs the program itself.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <signal.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/results/results_reader.h"
#include "kernels/cuda/status.h"
#include "tools/cli/testing/command_line_fixture.h"

namespace headlab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Arguments = std::vector<std::string>;

class CommandLine : public ProgramTest {};

constexpr const char* run_options =
    "--help, --set, --out, --json, --report, --resume, --overwrite, --checkpoint, --nodes, "
    "--compare, "
    "--until, --against, --difference, --shard, --dry-run, --backend, --simd, "
    "--threads, "
    "--seed, --replicates, "
    "--max-time, --quiet";

TEST_F(CommandLine, RefusesInOneLineWithExitCodeTwo) {
  const std::string unknown = std::string(" (allowed: ") + run_options + ")";
  const std::string time =
      " is not a time (allowed: more than 0, written 45s, 30m, 2h, 1h30m or 90 for seconds)";
  const std::string seeds = " does not fit (allowed: a whole number from 0 to 9007199254740991)";
  const std::string threads = " does not fit (allowed: a whole number from 1 to 4096)";
  const std::string replicates = " does not fit (allowed: a whole number from 1 to 1099511627775)";
  const std::string names =
      "run, theory, validate, allocate, dataset, replay, diff, report, merge, status, hdi, "
      "import-heads, "
      "compress, init, list, doctor, help";
  const std::string commands = " (allowed: " + names + ")";
  const std::vector<std::pair<Arguments, std::string>> table = {
      {{}, "no command given (allowed: " + names + ") - try headlab help"},
      {{"rn"}, "unknown command \"rn\"" + commands + " - did you mean \"run\"?"},
      {{"rewind"}, "unknown command \"rewind\"" + commands},
      {{"a.toml"}, "unknown command \"a.toml\"" + commands},
      {{""}, "unknown command \"\"" + commands},
      {{"--versio"},
       "unknown option --versio (allowed: --help, --version) - did you mean --version?"},
      {{"-5"}, "unknown option -5 (allowed: --help, --version)"},
      {{"--set", "a=1", "run", "a.toml"},
       "unknown option --set (allowed: --help, --version) - options of a command stand after it: "
       "headlab run --set"},
      {{"--threads", "2", "run", "a.toml"},
       "unknown option --threads (allowed: --help, --version) - options of a command stand after "
       "it: headlab run --threads"},
      {{"run", "a.toml", "--set", "data.n", "=", "3"},
       "run: unexpected argument \"=\" - write each setting as --set 'KEY=VALUE', in quotes and "
       "without spaces around ="},
      {{"run", "a.toml", "--set", "data.n=3", "data.m=4"},
       "run: unexpected argument \"data.m=4\" - write each setting as --set 'KEY=VALUE', in quotes "
       "and without spaces around ="},
      {{"run"}, "run: no scenario given - write headlab run SCENARIO.toml"},
      {{"run", ""}, "run: no scenario given - write headlab run SCENARIO.toml"},
      {{"run", "a.toml", "s.toml"}, "run: unexpected argument \"s.toml\" - try headlab help run"},
      {{"run", "a.toml", "doctor"}, "run: unexpected argument \"doctor\" - try headlab help run"},
      {{"run", "a.toml", "-x"}, "run: unknown option -x" + unknown},
      {{"run", "--", "a.toml", "--replicates", "10"},
       "run: --replicates stands after --, where nothing is an option - write it before --"},
      {{"run", "a.toml", "--", "--replicates=10"},
       "run: --replicates stands after --, where nothing is an option - write it before --"},
      {{"run", "a.toml", "--relicates", "5"},
       "run: unknown option --relicates" + unknown + " - did you mean --replicates?"},
      {{"run", "a.toml", "--bogus=3"}, "run: unknown option --bogus" + unknown},
      {{"run", "a.toml", "-q"}, "run: unknown option -q" + unknown},
      {{"run", "a.toml", "--quiet=5"}, "run: --quiet takes no value"},
      {{"run", "missing.toml"}, "missing.toml: cannot be opened: No such file or directory"},
      {{"run", "a.toml", "--seed", "abc"}, "--seed: \"abc\"" + seeds},
      {{"run", "a.toml", "--seed", "-1"}, "--seed: \"-1\"" + seeds},
      {{"run", "a.toml", "--seed", "9007199254740992"}, "--seed: \"9007199254740992\"" + seeds},
      {{"run", "a.toml", "--seed", "1", "--seed", "2"}, "run: --seed is given more than once"},
      {{"run", "a.toml", "--replicates", "0"}, "--replicates: \"0\"" + replicates},
      {{"run", "a.toml", "--replicates", "1.5"}, "--replicates: \"1.5\"" + replicates},
      {{"run", "a.toml", "--replicates", "nan"}, "--replicates: \"nan\"" + replicates},
      {{"run", "a.toml", "--threads", "0"}, "--threads: \"0\"" + threads},
      {{"run", "a.toml", "--threads", "many"}, "--threads: \"many\"" + threads},
      {{"run", "a.toml", "--max-time", "soon"}, "--max-time: \"soon\"" + time},
      {{"run", "a.toml", "--max-time", "0"}, "--max-time: \"0\"" + time},
      {{"run", "a.toml", "--max-time", "5d"}, "--max-time: \"5d\"" + time},
      {{"run", "a.toml", "--max-time", "30m1h"}, "--max-time: \"30m1h\"" + time},
      {{"run", "a.toml", "--max-time", "1h30"}, "--max-time: \"1h30\"" + time},
      {{"run", "a.toml", "--backend", "gpu"},
       "--backend: \"gpu\" is unknown (allowed: auto, reference, cpu, cuda) - did you mean "
       "\"cuda\"?"},
      {{"run", "a.toml", "--backend", "cpuu"},
       "--backend: \"cpuu\" is unknown (allowed: auto, reference, cpu, cuda) - did you mean "
       "\"cpu\"?"},
      {{"run", "a.toml", "--set"}, "run: --set needs a value"},
      {{"run", "a.toml", "--out"}, "run: --out needs a value"},
      {{"run", "a.toml", "--json"}, "run: --json needs a value"},
      {{"run", "a.toml", "--out", ""}, "--out: is empty - give a folder"},
      {{"run", "a.toml", "--out", "-"},
       "--out: is -, which stands for standard output - give a folder"},
      {{"dataset", "a.toml", "--replicates", "2", "--out", "-"},
       "--out: is -, which stands for standard output - give a folder"},
      {{"run", "a.toml", "--out", "a.toml"},
       "--out: a.toml: is a file, not a folder - choose a place you may write to"},
      {{"run", "a.toml", "--json", ""}, "--json: is empty - give a file, or - for standard output"},
      {{"run", "a.toml", "--json", "."},
       "--json: .: is a folder, not a file - choose a place you may write to"},
      {{"run", "a.toml", "--json", "nowhere/x.json"},
       "--json: nowhere/x.json: there is no folder nowhere - choose a place you may write to"},
      {{"run", "a.toml", "--json", "-", "--json", "x"}, "run: --json is given more than once"},
      {{"theory"}, "theory: no scenario given - write headlab theory SCENARIO.toml"},
      {{"theory", "a.toml", "--source", "exakt"},
       "--source: \"exakt\" is unknown (allowed: auto, exact, first_order) - did you mean "
       "\"exact\"?"},
      {{"theory", "a.toml", "--threads", "0"}, "--threads: \"0\"" + threads},
      {{"theory", "a.toml", "--json", "a.toml"},
       "--json: would write over a.toml, which is read here - choose another place"},
      {{"theory", "a.toml", "--seed", "1"},
       "theory: unknown option --seed (allowed: --help, --set, --source, --json, --threads) - did "
       "you "
       "mean --set?"},
      {{"list", "law"},
       "list: \"law\" is unknown (allowed: laws, claims, architectures, scenarios) - did you mean "
       "\"laws\"?"},
      {{"list", "claim"},
       "list: \"claim\" is unknown (allowed: laws, claims, architectures, scenarios) - did you "
       "mean \"claims\"?"},
      {{"list", "laws", "scenarios"},
       "list: unexpected argument \"scenarios\" - try headlab help list"},
      {{"list", "--json", "-"}, "list: unknown option --json (allowed: --help)"},
      {{"doctor", "now"}, "doctor: unexpected argument \"now\" - try headlab help doctor"},
      {{"help", "rnu"},
       "help: unknown command \"rnu\" (allowed: " + names + ", figures) - did you mean \"run\"?"},
      {{"help", "laws"},
       "help: unknown command \"laws\" (allowed: " + names + ", figures) - try headlab list laws"},
      {{"version"}, "unknown command \"version\"" + commands + " - did you mean --version?"},
      {{"help", "run", "run"}, "help: unexpected argument \"run\" - try headlab help"},
  };
  expect_refusals(table);
}

TEST_F(CommandLine, PassesOnWhatTheScenarioReaderRefuses) {
  const ProgramResult outcome = headlab({"run", "a.toml", "--set", "data.m=5"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(outcome.err.starts_with("headlab: --set data.m=5: data.m: unknown key"))
      << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
}

TEST_F(CommandLine, RefusesAPlaceItCannotWriteToBeforeAnyWork) {
  // So many replicates that a run which had begun would not come back.
  const std::string forever = "--replicates=1000000000000";
  for (const Arguments& place :
       {Arguments{"--out", "/proc/headlab"}, Arguments{"--json", "/proc/headlab.json"}}) {
    Arguments arguments = {"run", "a.toml", forever};
    arguments.insert(arguments.end(), place.begin(), place.end());
    const ProgramResult outcome = headlab(arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_TRUE(outcome.err.starts_with("headlab: " + place[0] + ": " + place[1] + ": cannot be "))
        << outcome.err;
  }
}

TEST_F(CommandLine, LeavesNoFolderBehindWhereItRefuses) {
  const ProgramResult outcome =
      headlab({"run", "a.toml", "--out", "new/deep", "--json", "nowhere/x"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(files().empty());
}

TEST_F(CommandLine, ExplainsItself) {
  const ProgramResult help = headlab({"help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(help.err, "");
  EXPECT_EQ(help.out, headlab({"--help"}).out);
  for (const char* command :
       {"run", "theory", "validate", "allocate", "dataset", "replay", "diff", "report", "hdi",
        "import-heads", "compress", "init", "list", "doctor", "help"}) {
    EXPECT_NE(help.out.find(std::string("\n  ") + command + " "), std::string::npos) << command;
    const ProgramResult about = headlab({"help", command});
    EXPECT_EQ(about.code, 0);
    EXPECT_NE(about.out.find(std::string("Usage: headlab ") + command), std::string::npos);
    EXPECT_EQ(about.out, headlab({command, "--help"}).out);
  }
  const ProgramResult version = headlab({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_TRUE(std::regex_match(version.out, std::regex("headlab [0-9.]+ \\(git [^ ]+\\)\n")))
      << version.out;
}

TEST_F(CommandLine, HelpSaysThatItCannotBeWritten) {
  for (const char* arguments :
       {"--help", "help", "run --help", "help run", "--version", "list laws", "completion bash"}) {
    const std::string line =
        program_ + " " + arguments + " > /dev/full 2> '" + (folder_ / ".err").string() + "'";
    const int status = std::system(line.c_str());
    ASSERT_TRUE(WIFEXITED(status)) << arguments;
    EXPECT_EQ(WEXITSTATUS(status), 1) << arguments;
    EXPECT_EQ(contents(folder_ / ".err"), "headlab: standard output: cannot be written\n");
  }
}

TEST_F(CommandLine, FilesAreThereWhateverReadsTheOutput) {
  const std::vector<std::pair<std::string, std::string>> commands = {
      {"run a.toml --json run.json", "run.json"},
      {"run a.toml --out o --overwrite", "o/results.nc"},
      {"validate decomposition --max-time 0.01 --json verdicts.json", "verdicts.json"},
      {"allocate --data a.toml --budget 2 --replicates 2048 --json allocation.json",
       "allocation.json"},
  };
  for (const auto& [arguments, file] : commands) {
    for (const char* output : {"> /dev/full", ">&-"}) {
      fs::remove(folder_ / file);
      const std::string line = "cd '" + folder_.string() + "' && " + program_ + " " + arguments +
                               " --quiet 2> .err " + output;
      const int status = std::system(line.c_str());
      ASSERT_TRUE(WIFEXITED(status)) << line;
      EXPECT_EQ(WEXITSTATUS(status), 1) << line;
      EXPECT_EQ(contents(folder_ / ".err"), "headlab: standard output: cannot be written\n");
      EXPECT_TRUE(fs::exists(folder_ / file)) << line;
    }
  }
}

TEST_F(CommandLine, FilesDoNotTakeThePlaceOfClosedStreams) {
  const std::string line =
      "cd '" + folder_.string() + "' && " + program_ + " run a.toml --out o --json j <&- >&- 2>&-";
  const int status = std::system(line.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_EQ(Json::parse(contents(folder_ / "j")),
            Json::parse(contents(folder_ / "o/summary.json")));
  EXPECT_GT(read_nodes((folder_ / "o/results.nc").string(), 0).nodes.size(), 0u);
}

TEST_F(CommandLine, TablesNameSequenceAndStages) {
  const Arguments more = {
      "--set", "data.sequence={ law = \"ar1\", correlation = 0.5 }",
      "--set", "heads.mechanism={ keep = { top = 3, union = true }, merge = 2 }",
      "--set", "sweep.\"heads.mechanism.window\"=[4, 5]"};
  const auto out_of = [&](Arguments arguments, bool with_stages) {
    if (with_stages) arguments.insert(arguments.end(), more.begin(), more.end());
    return headlab(arguments).out;
  };
  const std::string line =
      "sequence ar1, correlation 0.5; merge 2; window swept; keep top 3, union true\n";
  for (const Arguments& arguments : {Arguments{"run", "a.toml", "--backend", "reference"},
                                     Arguments{"run", "a.toml", "--dry-run"}}) {
    EXPECT_NE(out_of(arguments, true).find(line), std::string::npos) << out_of(arguments, true);
    EXPECT_EQ(out_of(arguments, false).find("merge"), std::string::npos);
  }
  // Closed forms know transform; stages that change nothing are not named.
  const std::string theory =
      headlab({"theory", "a.toml", "--set",
               "heads.mechanism={ transform = { mix = 0.1 }, merge = 1 }", "--set", "data.n=2000"})
          .out;
  EXPECT_NE(theory.find("\ntransform mix 0.1\n"), std::string::npos) << theory;
  // Above the figures and below them the same stages are named.
  const auto staged = [&](const std::string& mechanism) {
    return headlab({"run", "a.toml", "--set", "data.n=8", "--set", "heads.mechanism=" + mechanism})
        .out;
  };
  const std::string idle = staged("{ merge = 2, window = 1, sinks = 1000 }");
  EXPECT_NE(idle.find("\nmerge 2\n"), std::string::npos) << idle;
  EXPECT_NE(idle.find("do not see merge\n"), std::string::npos) << idle;
  EXPECT_NE(staged("{ window = 1, sinks = 2 }").find("\nwindow 1; sinks 2\n"), std::string::npos);
  EXPECT_EQ(idle.find("see or keep one alone"), std::string::npos) << idle;
  const std::string alone = staged("{ merge = 8 }");
  EXPECT_NE(alone.find("fewer than two effective tokens: some heads see or keep one alone\n"),
            std::string::npos)
      << alone;
}

TEST_F(CommandLine, CountsOneReplicateAsOne) {
  const std::string one = headlab({"run", "a.toml", "--replicates", "1"}).out;
  EXPECT_NE(one.find(", 1 replicate, "), std::string::npos) << one;
  const std::string two = headlab({"run", "a.toml", "--replicates", "2"}).out;
  EXPECT_NE(two.find(", 2 replicates, "), std::string::npos) << two;
}

TEST_F(CommandLine, SaysThatMoreThreadsThanProcessorsGainNothing) {
  const ProgramResult many = headlab({"run", "a.toml", "--threads", "4096"});
  EXPECT_EQ(many.code, 0);
  EXPECT_TRUE(std::regex_match(
      many.err, std::regex("headlab: --threads 4096: this machine runs \\d+ at a time; more take "
                           "memory and gain nothing\n")))
      << many.err;
  EXPECT_EQ(headlab({"run", "a.toml", "--threads", "4096", "--quiet"}).err, "");
  EXPECT_EQ(headlab({"run", "a.toml", "--threads", "1"}).err, "");
}

TEST_F(CommandLine, ListsLawsClaimsAndScenarios) {
  const ProgramResult laws = headlab({"list", "laws"});
  EXPECT_EQ(laws.code, 0);
  for (const char* word : {"\ndesign\n", "\nkernel\n", "  gaussian ", "      bandwidth "}) {
    EXPECT_NE(("\n" + laws.out).find(word), std::string::npos) << word;
  }
  const ProgramResult claims = headlab({"list", "claims"});
  EXPECT_NE(claims.out.find("\n  angles\n      centre "), std::string::npos) << claims.out;
  const ProgramResult all = headlab({"list"});
  EXPECT_EQ(all.out, laws.out + "\n" + claims.out + "\n" + headlab({"list", "architectures"}).out +
                         "\n" + headlab({"list", "scenarios"}).out);
}

TEST_F(CommandLine, TestsItself) {
  const ProgramResult doctor = headlab({"doctor"});
  EXPECT_EQ(doctor.code, 0) << doctor.out;
  EXPECT_EQ(doctor.err, "");
  EXPECT_EQ(doctor.out.find("FAIL"), std::string::npos) << doctor.out;
  for (const char* word : {"reference", "cpu", "cuda", "z = ", "all is well"}) {
    EXPECT_NE(doctor.out.find(word), std::string::npos) << word;
  }
}

TEST_F(CommandLine, SaysWhatItHasOfCuda) {
  const cuda::Status status = cuda::status();
  const std::string doctor = headlab({"doctor"}).out;
  const std::string build = status.built
                                ? "built with CUDA " + status.toolkit + " for " + status.code
                                : std::string("has no CUDA backend");
  for (const std::string& line : {"this build  " + build, "next        " + status.next,
                                  status.driver.empty() ? "driver      no NVIDIA driver found"
                                                        : "driver      " + status.driver}) {
    EXPECT_NE(doctor.find("\n  " + line + "\n"), std::string::npos) << line << "\n" << doctor;
  }
  if (!status.built) {
    EXPECT_NE(doctor.find("\n  cuda        not here: this build has no CUDA backend"),
              std::string::npos)
        << doctor;
  }
  for (const cuda::GpuStatus& gpu : status.gpus) {
    EXPECT_NE(doctor.find("GPU " + std::to_string(gpu.number)), std::string::npos) << doctor;
  }
}

TEST_F(CommandLine, RefusesCudaInOneLineWhereItIsNot) {
  const cuda::Status status = cuda::status();
  if (status.built && status.problem.empty()) GTEST_SKIP() << "there is a GPU here";
  const std::string problem =
      status.built ? status.problem + ", or use --backend cpu"
                   : "this build has no CUDA backend - configure with cmake --preset cuda (needs "
                     "the CUDA toolkit) or use --backend cpu";
  const ProgramResult outcome = headlab({"run", "a.toml", "--backend", "cuda"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "headlab: --backend cuda: " + problem + "\n");
  // What was asked for is not replaced in silence; auto is what may choose.
  EXPECT_EQ(headlab({"run", "a.toml", "--backend", "auto", "--quiet"}).code, 0);
}

TEST_F(CommandLine, PrintsATableAndNothingElseInALog) {
  const ProgramResult outcome = headlab({"run", "a.toml"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");  // a short run has nothing to say in a log
  for (const char* word : {"cli test\n", "bias²", "sum = MSE", " ± ", "chordal", "weights",
                           "± is one Monte Carlo standard error"}) {
    EXPECT_NE(outcome.out.find(word), std::string::npos) << word << "\n" << outcome.out;
  }
  EXPECT_TRUE(files().empty());
}

TEST_F(CommandLine, WritesJsonAloneToStandardOutput) {
  const ProgramResult outcome = headlab({"run", "s.toml", "--json", "-"});
  EXPECT_EQ(outcome.code, 0);
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["complete"], true);
  ASSERT_EQ(json["conditions"].size(), 2u);
  EXPECT_EQ(json["conditions"][1]["parameters"]["heads"]["kernel"]["bandwidth"], 0.8);
  std::vector<std::string> indices;
  for (const auto& [name, index] : json["conditions"][0]["indices"].items())
    indices.push_back(name);
  EXPECT_EQ(indices, (std::vector<std::string>{"chordal", "spectral", "overlap", "qk", "output",
                                               "weights"}));
}

TEST_F(CommandLine, WritesTheSameSummaryEverywhere) {
  const ProgramResult outcome = headlab({"run", "a.toml", "--out", "new/deep", "--json", "b.json"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(files(), (std::vector<std::string>{"b.json", "new", "new/deep", "new/deep/results.nc",
                                               "new/deep/summary.json"}));
  EXPECT_EQ(contents(folder_ / "b.json"), contents(folder_ / "new/deep/summary.json"));
  EXPECT_EQ(outcome.err, "headlab: wrote new/deep/results.nc, new/deep/summary.json, b.json\n");
  EXPECT_EQ(headlab({"run", "a.toml", "--out", "new/deep", "--quiet", "--overwrite"}).err, "");
}

TEST_F(CommandLine, SaysWhereAFullDiskHeldItUp) {
  const ProgramResult outcome = headlab({"run", "a.toml", "--json", "/dev/full"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err,
            "headlab: /dev/full: cannot be written (No space left on device) - free some space, or "
            "choose another place\n");
  EXPECT_NE(outcome.out.find("sum = MSE"), std::string::npos);  // not lost
}

TEST_F(CommandLine, TakesSeedAndReplicatesAsSettings) {
  Json json = Json::parse(headlab({"run", "a.toml", "--json", "-", "--set", "run.seed=1", "--seed",
                                   "2", "--replicates", "1e2", "--set", "run.replicates=50"})
                              .out);
  EXPECT_EQ(json["headlab"]["seed"], 2);
  EXPECT_EQ(json["conditions"][0]["replicates"], 100);
}

/// A summary without what the number of threads and the clock decide.
Json figures_of(const std::string& text) {
  Json json = Json::parse(text);
  json["headlab"].erase("threads");
  for (Json& condition : json["conditions"]) {
    condition.erase("seconds");
    condition.erase("weights_per_second");
  }
  return json;
}

TEST_F(CommandLine, GivesTheSameBitsForAnyNumberOfThreads) {
  const Arguments arguments = {"run", "s.toml", "--json", "-", "--replicates", "1500", "--threads"};
  auto with = [&](const char* threads, const char* seed) {
    Arguments all = arguments;
    all.insert(all.end(), {threads, "--seed", seed});
    return figures_of(headlab(all).out);
  };
  const Json one = with("1", "7");
  EXPECT_EQ(one, with("2", "7"));
  EXPECT_NE(one, with("2", "8"));  // the control: the comparison sees a difference
}

TEST_F(CommandLine, KeepsWhatWasDoneWhenInterrupted) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const pid_t child = start({"run", "s.toml", "--replicates", "1000000000000", "--out", "o"});
    send(child, signal);
    ::kill(child, signal);  // as timeout(1) does: the same request again
    const ProgramResult outcome = finish(child);
    EXPECT_EQ(outcome.code, 6);
    EXPECT_TRUE(std::regex_match(
        outcome.err,
        std::regex(
            "headlab: stopping after this training set; again to quit at once\n"
            "headlab: interrupted: kept (nothing|\\d+ of 1000000000000 replicates of "
            "(condition #1|conditions #0 to #1) of 2 in o/results.nc, o/summary.json; --resume "
            "continues)\n")))
        << outcome.err;
    if (outcome.err.find("nothing") != std::string::npos) {
      EXPECT_EQ(files(), std::vector<std::string>{});
      continue;
    }
    const Json json = Json::parse(contents(folder_ / "o/summary.json"));
    EXPECT_EQ(json["complete"], false);
    const StoredCondition stored = read_nodes((folder_ / "o/results.nc").string(), 0);
    std::uint64_t replicates = 0;
    for (const Node& node : stored.nodes) replicates += node.moments.count;
    EXPECT_EQ(json["conditions"][0]["replicates"], replicates);
    EXPECT_EQ(files(), (std::vector<std::string>{"o", "o/results.nc", "o/summary.json"}));
    fs::remove_all(folder_ / "o");
  }
}

TEST_F(CommandLine, SignalsThatWereIgnoredFromTheBeginningStaySo) {
  for (const int signal : {SIGINT, SIGHUP}) {
    const pid_t child =
        start({"run", "a.toml", "--replicates", "1000000000000", "--json", "b.json"}, signal);
    for (int i = 0; i < 3000 && !awaits(child, SIGTERM); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    // It waits for one, so that it would for the other.
    EXPECT_FALSE(awaits(child, signal));
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    ::kill(child, signal);
    send(child, SIGTERM);
    const int code = finish(child).code;
    EXPECT_NE(code, 128 + signal);
    EXPECT_NE(code, -1);
  }
}

TEST_F(CommandLine, ARunThatKeepsNothingLeavesEarlierResults) {
  ASSERT_EQ(headlab({"run", "a.toml", "--out", "o", "--json", "b.json"}).code, 0);
  const std::string nodes = contents(folder_ / "o/results.nc");
  const std::string summary = contents(folder_ / "o/summary.json");
  const ProgramResult none = headlab({"run", "a.toml", "--out", "o", "--json", "b.json",
                                      "--max-time", "0.0000001", "--overwrite"});
  EXPECT_EQ(none.err, "headlab: --max-time reached: kept nothing\n");
  EXPECT_EQ(contents(folder_ / "o/results.nc"), nodes);
  EXPECT_EQ(contents(folder_ / "o/summary.json"), summary);
  EXPECT_EQ(contents(folder_ / "b.json"), summary);
}

TEST_F(CommandLine, WritesOverNoFileThatItReadsOrHasJustWritten) {
  const Arguments run = {"run",   "a.toml",
                         "--set", "data.design={law=\"file\",path=\"d.csv\"}",
                         "--set", "data.regression={law=\"zero\"}",
                         "--set", "heads.dim=1",
                         "--set", "queries.points=[[0, 0]]"};
  std::ofstream(folder_ / "d.csv") << "x,y\n0.1,1\n0.2,3\n0.4,5\n";
  const std::string data = contents(folder_ / "d.csv");
  auto refused = [&](const Arguments& more, const std::string& message) {
    Arguments all = run;
    all.insert(all.end(), more.begin(), more.end());
    const ProgramResult outcome = headlab(all);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.err, "headlab: " + message + "\n");
  };
  refused({"--json", "./d.csv"},
          "--json: would write over ./d.csv, which is read here - choose another place");
  refused({"--out", "new", "--json", "new/../new/results.nc"},
          "--json: is where --out writes results.nc - choose another place");
  EXPECT_EQ(contents(folder_ / "d.csv"), data);
  Arguments all = run;
  all.insert(all.end(), {"--json", "b.json"});
  EXPECT_EQ(headlab(all).err, "headlab: wrote b.json\n");  // and the command is one that runs
}

TEST_F(CommandLine, StopsInTimeAndSaysSo) {
  const ProgramResult outcome = headlab(
      {"run", "a.toml", "--replicates", "1000000000000", "--max-time", "0.5", "--json", "b.json"});
  EXPECT_EQ(outcome.code, 6);
  EXPECT_TRUE(std::regex_match(outcome.err,
                               std::regex("headlab: --max-time reached: kept \\d+ of 1000000000000 "
                                          "replicates in b\\.json\n")))
      << outcome.err;
  const Json json = Json::parse(contents(folder_ / "b.json"));
  EXPECT_EQ(json["complete"], false);
  ASSERT_EQ(json["conditions"].size(), 1u);
  EXPECT_GT(json["conditions"][0]["replicates"], 0);
  EXPECT_NE(outcome.out.find(" of 1000000000000 replicates"), std::string::npos) << outcome.out;
}

}  // namespace
}  // namespace headlab
