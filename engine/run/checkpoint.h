// SPDX-License-Identifier: Apache-2.0
/// \file Going on with a run that was stopped, from its results.nc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/files/netcdf/file.h"
#include "engine/files/provenance.h"
#include "engine/moments/moment_tree.h"
#include "engine/moments/precision.h"
#include "engine/results/results_reader.h"
#include "engine/results/share.h"

namespace headlab {

struct Plan;
struct Scenario;

/// What an earlier run has of one condition.
struct CheckpointCondition {
  MomentTree tree;
  std::string plan_sha256 = {};
  double seconds = 0;  ///< that its simulation took
};

/// What an earlier run of a scenario has.
struct Checkpoint {
  std::string path;                             ///< of its results.nc
  Machine machine;                              ///< that computed it
  std::vector<CheckpointCondition> conditions;  ///< the first ones of the scenario
  std::optional<Precision> precision = {};      ///< targets that it had, and looks at them

  /// Replicates of all conditions.
  std::uint64_t replicates() const;
  /// Wall time of their simulation.
  double seconds() const;
};

/// Reads what a run of `scenario` has left in its results file. The study may ask for more
/// replicates than the earlier one and have more conditions after those there; all else must be the
/// same, and so must the program, or the bits would not be those of a single run. Throws
/// InvalidInput with one line that says what differs.
/// \param share  not null: the file is a shard with this share, and `scenario` has the conditions
/// of its parts
Checkpoint read_checkpoint(const std::string& path, const Scenario& scenario,
                           const Provenance& program, const Share* share = nullptr);

/// What differs between this program and the one that wrote a file, "git X, this one is Y"; empty
/// where nothing does.
std::string other_program(const NetcdfGroup& root, const Provenance& program);

/// The tree of what a file stores of a condition, of all its replicates or of a range of them.
/// Throws std::invalid_argument where there is none.
MomentTree stored_tree(StoredCondition stored, const ReplicateRange* range = nullptr);

/// Throws InvalidInput unless this backend gives the bits of the run's: GPUs differ, processors of
/// one SIMD target do not.
void require_same_backend(const Checkpoint& begun, const Machine& machine);

/// Takes out what there is of condition `number` (from 0): nothing where it, or no run at all, was
/// begun. Throws InvalidInput where its plan has other numbers: a data file was edited.
CheckpointCondition restore(Checkpoint* begun, std::size_t number, const Plan& plan);

}  // namespace headlab
