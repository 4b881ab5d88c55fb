// SPDX-License-Identifier: Apache-2.0
// Runs the program itself.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <signal.h>
#include <sstream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/results_netcdf.h"
#include "kernels/cuda/status.h"
#include "tools/command_line_fixture.h"

namespace headlab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Arguments = std::vector<std::string>;

class CommandLine : public ProgramTest {
 protected:
  CommandLine() : ProgramTest(HEADLAB_BINARY) {}
};

bool catches(pid_t process, int signal) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("SigCgt:")) {
      return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1)) & 1u;
    }
  }
  return false;
}

/// Sends a signal once the program is ready for it.
void send(pid_t process, int signal) {
  for (int i = 0; i < 3000 && !catches(process, signal); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(process, signal);
}

constexpr const char* run_options =
    "--help, --set, --out, --json, --compare, --backend, --threads, --seed, --replicates, "
    "--max-time, --quiet";

TEST_F(CommandLine, RefusesInOneLineWithExitCodeTwo) {
  const std::string unknown = std::string(" (allowed: ") + run_options + ")";
  const std::string time =
      " is no time (allowed: more than 0, written 45s, 30m, 2h, 1h30m or 90 for seconds)";
  const std::string seeds = " does not fit (allowed: a whole number from 0 to 9007199254740991)";
  const std::string threads = " does not fit (allowed: a whole number from 1 to 4096)";
  const std::string replicates = " does not fit (allowed: a whole number from 1 to 1099511627775)";
  const std::string names =
      "run, theory, validate, allocate, dataset, hdi, import-heads, list, doctor, help";
  const std::string commands = " (allowed: " + names + ")";
  const std::vector<std::pair<Arguments, std::string>> table = {
      {{}, "no command given (allowed: " + names + ") - try headlab help"},
      {{"rn"}, "unknown command \"rn\"" + commands + " - did you mean \"run\"?"},
      {{"replay"}, "unknown command \"replay\"" + commands},
      {{"a.toml"}, "unknown command \"a.toml\"" + commands},
      {{""}, "unknown command \"\"" + commands},
      {{"--versio"},
       "unknown option --versio (allowed: --help, --version) - did you mean --version?"},
      {{"-5"}, "unknown option -5 (allowed: --help, --version)"},
      {{"--set", "a=1", "run", "a.toml"}, "unknown option --set (allowed: --help, --version)"},
      {{"run"}, "run: no scenario given - write headlab run SCENARIO.toml"},
      {{"run", ""}, "run: no scenario given - write headlab run SCENARIO.toml"},
      {{"run", "a.toml", "s.toml"}, "run: unexpected argument \"s.toml\" - try headlab help run"},
      {{"run", "a.toml", "doctor"}, "run: unexpected argument \"doctor\" - try headlab help run"},
      {{"run", "--", "a.toml", "-x"}, "run: unknown option -x" + unknown},
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
      {{"run", "a.toml", "--backend", "cpuu"},
       "--backend: \"cpuu\" is unknown (allowed: auto, reference, cpu, cuda) - did you mean "
       "\"cpu\"?"},
      {{"run", "a.toml", "--set"}, "run: --set needs a value"},
      {{"run", "a.toml", "--out"}, "run: --out needs a value"},
      {{"run", "a.toml", "--json"}, "run: --json needs a value"},
      {{"run", "a.toml", "--out", ""}, "--out: is empty - give a folder"},
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
       "--json a.toml: is the scenario itself - name another file"},
      {{"theory", "a.toml", "--seed", "1"},
       "theory: unknown option --seed (allowed: --help, --set, --source, --json, --threads) - did "
       "you "
       "mean --set?"},
      {{"allocate"},
       "allocate: no scenario given - write headlab allocate --data SCENARIO.toml --budget D"},
      {{"allocate", "--data", "a.toml"}, "allocate: no budget given - write --budget D"},
      {{"allocate", "--data", "a.toml", "--budget", "0"},
       "--budget: \"0\" does not fit (allowed: a whole number from 1 to 1024)"},
      {{"allocate", "--data", "a.toml", "--budget", "8,"},
       "--budget: \"\" does not fit (allowed: a whole number from 1 to 1024)"},
      {{"allocate", "--data", "a.toml", "--budget", "1025"},
       "--budget: \"1025\" does not fit (allowed: a whole number from 1 to 1024)"},
      {{"allocate", "--data", "a.toml", "--budget", "4", "--n", "none"},
       "--n: \"none\" does not fit (allowed: a whole number from 1 to 1099511627775)"},
      {{"allocate", "--data", "a.toml", "--budget", "4", "--bandwidth-rule", "sqrt_dm"},
       "--bandwidth-rule: \"sqrt_dm\" is unknown (allowed: fixed, sqrt_dim, rate, tuned) - did "
       "you mean \"sqrt_dim\"?"},
      {{"allocate", "--data", "a.toml", "--budget", "4", "--replicates", "100"},
       "--replicates 100: too few for a selection (allowed: at least 1024)"},
      {{"allocate", "--data", "s.toml", "--budget", "4"},
       "s.toml: sweep: varies heads.kernel.bandwidth, but allocate takes one value of it (allowed: "
       "heads.count, heads.dim, data.n, which it sets by itself) - give it one value, or map the "
       "settings with --map"},
      {{"allocate", "--data", "a.toml", "--budget", "4", "--set",
        "heads.weights={law=\"optimal\"}"},
       "--set heads.weights={law=\"optimal\"}: heads.weights: law \"optimal\" gives the weights of "
       "so many heads (allowed: uniform, geometric)"},
      {{"allocate", "--data", "a.toml", "--budget", "4", "--json", "a.toml"},
       "--json a.toml: is the scenario itself - name another file"},
      {{"allocate", "--data", "missing.toml", "--budget", "4"},
       "missing.toml: cannot be opened: No such file or directory"},
      {{"allocate", "a.toml"},
       "allocate: unexpected argument \"a.toml\" - try headlab help allocate"},
      {{"allocate", "--data", "a.toml", "--budget", "4", "--n", "10,20,30", "--growth"},
       "--growth: needs four n or more, or three budgets - write --n 100,300,1000,3000"},
      {{"allocate", "--data", "a.toml", "--budget", "4", "--out", "x"},
       "--out: is for --map - write --json FILE"},
      {{"allocate", "--data", "a.toml", "--budget", "4", "--bandwidth-rule", "fixed,rate"},
       "--bandwidth-rule fixed,rate: names several rules, which --map compares - name one"},
      {{"allocate", "--data", "a.toml", "--budget", "4", "--bandwidth-rule", "rate,rate"},
       "--bandwidth-rule: names rate twice"},
      {{"allocate", "--data", "a.toml", "--budget", "4", "--map", "--n", "10,20,30"},
       "--map: needs four n or more - write --n 100,300,1000,3000"},
      {{"allocate", "--data", "s.toml", "--budget", "4", "--map", "--n", "10,20,30,40",
        "--bandwidth-rule", "fixed,rate"},
       "s.toml: sweep: varies heads.kernel.bandwidth, which a map sets by itself - take it out of "
       "the sweep"},
      {{"allocate", "--data", "a.toml", "--budget", "4", "--source", "theoy"},
       "--source: \"theoy\" is unknown (allowed: simulation, theory) - did you mean \"theory\"?"},
      {{"allocate", "--data", "a.toml", "--budget", "4", "--source", "theory", "--replicates",
        "2048"},
       "--source theory: simulates nothing, so that --replicates means nothing - leave it out, or "
       "write --source simulation"},
      {{"allocate", "--data", "s.toml", "--budget", "4", "--source", "theory", "--map"},
       "--map: is about simulations - leave out --source theory"},
      {{"allocate", "--data", "a.toml", "--budget", "4", "--source", "theory", "--growth"},
       "--growth: is about simulations; --source theory says by itself how the best dimension "
       "grows - leave it out"},
      {{"allocate", "--data", "a.toml", "--budget", "5", "--source", "theory", "--set",
        "queries={law=\"design\", count=1}", "--set", "data.regression={law=\"zero\"}"},
       "--budget: is 5, but heads are orthogonal up to D = d = 4 (allowed with --source theory: 1 "
       "to "
       "that) - take a smaller one"},
      {{"allocate", "--data", "a.toml", "--budget", "8", "--map", "--n", "10,20,30,40"},
       "--budget 8: heads of law orthogonal need H d_k <= d - leave it out, or map the law haar "
       "alone"},
      {{"allocate", "--data", "a.toml", "--budget", "4", "--source", "theory", "--set",
        "queries={law=\"design\", count=1}", "--set",
        "data.regression={law=\"random_cosines\", length_scale=0.1}"},
       "--set data.regression={law=\"random_cosines\", length_scale=0.1}: "
       "data.regression.length_scale: theory resolves correlation lengths of 0.5 and more - take "
       "that, or --source simulation"},
      {{"allocate", "--data", "a.toml", "--outt", "x"},
       "allocate: unknown option --outt (allowed: --help, --data, --budget, --n, --bandwidth-rule, "
       "--growth, --map, --out, --source, --set, --json, --backend, --threads, --seed, "
       "--replicates, "
       "--max-time, --quiet) - did you mean --out?"},
      {{"dataset"}, "dataset: no scenario given - write headlab dataset SCENARIO.toml"},
      {{"dataset", "a.toml", "--out", "d"},
       "dataset: no number of training sets given - write --replicates R"},
      {{"dataset", "a.toml", "--replicates", "5"}, "dataset: no folder given - write --out DIR"},
      {{"dataset", "a.toml", "--replicates", "0", "--out", "d"},
       "--replicates: \"0\"" + replicates},
      {{"dataset", "a.toml", "--replicates", "5", "--out", "d", "--shards", "0"},
       "--shards: \"0\"" + replicates},
      {{"dataset", "a.toml", "--replicates", "5", "--out", "d", "--shards", "6"},
       "--shards: is 6, more than there are replicates (allowed: 1 to 5)"},
      {{"dataset", "a.toml", "--replicates", "5", "--out", "d", "--shards", "2", "--only-shard",
        "2"},
       "--only-shard: is 2, but shards are numbered from 0 to 1"},
      {{"dataset", "a.toml", "--replicates", "5", "--out", "d", "--only-shard", "-1"},
       "--only-shard: \"-1\" does not fit (allowed: a whole number from 0 to 1099511627774)"},
      {{"dataset", "a.toml", "--replicates", "5", "--out", "d", "--format", "numpy"},
       "--format: \"numpy\" is unknown (allowed: netcdf, npy) - did you mean \"npy\"?"},
      {{"dataset", "a.toml", "--replicates", "5", "--out", "d", "--threads", "0"},
       "--threads: \"0\"" + threads},
      {{"dataset", "a.toml", "--replicates", "5", "--out", "d", "--weights=3"},
       "dataset: --weights takes no value"},
      {{"dataset", "a.toml", "--replicates", "5", "--out", ""}, "--out: is empty - give a folder"},
      {{"dataset", "a.toml", "--replicates", "5", "--out", "a.toml"},
       "--out: a.toml: is a file, not a folder - choose a place you may write to"},
      {{"dataset", "missing.toml", "--replicates", "5", "--out", "d"},
       "missing.toml: cannot be opened: No such file or directory"},
      {{"dataset", "a.toml", "--replicates", "5", "--out", "d", "--backend", "cpu"},
       "dataset: unknown option --backend (allowed: --help, --set, --replicates, --out, --shards, "
       "--only-shard, --format, --estimates, --weights, --threads, --seed, --quiet)"},
      {{"list", "law"},
       "list: \"law\" is unknown (allowed: laws, claims, scenarios) - did you mean \"laws\"?"},
      {{"list", "claim"},
       "list: \"claim\" is unknown (allowed: laws, claims, scenarios) - did you mean \"claims\"?"},
      {{"list", "laws", "scenarios"},
       "list: unexpected argument \"scenarios\" - try headlab help list"},
      {{"list", "--json", "-"}, "list: unknown option --json (allowed: --help)"},
      {{"doctor", "now"}, "doctor: unexpected argument \"now\" - try headlab help doctor"},
      {{"help", "rnu"}, "help: unknown command \"rnu\"" + commands + " - did you mean \"run\"?"},
      {{"help", "run", "run"}, "help: unexpected argument \"run\" - try headlab help"},
  };
  for (const auto& [arguments, message] : table) {
    std::string line;
    for (const std::string& argument : arguments) line += " " + argument;
    SCOPED_TRACE("headlab" + line);
    const Outcome outcome = headlab(arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, "headlab: " + message + "\n");
  }
  EXPECT_TRUE(files().empty());
}

