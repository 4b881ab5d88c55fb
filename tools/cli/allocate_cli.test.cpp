// SPDX-License-Identifier: Apache-2.0
// headlab allocate, except its maps.
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tools/cli/testing/command_line_fixture.h"

namespace headlab {
namespace {

using Json = nlohmann::ordered_json;
using Arguments = std::vector<std::string>;

class AllocateCommand : public ProgramTest {};

TEST_F(AllocateCommand, RefusesInOneLineWithExitCodeTwo) {
  expect_refusals({
      {{"allocate"},
       "allocate: no scenario given - write headlab allocate --data SCENARIO.toml --budget D"},
      {{"allocate", "--data", "a.toml", "--budget", "2", "--source", "theory", "--set",
        "heads.mechanism.window=3"},
       "--set heads.mechanism.window=3: heads.mechanism: theory is of heads without stages - leave "
       "them out, or take --source simulation"},
      {{"allocate", "--data", "a.toml", "--budget", "2", "--source", "theory", "--set",
        "data.sequence={law=\"ar1\", correlation=0.5}"},
       "--set data.sequence={law=\"ar1\", correlation=0.5}: data.sequence: theory is of "
       "independent points - leave it out, or take --source simulation"},
      {{"allocate", "--data", "a.toml", "--budget", "2", "--source", "exact", "--set",
        "heads.mechanism.keep={block=2,top=1}"},
       "--source exact: heads.mechanism.keep: blocks have no closed form, top, fraction and ratio "
       "have one - simulate with headlab run, or use data.fixed_design = true"},
      {{"allocate", "--data", "a.toml", "--budget", "2", "--n", "2,300", "--set",
        "heads.mechanism.skip=2"},
       "--set heads.mechanism.skip=2: heads.mechanism.skip.tokens: leaves out 2 of 2 tokens, so "
       "none is left, with n = 2"},
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
      {{"allocate", "--data", "a.toml", "--budget", "4", "--dims", "2,none"},
       "--dims: \"none\" does not fit (allowed: a whole number from 1 to 1024)"},
      {{"allocate", "--data", "a.toml", "--budget", "4", "--dims", "2,2"}, "--dims: names 2 twice"},
      {{"allocate", "--data", "a.toml", "--budget", "4", "--dims", "2", "--source", "theory"},
       "--dims: is for a selection by simulation - leave out --source theory"},
      {{"allocate", "--data", "a.toml", "--budget", "4", "--dims", "2", "--map"},
       "--dims: is for a selection by simulation - leave out --map"},
      {{"allocate", "--data", "a.toml", "--budget", "4", "--json", "a.toml"},
       "--json: would write over a.toml, which is read here - choose another place"},
      {{"allocate", "--data", "missing.toml", "--budget", "4"},
       "missing.toml: cannot be opened: No such file or directory"},
      {{"allocate", "a.toml"}, "allocate: unexpected argument \"a.toml\" - write --data a.toml"},
      {{"allocate", "--data", "a.toml", "--budget", "4", "--n", "10,20,30", "--growth"},
       "--growth: needs four n or more, or three budgets - write --n 100,300,1000,3000"},
      {{"allocate", "--data", "a.toml", "--budget", "4", "--n", "10,20,30,40", "--growth", "--set",
        "data.fixed_design=true"},
       "--growth: with data.fixed_design = true nothing is random that could say how sure a fit is "
       "- write --set data.fixed_design=false"},
      {{"allocate", "--data", "a.toml", "--budget", "4", "--out", "x"},
       "--out: is for --map, and for what --shard and --resume keep - write --json FILE"},
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
       "--source: \"theoy\" is unknown (allowed: simulation, theory, exact) - did you mean "
       "\"theory\"?"},
      {{"allocate", "--data", "a.toml", "--budget", "4", "--source", "exact", "--max-time", "9s"},
       "--source exact: simulates nothing, so that --max-time means nothing - leave it out, or "
       "write --source simulation"},
      {{"allocate", "--data", "a.toml", "--budget", "2,8", "--source", "exact"},
       "--source exact: is for given heads, but 8 of dimension 1 would be drawn at random (law "
       "haar), and a simulation draws them many times - take the law orthogonal and D <= d, or "
       "--source simulation"},
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
       "allocate: unknown option --outt (allowed: --help, --data, --budget, --dims, --n, "
       "--bandwidth-rule, "
       "--growth, --map, --out, --overwrite, --source, --set, --json, --report, --shard, --resume, "
       "--checkpoint, --backend, "
       "--simd, --threads, "
       "--seed, "
       "--replicates, "
       "--max-time, --quiet) - did you mean --out?"},
  });
}

