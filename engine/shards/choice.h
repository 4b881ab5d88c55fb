// SPDX-License-Identifier: Apache-2.0
/// \file Which shard a process is to simulate, as told or by what started it.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/host.h"

namespace headlab {

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
