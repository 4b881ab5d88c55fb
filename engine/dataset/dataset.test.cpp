// SPDX-License-Identifier: Apache-2.0
#include "engine/dataset/dataset.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/dataset/sequence_states.h"
#include "engine/scenario/world.h"
#include "engine/testing/refusal.h"

namespace headlab {

namespace {

const std::string plain_scenario =
    World{.n = "100",
          .design = "{ law = 'normal', dim = 5 }",
          .noise = "{ law = 'normal', sd = 0.5 }",
          .heads = "count = 2\ndim = 1\nsubspaces = { law = 'orthogonal' }",
          .kernel = "{ law = 'gaussian', bandwidth = 0.8 }",
          .points = "[[0, 0, 0, 0, 0], [1, 0, 0, 0, 0], [0, 1, 0, 0, 0]]",
          .run = "replicates = 10"}
        .text();

std::string refusal(const DatasetRequest& request, const std::vector<std::string>& sets = {}) {
  return refusal_line([&] { plan_dataset(parse_scenario(plain_scenario, "test", sets), request); });
}

TEST(Dataset, CutsReplicatesIntoShardsThatDifferByOneAtMost) {
  for (const std::uint64_t replicates : {1, 2, 7, 64, 1000}) {
    for (std::uint64_t shards = 1; shards <= replicates; shards += 3) {
      std::uint64_t next = 0;
      for (std::uint64_t shard = 0; shard < shards; ++shard) {
        const ShardRange range = shard_range(replicates, shards, shard);
        EXPECT_EQ(range.first, next);
        EXPECT_GE(range.count, replicates / shards);
        EXPECT_LE(range.count, (replicates + shards - 1) / shards);
        next += range.count;
      }
      EXPECT_EQ(next, replicates);
    }
  }
  // As many as there may be, where products leave 64 bits.
  constexpr std::uint64_t most = (std::uint64_t{1} << 40) - 1;
  EXPECT_EQ(shard_range(most, most - 1, most - 2).first, most - 1);
  EXPECT_EQ(shard_range(most, most - 1, most - 2).count, 1u);
}

TEST(Dataset, KnowsItsVariables) {
  const Scenario scenario = parse_scenario(plain_scenario, "test");
  const auto shapes = [&](const DatasetRequest& request) {
    std::string line;
    for (const DatasetVariable& variable : dataset_variables(scenario.conditions[0], request, 4)) {
      line += variable.name;
      for (const std::uint64_t length : variable.shape) line += " " + std::to_string(length);
      line += variable.type == NumberType::float32 ? " f4; " : "; ";
    }
    return line;
  };
  const std::string always =
      "replicate 4; projections 2 5 1; queries 3 5; truth 3; X 4 100 5 f4; Y 4 100; m 4 100; "
      "noise_sd 4 100; ";
  EXPECT_EQ(shapes({}), always);
  EXPECT_EQ(shapes({.estimates = true, .weights = true}),
            always + "head_estimates 4 3 2; attention_weights 4 3 2 100; ");
}

TEST(Dataset, NamesAndSizesItsFiles) {
  const Scenario scenario =
      parse_scenario(plain_scenario, "test", {R"(sweep."data.n"=[100, 200])"});
  Dataset dataset = plan_dataset(scenario, {.shards = 3});
  ASSERT_EQ(dataset.conditions.size(), 2u);
  EXPECT_EQ(dataset.shard_path(1, 2), "condition_001/shard_002.nc");
  EXPECT_EQ(dataset.shard_files(1, 2), std::vector<std::string>{"condition_001/shard_002.nc"});
  // 4 replicates: their numbers, X, and Y, m and the scale; 2 x 5 + 3 x 5 + 3 constants.
  EXPECT_EQ(dataset.shard_bytes(0, 0), 4u * (8 + 100 * (5 * 4 + 3 * 8)) + 8 * (10 + 15 + 3));
  EXPECT_EQ(dataset.range(0, 1).first, 4u);

  dataset = plan_dataset(scenario, {.format = DatasetFormat::npy, .shards = 3});
  EXPECT_EQ(dataset.shard_path(0, 0), "condition_000/shard_000");
  EXPECT_EQ(dataset.shard_files(0, 0).size(), 8u);
  EXPECT_EQ(dataset.shard_files(0, 0)[4], "condition_000/shard_000/X.npy");
}

TEST(Dataset, MakesShardsOfAtMostAQuarterGiBByItself) {
  for (const std::uint64_t replicates : {1, 1000, 100000, 3000000}) {
    const std::string set = "run.replicates=" + std::to_string(replicates);
    const Dataset dataset = plan_dataset(parse_scenario(plain_scenario, "test", {set}), {});
    const std::uint64_t shards = dataset.conditions[0].shards;
    EXPECT_LE(dataset.shard_bytes(0, 0), max_shard_bytes + 8192);
    if (shards > 1) {
      EXPECT_GT(dataset.shard_bytes(0, 0), max_shard_bytes / 2);
    }
  }
}

TEST(Dataset, RefusesWhatCannotBeCut) {
  EXPECT_EQ(refusal({.shards = 10}), "accepted");
  EXPECT_EQ(refusal({.shards = 1'000'001}, {"run.replicates=2e6"}),
            "--shards: is 1000001, more than can be kept track of (allowed: 1 to 1000000)");
  EXPECT_EQ(plan_dataset(
                parse_scenario(plain_scenario, "test", {"run.replicates=1e12", "data.n=1e4"}), {})
                .conditions[0]
                .shards,
            max_shards_of_dataset);
  EXPECT_EQ(refusal({}, {"run.replicates=1e12", "data.n=1e11"}),
            "--replicates: 1,000,000,000,000 replicates take more than 2^60 bytes - lower "
            "--replicates");
}

TEST(Dataset, KnowsItsInputsByTheirSum) {
  const auto sum = [](const std::vector<std::string>& sets) {
    return plan_dataset(parse_scenario(plain_scenario, "test", sets), {})
        .conditions[0]
        .inputs_sha256;
  };
  EXPECT_EQ(sum({}), sum({"run.seed=5"}));
  EXPECT_NE(sum({}), sum({"data.regression={law=\"linear\", coefficients=[1, 2, 3, 4, 5]}"}));
  EXPECT_NE(sum({}), sum({"heads.subspaces.law=\"haar\""}));
}

}  // namespace

namespace {

TEST(SequenceStates, GiveThePlaceNearestBeforeAPart) {
  SequenceStates states;
  EXPECT_EQ(states.take(3, 64).next, 0u);
  states.put(3, {0, 32, {1}});
  states.put(3, {0, 96, {2}});
  states.put(3, {0, 64, {3}});
  EXPECT_EQ(states.take(3, 95).last, std::vector<float>{3});
  // It is another thread's until it is put back.
  EXPECT_EQ(states.take(3, 95).last, std::vector<float>{1});
  EXPECT_EQ(states.take(3, 95).next, 0u);
  EXPECT_EQ(states.take(4, 96).next, 0u);
  EXPECT_EQ(states.take(3, 96).last, std::vector<float>{2});
}

TEST(SequenceStates, ForgetEarlierReplicates) {
  SequenceStates states;
  states.put(3, {0, 32, {1}});
  states.put(4, {0, 32, {2}});
  EXPECT_EQ(states.take(3, 32).next, 0u);
  EXPECT_EQ(states.take(4, 32).last, std::vector<float>{2});
}

}  // namespace

}  // namespace headlab
