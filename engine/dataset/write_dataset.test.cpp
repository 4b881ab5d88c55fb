// SPDX-License-Identifier: Apache-2.0
#include "engine/dataset/write_dataset.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <sys/resource.h>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/dataset/manifest.h"
#include "engine/dataset/replacement.h"
#include "engine/files/error.h"
#include "engine/files/netcdf/file.h"
#include "engine/files/sha256.h"
#include "engine/run/learned_heads.h"
#include "engine/scenario/world.h"
#include "engine/testing/folder_test.h"
#include "engine/testing/refusal.h"
#include "kernels/backends.h"
#include "kernels/plan.h"
#include "kernels/reference/ensemble.h"
#include "kernels/reference/training_set.h"
#include "kernels/statistics/stopping.h"
#include "kernels/testing/played_machine.h"

namespace headlab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// No law is the simplest of its kind, and n no multiple of anything.
const std::string text =
    World{
        .n = "83",
        .design = "{ law = 'student_t', dim = 3, df = 5 }",
        .regression =
            "{ law = 'cosines', amplitude = [1.0], frequency = [[1.5, 0.5, 0.2]], phase = [0.1] }",
        .noise = "{ law = 'heteroscedastic', sd = 0.5, slope = 1.5, direction = [1, 0, 0] }",
        .heads = "count = 3\ndim = 2\nsubspaces = { law = 'haar' }",
        .kernel = "{ law = 'epanechnikov', bandwidth = 1.2 }",
        .points = "[[0, 0, 0], [0.5, 0, -0.5]]",
        .run = "seed = 7\nreplicates = 11\nestimator = 'plain'"}
        .text();

const Provenance program = {"1.2.3", "abc", "compiler", "release"};
constexpr DatasetRequest everything = {
    .format = DatasetFormat::npy, .shards = 4, .estimates = true, .weights = true};

/// The numbers of an NPY file.
template <class Number>
std::vector<Number> numbers(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  const std::size_t begin = bytes.find('\n') + 1;
  std::vector<Number> values((bytes.size() - begin) / sizeof(Number));
  std::memcpy(values.data(), bytes.data() + begin, values.size() * sizeof(Number));
  return values;
}

/// Every file below a folder with its bytes.
std::map<std::string, std::string> tree(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    files[entry.path().lexically_relative(folder).string()] =
        std::string(std::istreambuf_iterator<char>(file), {});
  }
  return files;
}

class WriteDataset : public FolderTest {
 protected:
  DatasetResult write(const std::string& name, const DatasetRequest& request,
                      const Session& session = {.threads = 2},
                      const std::vector<std::string>& sets = {}, const std::string& scenario = text,
                      const DatasetOptions& options = {}) const {
    fs::create_directories(at(name));
    return write_dataset(plan_dataset(parse_scenario(scenario, "test", sets), request), at(name),
                         session, options, program);
  }
  std::string refusal(const std::string& name, const DatasetRequest& request,
                      const Session& session = {}, const std::vector<std::string>& sets = {},
                      const DatasetOptions& options = {}) const {
    return refusal_line([&] { write(name, request, session, sets, text, options); });
  }
};

/// What a shard says of one replicate, as the reference backend takes it.
TrainingSet sample_of(const fs::path& shard, const Plan& plan, std::size_t replicate) {
  const auto part = [&](const auto& all, std::size_t width) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(replicate * plan.n * width);
    return std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(plan.n * width));
  };
  TrainingSet sample;
  sample.x = part(numbers<float>(shard / "X.npy"), static_cast<std::size_t>(plan.d));
  sample.regression = part(numbers<double>(shard / "Y.npy"), 1);  // Y and no noise on top
  sample.noise_sd = part(numbers<double>(shard / "noise_sd.npy"), 1);
  sample.noise.assign(sample.regression.size(), 0.0);
  return sample;
}