TEST_F(AllocateCommand, AdvisesHowManyHeadsOfWhatDimension) {
  const ProgramResult outcome = headlab(
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

TEST_F(AllocateCommand, WritesAdviceAsJsonThatItsReplayGivesAgain) {
  const Arguments arguments = {"allocate", "--data",           "a.toml", "--budget",
                               "4",        "--bandwidth-rule", "rate",   "--replicates",
                               "2048",     "--json",           "-"};
  const ProgramResult outcome = headlab(arguments);
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
  const ProgramResult replayed = headlab(again);
  EXPECT_EQ(replayed.code, 0) << replayed.err;
  const Json twice = Json::parse(contents(folder_ / "b.json"));
  EXPECT_EQ(twice["allocations"], json["allocations"]);
  EXPECT_EQ(twice["advice"], json["advice"]);
}

TEST_F(AllocateCommand, AdvisesForSeveralBudgetsAndSizes) {
  const ProgramResult outcome =
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

TEST_F(AllocateCommand, SaysHowTheBestDimensionGrows) {
  const Arguments arguments = {"allocate",    "--data",       "a.toml", "--budget", "4",      "--n",
                               "5,20,80,320", "--replicates", "1024",   "--growth", "--json", "-"};
  const ProgramResult outcome = headlab(arguments);
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

TEST_F(AllocateCommand, AllocatesByTheory) {
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
  const ProgramResult outcome = headlab(arguments);
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

TEST_F(AllocateCommand, AllocatesExactly) {
  const Arguments arguments = {"allocate", "--data", "a.toml",   "--budget", "4",
                               "--n",      "20,50",  "--source", "exact"};
  const ProgramResult outcome = headlab(arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* words :
       {"gaussian kernel, rule fixed, exact theory\n", "D 4, n 20\n", "D 4, n 50\n", "  best\n",
        "  d_k* between the divisors of D ", "growth of the best d_k with n, D 4, rule fixed\n",
        "\nExact at every n, as the mean over training sets and noise, for this truth and these "
        "queries.\nweights sum to one within "}) {
    EXPECT_NE(outcome.out.find(words), std::string::npos) << words << "\n" << outcome.out;
  }
  Arguments with_json = arguments;
  with_json.insert(with_json.end(), {"--json", "-"});
  const Json json = Json::parse(headlab(with_json).out);
  EXPECT_EQ(json["source"], "exact");
  ASSERT_EQ(json["studies"].size(), 2u);
  EXPECT_EQ(json["studies"][0]["allocations"].size(), 4u);
}

TEST_F(AllocateCommand, SaysWhatWasNotReachedInTime) {
  const ProgramResult outcome = headlab({"allocate", "--data", "a.toml", "--budget", "4", "--n",
                                         "1e6", "--max-time", "0.01s", "--json", "-"});
  EXPECT_EQ(outcome.code, 6);
  EXPECT_EQ(outcome.err, "headlab: --max-time reached: nothing was reached\n");
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["complete"], false);
  EXPECT_TRUE(json["advice"]["heads"].is_null());

  std::ofstream(folder_ / "b.json") << "earlier";
  const ProgramResult table = headlab({"allocate", "--data", "a.toml", "--budget", "4", "--n",
                                       "1e6", "--max-time", "0.01s", "--json", "b.json"});
  EXPECT_EQ(table.code, 6);
  EXPECT_EQ(table.out, "");  // a table of nothing would look like advice
  EXPECT_EQ(contents(folder_ / "b.json"), "earlier");
}

}  // namespace
}  // namespace headlab
