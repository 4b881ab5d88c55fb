// SPDX-License-Identifier: Apache-2.0
// The manifest of a data set names shards of this data set alone.
#include "engine/dataset/manifest.h"

#include "engine/scenario/scenario.h"
#include "tools/fuzz/target.h"

namespace headlab::fuzz {
namespace {

const Provenance maker = {"1", "2", "3", "4"};

const Dataset& data_set() {
  static const Dataset made = plan_dataset(parse_scenario(R"([scenario]
name = "fuzz"
[data]
n = 4
design = { law = "normal", dim = 2 }
regression = { law = "zero" }
noise = { law = "normal", sd = 0.5 }
[heads]
count = 1
dim = 1
subspaces = { law = "haar" }
kernel = { law = "gaussian", bandwidth = 0.5 }
[queries]
law = "points"
points = [[0, 0]]
[run]
seed = 1
replicates = 8
)",
                                                          "fuzz"),
                                           {.shards = 2});
  return made;
}

void read_shards(const std::string& bytes) {
  const ShardRecords records = read_manifest(file_of(bytes), data_set(), maker);
  for (const auto& [id, files] : records) {
    require(id.first < data_set().conditions.size() &&
                id.second < data_set().conditions[id.first].shards,
            "a shard that the data set does not have");
  }
}

std::vector<NamedInput> manifest_seeds() {
  return {
      {"without_shards", manifest_json(data_set(), {}, maker)},
      {"first_shard",
       manifest_json(data_set(), {{{0, 0}, {{"condition_000/shard_000.nc", 7, "ab"}}}}, maker)}};
}

}  // namespace

const Target reader::manifest = {"manifest", read_shards, nullptr, manifest_seeds};

}  // namespace headlab::fuzz