TEST_F(WriteDataset, HoldsTheDrawsOfTheReferenceBackendToTheBit) {
  write("d", everything);
  const Plan plan = make_plan(parse_scenario(text, "test").conditions[0]);
  const std::size_t per_query = plan.layout().per_query();
  const std::vector<std::uint64_t> firsts = {0, 3, 6, 9};
  std::size_t seen = 0;
  for (std::uint64_t replicate = 0; replicate < 11; ++replicate) {
    const std::uint64_t shard = std::min<std::uint64_t>(replicate / 3, 3);
    const auto within = static_cast<std::size_t>(replicate - firsts[shard]);
    const fs::path path = at("d/condition_000/shard_00" + std::to_string(shard));
    EXPECT_EQ(numbers<std::int64_t>(path / "replicate.npy")[within],
              static_cast<std::int64_t>(replicate));
    // What the reference backend itself makes of this replicate.
    std::vector<Moments> moments(1);
    make_backend("reference")->worker(plan)->run({replicate, 1, 1}, moments);
    TrainingSet sample = sample_of(path, plan, within);
    WindowCounts windows;
    const auto recomputed = [&] { return reference_statistics(plan, sample, windows); };
    EXPECT_EQ(recomputed(), moments[0].mean);
    const std::vector<double> estimates = numbers<double>(path / "head_estimates.npy");
    const std::vector<double> weights = numbers<double>(path / "attention_weights.npy");
    for (int q = 0; q < plan.queries; ++q) {
      for (int h = 0; h < plan.heads; ++h) {
        const auto row =
            (within * 2 + static_cast<std::size_t>(q)) * 3 + static_cast<std::size_t>(h);
        EXPECT_EQ(
            estimates[row],
            moments[0].mean[static_cast<std::size_t>(q) * per_query + static_cast<std::size_t>(h)]);
        const auto begin = weights.begin() + static_cast<std::ptrdiff_t>(row * plan.n);
        EXPECT_EQ(std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(plan.n)),
                  nw_weights(plan, sample, h, q, windows));
      }
    }
    // And m and the scale, which the estimates do not show.
    const TrainingSet drawn = draw_training_set(plan, replicate);
    const std::vector<double> m = numbers<double>(path / "m.npy");
    EXPECT_TRUE(std::equal(drawn.regression.begin(), drawn.regression.end(),
                           m.begin() + static_cast<std::ptrdiff_t>(within * plan.n)));
    EXPECT_EQ(sample.noise_sd, drawn.noise_sd);
    // The control: one bit of one coordinate of the point that weighs most.
    const std::vector<double> of_first = nw_weights(plan, sample, 0, 0, windows);
    const auto nearest = static_cast<std::size_t>(
        std::max_element(of_first.begin(), of_first.end()) - of_first.begin());
    double& coordinate = sample.x[nearest * static_cast<std::size_t>(plan.d)];
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(coordinate));
    coordinate = static_cast<double>(std::bit_cast<float>(bits ^ 1u));
    seen += recomputed() != moments[0].mean ? 1 : 0;
  }
  EXPECT_EQ(seen, 11u);
}

