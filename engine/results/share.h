// SPDX-License-Identifier: Apache-2.0
/// \file The share of a scenario that one shard simulates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/moments/moment_tree.h"

namespace headlab {

/// What a shard has of one condition.
struct SharePart {
  std::size_t condition = 0;  ///< of the scenario, from 0
  ReplicateRange range = {};  ///< of its replicates
  double work = 0;            ///< of one replicate, as replicate_work()

  bool operator==(const SharePart&) const = default;
};

/// A share of a scenario's replicates. All leaves of its groups of conditions stand in one row; a
/// share is a section of the row.
struct Share {
  std::uint64_t shard = 1;  ///< from 1
  std::uint64_t shards = 1;
  std::string chosen_by = {};         ///< what named the shard, in words
  std::string study = {};             ///< SHA-256 of the scenario and of how it is cut
  std::uint64_t begin = 0;            ///< first leaf of the section
  std::uint64_t end = 0;              ///< after the last one
  std::uint64_t leaves = 0;           ///< of the row
  std::uint64_t together = 1;         ///< most conditions of a group
  std::string directory = {};         ///< that paths in the scenario are relative to
  std::vector<SharePart> parts = {};  ///< in the order of the conditions
};

/// "shard 3 of 8"
inline std::string shard_text(const Share& share) {
  return "shard " + std::to_string(share.shard) + " of " + std::to_string(share.shards);
}

}  // namespace headlab
