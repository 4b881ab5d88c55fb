// SPDX-License-Identifier: Apache-2.0
/// \file The files of shards in folders.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/files/netcdf/calls.h"
#include "engine/files/provenance.h"
#include "engine/results/share.h"

namespace headlab {

/// "shard_3_of_8.nc"
std::string shard_file_name(std::uint64_t shard, std::uint64_t shards);

/// (shard, shards) of a file name, nothing where it is that of no shard.
std::optional<std::pair<std::uint64_t, std::uint64_t>> shard_of_name(const std::string& name);

/// What a shard's file says of itself.
struct ShardFile {
  std::string path;
  Share share;
  Machine machine;
  std::vector<std::pair<std::string, std::string>> program;  ///< (attribute, value)
  std::string seed;                                          ///< empty where a sweep varies it
  std::string scenario_file, scenario_text, sets;
  bool complete = false;
  std::vector<std::uint64_t> replicates;  ///< of each part that was begun
  std::vector<double> seconds;            ///< of their simulation

  /// Cost of all replicates, and of those that are there.
  double work() const;
  double work_done() const;
  double seconds_taken() const;
};

/// Paths of all shards in the folders, by number. Throws InvalidInput for a folder that cannot be
/// read.
std::vector<std::string> shard_paths(const std::vector<std::string>& folders);

/// Reads what a shard says of itself. Throws InvalidInput with one line.
ShardFile read_shard_file(const std::string& path);

/// What is said of a shard that cannot be read, and what to do: it may be whole, and memory short.
std::string no_shard(const NetcdfError& error);

/// "2 and 5", "2, 3 and 5", or the first of many and how many there are.
std::string shards_text(const std::vector<std::uint64_t>& shards);

/// The command that makes a shard.
std::string shard_command(const ShardFile& like, std::uint64_t shard, std::uint64_t shards,
                          const std::string& folder);

}  // namespace headlab