TEST_F(WriteDataset, HoldsTheSameBytesForAnyThreadsShardsAndFormat) {
  write("one", {.format = DatasetFormat::npy, .shards = 1, .estimates = true, .weights = true},
        {.threads = 1});
  write("four", everything, {.threads = 3});
  write("again", everything, {.threads = 1});
  write("nc", {.shards = 4, .estimates = true, .weights = true}, {.threads = 3});
  write("nc again", {.shards = 4, .estimates = true, .weights = true}, {.threads = 1});
  EXPECT_EQ(tree(at("four")), tree(at("again")));
  EXPECT_EQ(tree(at("nc")), tree(at("nc again")));
  for (const char* name :
       {"X", "Y", "m", "noise_sd", "replicate", "head_estimates", "attention_weights"}) {
    const std::string file = std::string("/") + name + ".npy";
    // Compared as the bytes they are, whatever the type.
    std::vector<char> joined, of_netcdf;
    for (int shard = 0; shard < 4; ++shard) {
      const auto part =
          numbers<char>(at("four/condition_000/shard_00" + std::to_string(shard) + file));
      joined.insert(joined.end(), part.begin(), part.end());
      const NetcdfInput input(at("nc/condition_000/shard_00" + std::to_string(shard) + ".nc"));
      const std::vector<double> values = input.root().doubles(name);
      for (const double value : values) {
        const auto append = [&](auto number) {
          const auto* bytes = reinterpret_cast<const char*>(&number);
          of_netcdf.insert(of_netcdf.end(), bytes, bytes + sizeof number);
        };
        if (std::string(name) == "X") {
          append(static_cast<float>(value));
        } else if (std::string(name) == "replicate") {
          append(static_cast<std::int64_t>(value));
        } else {
          append(value);
        }
      }
    }
    EXPECT_EQ(joined, numbers<char>(at(std::string("one/condition_000/shard_000") + file))) << name;
    EXPECT_EQ(joined, of_netcdf) << name;
  }
  // The control: another seed gives other bytes.
  write("other", everything, {.threads = 1}, {"run.seed=8"});
  EXPECT_NE(tree(at("other"))["condition_000/shard_000/X.npy"],
            tree(at("four"))["condition_000/shard_000/X.npy"]);
}

TEST_F(WriteDataset, DrawsLongTrainingSetsInPieces) {
  // More points than are drawn at once: 1 MiB are 29127 points of 3 coordinates.
  const std::vector<std::string> sets = {"data.n=250001", "run.replicates=2"};
  write("npy", {.format = DatasetFormat::npy, .shards = 2}, {.threads = 2}, sets);
  write("nc", {.shards = 1}, {.threads = 2}, sets);
  const Plan plan = make_plan(parse_scenario(text, "test", sets).conditions[0]);
  const std::vector<double> both =
      NetcdfInput(at("nc/condition_000/shard_000.nc")).root().doubles("Y");
  for (std::size_t r = 0; r < 2; ++r) {
    const TrainingSet drawn = draw_training_set(plan, r);
    const std::vector<double> y =
        numbers<double>(at("npy/condition_000/shard_00" + std::to_string(r)) + "/Y.npy");
    ASSERT_EQ(y.size(), plan.n);
    for (std::size_t i = 0; i < plan.n; ++i) {
      ASSERT_EQ(y[i], drawn.regression[i] + drawn.noise[i]) << i;
      ASSERT_EQ(both[r * plan.n + i], y[i]) << i;
    }
  }
}

TEST_F(WriteDataset, HoldsSequencesWhereverTheyAreCut) {
  std::ofstream rows(at("rows.csv"));
  for (int i = 0; i < 60; ++i) rows << i << "," << i * i % 61 << "," << i % 7 << "\n";
  rows.close();
  // Pieces of 29120 points: those in the middle of a path know what came before.
  const std::vector<std::vector<std::string>> all = {
      {"data.n=60001", "data.design={ law = \"normal\", dim = 3 }",
       "data.sequence={ law = \"ar1\", correlation = 0.9 }"},
      {"data.n=40", "data.design={ law = \"file\", path = \"" + at("rows.csv") + "\" }",
       "data.sequence={ law = \"rows\" }"}};
  for (const std::vector<std::string>& given : all) {
    std::vector<std::string> sets = given;
    sets.push_back("run.replicates=2");
    write(sets[0], {.format = DatasetFormat::npy, .shards = 1}, {.threads = 2}, sets);
    const Plan plan = make_plan(parse_scenario(text, "test", sets).conditions[0]);
    const std::vector<float> x = numbers<float>(at(sets[0] + "/condition_000/shard_000/X.npy"));
    std::vector<float> drawn;
    for (const std::uint64_t replicate : {0, 1}) {
      for (const double number : draw_training_set(plan, replicate).x) {
        drawn.push_back(static_cast<float>(number));
      }
    }
    EXPECT_TRUE(x == drawn) << sets[0];
    // The control: without the sequence the points are others.
    sets.push_back("data.sequence={ law = \"independent\" }");
    const Plan independent = make_plan(parse_scenario(text, "test", sets).conditions[0]);
    EXPECT_NE(draw_training_set(independent, 1).x, draw_training_set(plan, 1).x);
  }
}

