// SPDX-License-Identifier: Apache-2.0
#include "engine/run/checkpoint.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "engine/files/error.h"
#include "engine/files/netcdf/file.h"
#include "engine/results/results_netcdf.h"
#include "engine/results/results_reader.h"
#include "engine/run/run.h"
#include "engine/scenario/plan_fingerprint.h"
#include "engine/scenario/world.h"
#include "engine/testing/folder_test.h"
#include "engine/testing/same_bits.h"
#include "kernels/backends.h"
#include "kernels/testing/paths.h"

namespace headlab {
namespace {

namespace fs = std::filesystem;
using Sets = std::vector<std::string>;

Scenario scenario_of(const Sets& sets = {}) {
  return parse_scenario(
      World{.n = "40",
            .design = "{ law = 'normal', dim = 3 }",
            .regression = "{ law = 'additive', amplitude = [1, 1, 0], frequency = [1, 2, 1] }",
            .noise = "{ law = 'normal', sd = 0.5 }",
            .heads = "count = 2\ndim = 1\nsubspaces = { law = 'haar' }",
            .kernel = "{ law = 'gaussian', bandwidth = 0.5 }",
            .points = "[[0, 0, 0], [0.5, 0, 0]]",
            .run = "seed = 3\nreplicates = 1500"}
          .text(),
      "resumed.toml", sets);
}

Sets with(Sets sets, const Sets& more) {
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

/// An empty folder with the results of a run in it.
class Resume : public FolderTest {
 protected:
  std::string path() const { return at("results.nc"); }

  void keep(const Scenario& scenario, const RunResult& result) const {
    write_results(path(), scenario, result, {}, provenance());
  }
  /// Runs a scenario and keeps its results.
  void keep(const Sets& sets, const std::string& backend = "cpu") const {
    const Scenario scenario = scenario_of(sets);
    keep(scenario, run(scenario, {.backend = backend}));
  }
  RunResult go_on(const Sets& sets, const std::string& backend = "cpu", int threads = 0) const {
    const Scenario scenario = scenario_of(sets);
    Checkpoint begun = read_checkpoint(path(), scenario, provenance());
    return run(scenario, {.backend = backend, .threads = threads}, {.begun = &begun});
  }
  std::string refusal(const Sets& sets, const std::string& backend = "cpu") const {
    return refusal_here([&] { go_on(sets, backend); });
  }
};

const std::string advice =
    " - choose another folder, or write --overwrite instead to replace the results there";

TEST_F(Resume, GivesTheBitsOfOneRun) {
  for (const std::string backend : {"cpu", "reference"}) {
    for (const std::string estimator : {"conditional", "plain"}) {
      for (const std::string moments : {"pairwise", "aggregate"}) {
        const Sets sets = {"run.estimator=\"" + estimator + "\"",
                           "run.moments=\"" + moments + "\""};
        const RunResult whole = run(scenario_of(sets), {.backend = backend});
        // Single replicates, whole leaves, and a last leaf that is simulated again.
        for (const std::string replicates : {"1", "200", "256", "1000", "1027", "1500"}) {
          SCOPED_TRACE(backend + " " + estimator + " " + moments + " " + replicates);
          keep(with(sets, {"run.replicates=" + replicates}), backend);
          const RunResult resumed = go_on(sets, backend, 1);
          EXPECT_TRUE(resumed.outcome.complete);
          expect_same_bits(resumed, whole);
        }
      }
    }
  }
}

TEST_F(Resume, GoesOnFromCheckpointsWhateverTheyCaught) {
  const Sets sets = {"sweep.\"heads.kernel.bandwidth\"=[0.3, 0.5]", "sweep.\"data.n\"=[20, 40]",
                     "run.replicates=3000"};
  const Scenario scenario = scenario_of(sets);
  std::vector<std::uint64_t> kept;
  RunOptions options{.checkpoint_seconds = 0};
  options.checkpoint = [&](const RunResult& result) {
    EXPECT_FALSE(result.outcome.complete);
    EXPECT_EQ(result.conditions.size(), 4u);
    std::uint64_t count = 0;
    for (const ConditionResult& condition : result.conditions) {
      count += condition.tree.count();
      EXPECT_EQ(condition.estimates.replicates, condition.tree.count());
    }
    kept.push_back(count);
    keep(scenario, result);
  };
  const RunResult whole = run(scenario, {.backend = "reference", .threads = 2}, options);
  EXPECT_TRUE(whole.outcome.complete);
  ASSERT_FALSE(kept.empty());
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
  EXPECT_EQ(read_checkpoint(path(), scenario, provenance()).replicates(), kept.back());
  expect_same_bits(go_on(sets, "reference"), whole);
}

TEST_F(Resume, GoesOnWithConditionsThatAreNotEquallyFar) {
  keep({"sweep.\"heads.kernel.bandwidth\"=[0.3]", "run.replicates=500"});
  const Sets sets = {"sweep.\"heads.kernel.bandwidth\"=[0.3, 0.5, 0.7]"};
  expect_same_bits(go_on(sets), run(scenario_of(sets), {.backend = "cpu"}));
}

TEST_F(Resume, AddsUpTheTime) {
  const Scenario scenario = scenario_of();
  RunResult first = run(scenario_of({"run.replicates=1000"}), {.backend = "cpu"});
  first.conditions[0].seconds = 1e6;
  keep(scenario, first);
  const ConditionResult all = go_on({}).conditions.at(0);
  EXPECT_GT(all.seconds, 1e6);
  EXPECT_LT(all.seconds, 1e6 + 3600);
  EXPECT_DOUBLE_EQ(all.weights_per_second, 1500.0 * 2 * 2 * 40 / all.seconds);
}

TEST_F(Resume, KeepsWhatIsDoneWhereAConditionFails) {
  // In the second condition the square of s(x) leaves float32 at two rows.
  const std::string rows = (folder_ / "rows.csv").string();
  std::ofstream(rows) << "0,0,0\n0,0,0\n0,0,0\n1e6,1e6,1e6\n1e6,1e6,1e6\n";
  const std::string noise = "{ law = \"heteroscedastic\", sd = 1, ";
  const Scenario scenario =
      scenario_of({"data.n=200", "data.design={ law = \"file\", path = \"" + rows + "\" }",
                   "queries.points=[[0, 0, 0], [1e6, 1e6, 1e6]]", "run.replicates=64",
                   "sweep.\"data.noise\"=[" + noise + "slope = 1, direction = [1, 0, 0] }, " +
                       noise + "slope = 1e6, direction = [1e6, 1e6, 1e6] }]"});
  RunOptions options{.checkpoint_seconds = 1e6};
  options.checkpoint = [&](const RunResult& result) { keep(scenario, result); };
  EXPECT_THROW(run(scenario, {.backend = "cpu"}, options), RunFailed);
  const Checkpoint begun = read_checkpoint(path(), scenario, provenance());
  ASSERT_EQ(begun.conditions.size(), 2u);
  EXPECT_EQ(begun.conditions[0].tree.count(), 64u);
  EXPECT_EQ(begun.conditions[1].tree.count(), 0u);
}

TEST_F(Resume, KeepsWhatItBeganWithWhereItFails) {
  const Sets sweep = {"sweep.\"data.n\"=[20, 40]"};
  keep(with(sweep, {"run.replicates=1001"}));
  const Scenario scenario = scenario_of(with(sweep, {"run.replicates=100000000"}));
  Checkpoint begun = read_checkpoint(path(), scenario, provenance());
  const Session session{.backend = "cpu",
                        .report = [](const Progress&) { throw RunFailed("no more"); }};
  RunOptions options{.begun = &begun, .checkpoint_seconds = 1e6};
  int kept = 0;
  options.checkpoint = [&](const RunResult& result) {
    ++kept;
    keep(scenario, result);
  };
  EXPECT_THROW(run(scenario, session, options), RunFailed);
  EXPECT_EQ(kept, 1);
  EXPECT_EQ(read_checkpoint(path(), scenario, provenance()).replicates(), 2002u);
}

TEST_F(Resume, LosesNoReplicatesOfALeafThatIsNotFull) {
  keep({"run.replicates=1027"});
  // Complete: nothing is left to simulate.
  bool told = false;
  const Scenario same = scenario_of({"run.replicates=1027"});
  Checkpoint begun = read_checkpoint(path(), same, provenance());
  const Session session{.backend = "cpu", .report = [&](const Progress&) { told = true; }};
  const RunResult result = run(same, session, {.begun = &begun});
  EXPECT_TRUE(result.outcome.complete);
  EXPECT_FALSE(told);
  EXPECT_EQ(result.conditions.at(0).tree.count(), 1027u);
  // Stopped before it begins.
  const Scenario more = scenario_of({"run.replicates=2000"});
  begun = read_checkpoint(path(), more, provenance());
  const RunResult stopped =
      run(more, {.backend = "cpu", .deadline = deadline_in(0)}, {.begun = &begun});
  EXPECT_FALSE(stopped.outcome.complete);
  EXPECT_EQ(stopped.conditions.at(0).tree.count(), 1027u);
}

TEST_F(Resume, HandsOverNothingBehindWhatWasThere) {
  // A leaf takes longer than the first checkpoint is away, which so finds the whole leaves alone.
  const MomentTree there = run(scenario_of({"run.replicates=1027"})).conditions.at(0).tree;
  const Scenario scenario = scenario_of({"data.n=5000000", "run.replicates=2000"});
  std::atomic<bool> stop = false;
  const Session session{.backend = "cpu", .threads = 1, .stop = &stop};
  Checkpoint begun{.path = path(),
                   .machine = session.machine(),
                   .conditions = {{there, plan_sha256(make_plan(scenario.conditions.at(0))), 1}}};
  RunOptions options{.begun = &begun, .checkpoint_seconds = 0};
  options.checkpoint = [&](const RunResult& result) {
    EXPECT_GE(result.conditions.at(0).tree.count(), 1027u);
    stop = true;
  };
  // The leaf in progress is dropped.
  EXPECT_EQ(run(scenario, session, options).conditions.at(0).tree.count(), 1027u);
}

TEST_F(Resume, TakesNoNoticeOfConditionsThatWereNotBegun) {
  const Scenario scenario = scenario_of({"sweep.\"data.n\"=[20, 30, 40]"});
  RunResult checkpoint = run(scenario, {.backend = "cpu"});
  for (const std::size_t i : {1, 2}) {
    MomentTree& tree = checkpoint.conditions[i].tree;
    tree = MomentTree(tree.layout());
    checkpoint.conditions[i].estimates = {};
  }
  keep(scenario, checkpoint);
  EXPECT_EQ(refusal({"sweep.\"data.n\"=[20, 50]"}), "accepted");
  EXPECT_EQ(refusal({"sweep.\"data.n\"=[20]"}), "accepted");
}

TEST_F(Resume, LearnsHeadsAndWeightsAgain) {
  for (const Sets& sets :
       {Sets{"heads.weights={ law = \"optimal\" }"},
        Sets{"data.n=200", "heads.subspaces={ law = \"learned\", steps = 20 }"},
        Sets{"heads.subspaces={ law = \"learned\", steps = 5, fit = \"per_replicate\" }",
             "run.estimator=\"plain\""}}) {
    SCOPED_TRACE(sets.back());
    keep(with(sets, {"run.replicates=24"}));
    const Sets more = with(sets, {"run.replicates=40"});
    expect_same_bits(go_on(more), run(scenario_of(more), {.backend = "cpu"}));
  }
}

TEST(ResumeOfFormatVersion1, GivesTheBitsThatItHas) {
  const std::string path =
      fs::path(test::known_answers()).replace_filename("results-version-1.nc").string();
  const NetcdfInput file(path);
  const NetcdfGroup root = file.root();
  ASSERT_EQ(root.integer_attribute("format_version"), 1);
  const Provenance program = {root.text_attribute("headlab_version"), root.text_attribute("git"),
                              root.text_attribute("compiler"), root.text_attribute("build_type")};
  const Scenario scenario =
      parse_scenario(root.text_attribute("scenario_text"), "s.toml", {"run.replicates=20"});
  Checkpoint begun = read_checkpoint(path, scenario, program);
  ASSERT_EQ(begun.conditions.size(), 2u);
  for (std::size_t c = 0; c < 2; ++c) {
    const MomentTree& tree = begun.conditions[c].tree;
    EXPECT_EQ(tree.count(), 12u);
    const Plan plan = make_plan(scenario.conditions[c]);
    const ConditionEstimates estimates = estimate(tree, plan.head_weights, plan.truth);
    EXPECT_EQ(estimates.mse.value, root.doubles("mse")[c]);
    EXPECT_EQ(estimates.mse.mcse, root.doubles("mse_mcse")[c]);
    EXPECT_EQ(read_nodes(path, c).truth, plan.truth);
  }
  const RunResult resumed = run(scenario, {.backend = "reference"}, {.begun = &begun});
  EXPECT_TRUE(resumed.outcome.complete);
  for (std::size_t c = 0; c < 2; ++c) {
    const std::vector<Node> kept = read_nodes(path, c).nodes;
    const std::vector<Node>& nodes = resumed.conditions[c].tree.nodes();
    ASSERT_EQ(nodes.size(), 20u);
    for (std::size_t i = 0; i < kept.size(); ++i) {
      EXPECT_EQ(nodes[i].moments.mean, kept[i].moments.mean);
      EXPECT_EQ(nodes[i].moments.comoment, kept[i].moments.comoment);
    }
  }
}

TEST_F(Resume, IsRefusedWhereTheStudyIsAnother) {
  keep({});
  EXPECT_EQ(refusal({"run.seed=4"}),
            "--resume: results.nc: condition #0: run.seed was 3 and is 4" + advice);
  EXPECT_EQ(
      refusal({"run.estimator=\"plain\""}),
      "--resume: results.nc: condition #0: run.estimator was not given and is \"plain\"" + advice);
  EXPECT_EQ(refusal({"queries.points=[[0, 0, 0]]"}),
            "--resume: results.nc: condition #0: queries.points was [[0,0,0],[0.5,0,0]] and is "
            "[[0,0,0]]" +
                advice);
  EXPECT_EQ(refusal({}, "reference"), "--resume: results.nc: was computed by cpu/" +
                                          make_backend("cpu")->simd() +
                                          ", this run would be by reference" + advice);
  // The control, with what may change.
  EXPECT_EQ(refusal({"scenario.name=\"another\"", "run.replicates=1600"}), "accepted");
  EXPECT_EQ(refusal({"claim.name=\"another\"", "run.replicates=1600"}), "accepted");
  keep({"run.replicates=1027"});
  EXPECT_EQ(refusal({"run.replicates=1025"}).substr(0, 51),
            "--resume: results.nc: condition #0 has 1027 replica");
  keep({"sweep.\"heads.kernel.bandwidth\"=[0.3, 0.5]"});
  EXPECT_EQ(
      refusal({"sweep.\"heads.kernel.bandwidth\"=[0.3, 0.6]"}),
      "--resume: results.nc: condition #1: heads.kernel.bandwidth was 0.5 and is 0.6" + advice);
  EXPECT_EQ(refusal({"sweep.\"heads.kernel.bandwidth\"=[0.3]"}),
            "--resume: results.nc: has 2 conditions or more, the scenario has 1" + advice);
}

TEST_F(Resume, IsRefusedWhereADataFileWasEdited) {
  const std::string rows = (folder_ / "rows.csv").string();
  const Sets sets = {"data.design={ law = \"file\", path = \"" + rows + "\" }"};
  std::ofstream(rows) << "0,2,1\n1,0,1\n2,2,0\n";
  keep(sets);
  EXPECT_EQ(refusal(sets), "accepted");
  std::ofstream(rows) << "0,2,1\n1,0,1\n2,2,1\n";
  EXPECT_EQ(
      refusal(sets),
      "--resume: results.nc: condition #0 had other numbers: a data file was edited" + advice);
}

TEST_F(Resume, IsRefusedToAnotherProgram) {
  const Scenario scenario = scenario_of();
  keep({});
  Provenance other = provenance();
  other.git = "0000000";
  EXPECT_EQ(refusal_here([&] { read_checkpoint(path(), scenario, other); }),
            "--resume: results.nc: is of another headlab (git " + provenance().git +
                ", this one is 0000000)" + advice);
}

TEST_F(Resume, IsRefusedWhereTheFileIsDamaged) {
  std::ofstream(path()) << "no NetCDF";
  EXPECT_EQ(refusal(Sets{}).rfind("--resume: results.nc: no headlab results (", 0), 0u);
  const Scenario scenario = scenario_of();
  const RunResult good = run(scenario, {.backend = "cpu"});
  RunResult bad = good;
  bad.conditions[0].tree = MomentTree(good.conditions[0].tree.layout());
  Moments moments = good.conditions[0].tree.nodes()[0].moments;
  moments.count = 1;
  moments.mean[0] = NAN;
  bad.conditions[0].tree.append(moments);
  keep(scenario, bad);
  EXPECT_EQ(refusal(Sets{}), "--resume: results.nc: is damaged" + advice);
  // One bit of one mean.
  keep(scenario, good);
  std::ostringstream text;
  text << std::ifstream(path()).rdbuf();
  std::string bytes = text.str();
  const double mean = good.conditions[0].tree.nodes()[3].moments.mean[0];
  const std::string number(reinterpret_cast<const char*>(&mean), sizeof mean);
  const std::size_t at = bytes.find(number);
  ASSERT_NE(at, std::string::npos);
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  std::ofstream(path()) << bytes;
  EXPECT_EQ(refusal(Sets{}),
            "--resume: results.nc: is damaged: its bytes have another sum" + advice);
}

TEST_F(Resume, IsRefusedWhereExtremesAreNotThoseOfTheRun) {
  const Scenario scenario = scenario_of();
  RunResult result = run(scenario, {.backend = "cpu"});
  MomentTree& tree = result.conditions[0].tree;
  Extremes beyond = tree.kept_extremes().value();
  beyond.max_error.add({1e9, tree.count()}, max_kept_extremes);
  EXPECT_THROW(MomentTree(tree.layout(), tree.nodes(), beyond), std::invalid_argument);
  Extremes ninth = tree.kept_extremes().value();
  ninth.max_error.add({1e-9, 0}, max_kept_extremes);
  EXPECT_THROW(MomentTree(tree.layout(), tree.nodes(), ninth), std::invalid_argument);
  EXPECT_EQ(MomentTree(tree.layout(), tree.nodes(), tree.kept_extremes()).extremes(),
            tree.extremes());
}

TEST_F(Resume, OfAFileWithoutExtremesKnowsNone) {
  const Scenario first = scenario_of({"run.replicates=1027"});
  RunResult old = run(first, {.backend = "cpu"});
  ASSERT_TRUE(old.conditions[0].tree.extremes());
  MomentTree& tree = old.conditions[0].tree;
  tree = MomentTree(tree.layout(), tree.nodes());
  keep(first, old);
  const NetcdfInput file(path());
  EXPECT_FALSE(file.root().has_group("extremes"));
  const RunResult resumed = go_on({});
  EXPECT_TRUE(resumed.outcome.complete);
  EXPECT_FALSE(resumed.conditions[0].tree.extremes());
  const RunResult whole = run(scenario_of(), {.backend = "cpu"});
  EXPECT_EQ(resumed.conditions[0].estimates.mse.value, whole.conditions[0].estimates.mse.value);
}

}  // namespace
}  // namespace headlab
