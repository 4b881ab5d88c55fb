// SPDX-License-Identifier: Apache-2.0
#include "engine/run/forecast.h"

#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>

#include "engine/files/atomic_file.h"
#include "engine/results/results_netcdf.h"
#include "engine/results/summary_json.h"
#include "engine/run/simulate.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/scenario.h"
#include "engine/testing/folder_test.h"
#include "engine/testing/hand_made_result.h"

namespace headlab {
namespace {

class Forecast : public FolderTest {
 protected:
  /// Sizes of the files over those that were forecast.
  void expect_sizes(const Scenario& scenario) const {
    const RunResult result = hand_made::result(scenario);
    const auto indices = hand_made::indices(result);
    const auto measured = [&](const std::string& name) {
      return static_cast<double>(std::filesystem::file_size(at(name)));
    };
    write_results(at("all.nc"), scenario, result, indices, hand_made::program);
    write_results(at("none.nc"), scenario, result, indices, hand_made::program, false);
    write_atomically(at("s.json"), [&](const TextSink& out) {
      write_summary_json(out, scenario, result, indices, hand_made::program);
    });
    const ResultSize size = result_size(scenario);
    for (const auto& [file, bytes] :
         {std::pair("all.nc", size.netcdf), std::pair("none.nc", size.netcdf_without_nodes),
          std::pair("s.json", size.summary)}) {
      const double ratio = measured(file) / static_cast<double>(bytes);
      EXPECT_GT(ratio, 0.4) << file;
      EXPECT_LT(ratio, 2.5) << file;
    }
  }
};

TEST_F(Forecast, KnowsTheSizeOfTheFiles) {
  expect_sizes(hand_made::scenario());
  expect_sizes(hand_made::scenario({"heads.count=16", "heads.subspaces={law=\"haar\"}"}));
  expect_sizes(hand_made::scenario({"queries={law=\"design\",count=64}"},
                                   "[sweep]\n\"heads.kernel.bandwidth\" = "
                                   "{ linspace = [0.1, 1.0, 40] }\n"));
}

TEST_F(Forecast, DrawsHeadsAndQueriesAgain) {
  for (const char* subspaces : {"{law=\"haar\", redraw=true}", "{law=\"coordinates\"}"}) {
    const Scenario scenario = hand_made::scenario({std::string("heads.subspaces=") + subspaces,
                                                   "queries={law=\"design\", count=2, redraw=true}",
                                                   "run.replicates=304"});
    const BackendForecast one = forecast(scenario, "reference", 1, 0.001);
    EXPECT_EQ(one.problem, "");
    EXPECT_GT(one.weights_per_second, 0);
  }
}

TEST_F(Forecast, CountsTheTokensThatHeadsSee) {
  const auto work = [](const std::string& mechanism) {
    const Scenario scenario =
        hand_made::scenario({"data.n=1000000", "heads.mechanism=" + mechanism});
    // What is measured has fewer points, of which heads see something.
    const BackendForecast one = forecast(scenario, "reference", 1, 0.001);
    EXPECT_EQ(one.problem, "");
    EXPECT_GT(one.weights_per_second, 0) << mechanism;
    return replicate_work(make_plan(scenario.conditions[0]));
  };
  const double plain = work("{}");
  EXPECT_NEAR(work("{window=250000, skip=500000, keep={top=1000}}") / plain, 0.25, 1e-9);
  EXPECT_LT(work("{merge=4}"), plain);
  EXPECT_LT(work("{window=1}"), 1000);
}

TEST_F(Forecast, GrowsWithTheReplicatesAndTheHeads) {
  const Scenario small = hand_made::scenario();
  const Scenario large = hand_made::scenario({"heads.count=64", "heads.subspaces={law=\"haar\"}"});
  const BackendForecast one = forecast(small, "reference", 1, 0.001);
  EXPECT_EQ(one.problem, "");
  EXPECT_EQ(one.machine.backend, "reference");
  EXPECT_EQ(one.groups, 1u);
  EXPECT_GT(one.weights_per_second, 0);
  EXPECT_TRUE(std::isfinite(one.seconds) && one.seconds > 0);
  EXPECT_GT(forecast(large, "reference", 1, 0.001).memory, 2 * one.memory);
}

TEST_F(Forecast, NeedsNoHeadsThatAreLearnedAndNoPilot) {
  for (const char* set : {"heads.subspaces={law=\"learned\",steps=1000000,held_out=0}",
                          "heads.weights={law=\"optimal\",replicates=1000000}"}) {
    const BackendForecast one = forecast(hand_made::scenario({set}), "cpu", 1, 0.001);
    EXPECT_EQ(one.problem, "") << set;
    EXPECT_GT(one.seconds, 0) << set;
  }
}

}  // namespace
}  // namespace headlab
