// SPDX-License-Identifier: Apache-2.0
#include "engine/results/results_netcdf.h"

#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <signal.h>
#include <sys/resource.h>

#include <gtest/gtest.h>

#include "engine/files/atomic_file.h"
#include "engine/files/error.h"
#include "engine/files/netcdf/file.h"
#include "engine/moments/measures.h"
#include "engine/results/results_reader.h"
#include "engine/scenario/scenario.h"
#include "engine/testing/folder_test.h"
#include "engine/testing/hand_made_result.h"
#include "engine/testing/refusal.h"

namespace headlab {
namespace {

namespace fs = std::filesystem;

class Results : public FolderTest {
 protected:
  std::string path() const { return at("results.nc"); }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }
  RunResult write(const Scenario& scenario, std::uint64_t replicates = 1000) const {
    RunResult result = hand_made::result(scenario, replicates);
    write_results(path(), scenario, result, hand_made::indices(result), hand_made::program);
    return result;
  }
};

std::vector<std::uint64_t> bits(const std::vector<double>& numbers) {
  std::vector<std::uint64_t> out;
  for (const double number : numbers) out.push_back(std::bit_cast<std::uint64_t>(number));
  return out;
}

void expect_same(const StoredCondition& stored, const ConditionResult& written) {
  EXPECT_EQ(stored.layout, written.tree.layout());
  EXPECT_EQ(bits(stored.head_weights), bits(written.plan.head_weights));
  EXPECT_EQ(bits(stored.query_points), bits(written.plan.query_points));
  EXPECT_EQ(bits(stored.truth), bits(written.plan.truth));
  const std::vector<Node>& nodes = written.tree.nodes();
  ASSERT_EQ(stored.nodes.size(), nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    EXPECT_EQ(stored.nodes[i].first, nodes[i].first);
    EXPECT_EQ(stored.nodes[i].moments.count, nodes[i].moments.count);
    EXPECT_EQ(stored.nodes[i].moments.windows, nodes[i].moments.windows);
    EXPECT_EQ(bits(stored.nodes[i].moments.mean), bits(nodes[i].moments.mean));
    EXPECT_EQ(bits(stored.nodes[i].moments.comoment), bits(nodes[i].moments.comoment));
  }
}

TEST_F(Results, MeasuresBearNoNameThatAFileHas) {
  const Scenario scenario = hand_made::scenario({});
  write(scenario);
  const NetcdfInput file(path());
  std::size_t refused = 0;
  for (const std::string& name : file.root().variables()) {
    // Swept keys make way for a figure of their name.
    if (name.find('.') != std::string::npos || name == "bandwidth") continue;
    const Value measures = parse_toml("[measures]\n" + name + " = \"2 * mse\"\n", "m");
    EXPECT_NE(refusal_line([&] { read_measures(measures); }), "accepted") << name;
    ++refused;
  }
  EXPECT_GT(refused, 20U);
  const Value free = parse_toml("[measures]\nshare = \"2 * mse\"\n", "m");
  EXPECT_EQ(refusal_line([&] { read_measures(free); }), "accepted");
}

TEST_F(Results, ReadBackWithTheSameBits) {
  for (const char* estimator : {"conditional", "plain"}) {
    for (const char* moments : {"pairwise", "aggregate"}) {
      // Replicates as nodes, and whole nodes with a tail.
      for (const std::uint64_t replicates : {1u, 100u, 1000u, 1029u}) {
        SCOPED_TRACE(std::string(estimator) + " " + moments + " " + std::to_string(replicates));
        const Scenario scenario =
            hand_made::scenario({"run.estimator=\"" + std::string(estimator) + "\"",
                                 "run.moments=\"" + std::string(moments) + "\""});
        const RunResult result = write(scenario, replicates);
        expect_same(read_nodes(path(), 0), result.conditions[0]);
      }
    }
  }
}

TEST_F(Results, KeepEveryConditionOfASweep) {
  const Scenario scenario = hand_made::scenario({}, "[sweep]\n\"heads.count\" = [1, 3]\n");
  const RunResult result = write(scenario);
  for (std::size_t i = 0; i < 2; ++i) expect_same(read_nodes(path(), i), result.conditions[i]);
  EXPECT_THROW(read_nodes(path(), 2), InvalidInput);
}

TEST_F(Results, KeepConditionsOfOneLayoutInTheRoot) {
  // Points and heads of fewer dimensions than others leave the rest undefined.
  const Scenario scenario = hand_made::scenario(
      {}, "[sweep]\n\"heads.dim\" = [1, 2]\n\"heads.kernel.bandwidth\" = [0.5, 1]\n");
  const RunResult result = write(scenario);
  for (std::size_t i = 0; i < 4; ++i) expect_same(read_nodes(path(), i), result.conditions[i]);
  const NetcdfInput file(path());
  const NetcdfGroup root = file.root();
  const std::vector<ResultsBlock> blocks = results_blocks(root);
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(blocks[0].conditions, (std::vector<std::size_t>{0, 1, 2, 3}));
  EXPECT_EQ(root.shape("head_covariance_mcse"), (std::vector<std::size_t>{4, 2, 2, 2}));
  const ConditionEstimates& last = result.conditions[3].estimates;
  EXPECT_EQ(root.doubles("head_bias").back(), last.queries[1].head_bias[1].value);
  EXPECT_EQ(root.doubles("head_covariance_mcse").back(), last.queries[1].head_covariance[3].mcse);
  EXPECT_EQ(root.doubles("query_mse_mcse").back(), last.queries[1].mse.mcse);
  const std::vector<double> projections = root.doubles("projections");  // [4][2][4][2]
  EXPECT_EQ(projections[0], result.conditions[0].plan.projections[0]);
  EXPECT_TRUE(std::isnan(projections[1]));
  EXPECT_EQ(projections.back(), result.conditions[3].plan.projections.back());
  std::size_t nodes = 0;
  for (const ConditionResult& condition : result.conditions) {
    nodes += condition.tree.nodes().size();
  }
  EXPECT_EQ(root.find_group("nodes").dimension("node"), nodes);
}

TEST_F(Results, KeepAGroupForEachMomentLayout) {
  const Scenario scenario = hand_made::scenario(
      {}, "[sweep]\n\"heads.kernel.bandwidth\" = [0.5, 1]\n\"heads.count\" = [1, 3]\n");
  const RunResult result = write(scenario);
  const NetcdfInput file(path());
  const NetcdfGroup root = file.root();
  EXPECT_FALSE(root.has_group("nodes"));
  EXPECT_FALSE(root.has_variable("head_bias"));
  const std::vector<ResultsBlock> blocks = results_blocks(root);
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks[0].conditions, (std::vector<std::size_t>{0, 2}));
  EXPECT_EQ(blocks[1].conditions, (std::vector<std::size_t>{1, 3}));
  const NetcdfGroup& three = blocks[1].group;
  EXPECT_EQ(three.shape("head_bias"), (std::vector<std::size_t>{2, 2, 3}));
  EXPECT_EQ(three.doubles("head_bias").back(),
            result.conditions[3].estimates.queries[1].head_bias[2].value);
  EXPECT_TRUE(std::isnan(root.doubles("output_correlation")[0]));
  EXPECT_EQ(root.doubles("mse")[1], result.conditions[1].estimates.mse.value);
  EXPECT_EQ(root.doubles("mse_mcse")[1], result.conditions[1].estimates.mse.mcse);
  EXPECT_EQ(root.doubles("index_chordal"), (std::vector<double>(4, 0.75)));
  EXPECT_EQ(root.doubles("index_output_ceiling"), (std::vector<double>(4, 2)));
  EXPECT_FALSE(root.has_variable("index_chordal_mcse"));
  EXPECT_EQ(root.integers("heads.count"), (std::vector<std::int64_t>{1, 3, 1, 3}));
  EXPECT_EQ(root.text_attribute("swept"), "heads.kernel.bandwidth heads.count");
}

