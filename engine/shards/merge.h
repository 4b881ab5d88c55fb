// SPDX-License-Identifier: Apache-2.0
/// \file Shards -> the run that they are of.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/files/provenance.h"
#include "engine/run/checkpoint.h"
#include "engine/scenario/sweep.h"

namespace headlab {

struct Scenario;

/// What shards have of a scenario.
struct MergedShards {
  std::shared_ptr<const Scenario> scenario;
  Checkpoint run;            ///< of all of its conditions
  std::string study = {};    ///< of its shards: Share::study
  std::string missing = {};  ///< "shards 2 and 5 of 8", where some were left out
};

/// Joins all shards in the folders, read one after the other. Throws InvalidInput with one line
/// where two of them differ in more than their share or overlap, where one is of another program,
/// and, unless `allow_missing`, where one is missing or not complete: the line has the command that
/// makes it.
MergedShards merge_shards(const std::vector<std::string>& folders, const Provenance& program,
                          bool allow_missing, const ReadHooks& hooks = {});

}  // namespace headlab
