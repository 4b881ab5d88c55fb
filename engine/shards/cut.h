// SPDX-License-Identifier: Apache-2.0
/// \file How a scenario is cut into shards, and which of them a process is to simulate, as told or
/// by what started it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/results/share.h"
#include "engine/run/condition_groups.h"
#include "kernels/host.h"

namespace headlab {

struct Scenario;

/// Most shards of a scenario.
inline constexpr std::uint64_t max_shards = 1'000'000;

/// All leaves of a scenario in one row: group of conditions after group, and the leaves of a group
/// in their order. Below 256 replicates a leaf is one replicate. Shards are sections of the row of
/// equal cost, so that a few conditions are cut between leaves and many between conditions. The cut
/// depends on the scenario and on the number of shards alone; cuts at the same fraction are the
/// same.
class ScenarioCut {
 public:
  /// \param together  most conditions of a group: Backend::plans_together()
  ScenarioCut(const Scenario& scenario, std::size_t together);

  std::uint64_t leaves() const { return leaves_; }
  /// The leaf that the first `shard` of `shards` shards end with; 0 <= shard <= shards.
  std::uint64_t end_of(std::uint64_t shard, std::uint64_t shards) const;
  /// Share of a shard, counted from 1. It may have no replicates.
  Share share(std::uint64_t shard, std::uint64_t shards) const;

 private:
  /// Conditions that are simulated together.
  struct Group {
    ConditionGroup conditions;
    std::uint64_t replicates;
    std::uint64_t leaf;    ///< its replicates
    std::uint64_t leaves;  ///< their number
    std::uint64_t weight;  ///< of a leaf, proportional to its cost
  };

  std::vector<Group> groups_;
  std::vector<double> work_;  ///< of a replicate of each condition
  std::uint64_t leaves_ = 0;
  std::uint64_t weight_ = 0;
  std::uint64_t together_;
  std::string study_;
};

/// The scenario with the conditions of a share alone.
Scenario scenario_of(const Scenario& scenario, const Share& share);

/// Shard `shard` of `shards`, counted from 1.
struct ShardChoice {
  std::uint64_t shard = 1;
  std::uint64_t shards = 1;
  std::string chosen_by = {};  ///< "--shard 3/8", or the variables of the environment
};

/// Reads "I/N", "auto" or "auto/N". By `auto` the environment chooses, the first of: ranks of Open
/// MPI, of PMI, of a step of Slurm, the task of an array of Slurm; a single rank chooses nothing.
/// With "auto/N" the task number of an array is the shard, so that one task can be run again alone.
/// Throws InvalidInput("--shard: ...").
ShardChoice choose_shard(const std::string& text, const Environment& environment);

}  // namespace headlab
