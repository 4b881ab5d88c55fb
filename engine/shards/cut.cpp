// SPDX-License-Identifier: Apache-2.0
#include "engine/shards/cut.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <stdexcept>
#include <utility>

#include "engine/files/document.h"
#include "engine/files/json_reader.h"
#include "engine/files/json_writer.h"
#include "engine/files/sha256.h"
#include "engine/run/forecast.h"
#include "engine/run/simulate.h"

namespace headlab {
namespace {

/// Sum of all weights, so that products with a number of shards stay exact.
constexpr double whole_weight = 0x1p56;

/// Fingerprint of what all shards of a study have in common.
std::string study_sum(const Scenario& scenario, std::size_t together) {
  // What the text says, whatever its comments and the order of its keys.
  return sha256_of_texts({"shards 2", std::to_string(together),
                          to_json(parse_json(to_json(scenario_tree(scenario))).value())});
}

}  // namespace

ScenarioCut::ScenarioCut(const Scenario& scenario, std::size_t together)
    : together_(together), study_(study_sum(scenario, together)) {
  std::vector<Plan> plans;
  plans.reserve(scenario.conditions.size());
  std::vector<const Plan*> pointers;
  for (const Condition& condition : scenario.conditions) {
    plans.push_back(make_plan(without_preparation(condition)));
    if (plans.size() > 1) plans.back().table.share_with(plans[plans.size() - 2].table);
    pointers.push_back(&plans.back());
    work_.push_back(replicate_work(plans.back()));
  }
  double cost = 0;
  std::vector<double> leaf_cost;
  for (ConditionGroup& group :
       groups_by_draws(scenario, pointers, all_replicates(scenario), together)) {
    const std::uint64_t replicates = scenario.conditions[group[0]].replicates;
    // As the tree of the whole run has them.
    const bool single = node_replicates(plans[group[0]].kept_layout(), replicates) == 1;
    const std::uint64_t leaf = single ? 1 : leaf_replicates;
    const std::uint64_t leaves = (replicates + leaf - 1) / leaf;
    double work = 0;
    for (const std::size_t i : group) work += work_[i];
    leaf_cost.push_back(static_cast<double>(leaf) * work);
    cost += static_cast<double>(leaves) * leaf_cost.back();
    groups_.push_back({std::move(group), replicates, leaf, leaves, 1});
    leaves_ += leaves;
  }
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const double weight = leaf_cost[g] / cost * whole_weight;
    groups_[g].weight = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(weight));
    weight_ += groups_[g].weight * groups_[g].leaves;
  }
}

std::uint64_t ScenarioCut::end_of(std::uint64_t shard, std::uint64_t shards) const {
  // floor(weight_ shard / shards), without a product that is too large.
  std::uint64_t weight = weight_ / shards * shard + weight_ % shards * shard / shards;
  std::uint64_t leaves = 0;
  for (const Group& group : groups_) {
    if (weight < group.weight * group.leaves) return leaves + weight / group.weight;
    weight -= group.weight * group.leaves;
    leaves += group.leaves;
  }
  return leaves_;
}

Share ScenarioCut::share(std::uint64_t shard, std::uint64_t shards) const {
  if (shard < 1 || shard > shards || shards > max_shards) {
    throw std::invalid_argument("no such shard");
  }
  Share share{.shard = shard,
              .shards = shards,
              .study = study_,
              .begin = end_of(shard - 1, shards),
              .end = end_of(shard, shards),
              .leaves = leaves_,
              .together = together_};
  std::uint64_t first = 0;  // leaf of a group
  for (const Group& group : groups_) {
    const std::uint64_t begin = std::max(share.begin, first);
    const std::uint64_t end = std::min(share.end, first + group.leaves);
    if (begin < end) {
      const std::uint64_t from = (begin - first) * group.leaf;
      const std::uint64_t to = std::min((end - first) * group.leaf, group.replicates);
      for (const std::size_t i : group.conditions) {
        share.parts.push_back({i, {from, to - from, group.replicates}, work_[i]});
      }
    }
    first += group.leaves;
  }
  std::ranges::sort(share.parts, {}, &SharePart::condition);
  return share;
}

Scenario scenario_of(const Scenario& scenario, const Share& share) {
  Scenario part{.file = scenario.file,
                .text = scenario.text,
                .sets = scenario.sets,
                .swept = scenario.swept,
                .conditions = {},
                .inputs = scenario.inputs};
  for (const SharePart& one : share.parts) {
    part.conditions.push_back(scenario.conditions.at(one.condition));
  }
  return part;
}

}  // namespace headlab