TEST_F(Results, NameSweptCoordinatesByTheirLastPartWhereItIsFree) {
  // `dim` is a dimension, `seed` a variable; two keys end in `law`.
  const Scenario scenario = hand_made::scenario(
      {},
      "[sweep]\nzip = true\n\"data.n\" = [10, 20]\n\"heads.dim\" = [1, 2]\n\"run.seed\" = [1, 2]\n"
      "\"data.noise.law\" = [\"normal\", \"laplace\"]\n"
      "\"heads.weights.law\" = [\"uniform\", \"uniform\"]\n");
  write(scenario);
  const NetcdfInput file(path());
  const NetcdfGroup root = file.root();
  EXPECT_EQ(root.integers("n"), (std::vector<std::int64_t>{10, 20}));
  EXPECT_EQ(root.integers("heads_dim"), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(root.integers("run_seed"), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(root.texts("data_noise_law"), (std::vector<std::string>{"normal", "laplace"}));
  EXPECT_TRUE(root.has_variable("heads_weights_law"));
  EXPECT_FALSE(root.has_variable("law"));
  EXPECT_EQ(root.integers("data.n"), root.integers("n"));
}

TEST_F(Results, KeepSweptNumbersAndTexts) {
  const Scenario scenario =
      hand_made::scenario({},
                          "[sweep]\n\"run.estimator\" = [\"plain\", \"conditional\"]\n"
                          "\"heads.kernel.bandwidth\" = [0.5, 2]\n");
  write(scenario);
  const NetcdfInput file(path());
  EXPECT_EQ(file.root().doubles("heads.kernel.bandwidth"), (std::vector<double>{0.5, 2, 0.5, 2}));
  EXPECT_THROW(file.root().integers("run.estimator"), NetcdfError);  // texts
}

TEST_F(Results, KeepWholeSectionsThatAreSwept) {
  const std::string queries =
      "{ law = \"points\", points = [[0, 0, 0, 0]] }, { law = \"points\", points = [[1, 0, 0, 0]] "
      "}";
  const std::string heads =
      "{ count = 1, dim = 1, subspaces = { law = \"orthogonal\" }, kernel = { law = \"gaussian\", "
      "bandwidth = 1 } }";
  const Scenario scenario = hand_made::scenario(
      {"sweep.\"queries\"=[" + queries + "]", "sweep.\"heads\"=[" + heads + "]"}, "");
  write(scenario);
  const NetcdfInput file(path());
  EXPECT_EQ(file.root().integers("queries"), (std::vector<std::int64_t>{1, 1}));
  EXPECT_EQ(file.root().integers("heads"), (std::vector<std::int64_t>{1, 1}));
  EXPECT_EQ(file.root().text_attribute("swept"), "swept_queries swept_heads");
}

TEST_F(Results, SayWhatMadeThem) {
  // Longer than the 64 kB that HDF5 keeps in one header.
  const std::string comment = "# " + std::string(200000, 'x') + " ±\n";
  const Scenario scenario = hand_made::scenario({"run.seed=11", "data.n=21"}, comment);
  write(scenario);
  const NetcdfInput file(path());
  const NetcdfGroup root = file.root();
  EXPECT_EQ(root.text_attribute("scenario_text"), hand_made::scenario_text + comment);
  EXPECT_EQ(root.text_attribute("set_arguments"), "run.seed=11\ndata.n=21");
  EXPECT_EQ(root.text_attribute("title"), "hand made ± \"quoted\"");
  EXPECT_EQ(root.text_attribute("headlab_version"), "9.8.7");
  EXPECT_EQ(root.text_attribute("git"), "abc1234");
  EXPECT_EQ(root.text_attribute("compiler"), "GCC 1.2.3");
  EXPECT_EQ(root.text_attribute("backend"), "cpu");
  EXPECT_EQ(root.text_attribute("simd"), "AVX2");
  EXPECT_EQ(root.text_attribute("device"), "a processor");
  EXPECT_EQ(root.integers("seed"), (std::vector<std::int64_t>{11}));
  EXPECT_EQ(root.text_attribute("created").size(), std::string("2026-01-01T00:00:00Z").size());
  EXPECT_EQ(root.texts("estimator"), std::vector<std::string>{"conditional"});
  EXPECT_NE(root.texts("parameters").at(0).find("\"n\":21"), std::string::npos);
}

TEST_F(Results, AreWholeForARunStoppedAtItsStart) {
  const Scenario scenario = hand_made::scenario();
  write(scenario, 0);
  EXPECT_TRUE(read_nodes(path(), 0).nodes.empty());

  const RunResult nothing;  // stopped before the first condition
  write_results(path(), scenario, nothing, {}, hand_made::program);
  EXPECT_THROW(read_nodes(path(), 0), InvalidInput);
}

TEST_F(Results, LeaveNothingBehindWithoutAFolder) {
  const Scenario scenario = hand_made::scenario();
  const RunResult result = hand_made::result(scenario);
  const std::string nowhere = (folder_ / "nowhere" / "results.nc").string();
  EXPECT_EQ(refusal_line<RunFailed>(
                [&] { write_results(nowhere, scenario, result, {}, hand_made::program); }),
            nowhere + ": cannot be written (No such file or directory)");
  EXPECT_TRUE(files().empty());
}

/// Lets no file grow beyond `bytes`: stands for a disk that is full.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, SIG_DFL);
  }

 private:
  rlimit before_ = {};
};

