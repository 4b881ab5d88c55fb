// SPDX-License-Identifier: Apache-2.0
#include "engine/shards/cut.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/json_reader.h"
#include "engine/files/json_writer.h"
#include "engine/files/sha256.h"
#include "engine/run/forecast.h"
#include "engine/run/simulate.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/scenario.h"
#include "kernels/counted.h"
#include "kernels/plan.h"

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

namespace {

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return number;
}

[[noreturn]] void reject_choice(const std::string& problem) {
  throw InvalidInput("--shard: " + problem);
}

/// The number in a variable, nothing where it is not set.
std::optional<std::uint64_t> number_in(const Environment& environment, const char* name) {
  const char* text = environment(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  const auto number = whole_number(text);
  if (!number)
    reject_choice(std::string(name) + " is \"" + one_line(text, 40) + "\", which is not a number");
  return number;
}

/// A rank among several.
struct Ranks {
  const char* rank;
  const char* size;
  const char* needs;  ///< a variable that has to be set too, or null
};

// A step of Slurm has its own size. A batch script has rank 0 of its job, which chooses nothing.
constexpr Ranks all_ranks[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", nullptr},
    {"PMI_RANK", "PMI_SIZE", nullptr},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"},
};

/// The shard of a rank.
std::optional<ShardChoice> by_rank(const Environment& environment, const Ranks& ranks) {
  if (ranks.needs && !number_in(environment, ranks.needs)) return std::nullopt;
  const auto rank = number_in(environment, ranks.rank);
  const auto size = number_in(environment, ranks.size);
  if (!rank || !size) return std::nullopt;
  return ShardChoice{
      *rank + 1, *size,
      std::string(ranks.rank) + " " + std::to_string(*rank) + " of " + std::to_string(*size)};
}

[[noreturn]] void reject_array(std::uint64_t task) {
  reject_choice("auto: task " + std::to_string(task) +
                " is of an array with gaps, which does not tell the number of shards - write "
                "--shard auto/N");
}

/// The shard of a task of an array; `fixed` is the number of shards where it was given.
std::optional<ShardChoice> by_array(const Environment& environment,
                                    std::optional<std::uint64_t> fixed) {
  const auto task = number_in(environment, "SLURM_ARRAY_TASK_ID");
  if (!task) return std::nullopt;
  const std::string name = "SLURM_ARRAY_TASK_ID " + std::to_string(*task);
  if (fixed) return ShardChoice{*task, *fixed, name};
  const auto first = number_in(environment, "SLURM_ARRAY_TASK_MIN");
  const auto last = number_in(environment, "SLURM_ARRAY_TASK_MAX");
  const std::uint64_t step = number_in(environment, "SLURM_ARRAY_TASK_STEP").value_or(1);
  const auto count = number_in(environment, "SLURM_ARRAY_TASK_COUNT");
  if (!first || !last || step < 1 || *task < *first || *task > *last) reject_array(*task);
  const std::uint64_t shards = (*last - *first) / step + 1;
  if ((*task - *first) % step != 0 || count.value_or(shards) != shards) reject_array(*task);
  return ShardChoice{(*task - *first) / step + 1, shards,
                     name + " of " + std::to_string(*first) + "-" + std::to_string(*last) +
                         (step > 1 ? ":" + std::to_string(step) : "")};
}

/// Throws InvalidInput unless the shard is one of them.
ShardChoice checked(ShardChoice choice) {
  if (choice.shards < 1 || choice.shards > max_shards) {
    reject_choice(counted(choice.shards, "shard") + " (allowed: 1 to " +
                  std::to_string(max_shards) + ")");
  }
  if (choice.shard < 1 || choice.shard > choice.shards) {
    reject_choice("there is no shard " + std::to_string(choice.shard) + " of " +
                  std::to_string(choice.shards) + " (allowed: 1/" + std::to_string(choice.shards) +
                  " to " + std::to_string(choice.shards) + "/" + std::to_string(choice.shards) +
                  ")" +
                  (choice.chosen_by.starts_with("--") ? "" : ": here by " + choice.chosen_by));
  }
  return choice;
}

}  // namespace

ShardChoice choose_shard(const std::string& text, const Environment& environment) {
  const std::size_t slash = text.find('/');
  const std::string shard = text.substr(0, slash);
  std::optional<std::uint64_t> shards;
  if (slash != std::string::npos) shards = whole_number(std::string_view(text).substr(slash + 1));
  const bool automatic = shard == "auto";
  const auto number = whole_number(shard);
  if ((slash != std::string::npos || !automatic) && (!shards || !(automatic || number))) {
    reject_choice("\"" + one_line(text, 40) +
                  "\" is not a shard (allowed: I/N, as 3/8, auto or auto/N)");
  }
  if (!automatic) return checked({*number, *shards, "--shard " + text});
  std::optional<ShardChoice> single;
  for (const Ranks& ranks : all_ranks) {
    auto found = by_rank(environment, ranks);
    if (!found) continue;
    if (found->shards == 1) {
      single = found;
      continue;
    }
    if (shards) found->shards = *shards;
    return checked(*found);
  }
  if (const auto found = by_array(environment, shards)) return checked(*found);
  if (single && !shards) return checked(*single);
  reject_choice(
      "auto: nothing here tells which shard - start headlab by srun, mpirun or as a task of a "
      "Slurm "
      "array, or write --shard I/N");
}

}  // namespace headlab