TEST_F(WriteDataset, MakesOneShardAloneAsAmongTheOthers) {
  write("all", everything);
  const DatasetResult result = write("d", everything, {}, {}, text, {.only_shard = 2});
  EXPECT_EQ(result.written, 1u);
  std::map<std::string, std::string> all = tree(at("all"));
  std::map<std::string, std::string> alone = tree(at("d"));
  EXPECT_EQ(Json::parse(alone["manifest.json"])["complete"], false);
  EXPECT_EQ(alone.size(), 11u);  // ten variables and the manifest
  alone.erase("manifest.json");
  for (const auto& [name, bytes] : alone) EXPECT_EQ(bytes, all[name]) << name;
  // The others are made separately, and the whole is what it is in one go.
  EXPECT_EQ(write("d", everything).work.kept, 1u);
  EXPECT_EQ(tree(at("d")), all);
  // One replicate alone: as many shards as replicates.
  DatasetRequest single = everything;
  single.shards = 11;
  write("single", single, {}, {}, text, {.only_shard = 4});
  const std::vector<float> x = numbers<float>(at("single/condition_000/shard_004/X.npy"));
  const std::vector<float> of_all = numbers<float>(at("all/condition_000/shard_001/X.npy"));
  EXPECT_TRUE(std::equal(x.begin(), x.end(), of_all.begin() + 83 * 3));
}

TEST_F(WriteDataset, KeepsWhatIsIntactAndWritesTheRestAgain) {
  for (const DatasetFormat format : {DatasetFormat::npy, DatasetFormat::netcdf}) {
    const std::string name = name_of(format);
    const DatasetRequest request = {.format = format, .shards = 4};
    EXPECT_EQ(write(name, request).written, 4u);
    const auto whole = tree(at(name));
    const fs::path shard =
        at(name + "/condition_000/shard_002" + (format == DatasetFormat::npy ? "/Y.npy" : ".nc"));
    const auto stays = fs::last_write_time(at(name + "/manifest.json"));
    EXPECT_EQ(write(name, request).work.kept, 4u);
    EXPECT_EQ(fs::last_write_time(at(name + "/manifest.json")), stays);

    const std::vector<std::function<void()>> damages = {
        [&] {  // one bit
          std::fstream file(shard, std::ios::in | std::ios::out | std::ios::binary);
          file.seekg(1000);
          const int byte = file.get();
          file.seekp(1000);
          file.put(static_cast<char>(byte ^ 1));
        },
        [&] { fs::resize_file(shard, fs::file_size(shard) - 1); },
        [&] { fs::resize_file(shard, fs::file_size(shard) + 1); }, [&] { fs::remove(shard); }};
    for (const auto& damage : damages) {
      damage();
      EXPECT_NE(tree(at(name)), whole);
      const DatasetResult result = write(name, request);
      EXPECT_EQ(result.work.kept, 3u);
      EXPECT_EQ(result.work.damaged, 1u);
      EXPECT_EQ(result.written, 1u);
      EXPECT_EQ(tree(at(name)), whole);
    }
  }
}