TEST_F(Results, KeepTheOldFileWhereTheDiskIsFull) {
  const Scenario scenario = hand_made::scenario();
  const RunResult result = write(scenario, 1000);
  const auto size = fs::file_size(path());
  for (const rlim_t bytes : {rlim_t{0}, rlim_t{1000}, static_cast<rlim_t>(size - 1)}) {
    const FileSizeLimit limit(bytes);
    EXPECT_EQ(
        refusal_line<RunFailed>([&] { write(scenario, 1029); }),
        path() + ": cannot be written (File too large) - free some space, or choose another place")
        << bytes;
  }
  EXPECT_EQ(files(), std::vector<std::string>{"results.nc"});
  expect_same(read_nodes(path(), 0), result.conditions[0]);
  // The control: with space there is nothing to hold it up.
  write(scenario, 1029);
  EXPECT_EQ(files(), std::vector<std::string>{"results.nc"});
}

TEST_F(Results, AreRefusedWhereTheyAreNone) {
  EXPECT_THROW(read_nodes(path(), 0), InvalidInput);
  std::ofstream(path()) << "no results";
  EXPECT_THROW(read_nodes(path(), 0), InvalidInput);

  write(hand_made::scenario());
  fs::resize_file(path(), fs::file_size(path()) / 2);
  EXPECT_THROW(read_nodes(path(), 0), InvalidInput);
}

TEST_F(Results, DoNotReplaceADevice) {
  write_atomically("/dev/null", "anything");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

}  // namespace
}  // namespace headlab
