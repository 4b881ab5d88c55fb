// SPDX-License-Identifier: Apache-2.0
#include "engine/results/results_share.h"

#include <utility>

namespace headlab {
namespace {

constexpr const char* shard_attribute = "shard";

std::vector<std::int64_t> of_parts(const Share& share, std::uint64_t ReplicateRange::*number) {
  std::vector<std::int64_t> all;
  for (const SharePart& part : share.parts) {
    all.push_back(static_cast<std::int64_t>(part.range.*number));
  }
  return all;
}

}  // namespace

void write_share(const NetcdfGroup& root, const Share& share) {
  const auto put = [&](const char* name, std::uint64_t number) {
    root.put_attribute(name, static_cast<std::int64_t>(number));
  };
  put(shard_attribute, share.shard);
  put("shards", share.shards);
  root.put_attribute("shard_chosen_by", share.chosen_by);
  root.put_attribute("shard_study", share.study);
  put("shard_begin", share.begin);
  put("shard_end", share.end);
  put("shard_leaves", share.leaves);
  put("shard_together", share.together);
  root.put_attribute("shard_directory", share.directory);
  put("shard_parts", share.parts.size());
  if (share.parts.empty()) return;
  root.define_dimension("part", share.parts.size());
  std::vector<std::int64_t> conditions;
  std::vector<double> work;
  for (const SharePart& part : share.parts) {
    conditions.push_back(static_cast<std::int64_t>(part.condition));
    work.push_back(part.work);
  }
  root.write("part_condition", {"part"}, {"condition of the scenario, from 0"}, conditions);
  root.write("part_first", {"part"}, {"first replicate of the shard"},
             of_parts(share, &ReplicateRange::first));
  root.write("part_replicates", {"part"}, {"replicates of the shard"},
             of_parts(share, &ReplicateRange::replicates));
  root.write("part_total", {"part"}, {"replicates of the condition in all shards"},
             of_parts(share, &ReplicateRange::total));
  root.write("part_work", {"part"}, {"cost of a replicate in kernel weights"}, work);
}

std::optional<Share> read_share(const NetcdfGroup& root) {
  if (!root.has_attribute(shard_attribute)) return std::nullopt;
  const auto number = [&](const char* name) {
    const std::int64_t value = root.integer_attribute(name);
    if (value < 0) throw NetcdfError(std::string(name) + ": is negative");
    return static_cast<std::uint64_t>(value);
  };
  Share share{.shard = number(shard_attribute),
              .shards = number("shards"),
              .chosen_by = root.text_attribute("shard_chosen_by"),
              .study = root.text_attribute("shard_study"),
              .begin = number("shard_begin"),
              .end = number("shard_end"),
              .leaves = number("shard_leaves"),
              .together = number("shard_together"),
              .directory = root.text_attribute("shard_directory")};
  if (share.shard < 1 || share.shard > share.shards || share.begin > share.end ||
      share.end > share.leaves || share.together < 1) {
    throw NetcdfError("its share is none");
  }
  const std::uint64_t parts = number("shard_parts");
  if (parts == 0) return share;
  const auto conditions = root.integers("part_condition");
  const auto first = root.integers("part_first");
  const auto replicates = root.integers("part_replicates");
  const auto total = root.integers("part_total");
  const auto work = root.doubles("part_work");
  if (conditions.size() != parts || first.size() != parts || replicates.size() != parts ||
      total.size() != parts || work.size() != parts) {
    throw NetcdfError("part: variables of different lengths");
  }
  for (std::size_t i = 0; i < parts; ++i) {
    if (conditions[i] < 0 || first[i] < 0 || replicates[i] < 0 || total[i] < 0) {
      throw NetcdfError("part: is negative");
    }
    share.parts.push_back(
        {.condition = static_cast<std::size_t>(conditions[i]),
         .range = {static_cast<std::uint64_t>(first[i]), static_cast<std::uint64_t>(replicates[i]),
                   static_cast<std::uint64_t>(total[i])},
         .work = work[i]});
  }
  return share;
}

}  // namespace headlab