TEST_F(WriteDataset, RecordsWhatItWrote) {
  const std::vector<std::string> sets = {R"(sweep."data.n"=[20, 83])"};
  write("d", {.format = DatasetFormat::npy, .shards = 2}, {.threads = 2}, sets);
  const Json manifest = Json::parse(tree(at("d"))["manifest.json"]);
  EXPECT_EQ(manifest["headlab"]["version"], "1.2.3");
  EXPECT_EQ(manifest["complete"], true);
  EXPECT_EQ(manifest["seed"], 7);
  EXPECT_EQ(manifest["scenario_text"], text);
  EXPECT_EQ(manifest["set_arguments"], sets);
  ASSERT_EQ(manifest["conditions"].size(), 2u);
  const Json& condition = manifest["conditions"][1];
  EXPECT_EQ(condition["parameters"]["data"]["n"], 83);
  EXPECT_EQ(condition["variables"]["X"]["shape"], Json({11, 83, 3}));
  EXPECT_EQ(condition["variables"]["X"]["dtype"], "float32");
  std::uint64_t bytes = 0;
  std::size_t files = 0;
  for (const Json& of : manifest["conditions"]) {
    for (const Json& shard : of["shards"]) {
      for (const Json& file : shard["files"]) {
        const std::string path = at("d/" + file["name"].get<std::string>());
        EXPECT_EQ(file["bytes"], fs::file_size(path));
        EXPECT_EQ(file["sha256"], sha256_of_file(path));
        bytes += fs::file_size(path);
        ++files;
      }
    }
  }
  EXPECT_EQ(files, 2u * 2 * 8);
  EXPECT_EQ(manifest["bytes"], bytes);
  EXPECT_EQ(condition["shards"][1]["first_replicate"], 6);
  EXPECT_EQ(condition["shards"][1]["replicates"], 5);
}

TEST_F(WriteDataset, TellsAManifestThatCannotBeReadFromNone) {
  EXPECT_FALSE(files_of_manifest(at("none")).complete);
  FolderTest::write("other", "no manifest");
  EXPECT_FALSE(files_of_manifest(at("other")).complete);
  std::filesystem::create_directory(at("folder"));
  EXPECT_EQ(refusal_here([&] { files_of_manifest(at("folder")); }),
            "folder: is a directory, needs a file");
}

TEST_F(WriteDataset, TakesUnresolvedWeightsBecauseNothingDependsOnThem) {
  write("uniform", everything);
  write("optimal", everything, {.threads = 2}, {"heads.weights={law=\"optimal\"}"});
  auto uniform = tree(at("uniform"));
  auto optimal = tree(at("optimal"));
  EXPECT_NE(uniform["manifest.json"], optimal["manifest.json"]);
  uniform.erase("manifest.json");
  optimal.erase("manifest.json");
  EXPECT_EQ(uniform, optimal);
}

TEST_F(WriteDataset, HoldsHeadsThatAreLearnedOnce) {
  const std::vector<std::string> sets = {
      "heads.subspaces={law=\"learned\",matrices=\"query_key\",steps=10,batch=4,held_out=0}",
      "heads.kernel={law=\"softmax\",temperature=1.0}"};
  write("d", everything, {.threads = 2}, sets);
  const Condition condition = parse_scenario(text, "test", sets).conditions[0];
  const Session session{.backend = "cpu", .threads = 1};
  const Plan plan = make_plan(condition, learn_heads(condition, session).value());
  const fs::path shard = folder_ / "d/condition_000/shard_000";
  EXPECT_EQ(numbers<double>(shard / "projections.npy"), plan.projections);
  EXPECT_EQ(numbers<double>(shard / "query_projections.npy"), plan.query_projections);
}

TEST_F(WriteDataset, RefusesHeadsThatEveryReplicateLearns) {
  const std::string line =
      refusal("d", everything, {},
              {"heads.subspaces={law=\"learned\",fit=\"per_replicate\",held_out=0}",
               "heads.kernel={law=\"gaussian\",bandwidth=1.0}", "run.estimator=\"plain\""});
  EXPECT_TRUE(
      line.ends_with("heads.subspaces.fit: heads that every replicate learns cannot be part of a "
                     "data set - use fit = \"once\""))
      << line;
}

