// SPDX-License-Identifier: Apache-2.0
#include "engine/run/units.h"

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

#include <gtest/gtest.h>

#include "engine/files/file_lock.h"
#include "engine/run/learned_heads.h"
#include "engine/run/message_bytes.h"
#include "engine/run/run.h"
#include "engine/run/setup.h"
#include "engine/run/simulate.h"
#include "engine/scenario/law/subspaces/learned.h"
#include "engine/scenario/world.h"
#include "engine/testing/folder_test.h"
#include "engine/testing/hand_made_result.h"
#include "engine/testing/refusal.h"
#include "kernels/backends.h"

namespace headlab {
namespace {

class UnitsTest : public FolderTest {
 protected:
  UnitsPlan plan(std::uint64_t shard = 1, std::uint64_t shards = 1) const {
    return {.folder = folder_.string(),
            .command = "headlab test",
            .study = "one",
            .shard = shard,
            .shards = shards,
            .is_shard = shards > 1,
            .resumes = true};
  }
};

TEST_F(UnitsTest, OfAllShardsAreFound) {
  for (std::uint64_t shard = 1; shard <= 3; ++shard) {
    Units units(plan(shard, 3));
    for (std::uint64_t part = 0; part < 7; ++part) {
      if (!units.has_part(part)) continue;
      const std::string name = "part " + std::to_string(part);
      // Bytes of every length, with zeros among them.
      units.keep(name, std::string(part, '\0') + "x");
    }
    units.save(true);
  }
  const Units all(plan());
  EXPECT_EQ(all.found(), 7u);
  for (std::uint64_t part = 0; part < 7; ++part) {
    EXPECT_EQ(all.find("part " + std::to_string(part)), std::string(part, '\0') + "x");
  }
  EXPECT_FALSE(all.find("part 7"));
  UnitsPlan fresh = plan();
  fresh.resumes = false;
  EXPECT_FALSE(Units(fresh).find("part 1"));
}

TEST_F(UnitsTest, OfOtherStudiesAreRejected) {
  {
    Units units(plan());
    units.keep("a", "b");
    units.save(false);
  }
  const std::string path = at("units_1_of_1.nc");
  std::string bytes;
  {
    std::ifstream file(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  for (const std::size_t size : {bytes.size() / 20, std::size_t{0}}) {
    std::ofstream(path, std::ios::binary) << bytes.substr(0, size);
    const std::string rejection = refusal_line([&] { Units units(plan()); });
    EXPECT_EQ(rejection.substr(0, path.size() + 28), "--resume: " + path + ": cannot be read (");
  }
}

TEST_F(UnitsTest, HoldTreesToTheBit) {
  const Scenario scenario =
      hand_made::plane({"heads.kernel.bandwidth=0.2", "run.seed=5", "run.replicates=601"});
  const Plan one = make_plan(scenario.conditions[0]);
  const auto backend = make_backend("cpu");
  const MomentTree tree = simulate(one, *backend, 1, 601);
  const MomentTree again = tree_of(one.kept_layout(), bytes_of(tree));
  EXPECT_EQ(bytes_of(again), bytes_of(tree));
  EXPECT_EQ(again.count(), 601u);
  EXPECT_EQ(again.extremes(), tree.extremes());
  EXPECT_NE(bytes_of(simulate(one, *backend, 1, 600)), bytes_of(tree));
  const MomentLayout other{.queries = 3, .heads = 2};
  EXPECT_THROW(tree_of(other, bytes_of(tree)), std::invalid_argument);
}

std::shared_ptr<const Scenario> learned_study(const std::string& more = "") {
  return std::make_shared<const Scenario>(parse_scenario(
      World{.n = "40",
            .design = "{ law = 'normal', dim = 3 }",
            .regression = "{ law = 'linear', coefficients = [1, 1, 0] }",
            .heads = "count = 2\ndim = 1\nsubspaces = { law = 'learned', steps = 20, batch = 8, "
                     "matrices = 'query_key', start = 'haar' }\nweights = { law = 'learned' }",
            .kernel = "{ law = 'softmax', temperature = 0.7 }",
            .points = "[[0.5, 0, 0]]",
            .run = "seed = 3\nreplicates = 64"}
              .text() +
          more,
      "setup.toml"));
}

std::string all_bytes(const RunResult& result) {
  std::string all;
  for (const ConditionResult& one : result.conditions) all += bytes_of(one.tree);
  return all;
}

TEST_F(UnitsTest, SetupIsFoundOnceForAllShards) {
  const auto study = learned_study();
  const std::string bits = all_bytes(run(study, {.threads = 1}));
  const std::string path = at(setup_file_name);
  {
    headlab::Setup setup(path, "study", "cpu");
    EXPECT_FALSE(setup.find(study->conditions[0]));
    EXPECT_EQ(all_bytes(run(study, {.threads = 1}, {.setup = &setup})), bits);
  }
  headlab::Setup setup(path, "study", "cpu");
  const auto found = setup.find(study->conditions[0]);
  ASSERT_TRUE(found && found->heads);
  EXPECT_EQ(found->heads->fit.history.size(),
            learn_heads(study->conditions[0], {.threads = 1})->heads->fit.history.size());
  EXPECT_EQ(all_bytes(run(study, {.threads = 1}, {.setup = &setup})), bits);
  // What is kept is used, whatever it is: here the heads of other data.
  const auto other = learned_study("\n[sweep]\n\"data.n\" = [30]\n");
  Preparation wrong = *learn_heads(other->conditions[0], {.threads = 1});
  std::filesystem::remove(path);
  headlab::Setup of_others(path, "study", "cpu");
  of_others.keep(study->conditions[0], wrong, {});
  // What came first stays.
  of_others.keep(study->conditions[0], *found, {});
  headlab::Setup read(path, "study", "cpu");
  EXPECT_NE(all_bytes(run(study, {.threads = 1}, {.setup = &read})), bits);
  EXPECT_EQ(refusal_line([&] { headlab::Setup(path, "another", "cpu"); }),
            "--shard: " + path +
                ": is of other settings, another seed, other data or another backend - remove it, "
                "or choose "
                "another folder");
}

TEST_F(UnitsTest, SetupIsNotWaitedForByARunThatIsStopped) {
  const auto study = learned_study();
  const Preparation found = *learn_heads(study->conditions[0], {.threads = 1});
  const int other =
      ::open(at(".headlab-lock-setup.nc").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  ASSERT_TRUE(wait_for_lock(other, {}));
  headlab::Setup setup(at(setup_file_name), "study", "cpu");
  setup.keep(study->conditions[0], found, [] { return true; });
  EXPECT_FALSE(std::filesystem::exists(at(setup_file_name)));
  ::close(other);
  setup.keep(study->conditions[0], found, [] { return true; });
  EXPECT_TRUE(std::filesystem::exists(at(setup_file_name)));
}

}  // namespace
}  // namespace headlab