TEST_F(CommandLine, PassesOnWhatTheScenarioReaderRefuses) {
  const Outcome outcome = headlab({"run", "a.toml", "--set", "data.m=5"});
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
    const Outcome outcome = headlab(arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_TRUE(outcome.err.starts_with("headlab: " + place[0] + ": " + place[1] + ": cannot be "))
        << outcome.err;
  }
}

TEST_F(CommandLine, LeavesNoFolderBehindWhereItRefuses) {
  const Outcome outcome = headlab({"run", "a.toml", "--out", "new/deep", "--json", "nowhere/x"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(files().empty());
}

TEST_F(CommandLine, ExplainsItself) {
  const Outcome help = headlab({"help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(help.err, "");
  EXPECT_EQ(help.out, headlab({"--help"}).out);
  for (const char* command : {"run", "theory", "validate", "allocate", "dataset", "hdi",
                              "import-heads", "list", "doctor", "help"}) {
    EXPECT_NE(help.out.find(std::string("\n  ") + command + " "), std::string::npos) << command;
    const Outcome about = headlab({"help", command});
    EXPECT_EQ(about.code, 0);
    EXPECT_NE(about.out.find(std::string("Usage: headlab ") + command), std::string::npos);
    EXPECT_EQ(about.out, headlab({command, "--help"}).out);
  }
  const Outcome version = headlab({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_TRUE(std::regex_match(version.out, std::regex("headlab [0-9.]+ \\(git [^ ]+\\)\n")))
      << version.out;
}

TEST_F(CommandLine, ListsLawsClaimsAndScenarios) {
  const Outcome laws = headlab({"list", "laws"});
  EXPECT_EQ(laws.code, 0);
  for (const char* word : {"\ndesign\n", "\nkernel\n", "  gaussian ", "      bandwidth "}) {
    EXPECT_NE(("\n" + laws.out).find(word), std::string::npos) << word;
  }
  const Outcome claims = headlab({"list", "claims"});
  EXPECT_NE(claims.out.find("\n  angles\n      centre "), std::string::npos) << claims.out;
  const Outcome all = headlab({"list"});
  EXPECT_EQ(all.out, laws.out + "\n" + claims.out + "\n" + headlab({"list", "scenarios"}).out);
}

TEST_F(CommandLine, TestsItself) {
  const Outcome doctor = headlab({"doctor"});
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
  const Outcome outcome = headlab({"run", "a.toml", "--backend", "cuda"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "headlab: --backend cuda: " + problem + "\n");
  // What was asked for is not replaced in silence; auto is what may choose.
  EXPECT_EQ(headlab({"run", "a.toml", "--backend", "auto", "--quiet"}).code, 0);
}

TEST_F(CommandLine, PrintsATableAndNothingElseInALog) {
  const Outcome outcome = headlab({"run", "a.toml"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");  // a short run has nothing to say in a log
  for (const char* word : {"cli test\n", "bias²", "sum = MSE", " ± ", "chordal", "weights",
                           "± is one Monte Carlo standard error"}) {
    EXPECT_NE(outcome.out.find(word), std::string::npos) << word << "\n" << outcome.out;
  }
  EXPECT_TRUE(files().empty());
}

TEST_F(CommandLine, AdvisesHowManyHeadsOfWhatDimension) {
  const Outcome outcome = headlab(
      {"allocate", "--data", "a.toml", "--budget", "4", "--n", "30", "--replicates", "4096"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  for (const char* words :
       {"cli test\n", "D 4, n 30, gaussian kernel, rule fixed, 1 query, ", "  H  d_k  ",
        "may be best", "\n  4    1  orthogonal", "\n  1    4  orthogonal", "yes, advised",
        " of dimension ", "It holds for this design, truth and noise, n 30, 1 query, ",
        "\nagain: headlab allocate --data a.toml --budget 4 --n 30 --bandwidth-rule fixed --seed 7 "
        "--replicates 4096 --backend ",
        "± is one Monte Carlo standard error\n"}) {
    EXPECT_NE(outcome.out.find(words), std::string::npos) << words << "\n" << outcome.out;
  }
}

TEST_F(CommandLine, WritesAdviceAsJsonThatItsReplayGivesAgain) {
  const Arguments arguments = {"allocate", "--data",           "a.toml", "--budget",
                               "4",        "--bandwidth-rule", "rate",   "--replicates",
                               "2048",     "--json",           "-"};
  const Outcome outcome = headlab(arguments);
  EXPECT_EQ(outcome.code, 0);
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["budget"], 4);
  EXPECT_EQ(json["n"], 20);
  EXPECT_EQ(json["complete"], true);
  EXPECT_EQ(json["headlab"]["seed"], 7);
  ASSERT_EQ(json["allocations"].size(), 4u);
  const Json& last = json["allocations"][3];
  EXPECT_EQ(last["heads"], 1);
  EXPECT_EQ(last["dim"], 4);
  EXPECT_NEAR(last["bandwidth"].get<double>(), std::pow(20, -1.0 / 8), 1e-12);
  EXPECT_TRUE(last["mse"]["mcse"].get<double>() > 0);
  EXPECT_TRUE(last["in_best_set"].is_boolean());
  EXPECT_TRUE(json["pilot"].is_null());
  // What is advised is in the set.
  for (const Json& one : json["allocations"]) {
    EXPECT_TRUE(one["dim"] != json["advice"]["dim"] || one["in_best_set"] == true);
  }
  EXPECT_TRUE(json["advice"]["text"].is_string());

  std::istringstream words(json["replay"].get<std::string>());
  Arguments again{std::istream_iterator<std::string>(words), {}};
  ASSERT_EQ(again.front(), "headlab");
  again.erase(again.begin());
  for (const char* more : {"--json", "b.json", "--threads", "1", "--quiet"}) again.push_back(more);
  const Outcome replayed = headlab(again);
  EXPECT_EQ(replayed.code, 0) << replayed.err;
  const Json twice = Json::parse(contents(folder_ / "b.json"));
  EXPECT_EQ(twice["allocations"], json["allocations"]);
  EXPECT_EQ(twice["advice"], json["advice"]);
}

TEST_F(CommandLine, AdvisesForSeveralBudgetsAndSizes) {
  const Outcome outcome =
      headlab({"allocate", "--data", "a.toml", "--budget", "2,3", "--n", "10,20", "--replicates",
               "1024", "--json", "-", "--set", "heads.kernel={law=\"softmax\",temperature=2}"});
  EXPECT_EQ(outcome.code, 0);
  const Json json = Json::parse(outcome.out);
  ASSERT_EQ(json["studies"].size(), 4u);
  EXPECT_EQ(json["studies"][1]["budget"], 2);
  EXPECT_EQ(json["studies"][1]["n"], 20);
  EXPECT_EQ(json["studies"][2]["allocations"].size(), 3u);
  EXPECT_EQ(json["studies"][0]["allocations"][0]["temperature"], 2);
  const std::string replay = json["studies"][3]["replay"];
  EXPECT_TRUE(replay.ends_with(" --set 'heads.kernel={law=\"softmax\",temperature=2}'")) << replay;
}

TEST_F(CommandLine, SaysHowTheBestDimensionGrows) {
  const Arguments arguments = {"allocate",    "--data",       "a.toml", "--budget", "4",      "--n",
                               "5,20,80,320", "--replicates", "1024",   "--growth", "--json", "-"};
  const Outcome outcome = headlab(arguments);
  EXPECT_EQ(outcome.code, 0);
  const Json json = Json::parse(outcome.out);
  ASSERT_EQ(json["growth"].size(), 1u);
  const Json& growth = json["growth"][0];
  EXPECT_EQ(growth["dims"], (std::vector<int>{1, 2, 4}));
  EXPECT_EQ(growth["points"].size() + growth["at_the_end"].size(), 4u);
  EXPECT_TRUE(growth["verdict"].is_string());
  const std::string table = headlab(Arguments(arguments.begin(), arguments.end() - 2)).out;
  for (const char* words : {"growth of the best d_k with n, D 4, rule fixed\n", "  verdict: ",
                            "between d_k 1, 2, 4, the divisors of D; 1024 replicates each"}) {
    EXPECT_NE(table.find(words), std::string::npos) << words << "\n" << table;
  }
}

TEST_F(CommandLine, AllocatesByTheory) {
  const Arguments arguments = {"allocate",
                               "--data",
                               "a.toml",
                               "--budget",
                               "2",
                               "--n",
                               "100,1e9",
                               "--source",
                               "theory",
                               "--set",
                               "queries={law=\"design\",count=1}",
                               "--set",
                               "data.regression={law=\"random_cosines\",length_scale=2}",
                               "--json",
                               "-"};
  const Outcome outcome = headlab(arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["source"], "theory");
  ASSERT_EQ(json["studies"].size(), 2u);
  EXPECT_EQ(json["studies"][1]["n"], 1000000000);
  const Json& allocations = json["studies"][0]["allocations"];
  ASSERT_EQ(allocations.size(), 2u);
  EXPECT_GT(allocations[0]["mse"].get<double>(), 0);
  EXPECT_LE(json["growth"][0]["certificate"].get<double>(), 1e-7);
  const std::string table = headlab(Arguments(arguments.begin(), arguments.end() - 2)).out;
  for (const char* words : {"D 2, n 100\n", "D 2, n 1e9\n", "growth of the best d_k with n, D 2",
                            "a simulation has one truth and its queries."}) {
    EXPECT_NE(table.find(words), std::string::npos) << words << "\n" << table;
  }
}

TEST_F(CommandLine, SaysWhatWasNotReachedInTime) {
  const Outcome outcome = headlab({"allocate", "--data", "a.toml", "--budget", "4", "--n", "1e6",
                                   "--max-time", "0.01s", "--json", "-"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "headlab: --max-time reached: what was not reached is unfinished\n");
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["complete"], false);
  EXPECT_TRUE(json["advice"]["heads"].is_null());
}

TEST_F(CommandLine, WritesJsonAloneToStandardOutput) {
  const Outcome outcome = headlab({"run", "s.toml", "--json", "-"});
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
  const Outcome outcome = headlab({"run", "a.toml", "--out", "new/deep", "--json", "b.json"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(files(), (std::vector<std::string>{"b.json", "new", "new/deep", "new/deep/results.nc",
                                               "new/deep/summary.json"}));
  EXPECT_EQ(contents(folder_ / "b.json"), contents(folder_ / "new/deep/summary.json"));
  EXPECT_EQ(outcome.err, "headlab: wrote new/deep/results.nc, new/deep/summary.json, b.json\n");
  EXPECT_EQ(headlab({"run", "a.toml", "--out", "new/deep", "--quiet"}).err, "");
}

TEST_F(CommandLine, SaysWhereAFullDiskHeldItUp) {
  const Outcome outcome = headlab({"run", "a.toml", "--json", "/dev/full"});
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
    const Outcome outcome = finish(child);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_TRUE(std::regex_match(
        outcome.err,
        std::regex("headlab: interrupted: kept (nothing|\\d+ of 1000000000000 replicates of "
                   "(condition 2|conditions 1-2) of 2) in o/results.nc, o/summary.json\n")))
        << outcome.err;
    const Json json = Json::parse(contents(folder_ / "o/summary.json"));
    EXPECT_EQ(json["complete"], false);
    if (!json["conditions"].empty()) {
      const StoredCondition stored = read_nodes((folder_ / "o/results.nc").string(), 0);
      std::uint64_t replicates = 0;
      for (const Node& node : stored.nodes) replicates += node.moments.count;
      EXPECT_EQ(json["conditions"][0]["replicates"], replicates);
    }
    EXPECT_EQ(files(), (std::vector<std::string>{"o", "o/results.nc", "o/summary.json"}));
  }
}

TEST_F(CommandLine, StopsInTimeAndSaysSo) {
  const Outcome outcome = headlab(
      {"run", "a.toml", "--replicates", "1000000000000", "--max-time", "0.5", "--json", "b.json"});
  EXPECT_EQ(outcome.code, 0);
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

TEST_F(CommandLine, ComputesClosedForms) {
  const Arguments many = {"--set", "data.n=20000", "--source", "first_order"};
  Arguments arguments = {"theory", "a.toml"};
  arguments.insert(arguments.end(), many.begin(), many.end());
  const Outcome table = headlab(arguments);
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_EQ(table.err, "");
  for (const char* word : {"cli test\n", "sum = MSE", "output correlation C/V", "chordal",
                           "theory: first order in 1/n, "}) {
    EXPECT_NE(table.out.find(word), std::string::npos) << word << "\n" << table.out;
  }
  EXPECT_EQ(table.out.find("±"), std::string::npos);

  arguments.insert(arguments.end(), {"--json", "-"});
  const Json json = Json::parse(headlab(arguments).out);
  const Json& condition = json["conditions"][0];
  EXPECT_EQ(condition["source"], "first_order");
  EXPECT_TRUE(condition["replicates"].is_null());
  EXPECT_TRUE(condition["mse"]["remainder"].is_null());
  const double value = condition["head_variance_mean"]["value"];
  const double remainder = condition["head_variance_mean"]["remainder"];
  EXPECT_GT(value, 0);
  EXPECT_GT(std::abs(remainder), 1e-6 * value);
  EXPECT_LT(std::abs(remainder), 0.1 * value);
  EXPECT_EQ(condition["queries"][0]["head_covariance_remainder"].size(), 2u);
  EXPECT_EQ(json.dump().find("mcse"), std::string::npos);
  // The same keys as a simulation's, in the same order, but for what only one of them has.
  const Json run = Json::parse(headlab({"run", "a.toml", "--json", "-"}).out);
  std::vector<std::string> keys, expected = {"source", "certificate"};
  for (const auto& [key, one] : condition.items()) keys.push_back(key);
  for (const auto& [key, one] : run["conditions"][0].items()) expected.push_back(key);
  EXPECT_EQ(keys, expected);
}

TEST_F(CommandLine, SetsTheoryBesideTheSimulation) {
  const Arguments arguments = {"run", "a.toml", "--compare", "--set", "data.n=4000"};
  const Outcome table = headlab(arguments);
  EXPECT_EQ(table.code, 0) << table.err;
  for (const char* word : {"simulation", "theory", "largest |z|: bias of head ",
                           "V, mean over heads", "z = (simulation - theory)/MCSE"}) {
    EXPECT_NE(table.out.find(word), std::string::npos) << word << "\n" << table.out;
  }
  Arguments as_json = arguments;
  as_json.insert(as_json.end(), {"--json", "-"});
  const Json json = Json::parse(headlab(as_json).out);
  const Json& theory = json["conditions"][0]["theory"];
  for (const char* figure : {"variance_term", "covariance_term", "output_correlation"}) {
    EXPECT_LT(std::abs(theory["z"][figure].get<double>()), 5) << figure;
  }
  ASSERT_EQ(theory["largest_z"].size(), 3u);
  for (const Json& largest : theory["largest_z"]) {
    EXPECT_LT(std::abs(largest["z"].get<double>()), 5) << largest;
  }
  const Json simulated = Json::parse(headlab({"run", "a.toml", "--json", "-"}).out);
  EXPECT_FALSE(simulated["conditions"][0].contains("theory"));
}

TEST_F(CommandLine, ComparesToRoundingWhereNothingIsRandom) {
  const Json json =
      Json::parse(headlab({"run", "a.toml", "--compare", "--set", "data.fixed_design=true",
                           "--backend", "reference", "--json", "-"})
                      .out);
  const Json& condition = json["conditions"][0];
  EXPECT_EQ(condition["theory"]["source"], "exact");
  EXPECT_TRUE(condition["theory"]["z"]["mse"].is_null());
  EXPECT_NEAR(condition["theory"]["mse"]["value"], condition["mse"]["value"], 1e-15);
}

TEST_F(CommandLine, RefusesWhatHasNoClosedFormBeforeSimulating) {
  // So many replicates that a run which had begun would not come back.
  const std::string forever = "--replicates=1000000000000";
  const Outcome compare =
      headlab({"run", "a.toml", forever, "--compare", "--set", "data.design.law=\"sphere\""});
  EXPECT_EQ(compare.code, 2);
  EXPECT_EQ(compare.out, "");
  EXPECT_EQ(std::count(compare.err.begin(), compare.err.end(), '\n'), 1);
  EXPECT_NE(compare.err.find("data.design: closed forms need a normal or mixture design; law "
                             "\"sphere\" is neither - simulate with headlab run"),
            std::string::npos)
      << compare.err;
  const Outcome narrow = headlab({"theory", "s.toml", "--source", "first_order", "--set",
                                  "data.n=12", "--set", "queries.points=[[3, 3, 3, 3]]"});
  EXPECT_EQ(narrow.code, 2);
  EXPECT_TRUE(narrow.err.starts_with("headlab: condition 1 of 2: first order in 1/n: "))
      << narrow.err;
  EXPECT_TRUE(files().empty());
}

TEST_F(CommandLine, ValidatesAndItsCertificateReplaysToTheBit) {
  const Outcome verdicts = headlab({"validate", "angles", "--out", "v", "--json", "-", "--quiet"});
  ASSERT_EQ(verdicts.code, 0) << verdicts.err;
  EXPECT_EQ(verdicts.err, "");
  EXPECT_EQ(verdicts.out, contents(folder_ / "v/verdicts.json"));
  const Json json = Json::parse(verdicts.out);
  const auto refuted =
      std::find_if(json["claims"].begin(), json["claims"].end(),
                   [](const Json& claim) { return !claim["certificate"].is_null(); });
  ASSERT_NE(refuted, json["claims"].end());
  EXPECT_EQ((*refuted)["verdict"], "refuted");
  const std::string report = contents(folder_ / "v/report.md");
  EXPECT_NE(report.find((*refuted)["statement"].get<std::string>()), std::string::npos);

  // The words of the replay command, behind "headlab".
  std::istringstream words((*refuted)["replay"].get<std::string>());
  Arguments replay{std::istream_iterator<std::string>(words), {}};
  ASSERT_EQ(replay.front(), "headlab");
  replay.erase(replay.begin());
  replay.insert(replay.end(), {"--json", "-", "--quiet"});
  const Outcome again = headlab(replay);
  ASSERT_EQ(again.code, 0) << again.err;
  const Json conditions = Json::parse(again.out)["conditions"];
  const Json& mse = (*refuted)["certificate"]["mse"];
  ASSERT_EQ(conditions.size(), 2u);
  for (const std::size_t i : {0u, 1u}) {
    EXPECT_EQ(conditions[i]["mse"]["value"], mse[i]["value"]);
    EXPECT_EQ(conditions[i]["mse"]["mcse"], mse[i]["mcse"]);
  }
  // Another seed gives other bits.
  replay[std::find(replay.begin(), replay.end(), "--seed") - replay.begin() + 1] = "1";
  EXPECT_NE(Json::parse(headlab(replay).out)["conditions"][0]["mse"]["value"], mse[0]["value"]);
}

TEST_F(CommandLine, ValidateSaysByItsCodeThatAVerdictIsNotTheExpectedOne) {
  const Outcome few = headlab({"validate", "decomposition", "--replicates", "8192", "--quiet"});
  EXPECT_EQ(few.code, 3);
  EXPECT_NE(few.out.find("unresolved (expected supported)"), std::string::npos) << few.out;
  EXPECT_NE(few.out.find("replicates would decide"), std::string::npos) << few.out;
  // What time cut short is no difference.
  const Outcome cut = headlab({"validate", "decomposition", "--max-time", "0.001", "--quiet"});
  EXPECT_EQ(cut.code, 0);
  EXPECT_EQ(cut.err, "headlab: --max-time reached: verdicts not reached are unresolved\n");
}

TEST_F(CommandLine, ValidateRefusesWhatItCannotDo) {
  const std::vector<std::pair<Arguments, std::string>> table = {
      {{"validate", "angels"}, "unknown claim \"angels\" (allowed: "},
      {{"validate", "--replicates", "10"}, "--replicates 10: too few for a verdict"},
      {{"validate", "--level", "ful"}, "--level: \"ful\" is unknown (allowed: quick, full) - did"},
      {{"validate", "--calibrate", "angles"}, "--calibrate"},
      {{"validate", "--json", "no/such/folder.json"}, "--json"}};
  for (const auto& [arguments, message] : table) {
    const Outcome outcome = headlab(arguments);
    EXPECT_EQ(outcome.code, 2) << message;
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
  EXPECT_EQ(files(), std::vector<std::string>());
}

/// A data set of 40 shards that take so long that a signal always comes before they are there.
const Arguments slow_shards = {"dataset",    "a.toml",   "--replicates",
                               "20000",      "--shards", "40",
                               "--out",      "d",        "--format",
                               "npy",        "--set",    "queries={law=\"design\", count=1000}",
                               "--estimates"};

TEST_F(CommandLine, WritesADataSetAndKeepsItTheNextTime) {
  const Arguments arguments = {"dataset", "s.toml", "--replicates", "10",
                               "--out",   "new/d",  "--shards",     "2"};
  const Outcome first = headlab(arguments);
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(first.out, "");
  EXPECT_TRUE(std::regex_match(
      first.err, std::regex("headlab: 2 conditions, 4 shards, [0-9.]+ KiB to write\n"
                            "headlab: wrote 4 shards in [0-9.]+ s and new/d/manifest.json\n")))
      << first.err;
  EXPECT_EQ(files(), (std::vector<std::string>{
                         "new", "new/d", "new/d/condition_000", "new/d/condition_000/shard_000.nc",
                         "new/d/condition_000/shard_001.nc", "new/d/condition_001",
                         "new/d/condition_001/shard_000.nc", "new/d/condition_001/shard_001.nc",
                         "new/d/manifest.json"}));
  const Outcome second = headlab(arguments);
  EXPECT_EQ(second.code, 0);
  EXPECT_EQ(second.err,
            "headlab: 2 conditions, 4 shards, 0 bytes to write\n"
            "headlab: kept 4 shards, intact by their SHA-256\n");
  fs::resize_file(folder_ / "new/d/condition_001/shard_000.nc", 100);
  const Outcome third = headlab(arguments);
  EXPECT_NE(third.err.find("headlab: 1 shard missing or changed since they were written: written "
                           "again\n"),
            std::string::npos)
      << third.err;
  Arguments quiet = arguments;
  quiet.push_back("--quiet");
  EXPECT_EQ(headlab(quiet).err, "");
  quiet.insert(quiet.end(), {"--seed", "8"});
  const Outcome other = headlab(quiet);
  EXPECT_EQ(other.code, 2);
  EXPECT_EQ(other.err,
            "headlab: new/d/manifest.json: is of another data set "
            "(conditions/0/parameters/run/seed differs) - choose another folder\n");
}

/// The name of a file that is still being written, or nothing.
std::string half_written(const std::vector<std::string>& files) {
  for (const std::string& name : files) {
    if (name.find(".tmp-") != std::string::npos) return name;
  }
  return "";
}

TEST_F(CommandLine, InterruptedDataSetsLeaveNothingHalfWritten) {
  const pid_t child = start(slow_shards);
  for (int i = 0; i < 3000 && half_written(files()).empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  send(child, SIGINT);
  const Outcome outcome = finish(child);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(std::regex_search(
      outcome.err, std::regex("headlab: interrupted: d has \\d+ shards? of 40 - the same command "
                              "goes on from there\n$")))
      << outcome.err;
  EXPECT_EQ(half_written(files()), "");
}

TEST_F(CommandLine, KilledDataSetsGoOn) {
  const pid_t child = start(slow_shards);
  // In the midst of a shard, whose files it leaves.
  for (int i = 0; i < 3000 && half_written(files()).empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(child, SIGKILL);
  EXPECT_EQ(finish(child).code, -1);
  const std::string left = half_written(files());
  const std::string shard = "d/condition_000/shard_";
  ASSERT_TRUE(left.starts_with(shard)) << left;
  Arguments again = slow_shards;
  again.insert(again.end(), {"--only-shard", left.substr(shard.size(), 3)});
  const Outcome outcome = headlab(again);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(half_written(files()), "");
  EXPECT_TRUE(fs::exists(folder_ / left.substr(0, shard.size() + 3) / "X.npy"));
}

TEST_F(CommandLine, DataSetsSayWhatKeepsThemFromBeingWritten) {
  fs::create_directory(folder_ / "d");
  std::ofstream(folder_ / "d/condition_000") << "in the way";
  const Outcome outcome = headlab(slow_shards);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(
      outcome.err.ends_with("\nheadlab: d/condition_000: cannot be written (Not a directory)\n"))
      << outcome.err;
  EXPECT_EQ(files(), (std::vector<std::string>{"d", "d/condition_000"}));
}

}  // namespace
}  // namespace headlab