TEST_F(WriteDataset, RefusesTheFolderOfAnotherDataSet) {
  write("d", everything);
  const auto before = tree(at("d"));
  const std::string path = at("d/manifest.json");
  const auto differs = [&](const std::string& what, const std::string& where = "d") {
    return at(where + "/manifest.json") + ": is of another data set (" + what +
           " differs) - write --overwrite, or choose another folder";
  };
  DatasetRequest other = everything;
  const std::vector<std::string> two = {R"(sweep."data.n"=[83, 20])"};
  write("two", everything, {}, two);
  EXPECT_EQ(refusal("two", everything), differs("conditions/1", "two"));
  EXPECT_EQ(refusal("d", everything, {}, two), differs("conditions/-"));
  write("seed", everything, {}, {"heads.subspaces.seed=0"});
  const std::string seed = "conditions/0/parameters/heads/subspaces/seed";
  EXPECT_EQ(refusal("seed", everything), differs(seed, "seed"));
  EXPECT_EQ(refusal("d", everything, {}, {"heads.subspaces.seed=0"}), differs(seed));
  EXPECT_EQ(refusal("d", other, {}, {"scenario.aims=\"others\""}),
            "accepted");  // no bit depends on it
  other.format = DatasetFormat::netcdf;
  EXPECT_EQ(refusal("d", other), differs("format"));
  other = everything;
  other.shards = 5;
  EXPECT_EQ(refusal("d", other), differs("conditions/0/shards"));
  other = everything;
  other.weights = false;
  EXPECT_NE(refusal("d", other).find("attention_weights"), std::string::npos);
  EXPECT_EQ(tree(at("d")), before);
  for (const char* broken : {"", "{", "[]", "{\"headlab\": 7}", "null"}) {
    std::ofstream(path) << broken;
    EXPECT_EQ(
        refusal("d", everything),
        path +
            ": is not a manifest of headlab dataset - write --overwrite, or choose another folder");
  }
}

TEST_F(WriteDataset, ReplacesAnotherDataSetOnceItIsComplete) {
  DatasetRequest old = everything;
  old.shards = 5;
  write("d", old);
  const std::string notes = "d/condition_000/shard_002/notes.txt";
  std::ofstream(at(notes)) << "of the user";
  auto before = tree(at("d"));
  write("whole", everything);
  auto whole = tree(at("whole"));
  ASSERT_LT(before.size(), 2 * whole.size());
  DatasetOptions options{.only_shard = 0, .overwrite = true};
  // Shard by shard: the old set stays as it was.
  for (std::uint64_t shard = 0; shard < 3; ++shard) {
    options.only_shard = shard;
    const DatasetResult one = write("d", everything, {}, {}, text, options);
    EXPECT_EQ(one.folder, at("d/.headlab-new"));
    auto now = tree(at("d"));
    std::erase_if(now, [](const auto& file) { return file.first.starts_with(".headlab-new"); });
    EXPECT_EQ(now, before);
  }
  options.only_shard = 3;
  const DatasetResult last = write("d", everything, {}, {}, text, options);
  EXPECT_EQ(last.folder, at("d"));
  EXPECT_EQ(last.left, std::vector<std::string>{"condition_000/shard_002/notes.txt"});
  whole["condition_000/shard_002/notes.txt"] = "of the user";
  EXPECT_EQ(tree(at("d")), whole);
}

TEST_F(WriteDataset, RefusesWhatHasNoRoom) {
  const std::string disk = refusal("d", {}, {.threads = 1}, {"run.replicates=1e11"});
  EXPECT_TRUE(disk.starts_with("--out: " + at("d") + ": needs ")) << disk;
  EXPECT_NE(disk.find("free on the disk - lower --replicates"), std::string::npos) << disk;
  struct rlimit limit = {};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  const struct rlimit low = {1 << 10, limit.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &low);
  const std::string file = refusal("d", {});
  ::setrlimit(RLIMIT_FSIZE, &limit);
  EXPECT_TRUE(file.starts_with("--shards: a file has ")) << file;
  const test::PlayedMachine small{{"HEADLAB_MEMORY_LIMIT", "1000000"}};
  const std::string memory = refusal("d", {}, {.threads = 2});
  EXPECT_NE(memory.find("of memory for 2 threads"), std::string::npos) << memory;
  EXPECT_TRUE(tree(at("d")).empty());
}

TEST_F(WriteDataset, LeavesNothingHalfWritten) {
  // The folder of the second condition cannot be made.
  fs::create_directories(at("d"));
  std::ofstream(at("d/condition_001")) << "in the way";
  const std::vector<std::string> sets = {R"(sweep."data.n"=[20, 83])"};
  EXPECT_THROW(write("d", everything, {.threads = 2}, sets), RunFailed);
  auto files = tree(at("d"));
  EXPECT_EQ(files.size(), 1u + 1 + 4 * 10);
  EXPECT_EQ(Json::parse(files["manifest.json"])["complete"], false);
  for (const auto& [name, bytes] : files) EXPECT_EQ(name.find(".tmp-"), std::string::npos) << name;
  fs::remove(at("d/condition_001"));
  EXPECT_EQ(write("d", everything, {.threads = 2}, sets).work.kept, 4u);
  write("whole", everything, {.threads = 2}, sets);
  EXPECT_EQ(tree(at("d")), tree(at("whole")));
}

TEST_F(WriteDataset, StopsWhereItIsToldAndGoesOnFromThere) {
  std::atomic<bool> stop = false;
  // The first word comes when the first part is drawn.
  const DatasetResult stopped =
      write("d", everything,
            {.threads = 2, .stop = &stop, .report = [&](const Progress&) { stop = true; }});
  EXPECT_TRUE(stopped.outcome.interrupted);
  EXPECT_LT(stopped.written, 4u);
  for (const auto& [name, bytes] : tree(at("d"))) {
    EXPECT_EQ(name.find(".tmp-"), std::string::npos) << name;
  }
  const DatasetResult rest = write("d", everything);
  EXPECT_FALSE(rest.outcome.interrupted);
  EXPECT_EQ(rest.work.kept, stopped.written);
  write("whole", everything);
  EXPECT_EQ(tree(at("d")), tree(at("whole")));
}

TEST_F(WriteDataset, AddsToAManifestThatAnotherProcessWrote) {
  const Dataset dataset = plan_dataset(parse_scenario(text, "test"), everything);
  fs::create_directories(at("d"));
  const std::vector<FileRecord> one = {{"one", 1, "1"}}, two = {{"two", 2, "2"}};
  update_manifest(at("d"), dataset, {{{0, 1}, one}}, {}, program, {});
  const ShardRecords both = update_manifest(at("d"), dataset, {{{0, 3}, two}}, {}, program, {});
  EXPECT_EQ(both, (ShardRecords{{{0, 1}, one}, {{0, 3}, two}}));
  EXPECT_EQ(read_manifest(at("d/manifest.json"), dataset, program), both);
  EXPECT_EQ(update_manifest(at("d"), dataset, {}, {{0, 1}}, program, {}),
            (ShardRecords{{{0, 3}, two}}));
}

TEST_F(WriteDataset, IsStoppedWhileAnotherProcessHasTheManifest) {
  write("d", everything);
  fs::remove(at("d/condition_000/shard_002/X.npy"));
  std::atomic<bool> stop = false;
  const Session session{.threads = 1, .stop = &stop};
  const DatasetOptions stops{.begin = [&](const DatasetWork&) { stop = true; }};
  {
    const FolderLock other(at("d"), {});
    // The shard that was lost is to be taken out of the manifest first.
    const DatasetResult stopped = write("d", everything, session, {}, text, stops);
    EXPECT_TRUE(stopped.outcome.interrupted);
    EXPECT_EQ(stopped.written, 0u);
    EXPECT_THROW(end_replacement(at("d"), session.stop_hook()), WorkStopped);
  }
  stop = false;
  const DatasetResult rest = write("d", everything, session);
  EXPECT_TRUE(rest.outcome.complete);
  EXPECT_EQ(rest.written, 1u);
  write("whole", everything);
  EXPECT_EQ(tree(at("d")), tree(at("whole")));
}

}  // namespace
}  // namespace headlab
